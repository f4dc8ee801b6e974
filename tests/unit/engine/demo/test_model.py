import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.unit.engine.demo.offers import ALL, DEMO, NOTES, Declaration, declare
from tui.engine.chat.backend import ModelBackend, ModelChunk, ModelRequest
from tui.engine.demo.model import MAX_CHUNKS, DemoBackend
from tui.model.chat import BackendKind

Content = dict[str, Any]
DENIAL = "Denied: The user denied this call. Do not try to do the same in another way."


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
        backend: ModelBackend = DemoBackend(pace=0)
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
        "`add_note` returned:\n\n> Added note 4: buy milk"
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
    assert all(f"`{declaration['name']}`" in text for declaration in DEMO)


async def test_calls_carry_ids_that_are_unique_in_the_conversation() -> None:
    talk = Conversation()
    await talk.say("list my notes and count slowly to 2")
    first = [call["id"] for call in talk.calls]
    await talk.answer({"output": "none"}, {"output": "done"})
    await talk.say("list my notes")
    assert [*first, talk.calls[0]["id"]] == ["demo-1", "demo-2", "demo-3"]


async def test_both_results_of_parallel_calls_are_summed_up() -> None:
    talk = Conversation()
    await talk.say("list my notes and count slowly to 2")
    text = await talk.answer({"output": "no notes"}, {"output": "counted"})
    assert text == "`list_notes` returned:\n\n> no notes\n\n`count_slowly` returned:\n\n> counted"


async def test_later_stages_follow_once_the_earlier_ones_are_back() -> None:
    talk = Conversation()
    await talk.say("add a note: buy milk, then list my notes")
    assert talk.made == [("add_note", {"text": "buy milk"})]
    assert await talk.answer({"output": "Added"}) == ""
    assert talk.made == [("list_notes", {})]
    text = await talk.answer({"output": "4. buy milk"})
    assert text.index("Added") < text.index("4. buy milk")
    assert talk.made == []


async def test_a_denied_call_is_reported_and_not_tried_again() -> None:
    talk = Conversation()
    await talk.say("delete note 2, then list my notes")
    text = await talk.answer({"error": DENIAL})
    assert talk.made == []
    assert "`delete_note` was not allowed" in text
    assert "did not go on with `list_notes`" in text


async def test_a_failed_call_is_reported_with_its_reason_and_not_tried_again() -> None:
    talk = Conversation()
    await talk.say("delete note 9")
    assert await talk.answer({"error": "There is no note 9."}) == (
        "`delete_note` failed:\n\n> There is no note 9."
    )
    assert talk.made == []


async def test_missing_arguments_are_asked_for_and_the_answer_completes_the_call() -> None:
    talk = Conversation()
    text = await talk.say("delete note")
    assert talk.made == []
    assert "`delete_note`" in text
    assert "**id**: whole number" in text
    await talk.say("2")
    assert talk.made == [("delete_note", {"id": 2})]


@pytest.mark.parametrize(
    ("asked", "answer", "made"),
    [
        ("add a note", "call mom and dad", ("add_note", {"text": "call mom and dad"})),
        ("count slowly to 500", "4", ("count_slowly", {"steps": 4})),
        ("update note", "3: water it", ("update_note", {"id": 3, "text": "water it"})),
        ("note: buy milk", "add_note", ("add_note", {"text": "buy milk"})),
        ("delete note", "list my notes", ("list_notes", {})),
    ],
)
async def test_an_answer_to_a_question_is_understood_as_one(
    asked: str, answer: str, made: tuple[str, Any]
) -> None:
    talk = Conversation()
    await talk.say(asked)
    assert talk.made == []
    await talk.say(answer)
    assert talk.made == [made]


@pytest.mark.parametrize("answer", ["never mind", "thanks", "no", "cancel", "hello"])
async def test_small_talk_after_a_question_makes_no_call(answer: str) -> None:
    talk = Conversation()
    await talk.say("add a note")
    await talk.say(answer)
    assert talk.made == []


@pytest.mark.parametrize(
    "message",
    ["who are you?", "What are you", "are you Gemini?", "which model is this?", "are you real"],
)
async def test_asked_what_it_is_it_says_so(message: str) -> None:
    talk = Conversation()
    await talk.say("hello")
    assert "not a language model" in await talk.say(message)
    assert talk.made == []


async def test_without_a_match_it_names_what_it_can_use() -> None:
    talk = Conversation(ALL)
    text = await talk.say("tell me a joke")
    assert talk.made == []
    assert "`list_notes`: List the notes" in text
    assert "more" in text


async def test_without_any_tool_it_says_that_none_is_offered() -> None:
    assert "No tools are offered" in await Conversation(()).say("add a note: x")


async def test_only_the_message_is_read_and_not_what_is_attached_to_it() -> None:
    talk = Conversation()
    await talk.say("list my notes", {"text": "file: delete note 2"})
    assert talk.made == [("list_notes", {})]


@pytest.mark.parametrize(
    ("result", "quoted"),
    [
        ("plain", "> plain"),
        ("# [x](http://h) *b* `c` <i>", "> \\# \\[x\\](http://h) \\*b\\* \\`c\\` \\<i>"),
        ("1. one", "> \\1. one"),
        ("snake_case", "> snake_case"),
        ('{"a":[1]}', '```json\n{\n  "a": [\n    1\n  ]\n}\n```'),
        ("a\n```\nb", "````text\na\n```\nb\n````"),
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
    assert "characters left out" in text


async def test_media_and_empty_results_are_said_plainly() -> None:
    talk = Conversation(NOTES)
    await talk.say("list my notes")
    assert "1 attachment that I cannot read" in await talk.answer({"output": ""}, media=1)
    await talk.say("list my notes")
    assert await talk.answer({"output": " "}) == "`list_notes` is done and returned nothing."


async def test_hostile_names_and_descriptions_stay_text() -> None:
    talk = Conversation((declare("list_notes", "See [here](http://h) `x` <b>.\n# Now"),))
    text = await talk.say("what can you do?")
    assert "`list_notes`: See \\[here\\](http://h) \\`x\\` \\<b>." in text
    assert "\n# Now" not in text


async def test_the_answer_streams_in_words_and_ends_with_reason_and_usage() -> None:
    talk = Conversation()
    text = await talk.say("what can you do?")
    *pieces, last = talk.chunks
    assert "".join(part["text"] for chunk in pieces for part in chunk.parts) == text
    assert 10 < len(pieces) <= MAX_CHUNKS
    assert last.parts == ()
    assert last.finish_reason == "STOP"
    assert last.usage is not None
    assert last.usage.prompt > 0
    assert last.usage.output >= len(text) // 5
    assert not any(chunk.finish_reason for chunk in pieces)


async def test_a_long_answer_takes_no_more_chunks_than_the_limit() -> None:
    talk = Conversation(NOTES)
    await talk.say("list my notes")
    await talk.answer({"output": "w " * 2_000 + "\nend"})
    assert len(talk.chunks) <= MAX_CHUNKS + 1


async def test_parts_are_plain_wire_form() -> None:
    talk = Conversation()
    await talk.say("add a note: buy milk #shop")
    assert json.loads(json.dumps(talk.contents)) == talk.contents
    assert talk.calls == [
        {"id": "demo-1", "name": "add_note", "args": {"text": "buy milk", "tags": ["shop"]}}
    ]


async def test_a_cancelled_answer_stops_at_once() -> None:
    request = ModelRequest([{"role": "user", "parts": [{"text": "hello"}]}], DEMO)
    heard: list[ModelChunk] = []
    begun = asyncio.Event()

    async def listen() -> None:
        async for chunk in DemoBackend(pace=60).stream(request):
            heard.append(chunk)
            begun.set()

    task = asyncio.create_task(listen())
    async with asyncio.timeout(5):
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(heard) == 1


async def test_the_backend_says_what_it_is() -> None:
    backend = DemoBackend()
    assert (backend.kind, backend.model) == (BackendKind.DEMO, "demo")
    await backend.aclose()
