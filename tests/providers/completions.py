"""Chat completions, as many other services speak them, as a model backend: one module."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final

import httpx2

from tui.engine.chats.backends.backend import ModelChunk, ModelError, ModelRequest, ModelTraits
from tui.model.chat import Usage
from tui.model.models import ModelOffer
from tui.text import sanitize_line

IDLE: Final = 30.0
"""Seconds without data after which an answer is given up."""

_FINISH: Final = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS"}

_Json = dict[str, Any]


class CompletionsBackend:
    """A `ModelBackend` over HTTP and server-sent events.

    Args:
        address: Where the service is.
        key: Its key.
        model: The model's name; empty for ``large``.
    """

    kind = "Completions"

    def __init__(self, address: str, key: str, model: str) -> None:
        self.model = model or "large"
        self.traits = ModelTraits(context_limit=128_000, thinking_problem=_thinking_problem)
        self._http = httpx2.AsyncClient(
            base_url=address, headers={"authorization": f"Bearer {key}"}, timeout=IDLE
        )

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream one step; calls arrive in pieces, and are given whole at its end."""
        calls: dict[int, _Json] = {}
        try:
            async with self._http.stream("POST", "/chat", json=self._body(request)) as answer:
                await _check_status(answer)
                async for line in answer.aiter_lines():
                    data = line.removeprefix("data: ")
                    if data in {line, "[DONE]"}:
                        continue
                    yield self._chunk(json.loads(data), calls)
        except (httpx2.HTTPError, ValueError) as error:
            raise _lost(error) from error

    async def models(self) -> Sequence[ModelOffer]:
        try:
            answer = await self._http.get("/models")
            await _check_status(answer)
            return [ModelOffer(sanitize_line(one["id"], 100)) for one in answer.json()["data"]]
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            raise _lost(error) from error

    async def count(self, request: ModelRequest) -> int:  # noqa: ARG002
        return 0

    async def check(self) -> None:
        await self.models()

    async def aclose(self) -> None:
        await self._http.aclose()

    def _body(self, request: ModelRequest) -> _Json:
        system = {"role": "system", "content": request.system_instruction}
        body: _Json = {
            "model": self.model,
            "stream": True,
            "messages": [
                *([system] if request.system_instruction else []),
                *(message for content in request.contents for message in _messages(content)),
            ],
        }
        if request.declarations:
            body["tools"] = [_tool(declaration) for declaration in request.declarations]
            body["tool_choice"] = "required" if request.must_call else "auto"
        options = {
            "max_tokens": request.max_output_tokens or request.options.max_output,
            "temperature": request.options.temperature,
            "reasoning_effort": request.options.thinking,
        }
        return body | {name: value for name, value in options.items() if value is not None}

    def _chunk(self, data: _Json, calls: dict[int, _Json]) -> ModelChunk:
        if "error" in data:
            raise ModelError(sanitize_line(str(data["error"].get("message", ""))), retryable=True)
        choice: _Json = next(iter(data.get("choices", ())), {})
        delta, ending = choice.get("delta", {}), choice.get("finish_reason")
        parts: list[_Json] = []
        if thought := delta.get("reasoning_content"):
            parts.append({"text": thought, "thought": True})
        if text := delta.get("content"):
            parts.append({"text": text})
        for piece in delta.get("tool_calls", ()):
            call = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] += piece.get("id", "")
            for name, words in piece.get("function", {}).items():
                call[name] += words
        finish = _FINISH.get(ending, "OTHER") if ending else ""
        if ending:
            try:
                parts += [_wire_call(call) for _, call in sorted(calls.items())]
            except ValueError:
                finish = "MALFORMED_FUNCTION_CALL"
        return ModelChunk(tuple(parts), finish, usage=self._usage(data.get("usage")))

    def _usage(self, counted: _Json | None) -> Usage | None:
        if not counted:
            return None
        prompt, thoughts = counted["prompt_tokens"], counted.get("reasoning_tokens", 0)
        output = counted["completion_tokens"] - thoughts
        cached = counted.get("cached_tokens", 0)
        return Usage(prompt, output, thoughts, cached, prompt, self.traits.context_limit)


def _thinking_problem(chosen: str) -> str:
    return "" if chosen in {"low", "high"} else "This model thinks low or high."


def _messages(content: Mapping[str, Any]) -> Iterator[_Json]:
    """Translate one content; every result of a tool is a message of its own."""
    texts: list[str] = []
    calls: list[_Json] = []
    for part in content["parts"]:
        match part:
            case {"functionResponse": response}:
                said = response["response"]
                words = said.get("output", said.get("error", ""))
                yield {"role": "tool", "tool_call_id": response["id"], "content": words}
            case {"functionCall": call}:
                function = {"name": call["name"], "arguments": json.dumps(call.get("args") or {})}
                calls.append({"id": call["id"], "type": "function", "function": function})
            case {"text": text}:
                texts.append(text)
            case {"inlineData": media}:
                texts.append(f"[{media['mimeType']} is left out]")
    if texts or calls:
        role = "assistant" if content["role"] == "model" else "user"
        message: _Json = {"role": role, "content": "\n".join(texts)}
        yield message | ({"tool_calls": calls} if calls else {})


def _tool(declaration: Mapping[str, Any]) -> _Json:
    function = {
        "name": declaration["name"],
        "description": declaration.get("description", ""),
        "parameters": declaration.get("parametersJsonSchema", {"type": "object"}),
    }
    return {"type": "function", "function": function}


def _wire_call(call: Mapping[str, str]) -> _Json:
    arguments = json.loads(call["arguments"] or "{}")
    return {"functionCall": {"id": call["id"], "name": call["name"], "args": arguments}}


async def _check_status(answer: httpx2.Response) -> None:
    """Raise the service's refusal as an error with advice."""
    if answer.status_code == 200:
        return
    words = sanitize_line((await answer.aread()).decode(errors="replace"), 300)
    match answer.status_code:
        case 401:
            raise ModelError(f"The key was not accepted: {words}", advice="Enter another one.")
        case 429:
            raise ModelError(f"Too many requests: {words}", retryable=True, retry_after=0.0)
        case code:
            raise ModelError(f"The service refused (HTTP {code}): {words}", retryable=code >= 500)


def _lost(error: Exception) -> ModelError:
    words = f"The connection to the model was lost ({type(error).__name__})."
    return ModelError(words, advice="Send the message again.", retryable=True)
