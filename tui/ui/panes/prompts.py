"""The prompts pane: the prompts of all servers."""

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui.model.catalog import Catalog, PromptView
from tui.model.servers import ServerId
from tui.ui import keymap
from tui.ui.panes import FillPrompt, InsertText
from tui.ui.panes.browser import BrowserPane
from tui.ui.widgets.lists.filter_list import MAX_SEARCHED, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.describe import describe_prompt

OwnedPrompt = tuple[ServerId, PromptView]


class PromptsPane(BrowserPane[OwnedPrompt]):
    """Browse prompts; Enter asks for the arguments and sends the prompt."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(
        keymap.Place.PROMPTS, keymap.Place.INSERT
    )
    NOUN = "prompt"
    EMPTY = "The prompts of your servers appear here, to fill in; `F2` shows the servers."

    def list_entries(self, server: ServerId, catalog: Catalog) -> Iterable[ListEntry[OwnedPrompt]]:
        for prompt in catalog.prompts:
            yield ListEntry(
                item=(server, prompt),
                row=Row(
                    server,
                    prompt.name,
                    "not offered" if prompt.problem else "",
                    faint=bool(prompt.problem),
                    note=prompt.description[:MAX_SEARCHED],
                ),
                label=f"{server}:{prompt.name} {prompt.title}".lower(),
                text=prompt.description[:MAX_SEARCHED].lower(),
                group=server,
            )

    def describe(self, item: OwnedPrompt) -> Content:
        return describe_prompt(*item)

    def choose(self, item: OwnedPrompt) -> None:
        """Open the form for the prompt's arguments, even without any, then send the prompt."""
        server, prompt = item
        if prompt.problem:
            self.notify(f"The prompt cannot be sent: {prompt.problem}.", markup=False)
        else:
            self.post_message(FillPrompt(server, prompt))

    def action_insert(self) -> None:
        item = self.entries.current
        if item is not None and not item[1].problem:
            self.post_message(InsertText(f"/{item[1].name} "))
