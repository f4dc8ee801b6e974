"""What a server gave, over the whole height: a resource, and what can be done with it."""

from dataclasses import replace
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget

from tui.model.chat import Picture
from tui.model.events import ResourceRead
from tui.model.input.mentions import typed_mention
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.choices import use_picture
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.panes import InsertText, SendResource, ShowResource
from tui.ui.widgets.text.blocks import TextPage
from tui.ui.widgets.text.describe import resource_facts
from tui.ui.widgets.text.document import blocks_of, fits, kind_of
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.picture import PictureView
from tui.ui.widgets.text.plain import PlainText, block, one_line

READING: Final = "Reading…"
"""Shown until the content is there."""


class FetchedScreen(Dialog):
    """Shows what a server is asked for, once it is there.

    Args:
        bridge: Provides it.
        commands: Ask for it.
        opener: The widget that hears what the user wants to do with it.
        server: The server.
        title: What is asked for.
    """

    KIND = "viewer -whole"

    facts = query_one(".facts", PlainText)
    body = query_one(".resource-body", Vertical)

    def __init__(
        self, bridge: StoreBridge, commands: Commands, opener: Widget, server: ServerId, title: str
    ) -> None:
        super().__init__(title, one_line(server))
        self._bridge = bridge
        self._features = commands.engine.features
        self._opener = opener
        self._server = server
        self.text = ""
        self.pictures: tuple[Picture, ...] = ()

    def compose_body(self) -> ComposeResult:
        yield PlainText(classes="facts")
        with Vertical(classes="resource-body"):
            yield PlainText(Content.styled(READING, "$text-muted"))

    async def fill(self, view: Widget) -> None:
        """Put a widget in the place of what is shown, scrolled as that was, and focus it."""
        at = self.body.children[0].scroll_offset.y
        with self.app.batch_update():
            await self.body.remove_children()
            await self.body.mount(view)
        view.focus()
        self.call_after_refresh(view.scroll_to, y=at, animate=False)
        self.refresh_bindings()

    async def fail(self, words: str) -> None:
        """Say in its place why it is not there."""
        await self.fill(VerticalScroll(PlainText(Content.styled(block(words), "$text-error"))))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Enable only the keys that have an effect now."""
        return {"copy": bool(self.text), "use": bool(self.pictures)}.get(action, True)

    def action_use(self, _: str) -> None:
        use_picture(self.app, self.pictures, self._features.open_picture)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)
        self.notify("Copied.", timeout=2)


class ResourceScreen(FetchedScreen):
    """Read a resource and show it as what it is, again when it changes while it is watched."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(
        only=(
            *("insert.insert", "resources.send", "resources.watch", "fetched.reload"),
            *("fetched.save", "viewer.open", "viewer.copy", "viewer.close"),
        )
    )

    def __init__(
        self, bridge: StoreBridge, commands: Commands, opener: Widget, asked: ShowResource
    ) -> None:
        super().__init__(bridge, commands, opener, asked.server, asked.name)
        self._uri = asked.uri
        self._shown: ResourceRead | None = None

    def on_mount(self) -> None:
        self.facts.update(Content.styled(one_line(self._uri), "$text-muted"))
        self.action_reload()
        self._bridge.watch(self, self._read, self._show)
        self._bridge.watch(self, lambda state: state.subscriptions, lambda _: self.show_keys())

    def _read(self, state: AppState) -> ResourceRead | None:
        """Select what was read last, if it is this resource."""
        read = state.resource
        is_it = read is not None and (read.server, read.uri) == (self._server, self._uri)
        return read if is_it else None

    def _show(self, read: ResourceRead | None) -> None:
        if read is not None:
            self.call_next(self._fill, read)

    async def _fill(self, read: ResourceRead) -> None:
        before, self._shown = self._shown, read
        self.text, self.pictures = read.content.text, read.pictures
        if read.failure:
            await self.fail(f"It cannot be read: {read.failure}")
            return
        self.facts.update(resource_facts(self._uri, read.content, read.at))
        if before is None or replace(before, at=read.at) != read:
            await self.fill(self._view(read.content.mime_type))

    def _view(self, mime_type: str) -> Widget:
        """Return a widget that scrolls with the resource."""
        if not fits(self.text):
            return FoldedText(self.text)
        blocks = blocks_of(self.text, kind_of(mime_type, self._uri)) if self.text else ()
        return TextPage(PictureView([*blocks, *self.pictures]))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "watch":
                view = find_server(self._bridge.state, self._server)
                return view is not None and view.info is not None and view.info.subscriptions
            case "save":
                return self._shown is not None and bool(self._shown.raw)
            case _:
                return super().check_action(action, parameters)

    def action_label(self, action: str) -> str | None:
        return "unwatch" if action == "watch" and self._is_watched else None

    @property
    def _is_watched(self) -> bool:
        return (self._server, self._uri) in self._bridge.state.subscriptions

    def action_reload(self) -> None:
        self._features.read_resource(self._server, self._uri)

    def action_save(self) -> None:
        if self._shown is not None:
            self._features.save_resource(self._shown)

    def action_insert(self) -> None:
        self.dismiss()
        self._opener.post_message(InsertText(typed_mention(self._uri, self._server)))

    def action_send(self) -> None:
        self.dismiss()
        self._opener.post_message(SendResource(self._server, self._uri))

    def action_watch(self) -> None:
        self._features.subscribe(self._server, self._uri, subscribed=not self._is_watched)
