"""Draws every pane, question and empty state, for `make.py`.

The states are those of the tests: nothing runs, and no time or path shows.
"""

import fnmatch
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from states import (
    IMPORT,
    LINK,
    OLDER,
    README,
    SESSION,
    empty_store,
    greeting,
    many,
    prefilled,
    queued_store,
    quiet_store,
    ruled_store,
    tabbed_store,
    talking_store,
    work_store,
    working_store,
)
from textual.pilot import Pilot

from tests.fakes.commands import RecordingCommands
from tests.snapshots.decks import press, rest, wait_until_filled
from tests.support.said import fill
from tests.support.samples import SERVER, confirmation
from tests.ui.consent import samples as consent
from tests.ui.requests import samples as requests
from tests.ui.shell import decks
from tui.engine.mcp.wire.wire import Wire
from tui.model import events as e
from tui.model.catalog import ResourceContent
from tui.model.chat import (
    EntryId,
    UserMessage,
)
from tui.model.imports import ImportOffer, ImportState
from tui.model.models import ContextMeasured, ContextPart, ModelOffer, ModelsListed
from tui.model.requests import PendingRequest
from tui.model.sessions import (
    SessionPreviewed,
    SessionsListed,
)
from tui.store.store import Store
from tui.ui import themes
from tui.ui.app import GemdeckApp
from tui.ui.dialogs.choices import ImportScreen, log_levels
from tui.ui.messages import ShowRun
from tui.ui.questions import arming
from tui.ui.questions.address import LinkScreen
from tui.ui.themes import UiPreferences

Step = Callable[[Pilot[Any], Store], Awaitable[None]]

SIZES: Final = ((80, 24), (120, 36), (200, 50))
"""Columns and rows of the terminals."""

SHORT_ARMING: Final = 0.02
"""Seconds after which a question takes an answer while pictures are taken."""


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


def _nothing(_app: GemdeckApp) -> None:
    pass


def _undim(app: GemdeckApp) -> None:
    """Show what is behind the question as bright as it is without one."""
    app.screen.styles.background = "transparent"


def _silence(_wire: Wire) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Scene:
    """What one picture shows.

    Attributes:
        name: The first part of the file's name.
        store: Makes the state.
        keys: What is pressed in it.
        then: What happens then.
        after: What is pressed after that.
        opens: Opens what no key and no event opens.
        says: Says what was said with servers before it.
    """

    name: str
    store: Callable[[], Store]
    keys: tuple[str, ...] = ()
    then: tuple[e.Event, ...] = ()
    after: tuple[str, ...] = ()
    opens: Callable[[GemdeckApp], object] = _nothing
    says: Callable[[Wire], None] = _silence


_QUESTIONS: Final[dict[str, PendingRequest]] = {
    "call": consent.asked(
        {"path": "src/new.py", "content": "import os\n\n\ndef f(x):\n    return x\n"}
    ),
    "call-change": consent.rewriting(),
    "call-file": greeting(),
    "call-many": many(),
    "call-form": consent.asked(),
    "call-short": replace(confirmation(), server=SERVER),
    "folder": consent.trust(),
    "folder-changed": consent.trust(difference=consent.DIFFERENCE),
    "changed-tools": consent.changed_tools(),
    "form": requests.form(),
    "form-prefilled": prefilled(),
    "address": requests.address(),
    "sign-in": requests.sign_in(),
    "sampling": requests.sampling(),
    "sampling-review": requests.review(),
    "result": requests.result(),
}


def _same(offer: ImportOffer) -> ImportOffer:
    return offer


def _show_run(run: str, app: GemdeckApp) -> None:
    app.deck.post_message(ShowRun(app.bridge.state.runs[EntryId(run)]))


def _scenes_of_a_call() -> Iterator[Scene]:
    """Give the question about a call with the keys that show more of it."""
    changing = (e.RequestRaised(consent.rewriting()),)
    yield Scene("question-call-json", talking_store, (), changing, ("j",))
    yield Scene("question-call-more", talking_store, (), changing, ("full_stop",))
    editing = (e.RequestRaised(consent.asked()),)
    yield Scene("question-call-edit", talking_store, (), editing, ("e",))
    yield Scene("question-call-reason", talking_store, (), editing, ("w",))


SCENES: Final = (
    Scene("work", work_store, opens=_undim),
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
                at=0,
            ),
        ),
    ),
    Scene("resources-empty", quiet_store, ("f5",)),
    Scene("activity", decks.full_store, ("f7",)),
    Scene("activity-empty", empty_store, ("f7",)),
    Scene("protocol", decks.full_store, ("f7", "v", "f"), says=fill),
    Scene("protocol-beside", decks.full_store, ("f7", "v"), says=fill),
    Scene("protocol-exchange", decks.full_store, ("f7", "v", *"jjjj", "enter"), says=fill),
    Scene("protocol-empty", empty_store, ("f7", "v")),
    Scene("chat", talking_store),
    Scene("chat-entry", talking_store, ("shift+tab", "up", "up")),
    Scene("chat-opened", talking_store, ("shift+tab", "up", "up", "enter")),
    Scene("chat-search", talking_store, ("shift+tab", "slash", *"notes")),
    Scene("last-result", talking_store, ("ctrl+o",)),
    Scene("chat-alone", talking_store, ("f6",)),
    Scene("chat-queued", queued_store),
    Scene("chat-working", working_store),
    Scene("chat-returned", talking_store, (), (e.MessageReturned("list them again"),)),
    Scene("commands", decks.full_store, ("slash",)),
    Scene("commands-parts", decks.full_store, tuple("/mcp ")),
    Scene("mentions", decks.full_store, tuple("@res")),
    Scene("options", decks.full_store, (*"/options", "escape", "enter")),
    Scene("edit", talking_store, (*"/edit", "escape", "enter")),
    Scene("mcp", decks.full_store, (*"/mcp", "escape", "enter")),
    Scene("stats", talking_store, (*"/stats", "escape", "enter")),
    Scene("palette", decks.full_store, ("ctrl+p",)),
    Scene("palette-search", decks.full_store, ("ctrl+p", "r", "e", "s", "t")),
    Scene("palette-in-tools", decks.full_store, ("f3", "ctrl+p")),
    Scene("themes", decks.full_store, ("ctrl+p", *"theme:", "enter")),
    Scene("help", decks.full_store, ("f1",)),
    Scene("help-in-servers", decks.full_store, ("f2", "f1")),
    Scene("server-page", decks.paged_store, ("f2", "home", "enter")),
    Scene("server-page-end", decks.paged_store, ("f2", "home", "enter", "end")),
    Scene("tool-form", decks.run_store, ("f3", "enter")),
    Scene("tool-running", decks.run_store, opens=partial(_show_run, "c3")),
    Scene("tool-result", decks.run_store, opens=partial(_show_run, "c2")),
    Scene("tool-compared", decks.run_store, after=("d",), opens=partial(_show_run, "c2")),
    Scene("rules", ruled_store, ("f2", "g")),
    Scene("rules-empty", decks.full_store, ("f2", "g")),
    Scene("model", decks.full_store, ("f9",)),
    Scene("model-address", decks.full_store, ("f9", "down", "enter")),
    Scene("model-key", decks.full_store, ("f9", "enter")),
    Scene(
        "log-level",
        decks.full_store,
        opens=lambda app: app.push_screen(log_levels(app.bridge, decks.GIT)),
    ),
    Scene(
        "imports",
        decks.full_store,
        opens=lambda app: app.push_screen(
            ImportScreen([IMPORT, replace(IMPORT, server="git", state=ImportState.TAKEN)], _same)
        ),
    ),
    Scene(
        "link",
        talking_store,
        opens=lambda app: app.push_screen(
            LinkScreen(LINK, RecordingCommands(), keyboard=app.keyboard)
        ),
    ),
    Scene(
        "sessions-empty", decks.full_store, ("slash", *"sessions", "enter"), (SessionsListed(()),)
    ),
    Scene("tools-nothing-found", decks.full_store, ("f3", "slash", *"xyz")),
    Scene("tabs", tabbed_store),
    Scene(
        "sessions",
        decks.full_store,
        ("slash", *"sessions", "enter"),
        (
            SessionsListed((SESSION, *OLDER)),
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
    *_scenes_of_a_call(),
    *(
        Scene(f"question-{name}", talking_store, (), (e.RequestRaised(request),))
        for name, request in _QUESTIONS.items()
    ),
)


_WIDE: Final = SIZES[1]

CHOSEN: Final = {
    "work": ("work", "dark", _WIDE),
    "work-light": ("work", "light", _WIDE),
    "work-80x24": ("work", "dark", SIZES[0]),
    "servers": ("servers-failed", "dark", _WIDE),
    "tools": ("tools", "dark", _WIDE),
    "prompts": ("prompts", "dark", _WIDE),
    "resources": ("resources", "dark", _WIDE),
    "activity": ("activity", "dark", _WIDE),
    "protocol": ("protocol", "dark", _WIDE),
    "server-page": ("server-page", "dark", _WIDE),
    "tool-form": ("tool-form", "dark", _WIDE),
    "tool-result": ("tool-result", "dark", _WIDE),
    "chat": ("chat", "dark", _WIDE),
    "question": ("question-call", "dark", _WIDE),
    "folder": ("question-folder", "dark", _WIDE),
    "palette": ("palette-search", "dark", _WIDE),
}
"""The pictures that are kept, by their files' names: the scene, the look and the size."""


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
    commands = RecordingCommands()
    commands.answers["servers.usage"] = decks.USAGE
    commands.answers |= {"runs.form": decks.ORDER, "runs.merge": decks.ORDER.arguments}
    with colors(look):
        scene.says(commands.wire)
        app = GemdeckApp(store, commands, preferences=UiPreferences(theme=look.theme))
    async with app.run_test(size=size) as pilot:
        await wait_until_filled(pilot)
        await rest(pilot)
        await press(pilot, *scene.keys)
        for event in scene.then:
            store.dispatch(event)
        scene.opens(app)
        await rest(pilot)
        await press(pilot, *scene.after)
        await rest(pilot)
        picture = app.export_screenshot(title="gemdeck")
        app.exit()
    return picture


async def draw_all(folder: Path, pattern: str) -> list[Path]:
    """Draw the scenes whose file names match a pattern, in every look and size."""
    names = (
        (scene, look, size, folder / f"{scene.name}-{look.name}-{size[0]}x{size[1]}.svg")
        for scene in SCENES
        for look in LOOKS
        for size in SIZES
    )
    return await _write(one for one in names if fnmatch.fnmatch(one[-1].stem, pattern))


async def draw_chosen(folder: Path) -> list[Path]:
    """Draw the pictures of the README and of the page beside it."""
    scenes = {scene.name: scene for scene in SCENES}
    looks = {look.name: look for look in LOOKS}
    return await _write(
        (scenes[scene], looks[look], size, folder / f"{name}.svg")
        for name, (scene, look, size) in CHOSEN.items()
    )


async def _write(pictures: Iterable[tuple[Scene, Look, tuple[int, int], Path]]) -> list[Path]:
    arming.ARMING_SECONDS = SHORT_ARMING  # type: ignore[misc]
    written = []
    for scene, look, size, path in pictures:
        path.write_text(await draw(scene, look, size), "utf-8")
        written.append(path)
    return written
