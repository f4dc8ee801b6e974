"""Services that speak chat completions as a model backend, over plain HTTP."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, Final

import httpx2

from tui.engine.chats.backends import completions_wire as wire
from tui.engine.chats.backends.backend import ModelChunk, ModelRequest, ModelTraits
from tui.engine.chats.backends.event_stream import read_events, read_values
from tui.engine.chats.backends.service_errors import (
    Refusal,
    RequestContext,
    from_status,
    translate,
    wrong_api,
)
from tui.engine.chats.backends.service_http import (
    MAX_MODELS,
    MAX_STEP_BYTES,
    STREAM,
    answering,
    check_cost,
    open_http,
)
from tui.engine.keys.credentials import ModelAccess
from tui.model.bounded_json import as_list, as_object, json_or_text, text_in, value_or_none
from tui.model.input.addresses import is_loopback
from tui.model.models import ModelOffer
from tui.model.settings import GemdeckSettings, ServiceModel
from tui.model.wire.refusals import words_in

MORE_PATIENCE: Final = 5.0
"""Seconds for what a service says of its models elsewhere than in its list."""

LEVELS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")
"""The efforts of reasoning; not every model has all."""

MAX_ODD: Final = 2_000
"""Characters of an answer that is none, of which what it is can be told."""

_PART: Final = "the part before /chat/completions, often with /v1"

_OF_THE_REQUEST: Final = re.compile(
    r"(?:image|audio|media) input|mmproj|--jinja|system role|(?:context|input) length",
    re.IGNORECASE,
)
"""What some services say of a request with the status of a failure of their own."""


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
        assert access.service is not None  # noqa: S101 - else it is Gemini's
        service = access.service
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
        self._http, _, proxy = open_http(settings.idle_timeout, service.url)
        self._context = RequestContext(
            *(service.name, self._name, service.url, settings.idle_timeout),
            secrets=access.secrets,
            proxy=proxy,
            api="a chat completions service",
            place=f"the address of {service.name} (gemdeck.services)",
            key_advice=f"Enter its key: gemdeck key set --service {service.name}",
        )

    @property
    def traits(self) -> ModelTraits:
        """What the user says of the model, and what its service has said so far."""
        return ModelTraits(
            self._said.context or self._offer.context_limit,
            thinking_problem=self._thinking_problem,
            tools=self._offer.tools is not False,
            plain_schemas=True,
            address=self._service.url,
            offer=self._offer,
        )

    def _thinking_problem(self, chosen: str) -> str:
        if self._offer.thinking is False:
            return f"{self.model} has no thinking setting."
        words = f"{self.model} supports these thinking levels: {', '.join(LEVELS)}."
        return "" if chosen in LEVELS else words

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream one step; see `ModelBackend.stream`. Calls are given whole at its end."""
        names = wire.WireNames(request.declarations)
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
                if told.refused_tool:
                    told.refused_tool = names.meant(told.refused_tool)
                raise told from None

    async def models(self) -> Sequence[ModelOffer]:
        """Ask the service for its models, and learn what it says of this one."""
        async with answering(lambda error: translate(error, self._context)):
            listed = (await self._listed())[:MAX_MODELS]
            more = await self._more([text_in(one, "id") for one in listed])
        more = [*more, *({} for _ in listed)]  # what the list says counts first
        told = ({**said, **one} for one, said in zip(listed, more, strict=False))
        found = [wire.read_offer(one, self._service.name) for one in told]
        names = {self.model, f"{self.model}:latest"}  # Ollama's, which needs not be typed
        self._offer = next((one for one in found if one.name in names), self._offer)
        return found

    async def count(self, request: ModelRequest) -> int:  # noqa: ARG002
        """Return 0: these services count nothing before they are asked."""
        return 0

    async def check(self) -> None:
        """See whether the service lists its models, which all of them can."""
        await self.models()

    async def aclose(self) -> None:
        await self._http.aclose()

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
            raise ValueError(body[:MAX_ODD].decode(errors="replace"))
        if isinstance(listed, Mapping):
            listed = listed.get("data", listed.get("models"))
        if not isinstance(listed, list):
            raise wrong_api(self._context, "it listed none", _PART)
        return [one for one in listed if isinstance(one, Mapping)]

    async def _more(self, names: Sequence[str]) -> Sequence[wire.Json]:
        """Ask what servers on this computer say of models elsewhere than in their lists."""
        if not names or not is_loopback(httpx2.URL(self._service.url).host):
            return ()
        with suppress(TimeoutError):
            async with asyncio.timeout(MORE_PATIENCE):
                if shown := await self._ask("POST", "/api/show", model=names[0]):
                    others = (self._ask("POST", "/api/show", model=one) for one in names[1:])
                    return [*map(wire.read_shown, (shown, *await asyncio.gather(*others)))]
                known = as_list((await self._ask("GET", "/api/v0/models")).get("data"))
                by_name = {text_in(one, "id"): wire.read_known(one) for one in known}
                return [by_name.get(name, {}) for name in names]
        return ()

    async def _ask(self, method: str, path: str, **body: str) -> Mapping[str, Any]:
        """Ask for what not every server has; it says nothing where it has not."""
        url = self._service.url.removesuffix("/v1") + path
        with suppress(httpx2.HTTPError):
            async with self._http.stream(
                method, url, headers=self._headers, json=body or None
            ) as answer:
                said = value_or_none(await answer.aread())
                return said if answer.is_success and isinstance(said, Mapping) else {}
        return {}

    async def _answer(
        self, request: ModelRequest, names: wire.WireNames, context: RequestContext
    ) -> AsyncGenerator[ModelChunk, None]:
        body = self._body(request, names)
        reader, has_begun = wire.StepReader(names, self.traits.context_limit), False
        odd: Mapping[str, Any] = {}
        headers = {**self._headers, "accept": f"{STREAM}, application/json"}
        url = f"{self._service.url}/chat/completions"
        async with self._http.stream("POST", url, headers=headers, json=body) as answer:
            if (refusal := await self._refusal(answer)) is not None:
                if "tool_use_failed" not in refusal.raw:  # as Groq says of a malformed call
                    raise self._refused(refusal, body, context)
                yield ModelChunk(finish_reason=wire.MALFORMED, finish_message=refusal.message)
                return
            async with aclosing(read_events(answer.aiter_raw(), MAX_STEP_BYTES)) as events:
                async for event in events:
                    check_cost(event.data)
                    if event.data.strip() == "[DONE]":
                        reader.is_over = True
                        break
                    values = read_values(event.data)
                    if not values and event.name == "error":
                        values = [{"error": event.data}]
                    is_whole = event.is_ended or event.data.startswith("<")
                    if not values and is_whole and event.name == "message":
                        raise ValueError(event.data[:MAX_ODD])
                    for value in values:
                        if not isinstance(value, Mapping):
                            raise TypeError(str(value))
                        if failure := _failure(value, event.name):
                            broken = self._read_refusal(0, failure)
                            again = {} if has_begun else body
                            raise self._refused(broken, again, context)
                        odd = value if value.get("choices") is None else odd
                        chunk = self._shown(reader.read(value))
                        if chunk != ModelChunk():  # else it only keeps the connection alive
                            has_begun = True
                            yield chunk
        if reader.has_read:
            yield self._shown(reader.end())
        elif odd:  # such as an error under HTTP 200
            raise self._refused(self._read_refusal(0, odd), {}, context)

    def _shown(self, chunk: ModelChunk) -> ModelChunk:
        kept = (one for one in chunk.parts if self._thoughts or not one.get("thought"))
        return replace(chunk, parts=tuple(kept))

    def _body(self, request: ModelRequest, names: wire.WireNames) -> wire.Json:
        options, without = request.options, self._without
        most = request.max_output_tokens or options.max_output
        limit = "max_completion_tokens" if "max_tokens" in without else "max_tokens"
        messages = wire.wire_messages(
            request.contents,
            names,
            with_reasoning="reasoning" not in without,
            with_pictures=self._offer.pictures is not False,
        )
        system = request.system_instruction
        body: wire.Json = {
            "model": self._name,
            "messages": [*([{"role": "system", "content": system}] if system else []), *messages],
            "stream": True,
            "stream_options": {"include_usage": True} if "stream_options" not in without else None,
            limit: most,
            "temperature": options.temperature,
            "reasoning_effort": options.thinking,
        }
        if request.declarations:
            body["tools"] = wire.wire_tools(request.declarations, names)
            body["tool_choice"] = "required" if request.must_call else None
        return {key: body[key] for key in body if body[key] is not None} | self._said.options

    async def _refusal(self, answer: httpx2.Response) -> Refusal | None:
        """Return what the service answered in place of what it was asked for."""
        if answer.status_code < 300:
            return None
        body = await answer.aread()
        said = value_or_none(body)
        text = body.decode(errors="replace") if said is None else ""
        wait = answer.headers.get("retry-after")
        return self._read_refusal(answer.status_code, said, text, wait)

    def _read_refusal(
        self, code: int, said: object, text: str = "", wait: object = None
    ) -> Refusal:
        """Read an error as these services and what stands before them write it."""
        said = next(iter(as_list(said)), said)  # Google's are in a list
        inner = as_object(as_object(said).get("error")) or as_object(said)
        raw = (
            _words(inner or said) or text or (json.dumps(said, ensure_ascii=False) if said else "")
        )
        told = inner.get("code")
        code = told if code == 0 and isinstance(told, int) and told >= 400 else code
        code = 400 if code in {404, 500} and _OF_THE_REQUEST.search(raw) else code
        reasons = [str(inner[key]) for key in ("code", "type", "param") if inner.get(key)]
        return Refusal.read(code, raw, reasons, [wait], self._context.clean)

    def _refused(self, refusal: Refusal, body: wire.Json, context: RequestContext) -> Exception:
        """Return the error for a refusal, or that the request goes out again without an option.

        Only what gemdeck chose by itself gives way; what the user chose, the user changes.
        """
        for option in ("stream_options", "max_tokens", "reasoning") if refusal.code else ():
            if option in refusal.raw and option in _sent(body) - self._without:
                self._without.add(option)
                return _AgainError()
        told = from_status(refusal, context)
        if told.lacks == "tools":
            self._offer = replace(self._offer, tools=False)
        return told


def _sent(body: wire.Json) -> set[str]:
    """Return what was sent: options, and whether reasoning went back."""
    messages = as_list(body.get("messages"))
    is_back = any(key.startswith("reasoning") for message in messages for key in message)
    return {*body, *(["reasoning"] if is_back else [])}


def _failure(value: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return what in an event tells of a failure in mid-stream."""
    choice = as_object(next(iter(as_list(value.get("choices"))), None))
    is_failure = bool(value.get("error")) or name == "error" or value.get("object") == "error"
    return value if is_failure else choice if choice.get("error") else None


def _words(error: object) -> str:
    """Return the words of an error, also as JSON within it, and of OpenRouter's provider."""
    behind = text_in(as_object(as_object(error).get("metadata")), "raw")
    both = (words_in(json_or_text(one)) or one for one in (words_in(error), behind))
    return ": ".join(filter(None, both))
