"""What the screens look like. After a wanted change: ``python3 -m tests tests/snapshots
--snapshot-update``, and a look at each picture that changed."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from textual import events

from tests.fakes.commands import RecordingCommands
from tests.snapshots.decks import HISTORIES, LARGE, NARROW, WIDE, Album, deck, press, settle
from tests.support.pictures import picture
from tests.support.said import fill
from tests.ui.harness import until
from tests.ui.requests.samples import sign_in
from tests.ui.shell import decks as shell
from tui.model import events as e
from tui.model.catalog import Catalog, ResourceContent
from tui.model.chat import EntryId, ModelText, UserMessage
from tui.model.imports import ImportOffer, ImportState
from tui.model.models import ContextMeasured, ContextPart
from tui.model.runs import PromptRendered, RenderedMessage
from tui.model.servers import AccessRefused, RefusedAccess, SandboxView, ServerId, ServerStatus
from tui.model.sessions import (
    ConversationRestored,
    SessionId,
    SessionPreviewed,
    SessionsListed,
    SessionView,
)
from tui.ui.app import GemdeckApp
from tui.ui.dialogs.choices import ImportScreen
from tui.ui.messages import RunTool, ShowRun
from tui.ui.themes import LIGHT, UiPreferences

FILES = ImportOffer(
    "Claude Desktop",
    "~/.config/Claude/claude_desktop_config.json",
    "files",
    ImportState.NEW,
    command=("npx", "-y", "@acme/server-files", "/home/me/notes"),
    env=("FILES_TOKEN",),
    warnings=(
        "Not pinned (@acme/server-files): whoever publishes the package decides what runs next"
        " time.",
    ),
)
SEARCH = ImportOffer(
    "Cursor",
    "~/.cursor/mcp.json",
    "search",
    ImportState.TAKEN,
    address="https://search.example.com/mcp",
    headers=("Authorization",),
)

_TALK = ConversationRestored(
    (
        UserMessage(EntryId("r1"), "where do I read on?"),
        ModelText(EntryId("r2"), "In [the guide](https://example.com/guide).", complete=True),
    )
)
_CONTEXT = ContextMeasured((ContextPart("tools", 12_000, shell.GIT), ContextPart("messages", 400)))
_SESSION = SessionView(
    SessionId("20260102-030405-aaaaaa"), "/shop", first="list the branches", tokens=12_345
)
_SESSIONS = (SessionsListed((_SESSION,)), SessionPreviewed(_SESSION.id, _TALK.entries))

WALK: Final[dict[str, tuple[tuple[e.Event, ...], tuple[str, ...]]]] = {
    "welcome": ((), ()),
    "prompts": ((), ("f4", "down")),
    "prompt-arguments": ((), ("enter",)),
    "resources": ((), ("escape", "f5")),
    "help": ((), ("f6", "f1")),
    "palette": ((), ("escape", "ctrl+p")),
    "model": ((), ("escape", "f9")),
    "context": ((_CONTEXT,), ("escape", "f10")),
    "sessions": (_SESSIONS, ("escape", *"/sessions", "enter")),
    "link": ((_TALK,), ("escape", "shift+tab", "enter")),
    "sign-in": ((e.RequestRaised(sign_in()),), ("f8",)),
}
"""What happens, and the keys pressed after it, from one picture to the next."""


async def test_a_walk_through_panes_and_dialogs(album: Album) -> None:
    store = shell.full_store()
    app = GemdeckApp(store, RecordingCommands(), preferences=UiPreferences())
    async with album.of(app, NARROW) as pilot:
        for name, (happened, keys) in WALK.items():
            for event in happened:
                store.dispatch(event)
            await press(pilot, *keys)
            await album.take(pilot, name)
        store.dispatch(e.RequestSettled(sign_in().id))
        await pilot.resize_terminal(*WIDE)
        app.theme = LIGHT.name
        await press(pilot, "escape", "f4")
        await album.take(pilot, "light")


@pytest.mark.parametrize("name", HISTORIES)
async def test_the_main_screen(album: Album, name: str) -> None:
    wide = name in {"reading", "queued", "done", "asking", "task"}
    await album.take_all(deck(HISTORIES[name]), name, wide=wide)


async def test_a_pane(album: Album) -> None:
    async with album.of(deck(HISTORIES["ready"]), NARROW) as pilot:
        await press(pilot, "slash")
        await album.take(pilot, "slash")
        await press(pilot, "escape", "backspace")
        await press(pilot, "f2")
        await album.take(pilot, "f2", WIDE)
        for key in ("f3", "f7"):
            await press(pilot, key)
            await album.take(pilot, key)


async def test_the_page_of_a_server(album: Album) -> None:
    commands = RecordingCommands()
    commands.answers["servers.usage"] = shell.USAGE
    app = GemdeckApp(shell.paged_store(), commands, preferences=UiPreferences())
    async with album.of(app, NARROW) as pilot:
        await press(pilot, "f2", "home", "enter")
        await album.take(pilot, "begin")
        await press(pilot, "end")
        await album.take(pilot, "end")
        await pilot.resize_terminal(*WIDE)
        await press(pilot, "home")
        await album.take(pilot, "begin")
        app.theme = LIGHT.name
        await press(pilot, "end")
        await album.take(pilot, "end")


async def test_a_server_in_a_sandbox(album: Album) -> None:
    store = shell.paged_store()
    box = SandboxView(("~/notes",), ("~/.cache/shop",), network=True)
    first = replace(store.state.servers[0], sandbox=box)
    shell.configure(store, first, *store.state.servers[1:])
    refused = RefusedAccess("write", "~/notes")
    store.dispatch(AccessRefused(store.state.servers[0].id, refused))
    app = GemdeckApp(store, RecordingCommands(), preferences=UiPreferences())
    async with album.of(app, NARROW) as pilot:
        await press(pilot, "f2", "home")
        await album.take(pilot, "row")
        await press(pilot, "enter")
        await album.take(pilot, "page", WIDE)


async def test_what_was_said_with_servers(album: Album) -> None:
    commands = RecordingCommands()
    fill(commands.wire)
    app = GemdeckApp(shell.full_store(), commands, preferences=UiPreferences())
    async with album.of(app, NARROW) as pilot:
        await press(pilot, "f7", "v")
        await album.take(pilot, "beside")
        await press(pilot, "f", "home", *"jjjj", "right")
        await album.take(pilot, "whole", LARGE)
        await press(pilot, "enter")
        await album.take(pilot, "exchange")
        await press(pilot, "t", "t")
        await album.take(pilot, "sent-and-got")
        await pilot.resize_terminal(*NARROW)
        await press(pilot, "escape", "enter", "t")
        await album.take(pilot, "raw")


async def test_a_server_is_added(album: Album) -> None:
    commands = RecordingCommands()
    setattr(commands.engine.imports.edits, "file_of", lambda _: Path("no-such-file"))  # noqa: B010
    store = shell.full_store()
    app = GemdeckApp(store, commands, preferences=UiPreferences())
    line = "GIT_TOKEN=hunter2 claude mcp add tools -- npx -y @acme/tools --folder '/my notes'"
    async with album.of(app, NARROW) as pilot:
        await pilot.app.run_action("open('add')")
        await settle(pilot)
        pilot.app.post_message(events.Paste(line))
        await album.take(pilot, "form", WIDE)
        await press(pilot, "ctrl+s", "ctrl+s")
        await until(pilot, lambda: "trials.begin" in {name for name, _ in commands.calls})
        view = shell.server(ServerId("tools"), ServerStatus.READY)
        found = replace(view, catalog=Catalog(shell.EVERYTHING_TOOLS))
        store.dispatch(e.ServerTried(e.ServersConfigured((found,))))
        await album.take(pilot, "tools")
        app.theme = LIGHT.name
        await pilot.resize_terminal(*NARROW)
        await album.take(pilot, "tools")


async def test_servers_of_other_clients(album: Album) -> None:
    async with album.of(deck(HISTORIES["ready"]), WIDE) as pilot:
        pilot.app.push_screen(ImportScreen((FILES, SEARCH), lambda one: one))
        await album.take(pilot, "")


async def test_what_a_server_gives(album: Album) -> None:
    store, commands = shell.full_store(), RecordingCommands()
    drawn = picture((36, 16))
    embedded = "[Resource file:///notes.md: text/markdown]", "- buy milk\n- call Ada"
    note = "[Prompt provided image with mime-type: image/png]"
    said = (
        RenderedMessage("user", ("Summarise my notes for Ada.", *embedded, note, drawn)),
        RenderedMessage("assistant", ("Which of them?",)),
        RenderedMessage("user", ("All of them. assistant",)),
    )
    async with album.of(GemdeckApp(store, commands, preferences=UiPreferences()), NARROW) as pilot:
        await press(pilot, "f4", "down", "enter", *"hot", "ctrl+s")
        token = str(commands.calls[-1][1][0])
        store.dispatch(PromptRendered(token, said))
        await settle(pilot)
        await album.take(pilot, "prompt", WIDE)
        await press(pilot, "r")
        token = str(commands.calls[-1][1][0])
        store.dispatch(PromptRendered(token, failure="The server refused: no such city"))
        await settle(pilot)
        await album.take(pilot, "prompt-failed")
        await press(pilot, "escape", "escape", "f5", "enter")
        uri = "test://static/resource/1"
        content = ResourceContent("", "image/png", ("[image/png, 101 bytes]",))
        read = e.ResourceRead(shell.EVERYTHING, uri, content, pictures=(drawn,), at=0, raw={"a": 1})
        store.dispatch(read)
        await settle(pilot)
        await album.take(pilot, "resource", NARROW)


async def test_a_tool_is_run_by_hand(album: Album) -> None:
    commands = RecordingCommands()
    commands.answers |= {"runs.form": shell.ORDER, "runs.merge": shell.ORDER.arguments}
    store = shell.run_store()
    app = GemdeckApp(store, commands, preferences=UiPreferences())
    running, done = (store.state.runs[EntryId(name)] for name in ("c3", "c2"))
    async with album.of(app, NARROW) as pilot:
        await press(pilot, "f3")
        await album.take(pilot, "pane")
        for name, asked, keys in (
            ("form", RunTool(shell.GIT, "wipe"), ()),
            ("running", ShowRun(running), ()),
            ("result", ShowRun(done), ()),
            ("difference", ShowRun(done), ("d",)),
        ):
            app.deck.post_message(asked)
            await settle(pilot)
            await press(pilot, *keys)
            await album.take(pilot, name, WIDE)
            await pilot.resize_terminal(*NARROW)
            await press(pilot, "b" if name == "running" else "escape")
