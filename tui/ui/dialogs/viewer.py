"""Shows a text in full; of a tool's result also its pictures, and structured content as a tree."""

from collections.abc import Callable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget

from tui.engine.background import run_command
from tui.model.chat import Picture, ToolCall
from tui.store.commands import Commands
from tui.text import counted, sanitize
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.choices import use_one
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.widgets.text.blocks import TextPage
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.json_tree import JsonTree, json_in
from tui.ui.widgets.text.picture import PictureView, draws_pictures
from tui.ui.widgets.text.plain import PlainText, block

READING: Final = "Reading…"
"""Shown until the content is there."""


Views = list[tuple[str, Callable[[], Widget]]]
"""Ways to show something, by their names."""


class Viewer(Dialog):
    """Shows a text and its pictures, in the first of several ways.

    Args:
        commands: Open and save the pictures.
        title: The title of the frame.
        note: A muted addition to it.

    Attributes:
        text: What is copied.
        pictures: The pictures.
        views: The ways, by their names.
    """

    KIND = "large viewer"

    def __init__(self, commands: Commands, title: str, note: str = "") -> None:
        super().__init__(title, note)
        self._commands = commands
        self.text = ""
        self.pictures: tuple[Picture, ...] = ()
        self.views: Views = []

    @property
    def body(self) -> Widget:
        """What holds the view."""
        return self.frame

    def begin_with_picture(self) -> None:
        """Show the pictures first, where there are any and they can be drawn."""
        if self.pictures and draws_pictures(self.app):
            self.views.insert(0, ("picture", lambda: TextPage(PictureView(self.pictures))))

    async def action_switch(self) -> None:
        """Show it in the next way."""
        self.views.append(self.views.pop(0))
        await self.show(self.views[0][1]())

    async def show(self, view: Widget) -> None:
        """Put a widget in the place of what is shown, and focus it."""
        with self.app.batch_update():
            await self.body.remove_children()
            await self.body.mount(view)
        next(one for one in view.walk_children(Widget, with_self=True) if one.can_focus).focus()
        self.refresh_bindings()

    def action_use(self, what: str) -> None:
        """Open or save the picture, or the one that is picked."""
        features = self._commands.engine.features
        named = [(f"{n}  {p.width}x{p.height}", p) for n, p in enumerate(self.pictures, 1)]
        use = features.open_picture if what == "open" else features.save_picture
        use_one(self.app, "Pictures", "picture", named, use)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Offer what there is."""
        can = {"use": self.pictures, "copy": self.text, "switch": self.views[1:]}
        return bool(can.get(action, True))

    def action_label(self, action: str) -> str | None:
        return self.views[1][0] if action == "switch" else None


class ViewerScreen(Viewer):
    """Show a long text in full.

    Args:
        commands: As of `Viewer`.
        title: The title of the frame.
        text: The text.
        call: The call whose result it is.
        views: How it is shown, the first at first; if there are none, as the text.
    """

    BINDINGS = keymap.bindings(keymap.Place.VIEWER)

    def __init__(
        self,
        commands: Commands,
        title: str,
        text: str,
        call: ToolCall | None = None,
        views: Views | None = None,
    ) -> None:
        lines = counted(text.count("\n") + 1, "line")
        super().__init__(commands, title, f"{lines} · {counted(len(text), 'character')}")
        self.text = text
        self.views = views or [("text", lambda: FoldedText(text))]
        if call is not None:
            self.pictures = call.pictures
            if (value := json_in(call.result)) is not None:
                self.views.insert(0, ("tree", lambda: JsonTree(value)))

    def compose_body(self) -> ComposeResult:
        self.begin_with_picture()
        yield self.views[0][1]()


class FetchedScreen(Viewer):
    """Shows what a server is asked for over the whole height, once it is there.

    Args:
        bridge: Asks for it, and provides it.
        title: What is asked for.
        note: A muted addition to it.
    """

    WAITING: ClassVar[str] = READING

    facts = query_one(".facts", PlainText)

    def __init__(self, bridge: StoreBridge, title: str, note: str = "") -> None:
        super().__init__(bridge.commands, title, note)
        self._bridge = bridge

    def compose_body(self) -> ComposeResult:
        yield PlainText(classes="facts")
        with Vertical(classes="resource-body"):
            yield PlainText(Content.styled(self.WAITING, "$text-muted"))

    @property
    def body(self) -> Widget:
        return self.query_one(".resource-body")

    async def fill(self, view: Widget) -> None:
        """Show a widget in the place of what is shown, scrolled as that was."""
        at = self.body.children[0].scroll_offset.y
        await self.show(view)
        self.call_after_refresh(view.scroll_to, y=at, animate=False)


class DoctorScreen(FetchedScreen):
    """Runs ``gemdeck doctor`` beside the deck, and shows what it found."""

    WAITING = "Checking settings, key, network and servers…"
    BINDINGS = keymap.bindings("viewer.copy")

    def on_mount(self) -> None:
        self.run_worker(self._check())

    async def _check(self) -> None:
        self.text = sanitize(await run_command("doctor"))
        await self.fill(FoldedText(self.text))


def failed(words: str) -> Widget:
    """Say in the place of a text why it is not there."""
    return VerticalScroll(PlainText(Content.styled(block(words), "$text-error")))
