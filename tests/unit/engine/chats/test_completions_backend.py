"""The backend for chat completions against a service on loopback that checks what it is asked."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from email.utils import formatdate
from time import time

import anyio
import pytest

from tests.fakes.completions import KEY, FakeCompletions
from tests.fakes.gemini_rules import Json
from tests.fakes.gemini_script import Action, Call, Fail, Page, Raw, Reset, Say, Stall, Think
from tests.servers.web import HttpServer, answer
from tests.support.rows import row
from tests.support.waiting import PATIENCE
from tests.unit.engine.chats.completion_answers import (
    BEGUN,
    DONE,
    END,
    PNG,
    USER,
    collect,
    event,
    parts,
    read,
    request,
    whole,
)
from tests.unit.engine.chats.support import open_completions
from tests.unit.engine.chats.test_gemini_backend import DECLARATION
from tui.engine.chats.backends import service_http
from tui.engine.chats.backends.backend import ModelChunk, ModelError
from tui.model.chat import Usage
from tui.model.models import ModelOptions


async def test_a_request_says_what_was_chosen_and_nothing_else() -> None:
    spoken = {"name": "a.b", "description": "Adds.", "parametersJsonSchema": {"type": "object"}}
    options = ModelOptions("high", 0.5, 100)
    async with FakeCompletions([(Say("hello"),)] * 3) as fake:
        await collect(fake)
        tools = (spoken, {**spoken, "name": "a_b"})
        asked = request(tools=tools, system_instruction="Be brief.", options=options)
        await collect(fake, asked)
        backend = await open_completions(
            fake.url, key="", said={"options": {"temperature": 0.1}}, api_version="v1"
        )
        with pytest.raises(ModelError, match="no access"):
            await read(backend)
        await backend.aclose()
    bare, sent, _ = (one.body for one in fake.requests)
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    assert bare == {
        "model": "large",
        "messages": [{"role": "user", "content": "hi"}],
        **streamed,
    }
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
    assert [one["function"]["name"] for one in sent["tools"]] == ["a_b", "a_b_2"]
    chosen = {"reasoning_effort": "high", "temperature": 0.5, "max_tokens": 100}
    assert {key: sent[key] for key in sent.keys() - bare.keys() - {"tools"}} == chosen
    assert fake.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in fake.requests[2].headers


async def test_the_users_options_of_a_model_go_along() -> None:
    async with FakeCompletions([(Say("hello"),)]) as fake:
        fake.is_strict = False
        said = {"options": {"num_ctx": 8_192, "temperature": 0.1}, "context": 9_000}
        backend = await open_completions(fake.url, said=said)
        chunks = await read(backend)
        await backend.aclose()
    assert {"num_ctx": 8_192, "temperature": 0.1}.items() <= fake.requests[0].body.items()
    usage = chunks[-2].usage
    assert usage == Usage(7, 3, context=7, context_limit=9_000)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_details"])
async def test_reasoning_is_shown_and_goes_back_within_its_turn_alone(field: str) -> None:
    steps = [(Think("hm "), Think("so"), Call([("add", {"a": 1})])), (Say("1"),), (Say("2"),)]
    async with FakeCompletions(steps) as fake:
        fake.reasoning = field
        chunks = await collect(fake, request(tools=[DECLARATION]))
        thoughts = [one["text"] for one in parts(chunks) if one.get("thought")]
        made = {"role": "model", "parts": [one for one in parts(chunks) if not one.get("thought")]}
        response = {"name": "add", "id": "call0001", "response": {"output": "1"}}
        result = {"role": "user", "parts": [{"functionResponse": response}]}
        await collect(fake, request(USER, made, result))
        said = {"role": "model", "parts": [{"text": "1"}]}
        await collect(fake, request(USER, made, result, said, USER))
    assert thoughts == ["hm ", "so"]
    _, now, later = (one.body["messages"] for one in fake.requests)
    block = [{"type": "reasoning.text", "text": "hm so", "index": 0}]
    assert now[1][field] == (block if field == "reasoning_details" else "hm so")
    assert field not in later[1]


async def test_what_a_service_refuses_of_ours_is_left_out_and_what_the_user_chose_is_not() -> None:
    kept = json.dumps({"reasoning_content": "hm"})
    call = {"functionCall": {"name": "add", "id": "1", "args": {}}}
    made = {"role": "model", "parts": [call, {"text": "", "thoughtSignature": kept}]}
    response = {"name": "add", "id": "1", "response": {"error": "none"}}
    asked = request(USER, made, {"role": "user", "parts": [{"functionResponse": response}]})
    asked = replace(asked, max_output_tokens=9, options=ModelOptions("low", 0.5))
    async with FakeCompletions([(Say("a"),)] * 2) as fake:
        fake.refuses = {"stream_options", "max_tokens", "reasoning_content"}
        backend = await open_completions(fake.url)
        for count in (4, 5):  # it remembers
            assert parts(await read(backend, asked)) == [{"text": "a"}]
            assert len(fake.requests) == count
        last = fake.requests[-1].body
        assert last["max_completion_tokens"] == 9
        assert last["messages"][2]["content"] == "Error: none"
        assert not last.keys() & fake.refuses
        fake.refuses = {"temperature"}
        with pytest.raises(ModelError, match="Unsupported parameter: 'temperature'"):
            await read(backend, asked)
        assert len(fake.requests) == 6
        await backend.aclose()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("registry.ollama.ai/library/gemma:2b does not support tools", 400),
        ("No endpoints found that support tool use.", 404),
        ('"auto" tool choice requires --enable-auto-tool-choice to be set', 400),
        ("tools param requires --jinja flag", 500),
        ("`tool calling` is not supported with this model", 400),
    ],
)
async def test_a_model_without_tools_says_so_once(words: str, code: int) -> None:
    async with FakeCompletions([(Fail(code, words),)]) as fake:
        backend = await open_completions(fake.url)
        assert backend.traits.tools
        with pytest.raises(ModelError) as caught:
            await read(backend, request(tools=[DECLARATION]))
        await backend.aclose()
        assert (caught.value.lacks, backend.traits.tools) == ("tools", False)


async def test_a_refused_tool_is_named_as_gemdeck_knows_it() -> None:
    tools = [DECLARATION, {**DECLARATION, "name": "to.do"}]
    messages = (
        "Invalid schema for function 'to_do': In context=(), object is missing.",
        "Invalid 'tools[1].function.parameters': too deep.",
        "tools.1.custom.input_schema: JSON schema is invalid.",
    )
    for message in messages:
        async with FakeCompletions([(Fail(400, message),)]) as fake:
            with row(message), pytest.raises(ModelError) as caught:
                await collect(fake, request(tools=tools))
            assert caught.value.refused_tool == "to.do"


async def test_conversations_of_other_services_are_understood() -> None:
    """Calls without ids, or with ids that come again; media in results, and signatures."""
    call: Json = {"functionCall": {"name": "default_api:look", "args": {"a": "ä"}}}
    twice: Json = {"functionCall": {"name": "look", "args": {}, "id": "x"}}
    result: Json = {"functionResponse": {"name": "look", "response": {"output": "a"}}}
    seen: Json = {"functionResponse": {**result["functionResponse"], "parts": [PNG]}}
    contents: list[Json] = [
        {"role": "user", "parts": [{"text": "hi"}, {"text": "there"}, PNG]},
        {"role": "model", "parts": [{**call, "thoughtSignature": "c2ln"}, call, {"text": "so"}]},
        {"role": "user", "parts": [result, seen, {"inlineData": {**PNG["inlineData"]}}]},
        {"role": "model", "parts": [twice, twice]},
        {"role": "user", "parts": [result, result]},
    ]
    async with FakeCompletions([(Say("a"),)]) as fake:
        await collect(fake, request(*contents))
        assert fake.violations == []
    messages = fake.requests[0].body["messages"]
    assert [one["role"] for one in messages] == [
        *("user", "assistant", "tool", "tool", "user", "assistant", "tool", "tool")
    ]
    assert messages[0]["content"][1]["text"] == "there"
    assert messages[1]["tool_calls"][0]["function"]["name"] == "default_api_look"
    assert [one["type"] for one in messages[4]["content"]] == ["text", "image_url", "image_url"]


async def test_each_failure_says_what_happened() -> None:
    cut = (
        event({"content": "a"}) + f"data: {json.dumps({'error': {'message': 'It fell over.'}})}\n\n"
    )
    own = f"data: {json.dumps({'error': {'message': 'Slow down.', 'code': 429}})}\n\n"
    cases: tuple[tuple[Action, str, bool], ...] = (
        (Fail(401, "Incorrect API key provided"), "no access", False),
        (Fail(404, "The model `x` does not exist"), "The model large was not found", False),
        (Fail(500), "overloaded", True),
        (Fail(429, "You exceeded your quota", quota="x"), "quota is used up", False),
        (Fail(400, f"API key {KEY} is odd"), "[key]", False),
        (Fail(400, "This model's maximum context length is 9 tokens."), "too long", False),
        (Page(502), "web page", True),
        (Page(200), "a web page instead of an answer", True),
        (Page(302, location="http://127.0.0.1:1/"), "redirects", False),
        (Reset(), "closed the connection before its response", True),
        (Raw("data: {nonsense}\n\n"), "a chat completions service sends", True),
        (Raw(cut), "aborted the answer: It fell over.", True),
        (Raw(own), "Too many requests", True),
        (Raw("event: error\ndata: It fell.\n\n"), "aborted the answer: It fell.", True),
    )
    for action, words, retryable in cases:
        async with FakeCompletions([(action,)]) as fake:
            with row(action), pytest.raises(ModelError) as caught:
                await collect(fake)
            assert words in str(caught.value)
            assert caught.value.retryable is retryable
            assert not [
                one
                for one in ("<", KEY, "GEMINI")
                if one in f"{caught.value} {caught.value.advice}"
            ]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"error": "no such model"}, "no such model"),
        ({"object": "error", "message": "Too odd", "code": 400}, "Too odd"),
        ({"detail": [{"msg": "Field required"}]}, "Field required"),
        ({"message": "Bad", "type": "invalid_request"}, "Bad"),
        ("plain words", "plain words"),
        ([{"error": {"code": 400, "message": "in a list"}}], "in a list"),
        ('"JSON words"', "JSON words"),
        (
            {"error": {"message": "Provider", "metadata": {"raw": "its words"}}},
            "Provider: its w",
        ),
        (
            {"error": {"message": "At X", "metadata": {"raw": '{"error": {"message": "a"}}'}}},
            "At X: a",
        ),
        ({"error": {"message": '{"error": {"message": "deep"}}'}}, "request: deep"),
        ({"error": "Bad Request", "message": "no such field"}, "Bad Request: no such field"),
        ({"code": 1, "msg": "some words"}, "request: some words"),
        ({"errors": [{"message": "first"}]}, "request: first"),
        ({"odd": [5, None, "é"]}, '{"odd": \\[5, null, "é"\\]}'),
        ("", "refused the request$"),
        ("[]", "refused the request$"),
    ],
)
async def test_errors_of_all_forms(error: object, words: str) -> None:
    text = error if isinstance(error, str) else json.dumps(error)
    async with HttpServer(handle=answer(400, text.encode())) as server:
        backend = await open_completions(server.origin)
        with pytest.raises(ModelError, match=words):
            await read(backend)
        await backend.aclose()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"code": 401, "msg": "token expired"}', "no access .* token expired"),
        ('{"base_resp": {"status_msg": "login fail"}, "choices": null}', "login fail"),
        (
            '{"error": "Unexpected endpoint or method. (POST /chat/completions)"}',
            "has nothing at this address",
        ),
        (event({}) + 'data: {"error": {"message": "insufficient_quota"}}\n\n', "quota is used up"),
        ('data: {"message": "worker died"}\n\n', "aborted the answer: worker died"),
        (
            BEGUN + event({}, finish_reason="error", error={"message": "It died."}),
            "answer: It died.",
        ),
        (
            'event: error\ndata: {"error": "More tokens than the context length"}\n\n',
            "too long for the model",
        ),
    ],
)
async def test_errors_in_place_of_an_answer(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        await whole(text)


async def test_a_call_that_the_service_could_not_read_is_malformed() -> None:
    words = "Failed to call a function."
    async with FakeCompletions([(Fail(400, words, reason="tool_use_failed"),)]) as fake:
        chunks = await collect(fake, request(tools=[DECLARATION]))
    assert chunks == [ModelChunk(finish_reason="MALFORMED_FUNCTION_CALL", finish_message=words)]


async def test_too_many_requests_are_asked_again_when_the_service_says() -> None:
    for header, least, most in (
        ({"retry_after": "34"}, 34, 34),
        ({"retry_after": formatdate(time() + 3_000, usegmt=True)}, 2_900, 3_000),
        ({"retry_after": formatdate(time() - 3_000, usegmt=True)}, 0, 0),
        ({"retry_after": "soon"}, 15, 15),
        ({}, 15, 15),
    ):
        async with HttpServer(handle=answer(429, b"{}", **header)) as server:
            backend = await open_completions(server.origin)
            with row(header), pytest.raises(ModelError) as caught:
                await read(backend)
            await backend.aclose()
            wait = caught.value.retry_after
            assert caught.value.retryable
            assert wait is not None
            assert least <= wait <= most


async def test_silence_and_an_endless_answer_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeCompletions([(Say("a"), Stall())]) as fake:
        backend = await open_completions(fake.url, idle_timeout=0.1)
        with pytest.raises(ModelError, match="sent nothing"):
            await read(backend)
        await backend.aclose()
    monkeypatch.setattr(service_http, "MAX_STEP_BYTES", 20_000)
    async with FakeCompletions([[Say("x" * 1_000) for _ in range(40)]]) as fake:
        with pytest.raises(ModelError, match="longer than"):
            await collect(fake)


async def test_leaving_the_stream_early_ends_the_request_on_the_wire() -> None:
    async with FakeCompletions([(Say("a"), Stall())]) as fake:
        backend = await open_completions(fake.url)
        stream = backend.stream(request())
        assert isinstance(stream, AsyncGenerator)
        with anyio.fail_after(PATIENCE):
            await anext(stream)
            await stream.aclose()
            await fake.wait_for_gone()
        await backend.aclose()


async def test_no_key_follows_a_redirect_and_no_proxy_hears_of_a_service_on_this_computer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeCompletions() as other, FakeCompletions() as fake:
        monkeypatch.setenv("HTTP_PROXY", other.url)
        monkeypatch.setenv("ALL_PROXY", other.url)
        fake.steps = [(Page(307, location=other.url),), (Say("a"),)]
        with pytest.raises(ModelError, match="redirects"):
            await collect(fake)
        assert parts(await collect(fake)) == [{"text": "a"}]
        assert other.requests == []


OFFERS: list[tuple[Json, tuple[int, int, bool | None, bool | None, bool | None]]] = [
    ({"id": "bare", "object": "model", "owned_by": "x"}, (0, 0, None, None, None)),
    (
        {
            "id": "openrouter/one",
            "context_length": 9_000,
            "top_provider": {"max_completion_tokens": 900},
            "architecture": {"input_modalities": ["text", "image"]},
            "supported_parameters": ["tools", "reasoning"],
        },
        (9_000, 900, True, True, True),
    ),
    (
        {
            "id": "mistral",
            "max_context_length": 32_000,
            "capabilities": {"function_calling": False, "vision": True, "reasoning": False},
        },
        (32_000, 0, False, True, False),
    ),
    (
        {"id": "groq", "context_window": 8_192, "max_completion_tokens": 800},
        (8_192, 800, None, None, None),
    ),
    ({"id": "vllm", "max_model_len": 4_096}, (4_096, 0, None, None, None)),
    ({"id": "/models/llama.gguf", "meta": {"n_ctx_train": 2_048}}, (2_048, 0, None, None, None)),
]


async def test_models_are_listed_with_what_the_service_says_of_them() -> None:
    async with FakeCompletions() as fake:
        fake.offers = [one for one, _ in OFFERS]
        backend = await open_completions(fake.url, model="mistral")
        assert backend.traits.tools
        listed = await backend.models()
        traits = backend.traits
        await backend.aclose()
    for found, (one, expected) in zip(listed, OFFERS, strict=True):
        assert found.name == f"fake/{one['id'].removeprefix('/models/')}"
        said = found.context_limit, found.output_limit, found.tools, found.pictures, found.thinking
        assert said == expected, found.name
    assert (traits.context_limit, traits.tools) == (32_000, False)
    assert traits.thinking_problem("high") == "fake/mistral has no thinking setting."


def shown(*able: str, size: int = 8_192, set_to: str = "") -> Json:
    info = {"general.architecture": "qwen3", "qwen3.context_length": size}
    return {"capabilities": ["completion", *able], "model_info": info, "parameters": set_to}


SAID_ELSEWHERE: dict[str, tuple[dict[str, Json], list[tuple[int, bool | None, bool | None]]]] = {
    "ollama": (
        {
            "/api/show plain:latest": shown(set_to="stop <|end|>\nnum_ctx    4096\n"),
            "/api/show able": shown("tools", "vision", "thinking"),
        },
        [(4_096, False, False), (8_192, True, True)],
    ),
    "lm studio": (
        {
            "/api/v0/models": {
                "data": [
                    {"id": "able", "type": "vlm", "capabilities": ["tool_use"]},
                    {"id": "plain:latest", "type": "llm", "max_context_length": 4_096},
                ]
            }
        },
        [(4_096, None, False), (0, True, True)],
    ),
    "hostile": (
        {
            "/api/show plain:latest": {"capabilities": 5, "model_info": [], "parameters": {"a": 1}},
            "/api/show able": {
                "model_info": {"a.context_length": -5},
                "capabilities": {"tools": []},
            },
        },
        [(0, None, None), (0, False, None)],
    ),
    "none": ({}, [(0, None, None), (0, None, None)]),
}


@pytest.mark.parametrize("kind", SAID_ELSEWHERE)
async def test_a_local_server_says_elsewhere_what_its_models_take(kind: str) -> None:
    pages, expected = SAID_ELSEWHERE[kind]
    async with FakeCompletions([[Say("1")]]) as fake:
        fake.models, fake.pages = ["plain:latest", "able"], pages
        backend = await open_completions(fake.url, model="plain")
        listed = await backend.models()
        tools, said = backend.traits.tools, backend.traits.offer
        await backend.aclose()
    assert [(one.context_limit, one.tools, one.pictures) for one in listed] == expected
    assert tools is (expected[0][1] is not False)
    assert said is not None
    assert ("no tools" in said.facts(str)) is not tools


async def test_no_service_elsewhere_is_asked_more_than_its_list() -> None:
    backend = await open_completions("https://work.example/v1")
    assert await backend._more(["large"]) == ()
    await backend.aclose()


async def look(status: int, text: str) -> ModelError | None:
    """Check a service that answers like this; give the error."""
    async with HttpServer(handle=answer(status, text.encode())) as server:
        backend = await open_completions(server.origin)
        try:
            await backend.check()
        except ModelError as error:
            return error
        finally:
            await backend.aclose()
    return None


async def test_a_check_says_what_is_wrong_with_an_address() -> None:
    for status, text, words, advice in (
        (404, "{}", "is not a chat completions service", "before /chat/completions"),
        (200, '{"odd": 1}', "is not a chat completions service", "gemdeck.services"),
        (200, "<html>hi</html>", "sent a web page", "the address of fake"),
        (200, "hi", "could not be read", "the address of fake"),
        (401, "{}", "The key has no access", "gemdeck key set --service fake"),
        (503, "{}", "overloaded or failing", "Try again"),
    ):
        error = await look(status, text)
        with row(words):
            assert error is not None
            assert words in str(error)
            assert advice in error.advice
    for text in ('{"data": [{"id": "x"}]}', '[{"id": "x"}]', '{"data": []}'):
        assert await look(200, text) is None


COUNTS: list[tuple[Json, Usage]] = [
    ({"prompt_tokens": 9, "completion_tokens": 5}, Usage(9, 5, context=9)),
    (
        {
            "prompt_tokens": 9,
            "completion_tokens": 5,
            "total_tokens": 14,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        Usage(9, 2, 3, 4, 9),
    ),
    (
        {
            "prompt_tokens": 9,
            "completion_tokens": 5,
            "total_tokens": 17,
            "prompt_cache_hit_tokens": 4,
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        Usage(9, 5, 3, 4, 9),
    ),
    ({"prompt_tokens": "x", "completion_tokens": -1, "prompt_tokens_details": None}, Usage()),
    ({"prompt_tokens": 10**400, "completion_tokens": True}, Usage(2**53, context=2**53)),
]


async def test_tokens_are_counted_as_each_service_counts_them() -> None:
    for counted, expected in COUNTS:
        text = f"data: {json.dumps({'choices': [], 'usage': counted})}\n\n"
        within = event({}, usage=counted), f"data: {json.dumps({'x_groq': {'usage': counted}})}\n\n"
        for other in within:
            chunks = await whole(BEGUN + END + other + DONE)
            assert [one.usage for one in chunks if one.usage is not None] == [expected]
        chunks = await whole(BEGUN + END + text + DONE)
        assert [chunk.usage for chunk in chunks if chunk.usage is not None] == [expected]
