"""A service of chat completions on loopback: plays the scripts of the fake Gemini API."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.fakes import gemini_script as script
from tests.fakes.completions_rules import Json, as_contents, check_request
from tests.fakes.gemini import Answer, FakeGemini, Request, Step
from tests.fakes.gemini_rules import ViolationError
from tests.servers.web import Exchange

KEY: Final = "s3cr3t-fixture-completions-key"
"""The key that the fake accepts."""

PIECES: Final = 5
"""Pieces in which the arguments of a call come."""

_FINISH: Final = {"STOP": "stop", "MAX_TOKENS": "length", "UNEXPECTED_TOOL_CALL": "tool_calls"}
_FILTERED: Final = {"SAFETY", "RECITATION"}
_REASONS: Final = {401: "invalid_api_key", 404: "model_not_found"}


@dataclass(frozen=True, slots=True)
class CompletionsRequest(Request):
    """One request as it came; its contents are given in Gemini's form."""

    @property
    def contents(self) -> list[Json]:
        return as_contents(self.body["messages"])

    @property
    def instruction(self) -> str:
        first: Json = self.body["messages"][0]
        return str(first["content"]) if first["role"] == "system" else ""

    @property
    def declared(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", ())]


class FakeCompletions(FakeGemini):
    """Serves `steps` one a request, in order, as `FakeGemini` does.

    Attributes:
        is_strict: Whether it refuses keys of a request that it does not know.
        refuses: Options that it refuses.
        pages: What it says elsewhere, by path, for ``/api/show`` with a model behind it.
        reasoning: Where it has what the model thinks.
        has_usage: Whether it counts tokens where it is asked to.
    """

    def __init__(self, steps: Iterable[Step] = (), *, keys: Sequence[str] = (KEY,)) -> None:
        super().__init__(steps, keys=keys)
        self.models = ["large"]
        self.offers: list[Json] | None = None
        self.is_strict = self.has_usage = True
        self.refuses: set[str] = set()
        self.pages: dict[str, Json] = {}
        self.reasoning = "reasoning_content"
        self._has_called = False

    @property
    def url(self) -> str:
        return f"{self._server.origin}/v1"

    async def _answer(self, exchange: Exchange) -> None:
        sent, answer = exchange.request, Answer(exchange)
        body = json.loads(sent.body or b"{}")
        request = CompletionsRequest(sent.path, sent.headers, body, str(body.get("model", "")))
        try:
            if sent.path == "/v1/models":
                await self._list_models(request, answer)
            elif page := self.pages.get(f"{sent.path} {request.model}".strip()):
                await answer.json(page)
            elif not sent.path.startswith("/v1/"):
                await answer.error(404, {"error": "not found"})
            else:
                await self._step(request, answer)
        finally:
            await answer.close()

    async def _list_models(self, request: Request, answer: Answer) -> None:
        self.checks.append(request)
        if (refusal := self._wrong_key(request)) is not None:
            await self._fail(answer, refusal)
            return
        listed = self.offers or [{"id": name, "object": "model"} for name in self.models]
        await answer.json({"object": "list", "data": listed})

    def _wrong_key(self, request: Request) -> script.Fail | None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        wrong = script.Fail(401, f"Incorrect API key provided: {given[:4]}***")
        return None if given in self._keys else wrong

    def _refusal(self, request: Request) -> script.Fail | None:
        if request.path != "/v1/chat/completions":
            return script.Fail(404, f"no such path: {request.path}")
        if (wrong := self._wrong_key(request)) is not None:
            return wrong
        try:
            check_request(request.body, is_strict=self.is_strict)
        except ViolationError as violation:
            return script.Fail(400, str(violation))
        return None

    async def _step(self, request: Request, answer: Answer) -> None:
        for name in sorted(self.refuses & _options(request.body)):
            self.requests.append(request)
            await self._fail(answer, script.Fail(400, f"Unsupported parameter: '{name}'."))
            return
        await super()._step(request, answer)

    async def _say(self, answer: Answer, action: script.Action) -> None:
        for delta in self._deltas(action):
            await answer.say(_chunk(delta))

    def _deltas(self, action: script.Action) -> Iterator[Json]:
        match action:
            case script.Say(text):
                yield {"content": text}
            case script.Think(text) if self.reasoning == "reasoning_details":
                yield {self.reasoning: [{"type": "reasoning.text", "text": text, "index": 0}]}
            case script.Think(text):
                yield {self.reasoning: text}
            case script.Call(calls, has_ids):
                self._has_called = True
                for index, (name, arguments) in enumerate(calls):
                    self._call_number += 1
                    key = {"id": f"call{self._call_number:04}"} if has_ids else {}
                    function = {"name": name, "arguments": ""}
                    yield _piece(index, type="function", function=function, **key)
                    text = json.dumps(arguments)
                    size = -(-len(text) // PIECES)
                    for start in range(0, len(text), size):
                        yield _piece(index, function={"arguments": text[start : start + size]})

    async def _finish(self, answer: Answer, action: script.Finish | script.Block) -> None:
        if isinstance(action, script.Block):
            await self._fail(answer, script.Fail(400, f"content_filter: {action.reason}"))
            return
        reason = _FINISH.get(action.reason, action.reason.lower())
        reason = "content_filter" if action.reason in _FILTERED else reason
        if action.reason == "MALFORMED_FUNCTION_CALL":
            cut = {"name": "go", "arguments": '{"text": '}
            await answer.say(_chunk(_piece(0, id="cut", type="function", function=cut)))
            self._has_called = True
            reason = "stop"
        if self._has_called and reason == "stop":
            reason = "tool_calls"
        self._has_called = False
        await answer.say(_chunk({}, reason))
        if self.has_usage and self.requests[-1].body.get("stream_options"):
            usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
            await answer.say({"object": "chat.completion.chunk", "choices": [], "usage": usage})
        await answer.send("data: [DONE]\n\n")
        await answer.end()

    async def _fail(self, answer: Answer, fail: script.Fail) -> None:
        reason = "insufficient_quota" if fail.quota else fail.reason or _REASONS.get(fail.status)
        error = {"message": fail.message, "type": "error", "param": None, "code": reason}
        if answer.is_started:
            await answer.send(f"data: {json.dumps({'error': error})}\n\n")
            await answer.end()
            return
        wait = {"retry_after": fail.retry_delay.removesuffix("s")} if fail.retry_delay else {}
        await answer.error(fail.status, {"error": error}, **wait)


def _options(body: Json) -> set[str]:
    back = {key for one in body.get("messages", ()) for key in one if key.startswith("reasoning")}
    return {*body, *back}


def _piece(index: int, **more: object) -> Json:
    return {"tool_calls": [{"index": index, **more}]}


def _chunk(delta: Json, reason: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}
