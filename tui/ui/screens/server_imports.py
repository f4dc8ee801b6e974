"""The servers of other clients, each in full; Enter takes the one under the cursor over."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.model.trust import ImportOffer, ImportState
from tui.ui.screens.dialog import Dialog
from tui.ui.widgets.key_bar import key_hints
from tui.ui.widgets.text.plain import PlainText, fit

NAME_WIDTH: Final = 24
CLIENT_WIDTH: Final = 16
"""Cells of the columns of names and clients."""

Take = Callable[[ImportOffer], ImportOffer]
"""Writes a server to the settings, in any thread, and says how it stands then."""


class ImportScreen(Dialog):
    """Offer servers of other clients; nothing is started before it stands in the settings.

    Args:
        offers: The servers; at least one.
        take: Writes one.
    """

    choices = query_one(OptionList)
    details = query_one(".import-details", PlainText)

    def __init__(self, offers: Sequence[ImportOffer], take: Take) -> None:
        super().__init__()
        self._offers = list(offers)
        self._take = take

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog imports") as frame:
            frame.border_title = "Servers of other clients"
            frame.border_subtitle = key_hints(("↵", "take over"), ("Esc", "close"))
            yield OptionList(*map(_option, self._offers), markup=False, compact=True)
            with VerticalScroll():
                yield PlainText(_details(self._offers[0]), classes="import-details")

    def on_mount(self) -> None:
        self.choices.highlighted = 0
        self.choices.focus()

    @on(OptionList.OptionHighlighted)
    def _show(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.details.update(_details(self._offers[event.option_index]))

    @on(OptionList.OptionSelected)
    async def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        number = event.option_index
        if self._offers[number].state is not ImportState.NEW:
            return
        from tui.engine.settings.edits import EditError  # noqa: PLC0415 - with the engine

        try:
            self._offers[number] = await asyncio.to_thread(self._take, self._offers[number])
        except EditError as error:
            self.notify(str(error), title="Settings", severity="error", markup=False)
            return
        self.choices.replace_option_prompt_at_index(number, _option(self._offers[number]).prompt)
        self.details.update(_details(self._offers[number]))


def _option(offer: ImportOffer) -> Option:
    columns = fit(offer.server, NAME_WIDTH), fit(offer.client, CLIENT_WIDTH)
    return Option(Content.assemble(*columns, (offer.state.value, "$text-muted")))


def _details(offer: ImportOffer) -> Content:
    return Content("\n").join(_lines(offer))


def _lines(offer: ImportOffer) -> Iterator[Content]:
    """Say everything that it would run or contact, the warnings first."""
    yield from (Content.styled(f"! {warning}", "$text-warning") for warning in offer.warnings)
    yield from map(Content, offer.notes)
    yield _field("from", offer.file)
    for number, word in enumerate(offer.command):
        yield _field("argument" if number else "command", word)
    for label, values in (
        ("address", [offer.address]),
        ("folder", [offer.cwd]),
        ("variable", offer.env),
        ("header", offer.headers),
    ):
        yield from (_field(label, value) for value in values if value)


def _field(label: str, value: str) -> Content:
    return Content.assemble((f"{label:<11}", "$text-muted"), value)
