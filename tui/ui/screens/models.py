"""The dialog that chooses one of the service's models."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one

from tui.model.answering.models import ModelOffer, ModelsListed
from tui.store.commands import Commands
from tui.ui.bridge import StoreBridge
from tui.ui.screens.dialog import Dialog
from tui.ui.widgets.key_bar import key_hints
from tui.ui.widgets.lists.filter_list import DialogFilterList, FilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.plain import PlainText, count, one_line


class _ModelList(DialogFilterList[ModelOffer]):
    """The models that match."""


class ModelsScreen(Dialog):
    """List the models of the service with their limits; the chosen one answers from then on.

    Those that were listed last are shown while the service is asked again.

    Args:
        bridge: Provides the models.
        commands: Asks for them, and uses the chosen one.
    """

    models = query_one(_ModelList)

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog pick") as frame:
            frame.border_title = Content("Models")
            frame.border_subtitle = key_hints(("↵", "choose"), ("Esc", "close"))
            yield PlainText("Asking the service…", classes="models-state")
            yield _ModelList("model", "")

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda state: state.models, self._show)
        self._commands.list_models()
        self.models.line.focus()

    def _show(self, listed: ModelsListed | None) -> None:
        if listed is None:
            return
        state = self.query_one(".models-state", PlainText)
        state.update(one_line(listed.failure))
        state.display = bool(listed.failure)
        current = self._bridge.state.model.name
        self.models.set_entries([_entry(model, current) for model in listed.models])

    @on(FilterList.Chosen)
    def _choose(self, event: FilterList.Chosen) -> None:
        event.stop()
        if (model := self.models.current) is not None:
            self._commands.use_model(model.name)
            self.dismiss()


def _entry(model: ModelOffer, current: str) -> ListEntry[ModelOffer]:
    facts = [f"context {count(model.context_limit)}"] if model.context_limit else []
    facts += [f"output {count(model.output_limit)}"] if model.output_limit else []
    lead = "●" if model.name == current else " "
    row = Row(lead, one_line(model.name), " · ".join(facts), note=one_line(model.title))
    return ListEntry(model, row, model.name.lower(), model.title.lower())
