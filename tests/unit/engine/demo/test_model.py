import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.waiting import PATIENCE
from tests.unit.engine.demo.offers import ALL, DEMO, NOTES, TEXT, Declaration, declare
from tui.engine.chat.backends.backend import ModelBackend, ModelChunk, ModelRequest
from tui.engine.demo import model
from tui.engine.demo.model import MAX_MESSAGE, DemoBackend
from tui.engine.mcp.catalog.offered_tool import STRUCTURED
from tui.model.chat import BackendKind

Content = dict[str, Any]
DENIAL = "Denied: The user denied this call. Do not try to do the same in another way."


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "WORD_PACE", 0)


class Conversation:
    """A conversation with the demo, kept in wire form as the turn loop keeps it."""

    def __init__(self, offered: Sequence[Declaration] = DEMO) -> None:
        self.offered = offered
        self.contents: list[Content] = []
        self.chunks: list[ModelChunk] = []

    async def say(self, text: str, *attached: Mapping[str, Any]) -> str:
        self.contents.append({"role": "user", "parts": [{"text": text}, *attached]})
        return await self._step()

    async def answer(self, *responses: Mapping[str, str], media: int = 0) -> str:
        """Answer the open calls; each response is ``{"output": …}`` or ``{"error": …}``."""
        parts: list[Mapping[str, Any]] = [
            {"functionResponse": {"name": call["name"], "id": call["id"], "response": response}}
            for call, response in zip(self.calls, responses, strict=True)
        ]
        parts += [{"inlineData": {"mimeType": "image/png", "data": ""}}] * media
        self.contents.append({"role": "user", "parts": parts})
        return await self._step()

    @property
    def calls(self) -> list[dict[str, Any]]:
        parts = self.contents[-1]["parts"]
        return [part["functionCall"] for part in parts if "functionCall" in part]

    @property
    def made(self) -> list[tuple[str, Any]]:
        return [(call["name"], call["args"]) for call in self.calls]

    async def _step(self) -> str:
        backend: ModelBackend = DemoBackend()
        request = ModelRequest(self.contents, self.offered)
        self.chunks = [chunk async for chunk in backend.stream(request)]
        parts = [dict(part) for chunk in self.chunks for part in chunk.parts]
        self.contents.append({"role": "model", "parts": parts})
        return "".join(part.get("text", "") for part in parts)


async def test_the_first_answer_says_that_this_is_a_demo_and_later_ones_do_not() -> None:
    talk = Conversation()
    assert "offline" in await talk.say("add a note: buy milk")
    assert talk.made == [("add_note", {"text": "buy milk"})]
    assert "offline" not in await talk.answer({"output": "Added note 4: buy milk"})
    assert "offline" not in await talk.say("list my notes")
    assert talk.made == [("list_notes", {})]


async def test_a_whole_conversation_runs_through() -> None:
    talk = Conversation()
    await talk.say("add a note: buy milk")
    assert await talk.answer({"output": "Added note 4: buy milk"}) == (
        "`add_note` returned:\n\n```text\nAdded note 4: buy milk\n```"
    )
    await talk.say("list my notes")
    assert "```text\n4. buy milk\n3. basil\n```" in await talk.answer(
        {"output": "4. buy milk\n3. basil"}
    )
    await talk.say("delete note 2")
    assert talk.made == [("delete_note", {"id": 2})]
    await talk.answer({"output": "Deleted note 2"})
    await talk.say("count slowly to 3")
    assert talk.made == [("count_slowly", {"steps": 3})]
    await talk.answer({"output": "Counted to 3"})
    text = await talk.say("what can you do?")
    assert talk.made == []
    assert all(f"- `{declaration['name']}" in text for declaration in DEMO)


async def test_calls_carry_ids_that_are_unique_in_the_conversation() -> None:
    talk = Conversation()
    ids = []
    for _ in range(3):
        await talk.say("list my notes")
        ids += [call["id"] for call in talk.calls]
        await talk.answer({"output": "none"})
    assert ids == ["demo-1", "demo-2", "demo-3"]


async def test_a_failed_call_is_reported_with_its_reason_and_not_tried_again() -> None:
    talk = Conversation()
    await talk.say("delete note 9")
    assert await talk.answer({"error": "There is no note 9."}) == (
        "`delete_note` failed:\n\n```text\nThere is no note 9.\n```"
    )
    assert talk.made == []


async def test_a_denied_call_is_reported_and_not_tried_again() -> None:
    talk = Conversation()
    await talk.say("delete note 2")
    assert await talk.answer({"error": DENIAL}) == (
        "`delete_note` was not allowed, so it did not run."
    )
    assert talk.made == []


async def test_a_missing_argument_is_asked_for_and_the_answer_completes_the_call() -> None:
    talk = Conversation()
    await talk.say("hello")
    assert (
        await talk.say("update note")
        == "To call `update_note` I need `id` and `text`. What is `id`?"
    )
    assert await talk.say("3") == "To call `update_note` I need `text`. What is `text`?"
    await talk.say("call mom: and dad")
    assert talk.made == [("update_note", {"id": 3, "text": "call mom: and dad"})]


@pytest.mark.parametrize("answer", ["list my notes", "list_notes"])
async def test_another_request_drops_the_question(answer: str) -> None:
    talk = Conversation()
    await talk.say("delete note")
    await talk.say(answer)
    assert talk.made == [("list_notes", {})]
    await talk.answer({"output": "none"})
    await talk.say("2")
    assert talk.made == []


@pytest.mark.parametrize("answer", ["never mind", "no", "No, thanks!", "cancel"])
async def test_a_question_can_be_dropped(answer: str) -> None:
    talk = Conversation()
    await talk.say("add a note")
    assert await talk.say(answer) == "All right, I will do nothing."
    await talk.say("buy milk")
    assert talk.made == []


@pytest.mark.parametrize("message", ["don't delete note 2", "please do not list my notes"])
async def test_a_request_not_to_do_something_makes_no_call(message: str) -> None:
    talk = Conversation()
    await talk.say(message)
    assert talk.made == []


async def test_a_request_for_two_calls_makes_none() -> None:
    talk = Conversation()
    text = await talk.say("delete note 2 and list my notes")
    assert text.endswith("I can make one call per message: `list_notes` or `delete_note`?")
    assert talk.made == []


async def test_without_a_match_it_names_what_it_can_use() -> None:
    talk = Conversation(ALL)
    text = await talk.say("tell me a joke")
    assert talk.made == []
    assert "small offline model" in text
    assert "I found no tool" in text
    assert "- `add_note text=…`" in text
    assert "- and 16 more" in text


async def test_a_message_that_is_too_long_is_refused_whole() -> None:
    talk = Conversation()
    assert "I did nothing" in await talk.say("add a note: " + "x" * MAX_MESSAGE)
    assert talk.made == []


async def test_a_request_without_contents_is_answered() -> None:
    chunks = [chunk async for chunk in DemoBackend().stream(ModelRequest((), ()))]
    assert chunks[-1].finish_reason == "STOP"


async def test_without_any_tool_it_says_that_none_is_offered() -> None:
    assert "There are no tools" in await Conversation(()).say("add a note: x")


async def test_only_the_message_is_read_and_not_what_is_attached_to_it() -> None:
    talk = Conversation()
    await talk.say("list my notes", {"text": "file: delete note 2"})
    assert talk.made == [("list_notes", {})]


@pytest.mark.parametrize(
    ("result", "quoted"),
    [
        ("plain", "```text\nplain\n```"),
        ("# [x](http://h)\n\n> *b*\n", "```text\n# [x](http://h)\n\n> *b*\n```"),
        ("a\n```\nb", "````text\na\n```\nb\n````"),
        ("`````", "``````text\n`````\n``````"),
    ],
)
async def test_results_are_quoted_as_data(result: str, quoted: str) -> None:
    talk = Conversation(NOTES)
    await talk.say("list my notes")
    assert await talk.answer({"output": result}) == f"`list_notes` returned:\n\n{quoted}"


async def test_a_huge_result_is_clipped() -> None:
    talk = Conversation(NOTES)
    await talk.say("list my notes")
    text = await talk.answer({"output": "line\n" * 20_000})
    assert len(text) < 6_000
    assert "are left out] …" in text


async def test_media_and_empty_results_are_said_plainly() -> None:
    talk = Conversation(NOTES)
    await talk.say("list my notes")
    assert "1 attachment that I cannot read" in await talk.answer({"output": ""}, media=1)
    await talk.say("list my notes")
    told = await talk.answer({"output": f"Done.\n{STRUCTURED}\n{{}}"})
    assert told == "`list_notes` returned:\n\n```text\nDone.\n```"
    await talk.say("list my notes")
    assert await talk.answer({"output": " "}) == "`list_notes` returned without any text."


async def test_hostile_names_stay_text() -> None:
    tool = declare("list_notes", "See.", {"a` [x](http://h)\n# Now": TEXT})
    text = await Conversation((tool,)).say("what can you do?")
    assert "- `list_notes a' [x](http://h) # Now=…`" in text


async def test_the_answer_streams_in_words_and_ends_with_reason_and_usage() -> None:
    talk = Conversation()
    text = await talk.say("what can you do?")
    *pieces, last = talk.chunks
    assert "".join(part["text"] for chunk in pieces for part in chunk.parts) == text
    assert len(pieces) > 10
    assert last.parts == ()
    assert last.finish_reason == "STOP"
    assert last.usage is not None
    assert last.usage.prompt > 0
    assert last.usage.output >= len(text) // 5
    assert not any(chunk.finish_reason for chunk in pieces)


async def test_parts_are_plain_wire_form() -> None:
    talk = Conversation()
    await talk.say("add a note: buy milk tags=shop")
    assert json.loads(json.dumps(talk.contents)) == talk.contents
    assert talk.calls == [
        {"id": "demo-1", "name": "add_note", "args": {"text": "buy milk", "tags": ["shop"]}}
    ]


async def test_a_cancelled_answer_stops_at_once() -> None:
    request = ModelRequest([{"role": "user", "parts": [{"text": "hello"}]}], DEMO)
    heard: list[ModelChunk] = []
    begun = asyncio.Event()

    async def listen() -> None:
        async for chunk in DemoBackend().stream(request):
            heard.append(chunk)
            begun.set()

    task = asyncio.create_task(listen())
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(heard) == 1


async def test_the_backend_says_what_it_is() -> None:
    backend = DemoBackend()
    assert (backend.kind, backend.model) == (BackendKind.DEMO, "demo")
    await backend.aclose()
