"""Services that speak chat completions as a model backend, over plain HTTP."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, Final

import httpx2

from tui.engine.chats.backends.backend import (
    ALL_TOOLS,
    ModelChunk,
    ModelError,
    ModelRequest,
    ModelTraits,
)
from tui.engine.chats.backends.completions_wire import (
    Json,
    StepReader,
    WireNames,
    read_offer,
    wire_messages,
    wire_tools,
)
from tui.engine.chats.backends.event_stream import read_events, read_values
from tui.engine.chats.backends.service_errors import (
    MAX_RETRY_AFTER,
    Refusal,
    RequestContext,
    from_status,
    seconds,
    translate,
    wrong_api,
)
from tui.engine.chats.backends.service_http import (
    MAX_MODELS,
    MAX_STEP_BYTES,
    answering,
    open_http,
)
from tui.engine.keys.credentials import ModelAccess
from tui.engine.keys.services import ModelService
from tui.model.bounded_json import as_list, text_in, value_or_none
from tui.model.models import ModelOffer
from tui.model.settings import GemdeckSettings, ServiceModel

LEVELS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")
"""The efforts of reasoning; not every model has all."""

_PART: Final = "the part before /chat/completions, often with /v1"

_TAKES_NO_TOOLS: Final = re.compile(
    r"(?:not|n't) (?:support|accept) (?:tools|tool use|tool calling|function)|support tool use|"
    r"(?:tools?|tool use|tool calling|function calling) (?:is|are) not supported|"
    r"--jinja|enable-auto-tool-choice",
    re.IGNORECASE,
)
"""How services say that a model takes no tools."""

_NO_PICTURES: Final = re.compile(r"(?:image|audio|media) input|mmproj", re.IGNORECASE)
"""How llama.cpp says, as an error of its own, that a model takes no pictures."""

_REFUSED: Final = frozenset({400, 404, 422, 500, 501})

NOTHING: Final = ModelChunk()
"""What says nothing."""


class _AgainError(Exception):
    """The same request may go out once more in other words."""


class CompletionsBackend:
    """Implements `ModelBackend` for one model of a service.

    Args:
        access: The service, and the key for it if there is one.
        settings: Name the model, with its service, and say how to ask it.

    Raises:
        ModelError: If the HTTP client cannot be created.
    """

    def __init__(self, access: ModelAccess, settings: GemdeckSettings) -> None:
        service = access.service or ModelService("", "")
        self.kind, self.model = service.name, settings.model
        self._service, self._thoughts = service, settings.thoughts
        self._name = settings.model.removeprefix(f"{service.name}/")
        self._said = service.models.get(self._name) or ServiceModel()
        self._offer = ModelOffer(settings.model)
        self._without: set[str] = set()
        secret = access.api_key.get_secret_value() if access.api_key else ""
        self._headers = dict(access.headers)
        if secret and "authorization" not in map(str.lower, self._headers):
            self._headers["authorization"] = f"Bearer {secret}"
        self._context = RequestContext(
            *(service.name, self._name, service.url, settings.idle_timeout),
            secrets=access.secrets,
            api="a service of chat completions",
            place=f"the address of {service.name} (gemdeck.services)",
            key_advice=f"Enter its key: gemdeck key set --service {service.name}",
        )
        self._http, _ = open_http(settings.idle_timeout, service.url)

    @property
    def traits(self) -> ModelTraits:
        """What the user says of the model, and what its service has said so far."""
        return ModelTraits(
            self._said.context or self._offer.context_limit,
            thinking_problem=self._thinking_problem,
            tools=self._offer.tools is not False,
            plain_schemas=True,
        )

    def _thinking_problem(self, chosen: str) -> str:
        if self._offer.thinking is False:
            return f"{self.model} has no thinking to set."
        words = f"{self.model} thinks at one of the levels {', '.join(LEVELS)}."
        return "" if chosen in LEVELS else words

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream one step; see `ModelBackend.stream`. Calls are given whole at its end."""
        names = WireNames(request.declarations)
        context = replace(self._context, tools=names.declared)
        while True:
            try:
                async with aclosing(self._answer(request, names, context)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                        await asyncio.sleep(0)  # many at once would hold up the loop
                return
            except _AgainError:
                continue
            except Exception as error:  # noqa: BLE001 - whatever an answer makes of its readers
                told = translate(error, context)
                if told.refused_tool not in {"", ALL_TOOLS}:
                    told.refused_tool = names.meant(told.refused_tool)
                raise told from None

    async def models(self) -> Sequence[ModelOffer]:
        """Ask the service for its models, and learn what it says of this one."""
        async with answering(self._translated):
            listed = await self._listed()
        found = [read_offer(one, self._service.name) for one in listed[:MAX_MODELS]]
        self._offer = next((one for one in found if one.name == self.model), self._offer)
        return found

    async def count(self, request: ModelRequest) -> int:  # noqa: ARG002
        """Return 0: these services count nothing before they are asked."""
        return 0

    async def check(self) -> None:
        """See whether the service lists its models, which all of them can."""
        await self.models()

    async def aclose(self) -> None:
        await self._http.aclose()

    def _translated(self, error: Exception) -> ModelError:
        return translate(error, self._context)

    async def _listed(self) -> list[Mapping[str, Any]]:
        url = f"{self._service.url}/models"
        async with self._http.stream("GET", url, headers=self._headers) as answer:
            refusal = await self._refusal(answer)
            if refusal is not None and refusal.code in {404, 405, 501}:
                raise wrong_api(self._context, f"it answered with HTTP {refusal.code}", _PART)
            if refusal is not None:
                raise from_status(refusal, self._context)
            body = await answer.aread()
        if (listed := value_or_none(body)) is None:
            raise ValueError(body[:2_000].decode(errors="replace"))
        if isinstance(listed, Mapping):
            listed = listed.get("data", listed.get("models"))
        if not isinstance(listed, list):
            raise wrong_api(self._context, "it named none", _PART)
        return [one for one in listed if isinstance(one, Mapping)]

    async def _answer(
        self, request: ModelRequest, names: WireNames, context: RequestContext
    ) -> AsyncGenerator[ModelChunk, None]:
        body = self._body(request, names)
        reader, has_begun = StepReader(names, self.traits.context_limit), False
        headers = {**self._headers, "accept": "text/event-stream, application/json"}
        url = f"{self._service.url}/chat/completions"
        async with self._http.stream("POST", url, headers=headers, json=body) as answer:
            if (refusal := await self._refusal(answer)) is not None:
                raise self._refused(refusal, body, context)
            async with aclosing(read_events(answer.aiter_raw(), MAX_STEP_BYTES)) as events:
                async for event in events:
                    if event.data.strip() == "[DONE]":
                        reader.is_over = True
                        break
                    values = read_values(event.data)
                    if not values and event.name == "error":
                        values = [{"error": event.data}]
                    is_whole = event.is_ended or event.data.startswith("<")
                    if not values and is_whole and event.name == "message":
                        raise ValueError(event.data[:2_000])
                    for value in values:
                        if not isinstance(value, Mapping):
                            raise TypeError(str(value))
                        if _is_failure(value, event.name):
                            broken = self._read_refusal(200, value)
                            again = {} if has_begun else body
                            raise self._refused(broken, again, context)
                        chunk = reader.read(value)
                        chunk = chunk if self._thoughts else _without_thoughts(chunk)
                        if chunk != NOTHING:  # it only keeps the connection alive
                            has_begun = True
                            yield chunk
        if reader.has_read:
            yield reader.end()

    def _body(self, request: ModelRequest, names: WireNames) -> Json:
        options, without = request.options, self._without
        most = request.max_output_tokens or options.max_output
        limit = "max_completion_tokens" if "max_tokens" in without else "max_tokens"
        messages = wire_messages(
            request.contents,
            names,
            with_reasoning="reasoning" not in without,
            with_pictures=self._offer.pictures is not False,
        )
        system = request.system_instruction
        body: Json = {
            "model": self._name,
            "messages": [*([{"role": "system", "content": system}] if system else []), *messages],
            "stream": True,
            "stream_options": {"include_usage": True} if "stream_options" not in without else None,
            limit: most,
            "temperature": options.temperature,
            "reasoning_effort": options.thinking,
        }
        if request.declarations:
            body["tools"] = wire_tools(request.declarations, names)
            body["tool_choice"] = "required" if request.must_call else None
        return {key: body[key] for key in body if body[key] is not None} | self._said.options

    async def _refusal(self, answer: httpx2.Response) -> Refusal | None:
        """Return what the service answered in place of what it was asked for."""
        if answer.status_code < 300:
            return None
        body = await answer.aread()
        said = value_or_none(body)
        text = body.decode(errors="replace") if said is None else ""
        refusal = self._read_refusal(answer.status_code, said, text)
        return replace(refusal, retry_after=_retry_after(answer.headers.get("retry-after", "")))

    def _read_refusal(self, code: int, said: object, text: str = "") -> Refusal:
        """Read an error as these services and what stands before them write it."""
        said = said if isinstance(said, Mapping) else {}
        error = said.get("error", said)
        inner = error if isinstance(error, Mapping) else {"message": error}
        raw = text_in(inner, "message") or text_in(said, "message") or text
        raw = raw or json.dumps(inner.get("detail") or inner, ensure_ascii=False)
        told = inner.get("code")
        code = told if code == 200 and isinstance(told, int) and told >= 400 else code
        if code == 500 and _NO_PICTURES.search(raw):
            code = 400
        reasons = frozenset(str(inner.get(key) or "") for key in ("code", "type", "param"))
        return Refusal(code, self._context.clean(raw), raw, reasons)

    def _refused(self, refusal: Refusal, body: Json, context: RequestContext) -> Exception:
        """Return the error for a refusal, or that the request goes out again without an option.

        Only what gemdeck chose by itself gives way; what the user chose, the user changes.
        """
        if refusal.code == 200:
            words = "The service broke off its answer"
            return refusal.told(words, "Send the message again.", retryable=True)
        if refusal.code in _REFUSED:
            if "tools" in body and _TAKES_NO_TOOLS.search(refusal.raw):
                self._offer = replace(self._offer, tools=False)
                return refusal.told("The model takes no tools", refused_tool=ALL_TOOLS)
            for option in ("stream_options", "max_tokens", "reasoning"):
                is_named = option in refusal.raw or option in refusal.reasons
                if is_named and option in _sent(body) - self._without:
                    self._without.add(option)
                    return _AgainError()
        return from_status(refusal, context)


def _sent(body: Json) -> set[str]:
    """Return what was sent: options, and whether reasoning went back."""
    messages = as_list(body.get("messages"))
    is_back = any(key.startswith("reasoning") for message in messages for key in message)
    return {*body, *(["reasoning"] if is_back else [])}


def _is_failure(value: Mapping[str, Any], name: str) -> bool:
    """Return whether an event tells of a failure in mid-stream."""
    return bool(value.get("error")) or name == "error" or value.get("object") == "error"


def _retry_after(text: str) -> float | None:
    """Read the header: seconds, or a date."""
    if (found := seconds(text)) is not None or not text:
        return found
    try:
        wait = parsedate_to_datetime(text).timestamp() - time()
    except ValueError:
        return None
    return min(max(wait, 0.0), MAX_RETRY_AFTER)


def _without_thoughts(chunk: ModelChunk) -> ModelChunk:
    return replace(chunk, parts=tuple(one for one in chunk.parts if not one.get("thought")))
