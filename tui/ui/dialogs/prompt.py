"""A prompt as its server renders it, looked at before it is sent."""

from collections.abc import Iterator, Mapping
from itertools import count
from time import monotonic
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from tui.model.chat import Picture
from tui.model.input.mentions import as_text
from tui.model.runs import PromptRendered, RenderedMessage
from tui.store.commands import Commands
from tui.text import counted
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.resource import FetchedScreen
from tui.ui.panes import FillPrompt, InsertText, SendPrompt
from tui.ui.questions.arming import ARMING_SECONDS
from tui.ui.widgets.text.blocks import Block, IndentBlock, TextBlock, styled
from tui.ui.widgets.text.document import fits
from tui.ui.widgets.text.folded_text import FoldedText

BAR: Final = styled("│ ", ".entry-muted")
"""Stands before what a message says: no text looks like the name of a role."""

_numbers: Final = count()


class PromptScreen(FetchedScreen):
    """Show the messages of a prompt as they would be sent.

    Args:
        bridge: Provides them.
        commands: Let the server render the prompt.
        asked: The prompt.
        values: Its arguments.
        opener: The widget that hears what the user wants to do with it.
    """

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(
        only=(
            *("prompt.send", "insert.insert", "fetched.reload"),
            *("viewer.open", "viewer.copy"),
        )
    )

    def __init__(
        self,
        bridge: StoreBridge,
        commands: Commands,
        asked: FillPrompt,
        values: Mapping[str, str],
        opener: Widget,
    ) -> None:
        name = asked.prompt.name
        super().__init__(bridge, commands, asked.server, f"/{name}", "", opener)
        self._asked = asked
        self._values = values
        self._token = ""
        self._messages: tuple[RenderedMessage, ...] = ()
        self._shown_at = 0.0

    def on_mount(self) -> None:
        self.action_reload()
        self._bridge.watch(self, lambda state: state.rendered, self._show)

    def _show(self, rendered: PromptRendered | None) -> None:
        if rendered is not None and rendered.token == self._token:
            self.call_next(self._fill, rendered)

    async def _fill(self, rendered: PromptRendered) -> None:
        self._messages = rendered.messages
        self._text = _plain(rendered.messages)
        parts = [part for message in rendered.messages for part in message.parts]
        self._pictures = tuple(part for part in parts if isinstance(part, Picture))
        self._shown_at = monotonic()
        if rendered.failure:
            self.facts.update("")
            way = "Ask again, or go back to the arguments."
            await self.fail(f"The prompt was not rendered: {rendered.failure}", way)
            return
        facts = (
            counted(len(rendered.messages), "message"),
            counted(sum(len(part) for part in parts if isinstance(part, str)), "character"),
            counted(len(self._pictures), "picture") if self._pictures else "",
        )
        words = " · ".join(filter(None, facts))
        self.facts.update(Content.styled(f"{words}, as they are sent", "$text-muted"))
        view = self.page(_blocks(rendered.messages)) if fits(self._text) else None
        await self.fill(view or FoldedText(self._text))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        is_needed = action in {"send", "insert"}
        return bool(self._messages) if is_needed else super().check_action(action, parameters)

    def action_label(self, action: str) -> str | None:
        return "arguments" if action == "close" and self._asked.has_form else None

    def action_reload(self) -> None:
        self._token = f"prompt-{next(_numbers)}"
        features, asked = self._commands.engine.features, self._asked
        features.render_prompt(self._token, asked.server, asked.prompt.name, self._values)

    def action_send(self) -> None:
        """Send it, unless Enter was for what was there before."""
        if monotonic() >= self._shown_at + ARMING_SECONDS:
            self.dismiss()
            self._opener.post_message(SendPrompt(self._token))

    def action_insert(self) -> None:
        """Put its text into the message, where no name in it counts."""
        self.dismiss()
        self._opener.post_message(InsertText(as_text(self._text)))

    def action_close(self) -> None:
        """Go back to the form, if there was one."""
        self.dismiss()
        if self._asked.has_form:
            asked = self._asked
            form = FillPrompt(asked.server, asked.prompt, self._values, asked.typed)
            self._opener.post_message(form)


def _plain(messages: tuple[RenderedMessage, ...]) -> str:
    """Write messages as a text, with their roles if there are several."""
    texts = [
        "\n".join(part for part in message.parts if isinstance(part, str)) for message in messages
    ]
    if len(texts) == 1:
        return texts[0]
    named = zip(messages, texts, strict=True)
    return "\n\n".join(f"[{message.role}]\n{text}" for message, text in named)


def _blocks(messages: tuple[RenderedMessage, ...]) -> Iterator[Block | Picture]:
    """Lay messages out: the name of the role, and what is said behind a bar."""
    for message in messages:
        yield TextBlock(styled(message.role, ".entry-label"))
        for part in message.parts:
            if isinstance(part, Picture):
                yield part
            else:
                yield IndentBlock(BAR, BAR, [TextBlock(Content(part))], spaced=False)
