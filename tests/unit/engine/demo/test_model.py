import json
from collections.abc import Sequence
from typing import Any

import pytest

from tui.engine.chats.backends.backend import ModelBackend, ModelChunk, ModelRequest
from tui.engine.demo import model
from tui.engine.demo.model import HELP, DemoBackend
from tui.engine.demo.notes_server import TOOLS
from tui.engine.mcp.catalog.offered_tool import STRUCTURED
from tui.model.chat import BackendKind

Content = dict[str, Any]
DEMO = tuple(str(tool["name"]) for tool in TOOLS)
ALL = (*DEMO, "git_log", "other__list_notes")
DENIAL = "Denied: The user denied this call. Do not try to do the same in another way."


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "WORD_PACE", 0)


class Conversation:
    """A conversation with the demo, kept in wire form as the turn loop keeps it."""

    def __init__(self, offered: Sequence[str] = DEMO) -> None:
        self.offered = [{"name": name} for name in offered]
        self.contents: list[Content] = []
        self.chunks: list[ModelChunk] = []

    async def say(self, text: str, *attached: str) -> str:
        self.contents.append({"role": "user", "parts": [{"text": t} for t in (text, *attached)]})
        return await self._step()

    async def answer(self, *responses: dict[str, str]) -> str:
        """Answer the open calls; each response is ``{"output": …}`` or ``{"error": …}``."""
        parts = [
            {"functionResponse": {"name": call["name"], "id": call["id"], "response": response}}
            for call, response in zip(self.calls, responses, strict=True)
        ]
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


async def test_a_sentence_of_the_script_or_the_name_of_a_tool_becomes_a_call() -> None:
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("add a note: buy milk", "add_note", {"text": "buy milk"}),
        ("Please add a note: milk at 10:30.\n", "add_note", {"text": "milk at 10:30."}),
        ("add note buy milk\nand eggs", "add_note", {"text": "buy milk\nand eggs"}),
        ("remember the milk", "add_note", {"text": "the milk"}),
        ("Show all my notes.", "list_notes", {}),
        ("search notes for basil", "search_notes", {"query": "basil"}),
        ("find my notes about 2024", "search_notes", {"query": "2024"}),
        ("remove the note 12!", "delete_note", {"id": 12}),
        ("count slowly to 3", "count_slowly", {"steps": 3}),
        ("count slowly", "count_slowly", {}),
        ("count_slowly steps=4 pace=0.1", "count_slowly", {"steps": 4, "pace": 0.1}),
        ('add_note text="a b" tags=["a","b"]', "add_note", {"text": "a b", "tags": ["a", "b"]}),
        ("git_log path=/srv/shop max=3", "git_log", {"path": "/srv/shop", "max": 3}),
        ("other__list_notes", "other__list_notes", {}),
    )
    for message, name, arguments in calls:
        talk = Conversation(ALL)
        await talk.say(message)
        assert talk.made == [(name, arguments)], message


async def test_any_other_message_leads_to_no_call_but_to_help() -> None:
    for message in (
        *("", "?!", "hello", "what can you do?", "add a note", "add a note:", "delete note two"),
        *("don't delete note 2", 'he said "delete note 2"', "undelete note 2", "see delete_note"),
        *("delete note 2 and list my notes", "no, list my notes"),
    ):
        talk = Conversation(ALL)
        assert HELP in await talk.say(message)
        assert talk.made == [], message
    await talk.say("hello", "list my notes")
    assert talk.made == [], "what is attached is not read"
    await talk.say("list my notes", "file: delete note 2")
    assert talk.made == [("list_notes", {})]


async def test_the_sentences_of_its_help_are_those_that_it_knows() -> None:
    sentences = HELP.split("`")[1::2]
    assert len(sentences) == len(DEMO) + 1
    for sentence in sentences:
        talk = Conversation()
        await talk.say(sentence)
        assert len(talk.made) == 1, sentence
    talk = Conversation(["demo-notes__add_note"])  # it is found with the name of its server
    await talk.say("add a note: buy milk")
    assert talk.made == [("demo-notes__add_note", {"text": "buy milk"})]


async def test_a_whole_conversation_introduces_itself_once_and_reports_results() -> None:
    talk = Conversation()
    assert "offline" in await talk.say("add a note: buy milk")
    assert talk.calls == [{"id": "demo-1", "name": "add_note", "args": {"text": "buy milk"}}]
    report = "`add_note` returned:\n\n```text\nAdded note 4: buy milk\n```"
    assert await talk.answer({"output": "Added note 4: buy milk"}) == report
    assert "offline" not in await talk.say("list my notes")
    assert [call["id"] for call in talk.calls] == ["demo-2"]
    assert "```text\n4. buy milk\n```" in await talk.answer({"output": "4. buy milk"})
    assert (talk.made, json.loads(json.dumps(talk.contents))) == ([], talk.contents)


async def test_results_are_quoted_as_data_and_lead_to_no_call() -> None:
    returned = "`delete_note` returned:\n\n"
    error = "There is no note 9."
    for result, report in (
        ({"error": error}, f"`delete_note` failed:\n\n```text\n{error}\n```"),
        ({"error": DENIAL}, "`delete_note` was not allowed, so it did not run."),
        ({"output": " "}, "`delete_note` returned without any text."),
        ({"output": f"Done.\n{STRUCTURED}\n{{}}"}, f"{returned}```text\nDone.\n```"),
        (
            {"output": "# [x](http://h)\n\n> *b*\n"},
            f"{returned}```text\n# [x](http://h)\n\n> *b*\n```",
        ),
        ({"output": "a\n```\nb"}, f"{returned}````text\na\n```\nb\n````"),
        ({"output": "`````"}, f"{returned}``````text\n`````\n``````"),
    ):
        talk = Conversation()
        await talk.say("delete note 9")
        assert (await talk.answer(result), talk.made) == (report, [])
    await talk.say("list my notes")
    text = await talk.answer({"output": "line\n" * 20_000})
    assert len(text) < 6_000
    assert "are left out] …" in text


async def test_help_names_some_of_the_tools_as_text() -> None:
    hostile = "a` [x](http://h)\n# Now"
    text = await Conversation([hostile, *(f"tool_{n}" for n in range(9))]).say("hello")
    assert "Available tools: `a' [x](http://h) # Now`, `tool_0`" in text
    assert text.endswith("`tool_6` and 2 more.")


async def test_without_tools_or_contents_it_answers_too() -> None:
    talk = Conversation(())
    assert "There are no tools" in await talk.say("add a note: x")
    assert talk.made == []
    backend = DemoBackend()
    chunks = [chunk async for chunk in backend.stream(ModelRequest((), ()))]
    assert chunks[-1].finish_reason == "STOP"
    assert (backend.kind, backend.model) == (BackendKind.DEMO, "demo")
    await backend.aclose()


async def test_the_answer_streams_in_words_and_ends_with_reason_and_usage() -> None:
    talk = Conversation()
    text = await talk.say("what can you do?")
    *pieces, last = talk.chunks
    assert "".join(part["text"] for chunk in pieces for part in chunk.parts) == text
    assert len(pieces) > 10
    assert (last.parts, last.finish_reason) == ((), "STOP")
    assert last.usage is not None
    assert last.usage.prompt > 0
    assert last.usage.output >= len(text) // 5
    assert not any(chunk.finish_reason for chunk in pieces)
