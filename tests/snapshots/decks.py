"""Decks for pictures: the real app over states that never change, without an engine.

A picture must come out the same on every machine and at every hour: no clock, path or version
is in the states, animations are off in every test, and cursors stand still.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from tests.fakes.commands import RecordingCommands
from tests.support.samples import (
    CALL,
    REQUEST,
    SERVER,
    SESSION,
    TEXT,
    TURN,
    confirmation,
    log_line,
    one_of_each,
    server_view,
    tool_call,
)
from tests.ui.harness import until
from tui.model import events as e
from tui.model.chat import (
    BackendKind,
    ConversationId,
    EntryId,
    ModelView,
    TaskProgress,
    TaskStatus,
    ToolCallStatus,
    TurnOutcome,
    UserMessage,
)
from tui.model.servers import Failure, ServerStatus
from tui.model.sessions import ConversationOpened, LastSessionFound
from tui.store.reducer import reduce
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.panes.browser import ToolsPane
from tui.ui.themes import UiPreferences

Size = tuple[int, int]
WIDE: Final = (120, 36)
NARROW: Final = (80, 24)
LARGE: Final = (160, 48)
"""Columns and rows of the terminals that pictures are taken of; one size, where the other has the
same layout as that of another picture."""

SHORT_ARMING: Final = 0.02
"""Seconds after which a question takes an answer while pictures are taken."""

NEVER: Final = 1e12
"""A start of a turn, in seconds of the clock, from which no time has passed yet."""

_READY: Final[tuple[e.Event, ...]] = (
    e.ModelSelected(ModelView("gemini-flash", BackendKind.GEMINI)),
    e.ServersConfigured(
        (server_view(), server_view("search"), server_view("legacy", ServerStatus.DISABLED))
    ),
    one_of_each()[e.CatalogChanged],
    e.ServerStatusChanged(SERVER, ServerStatus.READY),
    e.ServerStatusChanged(
        server_view("search").id,
        ServerStatus.FAILED,
        Failure("The server ended with exit status 1.", "r restarts it", ("Traceback", "boom")),
    ),
    e.ServerLogged(SERVER, (log_line("listening"),)),
)

_ASKING: Final[tuple[e.Event, ...]] = (
    *_READY,
    e.TurnStarted(TURN, UserMessage(EntryId("user-1"), "add a note: buy milk"), NEVER),
    e.TextStreamed(TEXT, "I will add that note.\n\n- first this\n- then **that**\n"),
    e.EntryCompleted(TEXT),
    e.ToolCallRequested(tool_call()),
    e.ToolCallChanged(CALL, ToolCallStatus.ASKING),
)

_RUNS, _ASKS, _DONE = (ConversationId(name) for name in ("runs", "asks", "done"))


def _asked(text: str, conversation: ConversationId) -> e.Event:
    message = UserMessage(EntryId("user-1"), text)
    return e.TurnStarted(TURN, message, NEVER, conversation=conversation)


_TABS: Final[tuple[e.Event, ...]] = (
    *_READY,
    *map(ConversationOpened, (_RUNS, _ASKS, _DONE)),
    _asked("list the open branches", _RUNS),
    _asked("fix the failing test", _ASKS),
    e.RequestRaised(replace(confirmation(), conversation=_ASKS)),
    _asked("write the release notes", _DONE),
    e.TurnFinished(TURN, TurnOutcome.COMPLETED, conversation=_DONE),
)

HISTORIES: Final[dict[str, tuple[e.Event, ...]]] = {
    "reading": (),
    "ready": _READY,
    "return": (
        *_READY,
        e.ModelSelected(ModelView("demo", BackendKind.DEMO, needs_setup=True)),
        LastSessionFound(
            replace(SESSION, first="list the open branches", changed=1.8e9), is_cut=True
        ),
    ),
    "asking": (*_ASKING, e.RequestRaised(confirmation())),
    "queued": (
        *_ASKING,
        e.ToolCallChanged(CALL, ToolCallStatus.RUNNING),
        e.QueueChanged(("list my notes", "which of them are about the shop?")),
    ),
    "task": (
        *_ASKING,
        e.ToolCallChanged(CALL, ToolCallStatus.RUNNING),
        e.ToolCallProgressed(
            CALL, TaskProgress(12.0, None, "2 of 3 hosts", TaskStatus.INPUT_REQUIRED, 290.0)
        ),
    ),
    "tabs": _TABS,
    "done": (
        *_ASKING,
        e.RequestSettled(REQUEST),
        e.ToolCallChanged(CALL, ToolCallStatus.OK, 0.042, "Added note 1: buy milk"),
        e.TextStreamed(EntryId("text-2"), "Done: the note is there."),
        e.TurnFinished(TURN, TurnOutcome.COMPLETED),
    ),
}
"""What has happened before each picture."""


def deck(events: Iterable[e.Event], schema: Mapping[str, Any] | None = None) -> GemdeckApp:
    """Make the app after all this has happened; its tools have this input schema."""
    state, commands = AppState(workspace="~/shop"), RecordingCommands()
    for event in events:
        state = reduce(state, event)
    commands.offer(schema or {})
    return GemdeckApp(Store(state), commands, preferences=UiPreferences())


class Kept(SVGImageExtension):  # type: ignore[misc]
    """Pictures that are named after what they show, whatever the parameters of their test."""

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        return f"{test_location.methodname}[{index}]"


class Album:
    """Compares the screen with the pictures that are kept of it.

    Args:
        kept: The pictures of a test file.
        folder: Where what looks otherwise is left.
    """

    def __init__(self, kept: SnapshotAssertion, folder: Path) -> None:
        self._kept = kept.use_extension(Kept)
        self._folder = folder
        self.changed: list[str] = []
        """What was left in the folder."""

    @asynccontextmanager
    async def of(self, app: GemdeckApp, size: Size) -> AsyncIterator[Pilot[Any]]:
        """Run an app whose pictures are taken in the block."""
        async with app.run_test(size=size, tooltips=True, notifications=True) as pilot:
            await wait_until_filled(pilot)
            await settle(pilot)
            yield pilot

    async def take(self, pilot: Pilot[Any], name: str, *sizes: Size) -> None:
        """Compare the screen, and then in other sizes."""
        await rest(pilot)
        columns, rows = pilot.app.size
        whole = f"{name}-{columns}x{rows}".strip("-")
        seen = pilot.app.export_screenshot(title=pilot.app.title, simplify=True)
        if seen != self._kept(name=whole):
            file = self._folder / f"{whole}.svg"
            file.write_text(seen, "utf-8")
            self.changed.append(str(file))
        for size in sizes:
            await pilot.resize_terminal(*size)
            await self.take(pilot, name)

    async def take_all(self, app: GemdeckApp, name: str, *keys: str, wide: bool = False) -> None:
        """Press keys and compare the screen in both sizes, or only in the wide one."""
        async with self.of(app, WIDE if wide else NARROW) as pilot:
            await press(pilot, *keys)
            await self.take(pilot, name, *([] if wide else [WIDE]))


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, and let everything come to rest after each."""
    for key in keys:
        await wait_until_armed(pilot)
        await pilot.pause(2 * SHORT_ARMING)
        await pilot.press(key)
        await settle(pilot)


async def rest(pilot: Pilot[Any]) -> None:
    """Let the screen stand as a picture shows it: still, and ready for an answer."""
    for screen in pilot.app.screen_stack:
        for field in (*screen.query(Input), *screen.query(TextArea)):
            field.cursor_blink = False
    await wait_until_armed(pilot)
    await until(pilot, lambda: all(one.is_finished for one in pilot.app.workers))  # pictures
    await settle(pilot)


async def settle(pilot: Pilot[Any]) -> None:
    """Let what is due soon be drawn, however long a busy machine takes for it."""
    await pilot.pause()
    await pilot.pause(0.1)
    await pilot.pause()


async def wait_until_filled(pilot: Pilot[Any]) -> None:
    """Let the panes get what the first frame does without."""
    await until(pilot, lambda: pilot.app.screen_stack[0].query(ToolsPane))


async def wait_until_armed(pilot: Pilot[Any]) -> None:
    """Let a question take answers, which changes its look."""
    await until(pilot, lambda: getattr(pilot.app.screen, "armed", True))
