"""Sessions that go on: in their file, in a copy, or not at all."""

import asyncio
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.gemini import KEY
from tests.fakes.gemini_rules import Json
from tests.fakes.gemini_script import Call, Say, Stall
from tests.security.decks import Deck, Play, Script, Turncoat, play, shop
from tests.support.leaks import FIXTURE_SECRET, files_with_secret
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.sessions.written import content, text, turn, write
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.chats.sessions.session_file import SessionFile
from tui.engine.files.paths import state_dir
from tui.model.chat import ChatNotice, UserMessage
from tui.model.events import MessageReturned, NoticeRaised
from tui.model.sessions import LastSessionFound, SessionView
from tui.model.settings import SessionSettings
from tui.store.selectors import entries

__all__ = ["play", "shop"]


def library() -> SessionLibrary:
    return SessionLibrary(state_dir())


def asked(it: Deck) -> list[str]:
    return [e.text for e in entries(it.store.state) if isinstance(e, UserMessage)]


def told_in(view: SessionView) -> list[str]:
    return [e.text for e in library().read(view).entries if isinstance(e, UserMessage)]


def texts(contents: Sequence[Json]) -> list[str]:
    return [part["text"] for one in contents for part in one["parts"]]


def notices(it: Deck) -> str:
    return " ".join(e.notice.text for e in it.events if isinstance(e, NoticeRaised))


def told(it: Deck, words: str, times: int) -> bool:
    return notices(it).count(words) >= times


def titled(titles: list[str]) -> bool:
    return [view.title for view in library().sessions()] == titles


def remarks(it: Deck) -> str:
    shown = (e for e in entries(it.store.state) if isinstance(e, ChatNotice))
    return " ".join(f"{e.text} {e.advice}" for e in shown)


async def test_what_is_sent_while_a_session_is_read_waits_for_it(home: Path, play: Play) -> None:
    saved = write(library(), home / "work", turn(1, "mine?", "1"))
    async with play([[Say("2")]]) as it:
        it.engine.sessions.resume(saved.id)
        it.engine.send("and then?")
        await it.fake.wait_for_requests(1)
        await it.idle()
        assert asked(it) == ["mine?", "and then?"]
        assert texts(it.fake.requests[0].contents) == ["mine?", "1", "and then?"]


async def test_a_held_session_is_copied_and_a_damaged_one_goes_on(home: Path, play: Play) -> None:
    folder = home / "work"
    view, other = (
        write(library(), folder, turn(1, text, "1"), first=text) for text in ("mine?", "theirs?")
    )
    held = library().lock(view)
    assert held is not None
    paths = [library().path_of(one) for one in (view, other)]
    with paths[1].open("ab") as file:
        file.write(b"edited by hand\n")
    before = [path.read_bytes() for path in paths]
    async with play([[Say("2")], [Say("2")]]) as it:
        it.engine.sessions.resume(view.id)
        await eventually(lambda: asked(it) == ["mine?"])
        assert "open in another gemdeck, so you continue in a copy" in remarks(it)
        await it.ask("and?")
        copied = it.engine.sessions.recorder.view
        it.engine.sessions.resume(other.id)
        await eventually(lambda: asked(it) == ["theirs?"])
        assert "1 line of the session was unreadable." in remarks(it)
        await it.ask("and?")
        assert it.fake.violations == []
    held.release()
    assert paths[0].read_bytes() == before[0]
    assert paths[1].read_bytes().startswith(before[1])
    assert (len(library().sessions(folder)), len(library().read(other).contents)) == (3, 4)
    assert copied is not None
    saved = library().read(library().find(copied.id))
    assert (copied.parent, told_in(copied)) == (view.id, ["mine?", "and?"])
    assert (len(saved.contents), saved.remarks) == (4, [])


async def test_a_copy_goes_again_if_nothing_is_done_with_it(home: Path, play: Play) -> None:
    view = write(library(), home / "work", turn(1, "mine?", "1"), first="mine?")
    held = library().lock(view)
    assert held is not None
    for draft in ("", "half a thought"):
        async with play([]) as it:
            it.engine.sessions.resume(view.id)
            await eventually(lambda: asked(it) == ["mine?"])
            recorder = it.engine.sessions.recorder
            assert recorder.session != view.id
            recorder.keep_draft(draft)
            kept = recorder.session if draft else view.id
            assert recorder.way_back == kept
        assert {one.id for one in library().sessions()} == {view.id, kept}
    held.release()


@pytest.mark.parametrize("private", [False, True])
async def test_a_start_tells_of_the_last_session(home: Path, play: Play, private: bool) -> None:
    view = write(library(), home / "work", turn(1, "mine?", "1"))
    async with play([], private=private) as it:
        it.engine.sessions.list_sessions()
        await eventually(lambda: it.store.state.sessions)
        await eventually(lambda: private or it.store.state.last_session)
        found = [e.view.id for e in it.events if isinstance(e, LastSessionFound)]
        assert found == ([] if private else [view.id])


async def test_nothing_is_replaced_while_a_turn_runs(home: Path, play: Play) -> None:
    view = write(library(), home / "work", turn(1, "mine?", "1"))
    async with play([[Say("x"), Stall()]]) as it:
        it.engine.send("go")
        await it.fake.wait_for_stall()
        it.engine.sessions.resume(view.id)
        await eventually(lambda: "Stop the running turn first" in notices(it))
        assert asked(it) == ["go"]
        [mine] = [e.id for e in entries(it.store.state) if isinstance(e, UserMessage)]
        it.engine.sessions.edit_message(mine, "better")
        await eventually(lambda: MessageReturned("better") in it.events)
        it.engine.cancel_turn()
        await it.idle()


async def test_an_edited_message_is_a_branch_and_the_old_one_is_kept(play: Play) -> None:
    steps = [[Say("1")], [Say("2")], [Say("3")]]
    async with play(steps) as it:
        await it.ask("one")
        await it.ask("two")
        second = [e for e in entries(it.store.state) if isinstance(e, UserMessage)][1]
        it.engine.sessions.edit_message(second.id, "other")
        await it.fake.wait_for_requests(3)
        await it.idle()
        assert asked(it) == ["one", "other"]
        assert texts(it.fake.requests[-1].contents) == ["one", "1", "other"]
        now = it.engine.sessions.recorder.session
    old, new = sorted(library().sessions(), key=lambda view: view.id == now)
    told = (old.parent, told_in(old), told_in(new))
    assert told == (now, ["one", "two"], ["one", "other"])


async def test_a_message_never_answered_is_cut_from_the_file(home: Path, play: Play) -> None:
    lost = [{"t": "user", "id": "e3", "text": "lost"}, content("user", text("lost"))]
    view = write(library(), home / "work", [*turn(1, "one", "1"), *lost])
    async with play([[Say("2")]]) as it:
        it.engine.sessions.resume(view.id)
        await eventually(lambda: MessageReturned("lost") in it.events)
        await it.ask("two")
    assert texts(library().read(view).contents) == ["one", "1", "two", "2"]


async def test_a_session_changes_as_it_closes(monkeypatch: pytest.MonkeyPatch, play: Play) -> None:
    close, gates = SessionFile.close, list[threading.Event]()

    def close_slowly(file: SessionFile) -> None:
        assert gates[-1].wait(PATIENCE)
        close(file)

    async with play([[Say("1")], [Say("2")]]) as it:
        monkeypatch.setattr(SessionFile, "close", close_slowly)
        for wanted in ([], ["mine"]):
            it.engine.conversations.open()
            await it.ask("one")
            session = it.engine.sessions.recorder.session
            assert session is not None
            gates.append(threading.Event())
            it.engine.conversations.close()
            if wanted:
                it.engine.sessions.rename(session, "mine")
            else:
                it.engine.sessions.delete(session)
            asyncio.get_running_loop().call_later(0.05, gates[-1].set)
            await eventually(partial(titled, wanted))
        assert notices(it) == ""


async def test_nothing_is_saved_where_that_is_off(play: Play) -> None:
    async with play([[Say("1")], [Say("2")]]) as it:
        for number, private in enumerate((True, False), 1):
            it.engine.sessions.configure(SessionSettings(save=private), saves=not private)
            it.engine.sessions.recorder.keep_draft("half a thought")
            await it.ask("one")
            it.engine.sessions.export("", "out.md")
            await eventually(partial(told, it, "not saved", number))
    assert [*state_dir().glob("sessions/*/*")] == []


async def test_what_an_unsaved_conversation_loses_is_said(play: Play) -> None:
    steps = [[Say("1")], [Say("2" * 300)], [Say("In short: 2.")]]
    async with play(steps) as it:
        it.engine.sessions.configure(SessionSettings(), saves=False)
        await it.ask("one")
        [first] = [e for e in entries(it.store.state) if isinstance(e, UserMessage)]
        it.engine.sessions.edit_message(first.id, "other")
        await it.fake.wait_for_requests(2)
        await it.idle()
        assert "so the later messages are lost" in notices(it)
        it.engine.models.compress()
        await eventually(lambda: "only its summary remains" in remarks(it))
        assert "only its summary remains" in notices(it)  # before it is made, too


@pytest.mark.writes_secrets("settings.json", "shop-calls.jsonl")
async def test_no_session_or_export_holds_secrets(home: Path, shop: Turncoat, play: Play) -> None:
    token, folder = f"{FIXTURE_SECRET}server-token", home / "work"
    settings = {"mcpServers": {"shop": {**shop.entry, "env": {"TOKEN": token}}}}
    steps: Script = [[Call([("look", {"text": token})])], [Say(f"It is {token} and {KEY}.")]]
    async with play(steps, shop, settings=settings, allows_all=True) as it:
        await it.ask(f"use {token}, not {KEY}")
        assert shop.calls == [("look", {"text": token})]
        for name in ("out.md", "out.json", "~/out.md"):
            it.engine.sessions.export("", name)
            await eventually((folder / name.replace("~", str(home))).exists)
        for name in ("", "-2", "-3"):
            it.engine.sessions.export("", "")
            file = folder / f"gemdeck-{it.engine.sessions.recorder.session}{name}.md"
            await eventually(partial(told, it, f"Exported to {file}.", 1))
        it.engine.sessions.export("", "~nobody-of-this-name/out.json")
        await eventually(lambda: "out.json cannot be written" in notices(it))
        [view] = library().sessions()
        it.engine.sessions.preview(view.id)
        await eventually(lambda: it.store.state.preview)
        assert FIXTURE_SECRET not in str((view, it.store.state.preview))
    assert "use ***, not ***" in (folder / "out.md").read_text()
    assert {file.name for file in files_with_secret(home)} == {"settings.json"}
