"""The content of a resource over the whole height, and what can be done with it."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget

from tui.model.catalog import ResourceContent
from tui.model.events import ResourceRead
from tui.model.input.mentions import typed_mention
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.panes import InsertText, SendResource
from tui.ui.widgets.text.blocks import BlockView, TextPage
from tui.ui.widgets.text.describe import resource_facts
from tui.ui.widgets.text.document import blocks_of, fits, kind_of
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.plain import PlainText, block, one_line

READING: Final = "Reading…"
"""Shown until the content is there."""


class ResourceScreen(Dialog):
    """Read a resource and show it as what it is.

    Args:
        bridge: Provides what was read.
        commands: Reads the resource.
        server: Its server.
        uri: Its address.
        name: Its name.
        opener: The widget that hears what the user wants to do with it.
    """

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(
        only=("insert.insert", "resources.send", "resources.watch", "viewer.copy", "viewer.close")
    )

    KIND = "viewer -whole"

    facts = query_one(".facts", PlainText)
    body = query_one(".resource-body", Vertical)

    def __init__(
        self,
        bridge: StoreBridge,
        commands: Commands,
        server: ServerId,
        uri: str,
        name: str,
        opener: Widget,
    ) -> None:
        super().__init__(name, one_line(server))
        self._bridge = bridge
        self._commands = commands
        self._server = server
        self._uri = uri
        self._opener = opener
        self._content: ResourceContent | None = None

    def compose_body(self) -> ComposeResult:
        yield PlainText(Content.styled(one_line(self._uri), "$text-muted"), classes="facts")
        with Vertical(classes="resource-body"):
            yield PlainText(Content.styled(READING, "$text-muted"))

    def on_mount(self) -> None:
        self._commands.engine.features.read_resource(self._server, self._uri)
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
        """Put what was read in the place of what is shown, and focus it to scroll it."""
        self._content = None if read.failure else read.content
        await self.body.remove_children()
        if read.failure:
            words = Content.styled(f"It cannot be read: {block(read.failure)}", "$text-error")
            await self.body.mount(VerticalScroll(PlainText(words)))
        else:
            self.facts.update(resource_facts(self._uri, read.content))
            await self.body.mount(_view(self._uri, read.content))
        self.body.children[0].focus()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Enable only the keys that have an effect now."""
        match action:
            case "copy":
                return self._content is not None and bool(self._content.text)
            case "watch":
                view = find_server(self._bridge.state, self._server)
                return view is not None and view.info is not None and view.info.subscriptions
            case _:
                return True

    def action_label(self, action: str) -> str | None:
        return "unwatch" if action == "watch" and self._is_watched else None

    @property
    def _is_watched(self) -> bool:
        return (self._server, self._uri) in self._bridge.state.subscriptions

    def action_insert(self) -> None:
        self.dismiss()
        self._opener.post_message(InsertText(typed_mention(self._uri, self._server)))

    def action_send(self) -> None:
        self.dismiss()
        self._opener.post_message(SendResource(self._server, self._uri))

    def action_watch(self) -> None:
        watched = self._is_watched
        self._commands.engine.features.subscribe(self._server, self._uri, subscribed=not watched)

    def action_copy(self) -> None:
        if self._content is not None:
            self.app.copy_to_clipboard(self._content.text)
            self.notify("Copied.", timeout=2)


def _view(uri: str, content: ResourceContent) -> Widget:
    """Return a widget that scrolls with the text of a resource."""
    if not fits(content.text):
        return FoldedText(content.text)
    return TextPage(BlockView(blocks_of(content.text, kind_of(content.mime_type, uri))))
