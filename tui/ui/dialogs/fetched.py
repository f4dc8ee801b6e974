"""What a server gives over the whole height: a resource, and a prompt before it is sent."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import Final

from textual.content import Content
from textual.widget import Widget

from tui.model.chat import Picture
from tui.model.events import ResourceRead
from tui.model.input.mentions import as_text, typed_mention
from tui.model.runs import PromptRendered, RenderedMessage
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.text import counted
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.viewer import READING, FetchedScreen, failed
from tui.ui.messages import FillPrompt, InsertText, SendResource, ShowResource, ShowSent
from tui.ui.questions.arming import ARMING_SECONDS
from tui.ui.widgets.text.blocks import Block, IndentBlock, TextBlock, TextPage, styled
from tui.ui.widgets.text.describe import resource_facts
from tui.ui.widgets.text.document import blocks_of, fits, kind_of
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.picture import PictureView
from tui.ui.widgets.text.plain import one_line

BAR: Final = styled("│ ", ".entry-muted")
"""Stands before what a message says: no text looks like the name of a role."""


class ResourceScreen(FetchedScreen):
    """Read a resource and show it as what it is, again when it changes while it is watched."""

    BINDINGS = keymap.bindings(
        *("insert.insert", "resources.send", "resources.watch", "fetched.reload"),
        *("fetched.save", "viewer.open", "viewer.copy", "viewer.close"),
    )

    def __init__(self, bridge: StoreBridge, asked: ShowResource) -> None:
        super().__init__(bridge, asked.name, one_line(asked.server))
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
            await self.fill(failed(f"The resource could not be read: {read.failure}"))
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


class PromptScreen(FetchedScreen):
    """Show the messages of a prompt as they would be sent; `asked` has its arguments."""

    BINDINGS = keymap.bindings(
        "prompt.send", "insert.insert", "fetched.reload", "viewer.open", "viewer.copy"
    )

    def __init__(self, bridge: StoreBridge, asked: FillPrompt) -> None:
        super().__init__(bridge, f"/{asked.prompt.name}", one_line(asked.server))
        self._asked = asked

    def on_mount(self) -> None:
        self.action_reload()
        self._bridge.watch(self, lambda state: state.rendered, self._show)

    def _show(self, rendered: PromptRendered | None) -> None:
        if rendered is not None and rendered.token == self._token:
            self.call_next(self._fill, rendered)

    async def _fill(self, rendered: PromptRendered) -> None:
        messages, self._shown_at = rendered.messages, monotonic()
        self.text = _plain(messages)
        self.pictures = tuple(p for one in messages for p in one.parts if isinstance(p, Picture))
        words = f"{counted(len(messages), 'message')}, as sent to the model" if messages else ""
        self.facts.update(styled(words, "$text-muted"))
        if rendered.failure:
            words = f"The prompt could not be rendered: {rendered.failure}\nReload, or go back."
            await self.fill(failed(words))
            return
        page = TextPage(PictureView(list(_blocks(messages)))) if fits(self.text) else None
        await self.fill(page or FoldedText(self.text))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        has_any = bool(self.text or self.pictures)
        return has_any if action in {"send", "insert"} else super().check_action(action, parameters)

    def action_label(self, action: str) -> str | None:
        return "arguments" if action == "close" and self._asked.prompt.arguments else None

    def action_reload(self) -> None:
        asked, self._token = self._asked, f"{id(self)}-{monotonic()}"
        features = self._commands.engine.features
        features.render_prompt(self._token, asked.server, asked.prompt.name, asked.values)

    def action_send(self) -> None:
        """Send it, unless Enter was for what was there before."""
        if monotonic() >= self._shown_at + ARMING_SECONDS:
            self._commands.engine.messages.send_rendered(self._token)
            self.leave_for(ShowSent())

    def action_insert(self) -> None:
        """Put its text into the message, where no name in it counts."""
        self.leave_for(InsertText(as_text(self.text)))

    def action_close(self) -> None:
        """Go back to the form, if there was one."""
        if self._asked.prompt.arguments:
            self.leave_for(self._asked)
        else:
            self.dismiss()


def _plain(messages: Sequence[RenderedMessage]) -> str:
    """Write messages as a text, with their roles if there are several."""
    texts = ["\n".join(part for part in one.parts if isinstance(part, str)) for one in messages]
    named = (f"[{one.role}]\n{text}" for one, text in zip(messages, texts, strict=True))
    return "\n\n".join(named if len(texts) > 1 else texts)


def _blocks(messages: Sequence[RenderedMessage]) -> Iterator[Block | Picture]:
    """Lay messages out: the name of the role, and what is said behind a bar."""
    for message in messages:
        yield TextBlock(styled(message.role, ".md-h2"))
        for part in message.parts:
            if isinstance(part, Picture):
                yield part
            else:
                yield IndentBlock(BAR, BAR, [TextBlock(Content(part))], spaced=False)
