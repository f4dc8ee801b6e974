"""The protocol: what was said with servers, on the real app over the real engine and on samples."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from time import time

import pytest
from textual.widgets import Tree

from tests.servers.web import RawServer
from tests.support.leaks import FIXTURE_SECRET
from tests.support.said import Talk, fill
from tests.ui.engine_deck import EngineDeck, engine_deck
from tests.ui.harness import NARROW, Running, running, ticking
from tests.ui.shell import decks
from tests.unit.engine.mcp.support import FOLDER
from tui.engine.mcp.wire.tap import MAX_STDERR_FRAMES
from tui.model import events as e
from tui.model.chat import MAIN, EntryId
from tui.model.servers import ServerStatus as S
from tui.model.wire.frames import FrameKind
from tui.ui.dialogs.exchange import BESIDE, SentAndGot
from tui.ui.dialogs.viewer import ViewerScreen
from tui.ui.panes.activity import ActivityPane
from tui.ui.panes.protocol import FrameList, ProtocolPane
from tui.ui.widgets.chat.transcript import Transcript

SECRET = f"{FIXTURE_SECRET}wire"
ROUGH = "\x1b]52;c;eA==\x07 \u202edrow\u202c"


class Deck(EngineDeck):
    """The app, and what it shows of the protocol."""

    async def open(self, words: str = "") -> None:
        """Show the protocol over the full width, with a filter."""
        await self.press("f7", "v", "f")
        await self.until(lambda: self.frames.shown)
        await self.find(words)

    async def find(self, words: str) -> None:
        self.frames.set_filter(words)
        await self.pilot.pause()

    async def look(self, *keys: str) -> None:
        """Open the exchange under the cursor, and press keys in it."""
        await self.press("enter")
        await self.come(ViewerScreen)
        await self.press(*keys)

    async def close(self) -> None:
        await self.press("escape")
        await self.until(lambda: self.app.focused is self.frames.rows)

    @property
    def frames(self) -> FrameList:
        return self.app.deck.query_one(FrameList)

    @property
    def methods(self) -> list[str]:
        return [one.head.method or one.head.kind.value for one in self.frames.listed]

    @property
    def clipboard(self) -> str:
        return self.app.clipboard


def talking(**servers: object) -> AbstractAsyncContextManager[Deck]:
    """Run with these servers in the settings, the demo as the model, and every call allowed."""
    return engine_deck(Deck, {"mcpServers": servers}, demo=True, allows_all=True, private=True)


def script(name: str, *arguments: str, **more: object) -> dict[str, object]:
    args = [str(FOLDER / f"{name}.py"), *arguments]
    return {"command": sys.executable, "args": args, **more}


async def test_from_a_call_to_its_frames_and_back_and_all_that_can_be_done_with_them() -> None:
    async with talking() as deck:
        wire = deck.engine.wire
        await deck.reaches("notes", S.READY)
        deck.engine.send("count slowly to 2")
        await deck.until(lambda: [one.result for one in deck.calls if one.result])
        await deck.engine.wait_idle()
        [call] = deck.calls
        transcript = deck.app.screen.query_one(Transcript)
        await deck.press("shift+tab")
        await deck.until(lambda: transcript.has_focus)
        await deck.press("w")
        assert "Only tool calls have protocol messages." in deck.text
        await deck.press("up", "w")
        await deck.until(lambda: deck.methods == ["tools/call"])
        assert deck.frames.line.value == f"call:{MAIN}/{call.id}"
        await deck.press("f")
        [one] = deck.frames.listed
        assert one.answer is not None
        assert {frame.method for frame in one.inner} == {"notifications/progress"}
        assert len(deck.frames.rows.rows) == 1
        await deck.press("right")
        assert len(deck.frames.rows.rows) == 1 + len(one.inner)
        assert "notifications/progress" in deck.text
        await deck.press("left")
        await deck.look()
        tree = deck.app.screen.query_one(Tree)
        labels = [str(node.label) for node in tree.root.children]
        assert labels[0].startswith(f"→ request {one.head.number} ")
        assert labels[-1].startswith(f"← answer {one.answer.number} ")
        inner = [*tree.root.children[0].children, *tree.root.children[-1].children]
        opened = {str(node.label).split()[0] for node in inner if node.is_expanded}
        assert {"params", "result"} <= opened
        await deck.press("t", "t")
        assert "sent by the server" in deck.text
        assert "shown to the model" in deck.text
        beside = deck.app.screen.query_one(SentAndGot)
        sent, got = beside.children
        assert (sent.region.y == got.region.y) is (deck.app.size.width >= BESIDE)
        await deck.press("t", "c")
        await deck.close()
        assert '"method":"tools/call"' in deck.clipboard
        await deck.press("c")
        await deck.until(lambda: deck.clipboard.startswith("{"))
        lines = [json.loads(line) for line in deck.clipboard.splitlines()]
        assert lines[0]["params"]["name"] == "count_slowly"
        assert "result" in lines[-1]
        await deck.press("y")
        assert deck.clipboard == wire.command(one.head.number)
        assert deck.clipboard.startswith("gemdeck mcp call notes count_slowly --args ")
        await deck.press("m")
        assert not deck.frames.shown
        assert deck.frames.rows.has_focus, "what is typed goes to no filter"
        await deck.find("method:tools/call")
        deck.engine.runs.send_again(one.head.number)
        await deck.until(lambda: deck.methods == ["tools/call"])
        again = deck.frames.listed[0].head
        assert again.target == "count_slowly"
        assert again.call not in ("", call.id), "another call, in the same conversation"
        await deck.press("m")
        await deck.until(lambda: len(deck.frames.shown) == 2)
        await deck.press("home", "r")
        await deck.until(lambda: len(deck.frames.shown) == 3)
        await deck.find("server/discover")
        await deck.press("w")
        assert "No call in a conversation caused this exchange." in deck.text
        await deck.find(f"call:{MAIN}/{call.id}")
        await deck.press("x")
        written = (await deck.written("frames-1.jsonl")).read_text().splitlines()
        assert [json.loads(line)["number"] for line in written] == sorted(
            frame.number for frame in one.frames
        )
        await deck.press("w")
        await deck.until(lambda: transcript.has_focus and transcript.cursor is not None)
        await deck.until(lambda: transcript.cursor and transcript.cursor.entry.id == call.id)
        assert transcript.region.width > deck.frames.region.width, "the chat has come back"


async def test_http_stands_between_what_is_said_and_a_read_is_sent_again_at_once() -> None:
    async with (
        RawServer(sessions=set()) as server,
        talking(web={"httpUrl": server.url}) as deck,
    ):
        await deck.reaches("web", S.READY)
        await deck.open("server:web")
        assert {"initialize", "tools/list", "POST"} <= {*deck.methods}
        await deck.find("server:web nothing of it")
        assert "No match." in deck.text
        await deck.find("server:web method:post")
        assert "✓ 20" in deck.text
        assert "session " in deck.text
        await deck.find("server:web method:tools/list")
        await deck.look("t", "t")
        assert "status 200" in deck.text
        assert server.url in deck.text
        await deck.close()
        listed = len([one for one in server.requests if one.message.get("method") == "tools/list"])
        await deck.press("r")
        await deck.until(lambda: len(deck.frames.shown) == 2)
        asked = [one for one in server.requests if one.message.get("method") == "tools/list"]
        assert len(asked) == listed + 1


@pytest.mark.writes_secrets("settings.json")
async def test_what_is_hostile_stays_in_its_row_and_what_is_secret_is_masked_everywhere() -> None:
    rough = script("raw", "noise", "bad_utf8", "stderr", "leaky", env={"RAW_TOKEN": SECRET})
    async with talking(rough=rough, chatty=script("sample")) as deck:
        await deck.reaches("rough", S.READY)
        await deck.reaches("chatty", S.READY)
        await deck.open("server:rough err")
        await deck.until(lambda: "not JSON" in deck.text)
        assert "noise" in deck.methods
        assert "! fault" in deck.text
        assert "npm notice: a new version is out" in deck.text
        await deck.find("server:rough method:initialize")
        await deck.press("up")
        await deck.look("t")
        assert "\\u001b]52" in deck.text, "as JSON writes it"
        await deck.close()
        await deck.find("server:rough stderr")
        await deck.until(lambda: "starting with" in deck.text)
        await deck.press("home")  # what follows comes in as many frames as the pipe makes of it
        await deck.look("c")
        await deck.close()
        assert "starting with" in deck.clipboard
        await deck.find("server:rough")
        assert len(deck.frames.shown) > 5
        await deck.press("x")
        written = (await deck.written("frames-1.jsonl")).read_text()
        for place, text in (
            ("screen", deck.text),
            ("clipboard", deck.clipboard),
            ("export", written),
        ):
            assert SECRET not in text, place
        assert all(line.isprintable() for line in deck.lines)


@asynccontextmanager
async def said(size: tuple[int, int] = (120, 36)) -> AsyncIterator[tuple[Running, Talk]]:
    """Run over a wire on which something of each kind was said."""
    async with running(decks.full_store(), size) as deck:
        fill(deck.commands.wire)
        await deck.press("f7", "v")
        await deck.until(lambda: any(one.shown for one in deck.app.deck.query(FrameList)))
        yield deck, Talk(deck.commands.wire, "late")


def rows(deck: Running) -> list[str]:
    return [row.label.strip() for row in deck.one(FrameList).rows.rows]


async def test_it_is_watched_only_while_it_can_be_seen_and_rests_then() -> None:
    async with said() as (deck, talk):
        listed = deck.one(FrameList)
        assert is_watched(deck)
        before, at_rest = len(listed.shown), ticking()
        asked = talk.ask("tools/call", name="slow")
        await follow(deck)
        assert len(listed.shown) == before + 1
        assert "waiting" in deck.text
        assert ticks(deck), "what is open ticks"
        await deck.press("f3")
        assert not is_watched(deck)
        assert not ticks(deck)
        talk.answer(asked, content=[])
        await deck.press("f7")
        assert is_watched(deck)
        assert not ticks(deck)
        assert "waiting" not in deck.text
        assert ticking() == at_rest
        await deck.press("v")
        assert not is_watched(deck)
        assert deck.one(ActivityPane).display
        await deck.press("f6", "f7", "v")
        assert is_watched(deck)


def is_watched(deck: Running) -> bool:
    return deck.commands.wire._is_watched


def ticks(deck: Running) -> bool:
    return deck.one(ProtocolPane)._delay.is_begun


async def follow(deck: Running) -> None:
    """Let the pane hear of what was said, as the engine's event would, once it has rested."""
    await deck.until(lambda: deck.one(ProtocolPane)._rests_until <= time())
    deck.store.dispatch(e.FramesNoted(deck.commands.wire.revision))
    await deck.settle()


async def test_the_end_is_followed_unless_the_user_is_elsewhere_and_a_pause_holds_back() -> None:
    async with said() as (deck, talk):
        listed = deck.one(FrameList)
        last = len(listed.rows.rows) - 1
        assert listed.rows.cursor == last
        talk.answer(talk.ask("ping"))
        await follow(deck)
        last += 1 + 1  # another server: its heading comes before it
        assert listed.rows.cursor == last
        await deck.press("up")
        talk.answer(talk.ask("ping"))
        await follow(deck)
        assert listed.rows.cursor == last - 1
        count = len(listed.shown)
        await deck.press("p")
        assert "paused" in deck.text
        assert deck.one(ProtocolPane).action_label("pause") == "resume"
        talk.answer(talk.ask("ping"))
        await follow(deck)
        assert len(listed.shown) == count
        await deck.press("p")
        assert len(listed.shown) == count + 1
        assert "paused" not in deck.text


async def test_a_narrow_list_names_the_server_where_it_changes_and_probes_are_hidden() -> None:
    async with said() as (deck, talk):
        talk.refuse(talk.ask("server/discover"), "What?")
        talk.answer(talk.ask("initialize"))
        await follow(deck)
        listed = deck.one(FrameList)
        lines = [(row.label, row.is_heading) for row in listed.rows.rows]
        servers = [label for label, is_heading in lines if is_heading]
        assert servers == ["git", "everything", "git", "late"]
        assert [label for label, _ in lines[-2:]] == ["late", "initialize"]
        assert "11 of 12 exchanges · 1 probe hidden (P)" in deck.text
        await deck.press("up")
        assert listed.group is not None
        await deck.press("enter")
        assert deck.app.screen is deck.app.deck, "a heading opens nothing"
        await deck.press("P")
        assert "1 probe shown (P)" in deck.text
        assert "· probe" in deck.text
        await deck.press("e")
        assert "server/discover" not in rows(deck), "nothing is wrong with it"
        await deck.press("e", "P", "f")
        assert not any(row.is_heading for row in listed.rows.rows)


async def test_errors_only_is_a_word_of_the_filter_and_each_key_says_why_it_does_nothing() -> None:
    async with said() as (deck, _):
        listed = deck.one(FrameList)
        whole = len(listed.shown)
        await deck.press("e")
        assert listed.line.value == "err"
        assert len(listed.shown) == 4
        assert "4 of 10 exchanges" in deck.text
        await deck.press("e")
        assert len(listed.shown) == whole
        await deck.press("y")
        assert "Only requests sent by gemdeck can be repeated." in deck.text
        await deck.press("slash", *"nothing")
        assert "No match." in deck.text
        await deck.press("escape")
        assert not listed.line.value
        await deck.press("home", "right")
        assert "There is nothing to fold." in deck.text


async def test_the_full_width_is_kept_while_other_panes_share_theirs() -> None:
    async with said((160, 48)) as (deck, _):
        side = deck.app.deck.side
        shared = side.region.width
        await deck.press("f")
        assert side.region.width == 160
        await deck.press("f3")
        assert side.region.width == shared
        await deck.press("f7")
        assert side.region.width == 160
        await deck.press("escape")
        assert side.region.width == shared
        await deck.press("f7", "f")
        assert side.region.width == shared


async def test_a_click_turns_between_the_log_and_the_protocol() -> None:
    async with said(NARROW) as (deck, _):
        side = deck.app.deck.side
        foot = deck.lines[side.region.bottom - 1]
        await deck.click(side, foot.index("log") - side.region.x, side.region.height - 1)
        assert deck.one(ActivityPane).display
        await deck.click(side, foot.index("protocol") - side.region.x, side.region.height - 1)
        assert deck.one(ProtocolPane).display


async def test_a_call_whose_conversation_is_closed_says_so() -> None:
    async with said() as (deck, _):
        await deck.press("slash", *"call:main/call-1", "escape")
        deck.one(FrameList).set_filter(f"call:{MAIN}/{EntryId('call-1')}")
        await deck.settle()
        await deck.press("w")
        assert deck.said == "That entry is no longer in the conversation."


async def test_what_is_no_message_is_told_by_its_body_in_every_width() -> None:
    for size in (NARROW, (160, 48)):
        async with said(size) as (deck, talk):
            talk.tap.received(f"{ROUGH}{'x' * 100_000}".encode())
            talk.tap.stderr([ROUGH.encode(), "← answer ping".encode()])
            await follow(deck)
            kinds = [one.head.kind for one in deck.one(FrameList).listed]
            assert kinds[-2:] == [FrameKind.NOISE, FrameKind.STDERR]
            await deck.press("f")
            assert "\x1b" not in deck.text
            assert "\u202e" not in deck.text
            assert "stderr" in deck.text
            await deck.press("enter", "c", "escape")
            assert deck.app.clipboard.splitlines()[-1] == "  ← answer ping", "no heading"
            for _ in range(MAX_STDERR_FRAMES):
                talk.tap.stderr([ROUGH.encode()])
            await follow(deck)
            assert "exchanges · 1 message dropped" in deck.text
            await deck.press("p", "m", "f")
            assert "paused · cleared" in deck.text
