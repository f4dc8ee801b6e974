"""The popup above the composer that offers completions."""

from typing import ClassVar

from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.text import clip
from tui.ui.widgets.completion import Completion, CompletionList

MAX_LABEL = 100
"""Characters of a completion that are shown."""


class CompletionPopup(OptionList, can_focus=False):
    """At most ten completions. It never takes focus; the composer hands it its keys."""

    ALLOW_SELECT: ClassVar[bool] = False

    class Chosen(Message):
        """The user took a completion."""

        def __init__(self, start: int, completion: Completion) -> None:
            super().__init__()
            self.start = start
            self.completion = completion

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, markup=False, compact=True)
        self._offered: CompletionList | None = None
        self.display = False

    @property
    def is_open(self) -> bool:
        """Whether something is offered."""
        return self._offered is not None

    def offer(self, offered: CompletionList | None) -> None:
        """Offer these completions, or none."""
        if offered == self._offered:
            return
        self._offered = offered
        self.display = offered is not None
        if offered is not None:
            self.set_options(
                Option(
                    Content.assemble(
                        clip(completion.label, MAX_LABEL),
                        "  ",
                        (clip(completion.detail, MAX_LABEL), "$foreground 60%"),
                    )
                )
                for completion in offered.completions
            )
            self.highlighted = 0

    def move(self, step: int) -> None:
        """Move the highlight, around the ends."""
        if self._offered is not None:
            count = len(self._offered.completions)
            self.highlighted = ((self.highlighted or 0) + step) % count

    def choose(self) -> None:
        """Take the highlighted completion."""
        self._choose(self.highlighted or 0)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the clicked completion."""
        event.stop()
        self._choose(event.option_index)

    def _choose(self, index: int) -> None:
        if self._offered is not None:
            offered, completion = self._offered, self._offered.completions[index]
            self.offer(None)
            self.post_message(self.Chosen(offered.start, completion))
