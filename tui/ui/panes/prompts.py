"""The prompts of all servers."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui.model.catalog import Catalog, PromptView
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.selectors import server as find_server
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.messages import InsertText, SendPrompt
from tui.ui.panes.browser import BrowserPane
from tui.ui.widgets.describe import describe_prompt
from tui.ui.widgets.filter_list import MAX_SEARCHED, ListEntry
from tui.ui.widgets.row_list import Row

OwnedPrompt = tuple[ServerId, PromptView]


class PromptsPane(BrowserPane[OwnedPrompt]):
    """Browses prompts; Enter asks for the arguments of one and sends it."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(
        keymap.Place.PROMPTS, keymap.Place.INSERT
    )
    NOUN = "prompt"
    EMPTY = "No prompts.\n\nServers that offer prompt templates list them here."

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__(bridge)
        self._commands = commands

    def list_entries(self, server: ServerId, catalog: Catalog) -> Iterable[ListEntry[OwnedPrompt]]:
        """List the prompts of a server."""
        for prompt in catalog.prompts:
            yield ListEntry(
                item=(server, prompt),
                row=Row(server, prompt.name),
                label=f"{server}:{prompt.name} {prompt.title}".lower(),
                text=prompt.description[:MAX_SEARCHED].lower(),
            )

    def describe(self, item: OwnedPrompt) -> Content:
        """Describe a prompt."""
        return describe_prompt(*item)

    def choose(self, item: OwnedPrompt) -> None:
        """Ask for the prompt's arguments, then send it; without any, show it first all the same."""
        from tui.ui.screens.arguments import ArgumentsScreen  # noqa: PLC0415 - on first use

        server, prompt = item
        view = find_server(self._bridge.state, server)
        completes = view is not None and view.info is not None and view.info.completions

        def ask(token: str, argument: str, value: str, context: Mapping[str, str]) -> None:
            self._commands.complete_argument(token, server, prompt.name, argument, value, context)

        screen = ArgumentsScreen(
            self._bridge,
            f"{server} · /{prompt.name}",
            describe_prompt(server, prompt, arguments=False),
            prompt.arguments,
            verb="send",
            complete=ask if completes else None,
        )
        self.app.push_screen(screen, partial(self._send, server, prompt.name))

    def action_insert(self) -> None:
        """Put the prompt's command into the message."""
        item = self.entries.current
        if item is not None:
            self.post_message(InsertText(f"/{item[1].name} "))

    def _send(self, server: ServerId, prompt: str, arguments: dict[str, str] | None) -> None:
        if arguments is not None:
            self.post_message(SendPrompt(server, prompt, arguments))
