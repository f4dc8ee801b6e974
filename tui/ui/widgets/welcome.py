"""What stands in an empty conversation: what to try, and the keys."""

from typing import Final

from textual.content import Content
from textual.widgets import Static

from tui.model.chat import BackendKind, ModelView

_EXAMPLES: Final = {
    BackendKind.DEMO: ("add a note: buy milk", "list my notes"),
}
_DEFAULT_EXAMPLES: Final = ("what can your tools do?", "list the open branches")

_KEYS: Final = (
    ("↵", "sends"),
    ("Ctrl+J", "begins a new line"),
    ("/  @", "complete prompts and resources, with Tab"),
    ("↑", "brings back what you sent before"),
    ("Esc", "stops the answer"),
    ("F1", "shows all keys"),
)


class Welcome(Static):
    """A few words for the first moment."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__("", markup=False, id=id)

    def show(self, model: ModelView) -> None:
        """Say what to try with this model."""
        examples = _EXAMPLES.get(model.backend, _DEFAULT_EXAMPLES)
        lines = [
            Content.styled("What would you like to do?", "bold"),
            Content(""),
            Content.styled("Try", "$foreground 60%"),
            *(Content.assemble("  ", (example, "$text-primary")) for example in examples),
            Content(""),
            Content.styled("Keys", "$foreground 60%"),
            *(Content.assemble(f"  {key:<8}", (words, "$foreground 60%")) for key, words in _KEYS),
        ]
        self.update(Content("\n").join(lines))
