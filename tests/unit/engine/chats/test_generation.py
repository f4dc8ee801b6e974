"""Text asked of the model beside the conversation, and what names of models tell."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.support.rows import row
from tui.engine.bus import Publish
from tui.engine.chats import step
from tui.engine.chats.backends.backend import ModelBackend, ModelChunk, ModelError, ModelRequest
from tui.engine.chats.backends.gemini import context_limit, generation, thinks, traits
from tui.engine.chats.costs import Costs
from tui.engine.chats.history import UNSIGNED
from tui.engine.chats.step import MalformedCallError, ModelStep, backend_generator
from tui.engine.demo.model import DEMO_MODEL, DemoBackend
from tui.engine.mcp.catalog.offered_tool import FunctionCall, PromptMessage, TextPart
from tui.engine.mcp.context import Generation, GenerationError, Prompt
from tui.model.chat import BackendKind, EntryId, Usage
from tui.model.events import Event, UsageReported
from tui.model.models import ModelOffer

ASK = Prompt((PromptMessage("user", (TextPart("x"),)),), (), "", 5)


class Scripted:
    """A backend that streams what a test wants."""

    def __init__(self, *chunks: ModelChunk, model: str = "gemini-2.5-flash") -> None:
        self.chunks: Sequence[ModelChunk] = chunks
        self.model = model
        self.traits = traits(model)
        self.kind = BackendKind.GEMINI
        self.asked: list[ModelRequest] = []
        self.is_closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self.asked.append(request)
        try:
            for chunk in self.chunks:
                yield chunk
            if not self.chunks:
                await asyncio.sleep(60)
        finally:
            self.is_closed = True

    async def models(self) -> Sequence[ModelOffer]:
        return ()

    async def count(self, request: ModelRequest) -> int:
        raise NotImplementedError

    async def check(self) -> None: ...

    async def aclose(self) -> None:
        """Do nothing."""


def text(words: str, reason: str = "") -> ModelChunk:
    return ModelChunk(({"text": words},), finish_reason=reason)


async def generate(
    backend: ModelBackend, prompt: Prompt = ASK, publish: Publish = lambda _: None
) -> Generation:
    return await backend_generator(lambda: (backend, publish), Costs()).generate(prompt)


async def test_text_and_calls_are_gathered_thoughts_are_not_and_a_limit_is_marked() -> None:
    thought = ModelChunk(({"text": "hm", "thought": True},))
    call = {"functionCall": {"name": "look", "args": {"a": 1}, "id": "c"}}
    backend = Scripted(thought, text("Hel"), text("lo", "STOP"))
    assert await generate(backend) == Generation("Hello", (), "gemini-2.5-flash")
    assert backend.is_closed
    made = await generate(Scripted(ModelChunk((call,), finish_reason="STOP")))
    assert made.calls == (FunctionCall("look", {"a": 1}, "c"),)
    assert (await generate(Scripted(text("Hel", "MAX_TOKENS")))).is_cut


async def test_what_is_no_whole_answer_is_an_error() -> None:
    for chunks, problem in (
        ([ModelChunk(finish_reason="MAX_TOKENS")], "used up all 5 tokens"),
        ([text("", "STOP")], "empty answer"),
        ([text("x")], "is incomplete"),
        ([text("x", "SAFETY")], "was stopped"),
        ([ModelChunk(block_reason="SAFETY")], "refused"),
        ([ModelChunk(finish_reason="MALFORMED_FUNCTION_CALL")], "malformed"),
    ):
        with row(problem), pytest.raises(GenerationError, match=problem) as caught:
            await generate(Scripted(*chunks))
        if "used up" not in problem:
            assert caught.value.advice.startswith("Try again"), "nobody sent a message"


async def test_an_answer_without_end_or_begin_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "MAX_STEP_CHARACTERS", 10)
    monkeypatch.setattr(step, "GENERATION_TIMEOUT", 0.05)
    for backend, words in (
        (Scripted(*[text("long ")] * 5), "longer than 10"),
        (Scripted(), "did not answer within"),
    ):
        with pytest.raises(GenerationError, match=words):
            await generate(backend)
        assert backend.is_closed


async def test_calls_of_the_past_are_signed_where_the_model_wants_it() -> None:
    calls = [{"functionCall": {"name": "a"}}, {"functionCall": {"name": "b"}}]
    prompt = Prompt((PromptMessage("model", (*calls,)),), (), "", 5)
    backend = Scripted(text("x", "STOP"), model="gemini-3-pro")
    await generate(backend, prompt)
    [asked] = backend.asked
    parts = (*asked.contents[0]["parts"], calls[0])
    assert [part.get("thoughtSignature") for part in parts] == [UNSIGNED, None, None]


async def test_the_tokens_of_a_generation_are_counted_without_its_context() -> None:
    usage = Usage(prompt=5, output=2, context=5, context_limit=1_000)
    told: list[Event] = []
    await generate(Scripted(ModelChunk(({"text": "x"},), "STOP", usage=usage)), ASK, told.append)
    assert told == [UsageReported(Usage(prompt=5, output=2), "gemini-2.5-flash")]


async def test_without_a_model_there_is_an_error_and_the_demo_keeps_to_its_tokens() -> None:
    generator = backend_generator(lambda: (None, lambda _: None), Costs())
    assert generator.model() == ""
    with pytest.raises(GenerationError, match="No model"):
        await generator.generate(ASK)
    generator = backend_generator(lambda: (DemoBackend(), lambda _: None), Costs())
    made = await generator.generate(ASK)
    assert made.model == generator.model() == DEMO_MODEL
    assert made.is_cut
    assert len(made.text) <= 20


def test_the_generation_and_what_depends_on_it_are_read_off_the_name() -> None:
    for model, expected in (
        *(("gemini-3.8-flash", (3, 8)), ("models/gemini-2.5-pro", (2, 5))),
        ("models/gemini-3.5-flash", (3, 5)),
        *(("publishers/google/models/gemini-3.8-flash-001", (3, 8)), ("gemini-4-argon", (4, 0))),
        *(("gemini-flash-latest", (3, 0)), ("gemma-4-31b-it", (0, 0)), ("demo", (0, 0))),
    ):
        assert generation(model) == expected
    assert [thinks(m) for m in ("gemini-2.0-flash", "gemini-2.5-pro")] == [False, True]
    shown = ("gemini-2.5-pro", "gemini-3-flash", "models/gemini-3.5-flash", "gemini-4")
    assert [traits(m).signs_calls for m in shown] == [False, True, True, True]
    assert [traits(m).media_in_responses for m in shown] == [False, True, True, True]
    assert [context_limit(m) for m in ("gemini-2.5-pro", "gemma-3", "x")] == [1_048_576, 131_072, 0]


async def end(*chunks: ModelChunk) -> None:
    """Run a step that a service ends like this."""
    made = ModelStep(lambda _: None, lambda: EntryId("e"), lambda: None)
    await made.run(Scripted(*chunks), ModelRequest((), ()))


async def test_the_services_words_on_an_unknown_end_are_shown_sanitised() -> None:
    with pytest.raises(ModelError, match=r"stopped \(NEW\): the moon is full\.") as caught:
        await end(ModelChunk(({"text": "x"},), "NEW", "the moon \x1b[31mis full"))
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("UNEXPECTED_TOOL_CALL", "called a tool that it was not offered: web_search"),
        ("MALFORMED_FUNCTION_CALL", "sent a malformed tool call: web_search"),
        ("MAX_TOKENS", "output limit"),
        ("SAFETY", "stopped (SAFETY): web_search."),
        ("", "the stream ended early"),
    ],
)
async def test_an_answer_that_breaks_off_after_text_is_no_whole_one(
    reason: str, words: str
) -> None:
    with pytest.raises(ModelError, match=re.escape(words)):
        await end(ModelChunk(({"text": "x"},), reason, "web_search"))


async def test_a_call_that_came_is_answered_although_it_was_unexpected() -> None:
    call = {"functionCall": {"name": "go", "args": {}}}
    await end(ModelChunk((call,), "UNEXPECTED_TOOL_CALL"))
    with pytest.raises(MalformedCallError):
        await end(ModelChunk(finish_reason="UNEXPECTED_TOOL_CALL"))
