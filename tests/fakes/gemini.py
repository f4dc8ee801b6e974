"""A Gemini API on loopback: plays scripted steps and checks requests as the service does."""

import asyncio
import base64
import contextlib
import json
import re
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from socket import SO_LINGER, SOL_SOCKET
from typing import Final, Self

from tests.fakes import gemini_script
from tests.fakes.gemini_rules import Json, ViolationError, check_request
from tests.servers.web import Exchange, HttpServer

KEY: Final = "s3cr3t-fixture-gemini-key"
"""The key the fake accepts."""

_ROUTE: Final = re.compile(
    r"/v\w+/(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/google/)?"
    r"models/(?P<model>[^/:]+):streamGenerateContent\?alt=sse"
)
_LIST: Final = re.compile(r"/v\w+/models(\?|$)")
_COUNT: Final = re.compile(r"/v\w+/.*models/[^/:]+:countTokens")
_WRONG_KEY: Final = gemini_script.Fail(
    400, "API key not valid. Please pass a valid API key.", reason="API_KEY_INVALID"
)
_STATUS: Final = {
    **{400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"},
    **{429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"},
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: Json
    model: str

    @property
    def contents(self) -> list[Json]:
        contents: list[Json] = self.body["contents"]
        return contents

    @property
    def instruction(self) -> str:
        """The system instruction."""
        parts = self.body.get("systemInstruction", {}).get("parts", ())
        return "".join(part["text"] for part in parts)

    @property
    def declared(self) -> list[str]:
        """The names of the functions that the model may call."""
        tools = self.body.get("tools", ())
        return [one["name"] for some in tools for one in some["functionDeclarations"]]

    @property
    def answers(self) -> list[str]:
        """What the last calls gave."""
        parts = self.contents[-1]["parts"]
        return [next(iter(part["functionResponse"]["response"].values())) for part in parts]


Step = Sequence[gemini_script.Action] | Callable[[Request], Sequence[gemini_script.Action]]
"""What the model does on one request."""


class ClientGoneError(Exception):
    """The client closed the connection before the answer ended."""


class FakeGemini:
    """Serves `steps` one a request, in order; without a step left it says "(no step left)".

    A step may be a function of the request.

    Attributes:
        steps: The steps left.
        models: The names of those it lists.
        requests: What came, oldest first.
        checks: Requests for the list of models or, of Vertex, for a count of tokens, by which
            credentials are checked; and those for what takes which part of the context.
        tokens: What it counts; None if it counts nothing.
        violations: Messages of requests that broke a rule.
        signatures: The parts that were signed, by their signatures.
        gone: Times, by `time.monotonic`, at which clients went away before the end.
    """

    def __init__(self, steps: Iterable[Step] = (), *, keys: Sequence[str] = (KEY,)) -> None:
        self.steps = list(steps)
        self._keys = keys
        self.models = ["gemini-3.8-flash"]
        self.requests: list[Request] = []
        self.checks: list[Request] = []
        self.tokens: int | None = 1
        self.violations: list[str] = []
        self.gone: list[float] = []
        self.signatures: dict[str, Json] = {}
        self._server = HttpServer(handle=self._answer)
        self._changed = asyncio.Condition()
        self._call_number = 0
        self._is_stalled = False

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    @property
    def url(self) -> str:
        """Where it serves."""
        return self._server.origin

    async def wait_for_requests(self, count: int) -> None:
        """Wait until that many requests have come."""
        await self._wait(lambda: len(self.requests) >= count)

    async def wait_for_stall(self) -> None:
        """Wait until an answer stalls, after all that comes before is on the wire."""
        await self._wait(lambda: self._is_stalled)

    async def wait_for_gone(self, count: int = 1) -> None:
        """Wait until that many clients have gone away."""
        await self._wait(lambda: len(self.gone) >= count)

    async def _wait(self, holds: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(holds)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, exchange: Exchange) -> None:
        sent = exchange.request
        route = _ROUTE.match(sent.path)
        body = json.loads(sent.body or b"{}")
        request = Request(sent.path, sent.headers, body, route["model"] if route else "")
        answer = Answer(exchange)
        try:
            if _LIST.match(sent.path):
                await self._list_models(request, answer)
            elif _COUNT.match(sent.path):
                await self._count(request, answer)
            else:
                await self._step(request, answer)
        finally:
            await answer.close()

    async def _list_models(self, request: Request, answer: "Answer") -> None:
        self.checks.append(request)
        if request.headers.get("x-goog-api-key") not in self._keys:
            await self._fail(answer, _WRONG_KEY)
        else:
            await answer.json({"models": [{"name": f"models/{name}"} for name in self.models]})

    async def _count(self, request: Request, answer: "Answer") -> None:
        self.checks.append(request)
        if self.tokens is None:
            await self._fail(answer, gemini_script.Fail(500, "it cannot count"))
        elif request.contents and "generateContentRequest" in request.body:
            await self._fail(answer, gemini_script.Fail(400, "contents or generateContentRequest"))
        else:
            await answer.json({"totalTokens": self.tokens})

    async def _step(self, request: Request, answer: "Answer") -> None:
        self.requests.append(request)
        await self._tell()
        try:
            if refusal := self._refusal(request):
                self.violations += [refusal.message]
                await self._fail(answer, refusal)
            else:
                await self._play(answer)
        except ClientGoneError:
            self.gone.append(time.monotonic())
            await self._tell()

    def _refusal(self, request: Request) -> gemini_script.Fail | None:
        if not request.model:
            return gemini_script.Fail(404, f"no such path: {request.path}")
        is_known = request.headers.get("x-goog-api-key") in self._keys
        if not is_known and "authorization" not in request.headers:
            return _WRONG_KEY
        try:
            needs_signatures = request.model.startswith(("gemini-3", "gemini-4"))
            check_request(request.body, self.signatures, needs_signatures=needs_signatures)
        except ViolationError as violation:
            return gemini_script.Fail(400, str(violation))
        return None

    async def _play(self, answer: "Answer") -> None:
        step = self.steps.pop(0) if self.steps else (gemini_script.Say("(no step left)"),)
        actions = step(self.requests[-1]) if callable(step) else step
        for action in actions:
            match action:
                case gemini_script.Sleep(seconds):
                    await answer.start()
                    await answer.wait(seconds)
                case gemini_script.Stall():
                    await answer.start()
                    self._is_stalled = True
                    await self._tell()
                    await answer.wait(None)
                case gemini_script.Reset():
                    answer.reset()
                    return
                case gemini_script.Stop():
                    await answer.end()
                    return
                case gemini_script.Page():
                    await answer.page(action)
                    return
                case gemini_script.Fail():
                    await self._fail(answer, action)
                    return
                case gemini_script.Raw(text):
                    await answer.send(text)
                case gemini_script.Finish() | gemini_script.Block():
                    await self._finish(answer, action)
                    return
                case gemini_script.Say() | gemini_script.Think() | gemini_script.Call():
                    await self._say(answer, action)
        await self._finish(answer, gemini_script.Finish("STOP"))

    async def _say(self, answer: "Answer", action: gemini_script.Action) -> None:
        await answer.say(_candidate(self._parts(action)))

    async def _finish(
        self, answer: "Answer", action: gemini_script.Finish | gemini_script.Block
    ) -> None:
        if isinstance(action, gemini_script.Finish):
            ends = {"finishReason": action.reason, "finishMessage": action.message}
            await answer.say(_candidate([], **ends))
        else:
            await answer.say({"promptFeedback": {"blockReason": action.reason}})
        await answer.end()

    async def _fail(self, answer: "Answer", fail: gemini_script.Fail) -> None:
        await answer.error(fail.status, _error_body(fail))

    def _parts(self, action: gemini_script.Action) -> list[Json]:
        match action:
            case gemini_script.Say(text, signed):
                return [self._signed({"text": text}) if signed else {"text": text}]
            case gemini_script.Think(text):
                return [{"text": text, "thought": True}]
            case gemini_script.Call(calls, has_ids, signed):
                parts = []
                for name, arguments in calls:
                    self._call_number += 1
                    call: Json = {"name": name, "args": arguments}
                    if has_ids:
                        call["id"] = f"call{self._call_number:04}"
                    parts.append({"functionCall": call})
                return [self._signed(parts[0]), *parts[1:]] if signed else parts
        raise ValueError(action)

    def _signed(self, part: Json) -> Json:
        raw = f"signature {len(self.signatures)}?>?".encode()
        self.signatures[base64.urlsafe_b64encode(raw).decode()] = part
        return {**part, "thoughtSignature": base64.b64encode(raw).decode()}


def _candidate(parts: list[Json], **ends: str) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts} if parts else {}, "index": 0}
    candidate |= {key: value for key, value in ends.items() if value}
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake"}


class Answer(Exchange):
    """The answer to one request, in chunks over HTTP/1.1.

    Attributes:
        is_started: Whether its head is on the wire.
    """

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange.request, exchange.reader, exchange.writer)
        self.is_started = False
        self._watch = asyncio.create_task(self._watch_client(exchange.reader))

    @staticmethod
    async def _watch_client(reader: asyncio.StreamReader) -> None:
        """End when the client goes; the client says nothing while it is answered."""
        with contextlib.suppress(ConnectionError):
            await reader.read(1)

    async def close(self) -> None:
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)

    async def wait(self, seconds: float | None) -> None:
        await asyncio.wait({self._watch}, timeout=seconds)
        if self._watch.done():
            raise ClientGoneError

    async def start(self) -> None:
        if not self.is_started:
            self.is_started = True
            await self.begin(200, content_type="text/event-stream", transfer_encoding="chunked")

    async def say(self, event: Json) -> None:
        await self.send(f"data: {json.dumps(event)}\r\n\r\n")

    async def send(self, text: str) -> None:
        await self.start()
        data = text.encode("utf-8", "surrogatepass")
        await self.write(b"%x\r\n%s\r\n" % (len(data), data))
        await asyncio.sleep(0)
        if self._watch.done():
            raise ClientGoneError

    async def end(self) -> None:
        await self.start()
        await self.write(b"0\r\n\r\n")

    async def error(self, status: int, content: Json, **headers: str) -> None:
        """Answer with an error: with its status, or in mid-stream."""
        body = json.dumps(content, indent=2)
        if self.is_started:
            await self.send(body)
            await self.end()
            return
        await self.respond(status, body.encode(), content_type="text/event-stream", **headers)

    async def page(self, page: gemini_script.Page) -> None:
        location = {"location": page.location} if page.location else {}
        await self.respond(page.status, page.html.encode(), content_type="text/html", **location)

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def _error_body(fail: gemini_script.Fail) -> Json:
    types = "type.googleapis.com/google.rpc."
    details: list[Json] = []
    if fail.reason:
        details.append({"@type": f"{types}ErrorInfo", "reason": fail.reason})
    if fail.quota:
        violations = [{"quotaId": fail.quota}]
        details.append({"@type": f"{types}QuotaFailure", "violations": violations})
    if fail.retry_delay:
        details.append({"@type": f"{types}RetryInfo", "retryDelay": fail.retry_delay})
    status = _STATUS.get(fail.status, "UNKNOWN")
    error = {"code": fail.status, "message": fail.message, "status": status, "details": details}
    return {"error": error}
