"""A conversation is saved as it goes, and goes on wherever it was cut off."""

import json
import resource
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.gemini_rules import check_request
from tests.fakes.gemini_script import Call, Say, Think
from tests.security.test_J_disks import IS_ROOT, fill, mounted
from tests.support.leaks import FIXTURE_SECRET, files_with_secret
from tests.unit.engine.chats.support import Chat, make_tool, talking, text_result
from tui.engine.chats.sessions.library import SessionLibrary, to_json, to_markdown
from tui.engine.chats.sessions.recorder import Recorder
from tui.engine.chats.sessions.replay import SavedSession
from tui.engine.files import unwritten
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolResult
from tui.model.chat import ChatNotice, Entry, EntryId, ModelText, Severity, ToolCall, UserMessage
from tui.model.events import ChatNoticeAdded, QueueChanged

RICH = (
    (Think("hm"), Say("I will "), Say("look."), Call([("look", {}), ("look", {"text": "2"})])),
    (Say("And once more.", signed=True), Call([("look", {})])),
    (Say("It is "), Say("done.")),
)
"""A turn of three steps with calls beside each other and one after the other."""


class Desk:
    """What a recorder needs, in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.library = SessionLibrary(folder / "state")
        self.redactor = Redactor()
        self.problems: list[str] = []

    @asynccontextmanager
    async def recording(self, chat: Chat) -> AsyncIterator[Recorder]:
        recorder = Recorder(self.library, self.folder, self.redactor, self.problems.append)
        recorder.is_on = True
        recorder.follow(chat.context.history)
        forget = chat.bus.subscribe(recorder.take)
        try:
            yield recorder
        finally:
            forget()
            await recorder.aclose()

    @property
    def file(self) -> Path:
        [view] = self.library.sessions(self.folder)
        return self.library.path_of(view)

    @property
    def saved(self) -> SavedSession:
        return self.library.read(self.library.sessions(self.folder)[0])

    @property
    def data(self) -> bytes:
        return self.file.read_bytes() if self.library.sessions(self.folder) else b""


def said(entries: Iterable[Entry]) -> list[tuple[type[Entry], str]]:
    return [(type(e), e.text) for e in entries if isinstance(e, UserMessage | ModelText)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_a_turn_can_be_cut_off_anywhere_and_the_next_request_is_valid(desk: Desk) -> None:
    """Whatever a kill leaves is a beginning of the file: each is tried, also within a line."""
    async with talking([(Say("Hello."),), *RICH], make_tool("look")) as chat:
        async with desk.recording(chat):
            await chat.say("hello?")
            await chat.say("look twice")
        told = said(chat.transcript)
        history = [*chat.context.history.contents]
        path, data = desk.file, desk.file.read_bytes()
        lines = data.splitlines(keepends=True)
        seen = set[int]()
        for count in range(2, len(lines) + 1):
            for kept in (b"".join(lines[:count]), b"".join(lines[:count]) + b'{"t":"te'):
                path.write_bytes(kept)
                saved = desk.saved
                assert saved.remarks == []
                again = {"role": "user", "parts": [{"text": "and now?"}]}
                body = {"contents": [*saved.contents, again]}
                check_request(body, chat.fake.signatures, needs_signatures=True)
                known = [part.get("text") for c in saved.contents for part in c["parts"]]
                assert "hello?" in [*known, saved.unsent]
                if any(b'"look twice"' in line for line in lines[:count]):
                    assert "look twice" in [*known, saved.unsent]
                seen.add(len(saved.contents))
        assert len(seen) >= 4
        assert (said(saved.entries), saved.contents) == (told, history)
        assert len([e for e in saved.entries if isinstance(e, ToolCall)]) == 3
    assert desk.problems == []


@contextmanager
def full(desk: Desk) -> Iterator[None]:
    """Let the session's file take a little more, and no other anything."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (desk.file.stat().st_size + 100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def full_disk(desk: Desk) -> Iterator[None]:
    """Fill up the disk that the session is on."""
    make_room = fill(desk.folder)
    yield
    make_room()


@pytest.mark.parametrize(
    "filled",
    [full, pytest.param(full_disk, marks=pytest.mark.skipif(not IS_ROOT, reason="it mounts"))],
)
async def test_a_full_disk_is_said_once_and_saving_goes_on_with_room(
    tmp_path: Path, filled: Callable[[Desk], AbstractContextManager[None]]
) -> None:
    answers = ["1", "2" * 5_000, "3", "4"]
    steps = [(Say(answer),) for answer in answers]
    with ExitStack() as stack:
        if filled is full_disk:
            stack.enter_context(mounted(tmp_path / "disk", "size=256k"))
        desk = Desk(tmp_path / "disk")
        async with talking(steps) as chat:
            async with desk.recording(chat) as recorder:
                await chat.say("one?")
                await recorder.flush()
                with filled(desk):
                    await chat.say("two?" * 5_000)
                    await chat.say("three?")
                    await recorder.flush()
                    during = desk.saved
                unwritten.write_now()
                await chat.say("four?")
            assert chat.answer == "".join(answers)
            [problem] = desk.problems
            assert "cannot be written" in problem
            history = chat.context.history.contents
            assert (during.contents[:2], during.remarks) == (history[:2], [])
            saved = desk.saved
            assert (saved.contents, saved.remarks) == (history, [])
            assert [e.text for e in saved.entries if isinstance(e, ModelText)] == answers


async def test_a_waiting_message_leaves_the_queue_after_its_turn_has_begun(desk: Desk) -> None:
    async with talking([(Say("1"),), (Say("2"),)]) as chat:
        async with desk.recording(chat):
            await chat.say("one?")
            await chat.say("two?")
        records = [json.loads(line) for line in desk.data.splitlines()]
        told = [r.get("text", r.get("texts")) for r in records if r["t"] in {"user", "queue"}]
        assert told == [["one?"], "one?", [], ["two?"], "two?", []]  # else a kill between loses it


async def test_a_cleared_conversation_stays_and_the_next_is_another_or_none(desk: Desk) -> None:
    async with talking([(Say(f"{number}"),) for number in range(3)]) as chat:
        async with desk.recording(chat) as recorder:
            await chat.say("one?")
            first = recorder.session
            chat.conversation.clear()
            assert recorder.session is None
            await chat.say("two?")
            assert recorder.session != first
            chat.conversation.clear()
            recorder.is_on = False
            await chat.say("three?")
            assert recorder.messages
        views = desk.library.sessions(desk.folder)
        assert {view.first for view in views} == {"one?", "two?"}
        assert all(view.turns == 1 and view.tokens == 10 for view in views)


async def test_no_secret_reaches_a_file_by_any_way(desk: Desk) -> None:
    secret = f"{FIXTURE_SECRET}sessions-0123"
    desk.redactor.register(secret)
    steps = [
        (Think(secret), Say(secret[:9]), Say(secret[9:]), Call([("look", {"text": secret})])),
        (Say("done", signed=True),),
    ]

    async def look(_: JsonObject) -> ToolResult:
        return text_result(f"found {secret}")

    async with talking(steps, make_tool("look")) as chat:
        chat.tools.runs["look"] = look
        async with desk.recording(chat) as recorder:
            recorder.keep_draft(f"draft {secret}")
            await chat.say(f"use {secret}")
            recorder.keep_draft(f"another {secret}")
            recorder.rename(f"title {secret}")
            notice = ChatNotice(EntryId("n1"), Severity.ERROR, secret, secret, f"brief {secret}")
            chat.bus.publish(ChatNoticeAdded(notice))
            passing = replace(notice, id=EntryId("n2"), text="trying again", passes=True)
            chat.bus.publish(ChatNoticeAdded(passing))
            chat.bus.publish(QueueChanged((f"later {secret}",)))
            await recorder.keep_copy(f"before {secret}")
        assert secret in chat.answer
        assert secret in str(chat.context.history.contents)
    assert files_with_secret(desk.folder) == []
    views = desk.library.sessions(desk.folder)
    assert len(views) == 2
    for view in views:
        saved = desk.library.read(view)
        said = "".join([to_json(saved), to_markdown(saved), saved.unsent, str(view)])
        assert secret not in said
        assert all(f"{word} ***" in said for word in ("use", "found", "later", "another"))
        assert [n.brief for n in saved.entries if isinstance(n, ChatNotice)] == ["brief ***"]
        assert view.title in {"title ***", "before ***"}


async def test_what_a_changed_history_lost_is_lost_in_the_file_too(desk: Desk) -> None:
    async with talking([(Say("1", signed=True),), (Say("2"),)]) as chat:
        async with desk.recording(chat):
            await chat.say("one?")
            chat.context.history.strip_signatures()
            await chat.say("two?")
        saved = desk.saved
        assert saved.contents == chat.context.history.contents
        assert "thoughtSignature" not in str(saved.contents)
