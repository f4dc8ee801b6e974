"""The prompts of all servers."""

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui.model.catalog import Catalog, PromptView
from tui.model.servers import ServerId
from tui.ui import keymap
from tui.ui.messages import InsertText
from tui.ui.panes.browser import BrowserPane
from tui.ui.widgets.describe import describe_prompt
from tui.ui.widgets.filter_list import MAX_SEARCHED, ListEntry
from tui.ui.widgets.row_list import Row

OwnedPrompt = tuple[ServerId, PromptView]


class PromptsPane(BrowserPane[OwnedPrompt]):
    """Browses prompts; Enter puts one into the message."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.INSERT)
    NOUN = "prompts"
    EMPTY = "No prompts.\n\nServers that offer prompt templates list them here."

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
        """Put the prompt's command into the message."""
        self.post_message(InsertText(f"/{item[1].name} "))
