"""What a server gave, over the whole height: a resource, and what can be done with it."""

from dataclasses import replace
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from tui.model.events import ResourceRead
from tui.model.input.mentions import typed_mention
from tui.store.commands import Commands
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.viewer import READING, FetchedScreen, failed
from tui.ui.messages import InsertText, SendResource, ShowResource
from tui.ui.widgets.text.blocks import TextPage
from tui.ui.widgets.text.describe import resource_facts
from tui.ui.widgets.text.document import blocks_of, fits, kind_of
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.picture import PictureView
from tui.ui.widgets.text.plain import one_line


class ResourceScreen(FetchedScreen):
    """Read a resource and show it as what it is, again when it changes while it is watched."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(
        *("insert.insert", "resources.send", "resources.watch", "fetched.reload"),
        *("fetched.save", "viewer.open", "viewer.copy", "viewer.close"),
    )

    def __init__(self, bridge: StoreBridge, commands: Commands, asked: ShowResource) -> None:
        super().__init__(bridge, commands, asked.name, one_line(asked.server))
        self._shown = ResourceRead(asked.server, asked.uri, failure=READING)

    def on_mount(self) -> None:
        self.facts.update(Content.styled(one_line(self._shown.uri), "$text-muted"))
        self.action_reload()
        self._bridge.watch(self, self._read, self._show)
        self._bridge.watch(self, lambda state: state.subscriptions, lambda _: self.show_keys())

    def _read(self, state: AppState) -> ResourceRead | None:
        """Select what was read last, if it is this resource."""
        read, shown = state.resource, self._shown
        is_it = read is not None and (read.server, read.uri) == (shown.server, shown.uri)
        return read if is_it else None

    def _show(self, read: ResourceRead | None) -> None:
        if read is not None:
            self.call_next(self._fill, read)

    async def _fill(self, read: ResourceRead) -> None:
        before, self._shown = self._shown, read
        self.text, self.pictures = read.content.text, read.pictures
        if read.failure:
            await self.fill(failed(f"It cannot be read: {read.failure}"))
            return
        self.facts.update(resource_facts(self._shown.uri, read.content, read.at))
        if replace(before, at=read.at) != read:
            await self.fill(self._view(read.content.mime_type))

    def _view(self, mime_type: str) -> Widget:
        """Return a widget that scrolls with the resource."""
        if not fits(self.text):
            return FoldedText(self.text)
        blocks = blocks_of(self.text, kind_of(mime_type, self._shown.uri)) if self.text else ()
        return TextPage(PictureView([*blocks, *self.pictures]))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "watch":
            view = find_server(self._bridge.state, self._shown.server)
            return view is not None and view.info is not None and view.info.subscriptions
        has_any = bool(self._shown.raw)
        return has_any if action == "save" else super().check_action(action, parameters)

    def action_label(self, action: str) -> str | None:
        return "unwatch" if action == "watch" and self._is_watched else None

    @property
    def _is_watched(self) -> bool:
        return (self._shown.server, self._shown.uri) in self._bridge.state.subscriptions

    def action_reload(self) -> None:
        self._commands.engine.features.read_resource(self._shown.server, self._shown.uri)

    def action_save(self) -> None:
        self._commands.engine.features.save_resource(self._shown)

    def action_insert(self) -> None:
        self.leave_for(InsertText(typed_mention(self._shown.uri, self._shown.server)))

    def action_send(self) -> None:
        self.leave_for(SendResource(self._shown.server, self._shown.uri))

    def action_watch(self) -> None:
        what = self._shown.server, self._shown.uri
        self._commands.engine.features.subscribe(*what, subscribed=not self._is_watched)
