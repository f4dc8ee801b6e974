"""The backend against a Gemini API on loopback."""

import asyncio
import gc
import json
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace

import anyio
import pytest
from pydantic import SecretStr

from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_rules import Json
from tests.fakes.gemini_script import (
    Action,
    Block,
    Call,
    Fail,
    Finish,
    Page,
    Raw,
    Reset,
    Say,
    Stall,
    Stop,
    Think,
)
from tests.support.waiting import PATIENCE
from tests.unit.engine.chats.support import open_backend
from tui.engine.chats.backends import service_http
from tui.engine.chats.backends.backend import (
    ModelBackend,
    ModelChunk,
    ModelError,
    ModelRequest,
)
from tui.engine.chats.backends.gemini import create_gemini_backend
from tui.engine.chats.backends.service_errors import RequestContext
from tui.engine.keys.credentials import ModelAccess
from tui.model.chat import BackendKind
from tui.model.settings import GemdeckSettings

DECLARATION: Json = {
    "name": "add",
    "description": "Adds.",
    "parametersJsonSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
}


def request(*declarations: Json) -> ModelRequest:
    return ModelRequest(
        contents=[{"role": "user", "parts": [{"text": "hi"}]}],
        declarations=declarations,
        system_instruction="Be brief.",
    )


async def collect(backend: ModelBackend, *declarations: Json) -> list[ModelChunk]:
    try:
        with anyio.fail_after(PATIENCE):
            return [chunk async for chunk in backend.stream(request(*declarations))]
    finally:
        await backend.aclose()


async def failures(*steps: Sequence[Action], idle_timeout: float = 5.0) -> list[ModelError]:
    """Ask one backend once for each step, and give the errors; none of them holds the key."""
    errors = []
    async with FakeGemini(steps) as fake:
        backend = await open_backend(fake.url, idle_timeout=idle_timeout)
        for step in steps:
            with anyio.fail_after(PATIENCE), pytest.raises(ModelError) as caught:
                _ = [chunk async for chunk in backend.stream(request(DECLARATION))]
            assert KEY not in str(caught.value) + caught.value.advice, step
            errors.append(caught.value)
        await backend.aclose()
    return errors


async def test_a_request_carries_contents_tools_and_orders_as_given() -> None:
    async with FakeGemini([(Say("hello"),)] * 2) as fake:
        fake.models = ["g" * 5_000] * 300  # on one line
        assert len(await (await open_backend(fake.url)).models()) == 300
        await collect(await open_backend(fake.url), DECLARATION)
        await collect(await open_backend(fake.url, thoughts=False))
    sent, bare = fake.requests
    assert not bare.body.keys() & {"tools", "toolConfig"}
    assert bare.body["generationConfig"] == {}
    assert sent.path == "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert sent.body["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]
    assert sent.body["tools"] == [{"functionDeclarations": [DECLARATION]}]
    assert sent.body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert sent.body["generationConfig"] == {"thinkingConfig": {"include_thoughts": True}}
    assert sent.headers["x-goog-api-key"] == KEY
    assert "x-server-timeout" not in sent.headers


async def test_a_bounded_answer_is_thought_about_as_little_as_possible() -> None:
    asked = replace(request(DECLARATION), max_output_tokens=64, must_call=True)
    async with FakeGemini([(Say("hello"),)] * 4) as fake:
        for model, thinking in (
            ("gemini-3-pro-preview", {"thinkingConfig": {"thinking_level": "LOW"}}),
            ("gemini-2.5-flash", {"thinkingConfig": {"thinking_budget": 0}}),
            ("gemini-2.5-pro", {"thinkingConfig": {"thinking_budget": 128}}),
            ("gemini-2.0-flash", {}),
        ):
            backend = await open_backend(fake.url, model=model)
            with anyio.fail_after(PATIENCE):
                assert [chunk async for chunk in backend.stream(asked)]
            await backend.aclose()
            body = fake.requests[-1].body
            assert body["generationConfig"] == {"maxOutputTokens": 64, **thinking}, model
            assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}


async def test_chunks_keep_parts_in_wire_form_and_the_last_count() -> None:
    step = (Think("hm"), Say("a"), Call([("add", {"a": 1.0}), ("add", {})]))
    async with FakeGemini([step]) as fake:
        chunks = await collect(await open_backend(fake.url), DECLARATION)
    thought, text, signed, unsigned = (part for chunk in chunks for part in chunk.parts)
    assert (thought, text) == ({"text": "hm", "thought": True}, {"text": "a"})
    assert signed["functionCall"] == {"id": "call0001", "name": "add", "args": {"a": 1.0}}
    assert ["thoughtSignature" in one for one in (signed, unsigned)] == [True, False]
    assert chunks[-1].finish_reason == "STOP"
    usage = chunks[-1].usage
    assert usage is not None
    assert (usage.prompt, usage.output, usage.context_limit) == (7, 3, 1_048_576)


async def test_what_a_stream_holds_is_given_as_it_is() -> None:
    """Also line separators in a text, reasons that the SDK does not know, and nothing at all."""
    odd_step: Sequence[Action] = (Say("a\u2028b\u0085c"), Finish("SOMETHING_NEW"))
    steps = (odd_step, (Block("PROHIBITED_CONTENT"),), (Stop(),))
    async with FakeGemini(steps) as fake:
        odd, refused, empty = [await collect(await open_backend(fake.url)) for _ in steps]
    assert (odd[0].parts, empty) == (({"text": "a\u2028b\u0085c"},), [])
    assert odd[-1].finish_reason == "SOMETHING_NEW"
    assert refused[-1].block_reason == "PROHIBITED_CONTENT"


async def test_a_burst_of_pieces_leaves_the_loop_its_turns() -> None:
    event = {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}}]}
    burst = Raw(f"data: {json.dumps(event)}\r\n\r\n" * 100)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with FakeGemini([(burst,)]) as fake:
        backend = await open_backend(fake.url)
        stream = backend.stream(request())
        await anext(stream)
        counting = asyncio.create_task(count())
        chunks = [chunk async for chunk in stream]
        counting.cancel()
        await backend.aclose()
    assert turns > len(chunks) > 90


@pytest.fixture
def without_gc() -> Iterator[None]:
    """Keep a garbage collection from closing connections by chance."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_gc")
async def test_leaving_the_stream_early_or_failing_to_read_it_closes_the_connection() -> None:
    unreadable = (Raw('data: {"candidates": 5}\r\n\r\n'), Stall())
    async with FakeGemini([(Say("a"), Stall()), unreadable]) as fake:
        backend = await open_backend(fake.url)
        stream = backend.stream(request())
        assert isinstance(stream, AsyncGenerator)
        with anyio.fail_after(PATIENCE):
            await anext(stream)
            await stream.aclose()
            await fake.wait_for_gone()
            with pytest.raises(ModelError, match="not be read"):
                await anext(backend.stream(request()))
            await fake.wait_for_gone(2)
        await backend.aclose()


async def test_an_invalid_key_says_where_to_get_one_and_none_follows_a_redirect() -> None:
    async with FakeGemini() as other, FakeGemini([(Page(307, location=other.url),)]) as fake:
        with pytest.raises(ModelError, match="key was not accepted") as caught:
            await collect(await open_backend(other.url, key="wrong"))
        assert "GEMINI_API_KEY" in caught.value.advice
        before = len(other.requests)
        with pytest.raises(ModelError, match="redirects"):
            await collect(await open_backend(fake.url))
    assert len(other.requests) == before


async def test_a_quota_error_carries_the_wait_unless_the_day_is_used_up() -> None:
    a_day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
    told, in_little, used_up = await failures(
        (Fail(429, "Slow down.", retry_delay="34.4s"),),
        (Fail(429, "Quota exceeded.", retry_delay="430.5ms"),),
        (Fail(429, "x", retry_delay="10s", quota=a_day),),
    )
    assert (told.retryable, told.retry_after) == (True, 34.4)
    assert "34 s" in told.advice
    assert in_little.retry_after == pytest.approx(0.4305)
    assert not used_up.retryable
    assert "today" in str(used_up)


async def test_each_failure_says_what_happened() -> None:
    cases: tuple[tuple[Action, str, bool], ...] = (
        (Fail(403, "denied"), "no access", False),
        (Fail(404, "models/x is not found for API version v1"), "not found", False),
        (Fail(500), "overloaded", True),
        (Fail(503, "high demand"), "high demand", True),
        (Fail(400, f"API key {KEY} is odd"), "[key]", False),
        (Fail(400, "The input token count (9) exceeds the maximum"), "too long", False),
        (Fail(400, "has too many states for serving."), "schemas are too complex", False),
        (Page(502), "web page", True),
        (Page(200), "a web page instead of an answer", True),
        (Raw('data: {"usageMetadata": {"totalTokenCount": 1.5}}\r\n\r\n'), "not be read", True),
        (Page(302, location="http://127.0.0.1:1/"), "redirects", False),
        (Reset(), "closed the connection before its response", True),
        (Raw("data: {nonsense}\r\n\r\n"), "not be read", True),
    )
    errors = await failures(*((action,) for action, *_ in cases))
    for error, (action, words, retryable) in zip(errors, cases, strict=True):
        assert words in str(error), action
        assert error.retryable is retryable, action
        assert not [one for one in ("<", "pydantic.dev") if one in str(error)]


def test_a_key_as_short_as_a_letter_is_not_masked_in_words() -> None:
    context = RequestContext("Gemini", "gemini-9", "", 1.0, {"x"})
    assert context.clean("exceeded") == "exceeded"


async def test_a_refused_declaration_names_its_tool_and_a_missing_signature_none() -> None:
    messages = (
        'Invalid JSON payload received. Unknown name "x" at \'tools[0].function_declarations[0]'
        ".parameters_json_schema': Cannot find field.",
        "FunctionDeclaration 'add' in the request exceeds the maximum allowed nesting depth.",
        "Duplicate function declaration found: add",
        "Function call is missing a thought_signature. function call `default_api:add`",
    )
    errors = await failures(*((Fail(400, message),) for message in messages))
    assert [error.refused_tool for error in errors] == ["add", "add", "add", ""]


async def test_silence_and_an_endless_answer_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    [error] = await failures((Say("a"), Stall()), idle_timeout=0.1)
    assert ("sent nothing" in str(error), error.retryable) == (True, True)
    monkeypatch.setattr(service_http, "MAX_STEP_BYTES", 20_000)
    [error] = await failures([Say("x" * 1_000) for _ in range(40)])
    assert "longer than" in str(error)


async def test_nothing_reaches_the_standard_error(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "a")
    monkeypatch.setenv("GEMINI_API_KEY", "b")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("google_genai"), "handlers", [])
    async with FakeGemini([(Call([("add", {})]), Finish("SOMETHING_NEW"))]) as fake:
        await collect(await open_backend(fake.url), DECLARATION)
    assert (capfd.readouterr().err, fake.requests[0].headers["x-goog-api-key"]) == ("", KEY)


async def test_vertex_has_a_path_of_its_own_by_choice_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeGemini([(Say("hello"),)] * 2) as fake:
        access = ModelAccess(BackendKind.VERTEX, SecretStr(KEY), base_url=fake.url)
        await collect(create_gemini_backend(access, GemdeckSettings()))
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "elsewhere")
        await collect(await open_backend(fake.url))
    vertex, gemini = (sent.path for sent in fake.requests)
    assert vertex.startswith("/v1beta1/publishers/google/models/gemini-3.8-flash:")
    assert gemini.startswith("/v1beta/models/")


async def test_vertex_without_credentials_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    # The variable NO_GCE_CHECK is read once, by whichever test imports this first.
    monkeypatch.setattr("google.auth.compute_engine._metadata._NO_GCE_CHECK", True)
    access = ModelAccess(BackendKind.VERTEX, None, "project", "global", "http://127.0.0.1:1")
    with pytest.raises(ModelError, match="credentials") as caught:
        await collect(create_gemini_backend(access, GemdeckSettings()))
    assert "gcloud auth" in caught.value.advice


async def test_the_gemini_api_and_vertex_count_contents_tools_and_instructions_together() -> None:
    asked = ModelRequest([{"role": "user", "parts": [{"text": "-"}]}], [DECLARATION], "Be brief.")
    async with FakeGemini() as fake:
        access = ModelAccess(BackendKind.VERTEX, SecretStr(KEY), base_url=fake.url)
        vertex = create_gemini_backend(access, GemdeckSettings())
        for backend in (vertex, await open_backend(fake.url)):
            for fake.tokens, counted in ((321, 321), (None, 0)):  # it is estimated then
                assert await backend.count(asked) == counted
            await backend.aclose()
    tools, words = [{"functionDeclarations": [DECLARATION]}], {"parts": [{"text": "Be brief."}]}
    whole = {"contents": asked.contents, "tools": tools, "systemInstruction": words}
    named = {"model": "models/gemini-3.8-flash", **whole}
    of_gemini = {"contents": [], "generateContentRequest": named}
    assert [fake.checks[number].body for number in (0, 2)] == [whole, of_gemini]
