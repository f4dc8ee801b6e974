"""Gemini and Vertex as a model backend, over google-genai.

Import this module in a thread: google-genai takes a third of a second.
"""

import asyncio
import json
import logging
import re
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final

import google.auth.exceptions
import httpx2
from google import genai
from google.genai import errors as genai_errors
from google.genai import types

from tui.engine.chats.backends.backend import ModelChunk, ModelError, ModelRequest, ModelTraits
from tui.engine.chats.backends.event_stream import read_events, read_values
from tui.engine.chats.backends.service_errors import (
    GOOGLE,
    Refusal,
    RequestContext,
    from_status,
    translate,
    wrong_api,
)
from tui.engine.chats.backends.service_http import (
    MAX_MODELS,
    MAX_STEP_BYTES,
    Body,
    answering,
    check_cost,
    is_stream,
    open_http,
)
from tui.engine.keys.credentials import ModelAccess
from tui.model.bounded_json import text_in
from tui.model.chat import BackendKind, Usage
from tui.model.models import ModelOffer
from tui.model.settings import GemdeckSettings
from tui.model.wire.refusals import words_in
from tui.text import sanitize_line

_responses: ContextVar[list[httpx2.Response] | None] = ContextVar("_responses", default=None)

_NO_WORDS: Final = {"[DONE]", "null"}  # with which some gateways end a stream
_Wire = Mapping[str, Any]
_Answer = tuple[types.GenerateContentResponse, _Wire]

_GENERATION: Final = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_LATEST: Final = re.compile(r"gemini-(?:pro|flash|flash-lite)-latest\Z")

LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
"""The thinking levels of Gemini 3 and later; not every model has all."""

MAX_BUDGET: Final = 32_768
"""The largest thinking budget of Gemini 2.5."""

MAX_WRONG: Final = 20
"""Fields whose faults a refusal may name."""

_GEMINI_CONTEXT: Final = 1_048_576
_GEMMA_CONTEXT: Final = 131_072

_QUIET_LOGGERS: Final = ("google_genai", "google.auth", "httpx2")
_REPLACED: Final = "-"
"""Placeholder for the contents until the client substitutes the wire format."""

_NO_SUCH_PATH: Final = {404, 405, 501}
_PART: Final = "the part before /v1beta/models"

_MUST_CALL: Final = types.ToolConfig(
    function_calling_config=types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
)


async def _answers(pieces: AsyncIterator[bytes], told: dict[str, Any]) -> AsyncIterator[bytes]:
    """Forward what is streamed in the one form that google-genai reads, an event a piece.

    Each is put under ``answer`` before, since google-genai leaves out some of it.

    Raises:
        genai_errors.APIError: If the stream says an error, in whichever form.
    """
    words = ""
    async for event in read_events(pieces, MAX_STEP_BYTES):
        check_cost(event.data)
        # half an event may be followed by an error, in a line of its own
        read = read_values(event.data) or read_values(event.data.rpartition("\n")[2])
        values = [value for value in read if isinstance(value, dict)]
        for value in values:
            if (error := value.pop("error", None)) or event.name == "error":
                raise _stream_error(error or value)
            told["answer"], words = value, words_in(value)
            yield b"data: %s\n\n" % json.dumps(value).encode()
        if values or event.data.strip() in _NO_WORDS:
            continue
        if event.name == "error":
            raise _stream_error(event.data)
        if event.data.startswith(("{", "[", "<")):
            if not event.is_ended and not event.data.startswith("<"):
                raise httpx2.ReadError("the stream ends within an event")
            raise genai_errors.UnknownApiResponseError(event.data)
        words = event.data if event.name == "message" else words
    if words and not _candidate(told.get("answer", {})).get("finishReason"):
        raise _stream_error(words)  # they were no ping: nothing came after them


def _candidate(wire: _Wire) -> _Wire:
    candidates: Sequence[_Wire] = wire.get("candidates") or [{}]
    return candidates[0]


def _heed(response: httpx2.Response) -> None:
    """Remember a response of this task, and give what it streams in the form that is read."""
    if is_stream(response) and isinstance(body := response.stream, httpx2.AsyncByteStream):
        response.stream = Body(body, _answers(aiter(body), response.extensions))
    if (responses := _responses.get()) is not None:
        responses.append(response)


def generation(model: str) -> tuple[int, int]:
    """Return the Gemini generation of a model, such as ``(2, 5)``; ``(0, 0)`` where unknown.

    The ``-latest`` aliases count as generation 3, the lowest they refer to.
    """
    name = model.rpartition("/")[2]
    if _LATEST.match(name):
        return 3, 0
    found = _GENERATION.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def thinks(model: str) -> bool:
    """Return whether the model provides thought summaries (Gemini 2.5+)."""
    return generation(model) >= (2, 5)


def thinking_problem(model: str, chosen: str) -> str:
    """Return why a model cannot think like that, or an empty string.

    Args:
        model: The model's name.
        chosen: A level, or a budget in tokens for Gemini 2.5.
    """
    if generation(model) >= (3, 0):
        words = f"{model} supports these thinking levels: {', '.join(LEVELS)}."
        return "" if chosen in LEVELS else words
    if not thinks(model):
        return f"{model} has no thinking setting."
    is_budget = chosen.removeprefix("-").isdecimal() and -1 <= int(chosen) <= MAX_BUDGET
    return "" if is_budget else f"{model} supports a budget of -1 to {MAX_BUDGET:,} tokens."


def context_limit(model: str) -> int:
    """Return the size of a model's context in tokens; 0 if unknown."""
    if generation(model) >= (2, 0):
        return _GEMINI_CONTEXT
    return _GEMMA_CONTEXT if model.rpartition("/")[2].startswith("gemma-") else 0


def traits(model: str) -> ModelTraits:
    """Return what a Gemini model's name says about it."""
    is_third = generation(model) >= (3, 0)
    return ModelTraits(
        context_limit(model),
        signs_calls=is_third,
        media_in_responses=is_third,
        thinking_problem=partial(thinking_problem, model),
    )


class GeminiBackend:
    """Implements `ModelBackend` with ``models.generate_content_stream``.

    Args:
        client: The SDK's client; this backend closes it.
        http: The SDK's HTTP client, which the SDK does not close; this backend does.
        context: What error messages may mention.
        thoughts: Whether to request thought summaries.
    """

    def __init__(
        self,
        client: genai.Client,
        http: httpx2.AsyncClient,
        context: RequestContext,
        *,
        thoughts: bool,
    ) -> None:
        self._client, self._http, self._context = client, http, context
        self._thoughts = thoughts and thinks(context.model)
        self.traits = replace(traits(context.model), address=context.address or GOOGLE)

    @property
    def kind(self) -> str:
        return self._context.kind

    @property
    def model(self) -> str:
        return self._context.model

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream one step; see `ModelBackend.stream`.

        A separate task reads from the wire and does nothing else: a cancellation reaches the
        connection at once only while google-genai itself is waiting. Its queue needs no limit
        because `MAX_STEP_BYTES` bounds its input.
        """
        queue: asyncio.Queue[_Answer | None] = asyncio.Queue()
        pump = asyncio.create_task(self._pump(request, queue))
        try:
            while (answer := await queue.get()) is not None:
                yield self._chunk(*answer)
            await pump
        except Exception as error:  # noqa: BLE001 - the SDK raises many types
            tools = [str(declared.get("name", "")) for declared in request.declarations]
            raise _translate(error, replace(self._context, tools=tools)) from None
        finally:
            pump.cancel()
            await asyncio.wait({pump})
            if not pump.cancelled():
                pump.exception()

    async def models(self) -> Sequence[ModelOffer]:
        """Ask the service for the models that chat; see `ModelBackend.models`."""
        found: list[ModelOffer] = []
        async with answering(self._translated):
            async for model in await self._client.aio.models.list(config={"page_size": 100}):
                actions = model.supported_actions or ["generateContent"]
                if len(found) < MAX_MODELS and "generateContent" in actions:
                    found.append(_offer(model))
        return found

    async def count(self, request: ModelRequest) -> int:
        """Let the service count; see `ModelBackend.count`."""
        body = self._body(request)
        if request.system_instruction:
            body["systemInstruction"] = {"parts": [{"text": request.system_instruction}]}
        if self.kind != BackendKind.VERTEX:  # the Gemini API takes one or the other
            name = self.model if "/" in self.model else f"models/{self.model}"
            body = {"contents": [], "generateContentRequest": {"model": name, **body}}
        config = types.CountTokensConfig(http_options=types.HttpOptions(extra_body=body))
        with suppress(ModelError):
            async with answering(self._translated):
                told = await self._client.aio.models.count_tokens(
                    model=self.model, contents=_REPLACED, config=config
                )
                return told.total_tokens or 0
        return 0

    async def check(self) -> None:
        """See whether the service accepts the key, or Vertex the project; both are free."""
        models, is_vertex = self._client.aio.models, self.kind == BackendKind.VERTEX
        async with answering(self._translated if is_vertex else self._translated_check):
            if is_vertex:  # its list of models takes any project
                await models.count_tokens(model=self.model, contents="-")
            elif not (await models.list(config={"page_size": 1})).page:
                raise wrong_api(self._context, "it listed none", _PART)

    def _translated(self, error: Exception) -> ModelError:
        return _translate(error, self._context)

    def _translated_check(self, error: Exception) -> ModelError:
        """Return the error for a service that did not list its models."""
        if isinstance(error, genai_errors.APIError) and error.code in _NO_SUCH_PATH:
            return wrong_api(self._context, f"it answered with HTTP {error.code}", _PART)
        return self._translated(error)

    async def aclose(self) -> None:
        """Close the connections. A second call does nothing."""
        await self._http.aclose()
        self._client.close()

    def warm_up(self) -> None:
        """Build pydantic's validators now, off the event loop."""
        self._config(ModelRequest(contents=(), declarations=(), system_instruction="-"))
        wire = {"candidates": [{"content": {"role": "model", "parts": [{"text": "-"}]}}]}
        self._chunk(types.GenerateContentResponse.model_validate(wire), wire)

    async def _pump(self, request: ModelRequest, queue: asyncio.Queue[_Answer | None]) -> None:
        responses: list[httpx2.Response] = []
        _responses.set(responses)  # of this task
        try:
            stream = await self._client.aio.models.generate_content_stream(
                model=self._context.model, contents=_REPLACED, config=self._config(request)
            )
            async for response in stream:
                queue.put_nowait((response, responses[-1].extensions["answer"]))
                await asyncio.sleep(0)  # many at once would hold up the loop
        finally:
            queue.put_nowait(None)
            for one in responses:  # the SDK closes only what it read, or was cancelled in
                await one.aclose()

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        """Return the contents and tools of a request, which are sent unchanged."""
        tools = [{"functionDeclarations": list(request.declarations)}]
        body: dict[str, Any] = {"contents": list(request.contents)}
        return body | ({"tools": tools} if request.declarations else {})

    def _config(self, request: ModelRequest) -> types.GenerateContentConfig:
        return types.GenerateContentConfig(
            system_instruction=request.system_instruction or None,
            max_output_tokens=request.max_output_tokens or request.options.max_output,
            temperature=request.options.temperature,
            thinking_config=self._thinking(request),
            tool_config=_MUST_CALL if request.must_call and request.declarations else None,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            http_options=types.HttpOptions(extra_body=self._body(request)),
        )

    def _thinking(self, request: ModelRequest) -> types.ThinkingConfig | None:
        """Request thought summaries, or minimal thinking for an answer with a token limit."""
        if request.max_output_tokens is None:
            return self._chosen_thinking(request.options.thinking)
        if generation(self.model) >= (3, 0):
            return types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW)
        if generation(self.model) == (2, 5):
            return types.ThinkingConfig(thinking_budget=128 if "pro" in self.model else 0)
        return None

    def _chosen_thinking(self, chosen: str | None) -> types.ThinkingConfig | None:
        """Request thought summaries, and the thinking that the user chose."""
        if chosen is None:
            return types.ThinkingConfig(include_thoughts=True) if self._thoughts else None
        config = types.ThinkingConfig(include_thoughts=self._thoughts or None)
        if generation(self.model) >= (3, 0):
            config.thinking_level = types.ThinkingLevel(chosen.upper())
        else:
            config.thinking_budget = int(chosen)
        return config

    def _chunk(self, response: types.GenerateContentResponse, wire: _Wire) -> ModelChunk:
        """Return a chunk; google-genai leaves out the service's words on why it ends."""
        candidate = response.candidates[0] if response.candidates else None
        content = candidate.content if candidate else None
        end, feedback = _candidate(wire), wire.get("promptFeedback") or {}
        words = end.get("finishMessage") or feedback.get("blockReasonMessage") or ""
        return ModelChunk(
            parts=tuple(
                part.model_dump(exclude_none=True, by_alias=True, mode="json")
                for part in (content.parts if content and content.parts else ())
            ),
            finish_reason=str(end.get("finishReason") or "").upper(),
            finish_message=str(words),
            block_reason=str(feedback.get("blockReason") or "").upper(),
            usage=self._usage(response.usage_metadata),
        )

    def _usage(self, counted: types.GenerateContentResponseUsageMetadata | None) -> Usage | None:
        if counted is None:
            return None
        prompt = (counted.prompt_token_count or 0) + (counted.tool_use_prompt_token_count or 0)
        output, thoughts = counted.candidates_token_count or 0, counted.thoughts_token_count or 0
        cached, limit = counted.cached_content_token_count or 0, self.traits.context_limit
        return Usage(prompt, output, thoughts, cached, context=prompt, context_limit=limit)


def _translate(error: Exception, context: RequestContext) -> ModelError:
    """Return the error for a failure of google-genai or of what it uses, with advice."""
    match error:
        case genai_errors.APIError():
            return from_status(_refusal(error, context), context)
        case google.auth.exceptions.GoogleAuthError():
            words = "Google's credentials could not be used"
            advice = "Run: gcloud auth application-default login"
            return ModelError(words, details=context.clean(error), advice=advice)
        case _:
            return translate(error, context)


def _stream_error(told: object) -> genai_errors.APIError:
    """Return the error that a service tells within a stream, as one or in words alone."""
    error = dict(told) if isinstance(told, Mapping) else {"message": str(told)}
    code = error.get("code")
    error["code"] = code if isinstance(code, int) and 400 <= code < 600 else 0
    return genai_errors.APIError(0, {"error": error})


def _refusal(error: genai_errors.APIError, context: RequestContext) -> Refusal:
    details = _details(error.details)
    named = [one for detail in details for one in (detail, *_objects(detail.get("violations")))]
    reasons = [str(one.get(key)) for one in named for key in ("reason", "quotaId") if key in one]
    delays = [detail.get("retryDelay") for detail in details]
    delays.append(getattr(error.response, "headers", {}).get("retry-after"))
    said = str(error.message or words_in(error.details) or error.status or "")
    wrong = [one for detail in details for one in _objects(detail.get("fieldViolations"))]
    for one in wrong[:MAX_WRONG]:
        if (words := text_in(one, "description")) not in said:
            said += f" {text_in(one, 'field')}: {words}"
    return Refusal.read(error.code, said, reasons, delays, context.clean)


def _details(body: object) -> list[Mapping[str, Any]]:
    """Return the ``error.details`` objects of a response, whatever its wrapping."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            return _objects(inner.get("details"))
    return []


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _offer(model: types.Model) -> ModelOffer:
    name = sanitize_line((model.name or "").rpartition("models/")[2], 100)
    limits = model.input_token_limit or 0, model.output_token_limit or 0
    return ModelOffer(name, sanitize_line(model.display_name or "", 100), *limits)


def create_gemini_backend(access: ModelAccess, settings: GemdeckSettings) -> GeminiBackend:
    """Create a backend. Needs no event loop and may run in any thread.

    Args:
        access: The service and the credentials for it.
        settings: Name the model and say how to ask it; the version ``v1beta`` of the Gemini API is
            mapped to Vertex's name for it.

    Raises:
        ModelError: If the client cannot be created.
    """
    _silence_sdk()
    secret = access.api_key.get_secret_value() if access.api_key else ""
    idle_timeout, api_version = settings.idle_timeout, settings.api_version
    is_vertex = access.kind is BackendKind.VERTEX
    if is_vertex and api_version == "v1beta":
        api_version = "v1beta1"
    region = "" if access.location in {"", "global"} else f"{access.location}-"
    google = f"https://{region}aiplatform.googleapis.com" if is_vertex else GOOGLE
    http, tls, proxy = open_http(idle_timeout, access.base_url or google, _heed)
    context = RequestContext(
        access.kind, settings.model, access.base_url, idle_timeout, {secret}, proxy=proxy
    )
    options = types.HttpOptions(
        httpx_async_client=http,
        api_version=api_version,
        base_url=access.base_url or None,
        # Reading the certificates takes 20 ms; the SDK would read them for two further clients,
        # and the proxies, which end it if one cannot be used.
        client_args={"trust_env": False},
        async_client_args=None if is_vertex else {"verify": tls, "ssl": tls},
    )
    try:
        client = genai.Client(
            enterprise=is_vertex,
            api_key=secret or None,
            project=access.project or None if is_vertex else None,
            location=access.location or None if is_vertex else None,
            http_options=options,
        )
    except Exception as error:  # noqa: BLE001 - the SDK raises many types for bad credentials
        raise _translate(error, context) from None
    backend = GeminiBackend(client, http, context, thoughts=settings.thoughts)
    backend.warm_up()
    return backend


def _silence_sdk() -> None:
    """Keep the SDK from writing to standard error, which would corrupt the screen.

    Log records still reach the root logger's handlers. Warnings only report enum values that
    the SDK does not know.
    """
    for name in _QUIET_LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", module=r"google\.genai\b")
