"""The servers of other clients, each in full; Enter takes the one under the cursor over."""

import asyncio
from collections.abc import Callable, Iterator, Sequence

from textual.content import Content

from tui.model.trust import ImportOffer, ImportState
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.widgets.lists.filter_list import DialogFilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row

Take = Callable[[ImportOffer], ImportOffer]
"""Writes a server to the settings, in any thread, and says how it stands then."""


class ImportScreen(ListDialog[ImportOffer]):
    """Offer servers of other clients; nothing is started before it stands in the settings.

    Args:
        offers: The servers; at least one.
        take: Writes one.
    """

    KIND = "choice imports"
    AUTO_FOCUS = "RowList"
    HINTS = (("↵", "take over"), ("Esc", "close"))

    def __init__(self, offers: Sequence[ImportOffer], take: Take) -> None:
        super().__init__(
            "Servers of other clients", DialogFilterList("server", entries=[*map(_entry, offers)])
        )
        self._offers = list(offers)
        self._take = take

    async def choose(self, item: ImportOffer) -> None:
        """Take the server over."""
        if item.state is not ImportState.NEW:
            return
        from tui.engine.settings.edits import EditError  # noqa: PLC0415 - with the engine

        try:
            taken = await asyncio.to_thread(self._take, item)
        except EditError as error:
            self.notify(str(error), title="Settings", severity="error", markup=False)
            return
        self._offers[self._offers.index(item)] = taken
        self.listed.set_entries([*map(_entry, self._offers)])

    def moved(self, item: ImportOffer | None) -> None:
        self.tell(None if item is None else Content("\n").join(_lines(item)))


def _entry(offer: ImportOffer) -> ListEntry[ImportOffer]:
    row = Row("", offer.server, offer.state.value, note=offer.client)
    return ListEntry(offer, row, f"{offer.server} {offer.file}")


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
