"""Draws every pane, question and empty state, for `make.py`.

The states are those of the tests: nothing runs, and no time or path shows.
"""

import fnmatch
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from textual.pilot import Pilot

from tests.fakes.commands import RecordingCommands
from tests.snapshots.decks import NEVER, pressing
from tests.support.samples import SERVER, TURN, confirmation
from tests.ui.consent import samples as consent
from tests.ui.requests import samples as requests
from tests.ui.shell import decks
from tui.model import events as e
from tui.model.answering.models import ContextMeasured, ContextPart, ModelOffer, ModelsListed
from tui.model.catalog import ResourceContent
from tui.model.chat import (
    ConversationId,
    EntryId,
    ToolCall,
    ToolCallStatus,
    TurnOutcome,
    Usage,
    UserMessage,
)
from tui.model.consent import Effect, GrantId, GrantView
from tui.model.requests import PendingRequest
from tui.model.sessions import (
    ConversationOpened,
    SessionId,
    SessionPreviewed,
    SessionsListed,
    SessionView,
)
from tui.store.store import Store
from tui.ui import themes
from tui.ui.app import GemdeckApp
from tui.ui.questions import arming
from tui.ui.themes import UiPreferences

Step = Callable[[Pilot[Any], Store], Awaitable[None]]

SIZES: Final = ((80, 24), (120, 36), (200, 50))
"""Columns and rows of the terminals."""

SHORT_ARMING: Final = 0.02
"""Seconds after which a question takes an answer while pictures are taken."""

README: Final = """# Notes

Servers keep **small** things here.

- one note a line
- `add_note` writes one

```python
def add(text: str) -> int:
    return len(notes)
```
"""

SESSION: Final = SessionView(
    SessionId("20260102-030405-abcdef"),
    "/shop",
    first="list the open branches",
    model="gemini-3.8-flash",
    tokens=12_345,
    changed=decks.EPOCH,
)

CODE: Final = "import os\n\n\ndef first(path: str) -> str:\n    return os.listdir(path)[0]\n"


@dataclass(frozen=True, slots=True)
class Look:
    """A theme, and whether the terminal shows its colors."""

    name: str
    theme: str
    has_colors: bool = True


LOOKS: Final = (
    Look("dark", themes.DARK.name),
    Look("light", themes.LIGHT.name),
    Look("16", themes.SIXTEEN.name),
    Look("nocolor", themes.SIXTEEN.name, has_colors=False),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """What one picture shows: a state, the keys pressed in it, and what happens then."""

    name: str
    store: Callable[[], Store]
    keys: tuple[str, ...] = ()
    then: tuple[e.Event, ...] = ()


def empty_store() -> Store:
    """Give the store of a deck without servers."""
    store = decks.new_store()
    decks.configure(store)
    return store


def quiet_store() -> Store:
    """Give the store of a deck whose only server offers nothing yet."""
    store = decks.new_store()
    decks.configure(store, decks.server(decks.GIT))
    return store


def talking_store() -> Store:
    """Give the store of a deck in which one turn has ended and another one runs."""
    store = decks.full_store()

    def call(number: int, arguments: str) -> ToolCall:
        return ToolCall(EntryId(f"call-{number}"), decks.GIT, "branch_list", arguments)

    happened: tuple[e.Event, ...] = (
        e.TurnStarted(TURN, UserMessage(EntryId("user-1"), "list the open branches"), NEVER),
        e.ThoughtStreamed(EntryId("thought-1"), "**Look first**\n\nThe repository comes first."),
        e.EntryCompleted(EntryId("thought-1"), 1.2),
        e.ToolCallRequested(call(1, '{\n  "repo_path": "."\n}')),
        e.ToolCallChanged(
            EntryId("call-1"), ToolCallStatus.OK, 0.042, "main\nnext\nfix/typo-in-the-guide"
        ),
        e.ToolCallRequested(call(2, '{\n  "repo_path": "/etc"\n}')),
        e.ToolCallChanged(
            EntryId("call-2"), ToolCallStatus.ERROR, 0.007, "Access denied: outside the repository"
        ),
        e.TextStreamed(EntryId("text-1"), f"There are three branches.\n\n{README}"),
        e.EntryCompleted(EntryId("text-1")),
        e.UsageReported(Usage(prompt=5_400, output=620, thoughts=180)),
        e.TurnFinished(TURN, TurnOutcome.COMPLETED, seconds=2.4),
    )
    for event in happened:
        store.dispatch(event)
    return store


def queued_store() -> Store:
    """Give the store of a deck in which messages wait for the end of a turn."""
    store = talking_store()
    store.dispatch(e.TurnStarted(TURN, UserMessage(EntryId("user-2"), "and the tags"), NEVER))
    store.dispatch(e.QueueChanged(("then the stashes", "which of them are older than a year?")))
    return store


def tabbed_store() -> Store:
    """Give the store of a deck with conversations that run, ask and are done in other tabs."""
    store = talking_store()
    for key, text in (
        ("runs", "which of them are older than a year?"),
        ("asks", "fix the failing test"),
        ("done", "write the release notes"),
    ):
        conversation = ConversationId(key)
        store.dispatch(ConversationOpened(conversation))
        message = UserMessage(EntryId(f"user-{key}"), text)
        store.dispatch(e.TurnStarted(TURN, message, NEVER, conversation=conversation))
    store.dispatch(e.TurnFinished(TURN, TurnOutcome.COMPLETED, conversation=conversation))
    asks = ConversationId("asks")
    store.dispatch(e.RequestRaised(replace(confirmation(), conversation=asks)))
    return store


def ruled_store() -> Store:
    """Give the store of a deck with rules for tools."""
    store = decks.full_store()
    store.dispatch(
        e.GrantsChanged(
            (
                GrantView(GrantId("g1"), Effect.ALLOW, "git", "branch_list", "this session", "you"),
                GrantView(GrantId("g2"), Effect.DENY, "git", "*", "saved", "~/.gemini/policies"),
            )
        )
    )
    return store


_QUESTIONS: Final[dict[str, PendingRequest]] = {
    "call": consent.asked(
        {"path": "src/new.py", "content": "import os\n\n\ndef f(x):\n    return x\n"}
    ),
    "call-change": consent.rewriting(),
    "call-form": consent.asked(),
    "call-short": replace(confirmation(), server=SERVER),
    "folder": consent.trust(),
    "folder-changed": consent.trust(difference=consent.DIFFERENCE),
    "changed-tools": consent.changed_tools(),
    "form": requests.form(),
    "address": requests.address(),
    "sign-in": requests.sign_in(),
    "sampling": requests.sampling(),
    "sampling-review": requests.review(),
    "result": requests.result(),
}

SCENES: Final = (
    Scene("start-reading", decks.new_store),
    Scene("start-no-servers", empty_store),
    Scene("start-ready", decks.full_store),
    Scene("servers", decks.full_store, ("f2",)),
    Scene("servers-failed", decks.full_store, ("f2", "down", "down", "down")),
    Scene("servers-empty", empty_store, ("f2",)),
    Scene("tools", decks.full_store, ("f3", "down")),
    Scene("tools-empty", quiet_store, ("f3",)),
    Scene("tools-filter", decks.full_store, ("f3", "slash", "l", "o", "g")),
    Scene("prompts", decks.full_store, ("f4", "down", "down")),
    Scene("prompts-empty", quiet_store, ("f4",)),
    Scene("resources", decks.full_store, ("f5", "down")),
    Scene(
        "resource-read",
        decks.full_store,
        ("f5", "enter"),
        (
            e.ResourceRead(
                decks.EVERYTHING,
                "test://static/resource/1",
                ResourceContent(README, "text/markdown"),
            ),
        ),
    ),
    Scene("resources-empty", quiet_store, ("f5",)),
    Scene("activity", decks.full_store, ("f7",)),
    Scene("activity-empty", empty_store, ("f7",)),
    Scene("chat", talking_store),
    Scene("chat-entry", talking_store, ("shift+tab", "up", "up")),
    Scene("chat-opened", talking_store, ("shift+tab", "up", "up", "enter")),
    Scene("chat-search", talking_store, ("shift+tab", "slash", *"notes")),
    Scene("last-result", talking_store, ("ctrl+o",)),
    Scene("chat-alone", talking_store, ("f6",)),
    Scene("chat-queued", queued_store),
    Scene("tabs", tabbed_store),
    Scene("chat-returned", talking_store, (), (e.MessageReturned("list them again"),)),
    Scene("commands", decks.full_store, ("slash",)),
    Scene("commands-parts", decks.full_store, tuple("/mcp ")),
    Scene("mcp", decks.full_store, (*"/mcp", "escape", "enter")),
    Scene("stats", talking_store, (*"/stats", "escape", "enter")),
    Scene("palette", decks.full_store, ("ctrl+p",)),
    Scene("palette-search", decks.full_store, ("ctrl+p", "r", "e", "s", "t")),
    Scene("palette-in-tools", decks.full_store, ("f3", "ctrl+p")),
    Scene("themes", decks.full_store, ("ctrl+p", *"theme:", "enter")),
    Scene("help", decks.full_store, ("f1",)),
    Scene("help-in-servers", decks.full_store, ("f2", "f1")),
    Scene("server-details", decks.full_store, ("f2", "enter")),
    Scene("tool-details", decks.full_store, ("f3", "down", "enter")),
    Scene("rules", ruled_store, ("f2", "g")),
    Scene("rules-empty", decks.full_store, ("f2", "g")),
    Scene("model", decks.full_store, ("f9",)),
    Scene("model-address", decks.full_store, ("f9", "down", "enter")),
    Scene(
        "sessions",
        decks.full_store,
        ("slash", *"sessions", "enter"),
        (
            SessionsListed((SESSION,)),
            SessionPreviewed(SESSION.id, (UserMessage(EntryId("r1"), "list the open branches"),)),
        ),
    ),
    Scene(
        "models",
        decks.full_store,
        ("slash", *"model", "enter"),
        (ModelsListed((ModelOffer("gemini-3.8-flash", "Gemini Flash", 1_048_576, 65_536),)),),
    ),
    Scene(
        "context",
        decks.full_store,
        ("f10",),
        (ContextMeasured((ContextPart("tools", 8_000, decks.GIT), ContextPart("messages", 400))),),
    ),
    Scene("arguments", decks.full_store, ("f4", "end", "enter")),
    Scene(
        "question-calls",
        talking_store,
        then=tuple(e.RequestRaised(call) for call in consent.several()),
    ),
    *(
        Scene(f"question-{name}", talking_store, (), (e.RequestRaised(request),))
        for name, request in _QUESTIONS.items()
    ),
)


@contextmanager
def colors(look: Look) -> Iterator[None]:
    """Let the app that is made find a terminal with or without colors."""
    if not look.has_colors:
        os.environ["NO_COLOR"] = "1"
    try:
        yield
    finally:
        os.environ.pop("NO_COLOR", None)


async def draw(scene: Scene, look: Look, size: tuple[int, int]) -> str:
    """Play a scene and give what the screen shows, as SVG."""
    store = scene.store()
    with colors(look):
        app = GemdeckApp(store, RecordingCommands(), preferences=UiPreferences(theme=look.theme))
    async with app.run_test(size=size) as pilot:
        await pressing(*scene.keys)(pilot)
        for event in scene.then:
            store.dispatch(event)
        await pressing()(pilot)
        picture = app.export_screenshot(title=f"{scene.name} {look.name}")
        app.exit()
    return picture


async def draw_all(folder: Path, pattern: str) -> list[Path]:
    """Draw the scenes whose file names match a pattern, in every look and size."""
    arming.ARMING_SECONDS = SHORT_ARMING  # type: ignore[misc]
    written = []
    for scene in SCENES:
        for look in LOOKS:
            for size in SIZES:
                path = folder / f"{scene.name}-{look.name}-{size[0]}x{size[1]}.svg"
                if fnmatch.fnmatch(path.stem, pattern):
                    path.write_text(await draw(scene, look, size), "utf-8")
                    written.append(path)
    return written
