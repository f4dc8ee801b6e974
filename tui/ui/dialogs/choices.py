"""The dialogs that choose: a model, a theme, a log level, a text, servers to import."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from textual.app import App
from textual.content import Content

from tui.model.imports import ImportOffer, ImportState
from tui.model.servers import ServerId
from tui.ui import themes
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import ChoiceDialog, ListDialog
from tui.ui.widgets.lists.filter_list import DialogFilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.plain import one_line

T = TypeVar("T")

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of RFC 5424 as MCP spells them, most verbose first."""

MAX_SHOWN: Final = 300
"""Characters of a text that its row shows."""

MAX_SEARCHED: Final = 2_000
"""Characters of a text that are searched."""

Take = Callable[[ImportOffer], ImportOffer]
"""Writes a server to the settings, in any thread, and says how it stands then."""


class ThemeScreen(ChoiceDialog[str]):
    """Offer gemdeck's themes, then Textual's; the one under the cursor is shown at once.

    Args:
        choose: Changes the theme for good.
    """

    def __init__(self, choose: Callable[[str], None]) -> None:
        app: Any = self.app
        self._before, names = app.theme, themes.in_order(app.available_themes)
        self._chosen = themes.AUTO if app.follows_terminal else self._before
        super().__init__("Theme", [*map(self._entry, names)], choose, self._chosen)

    def moved(self, item: str | None) -> None:
        self.app.theme = item if item in self.app.available_themes else self._before

    def action_close(self) -> None:
        """Bring back the theme from before."""
        self.app.theme = self._before
        self.dismiss()

    def _entry(self, name: str) -> ListEntry[str]:
        kind = "dark or light as the terminal is"
        if name != themes.AUTO:
            theme = self.app.available_themes[name]
            kind = "16 colors" if theme.ansi else "dark" if theme.dark else "light"
        note = f"{kind} · current" if name == self._chosen else kind
        return ListEntry(name, Row("", name, note=note), name)


def log_levels(bridge: StoreBridge, server: ServerId) -> ChoiceDialog[str]:
    """Return the dialog that sets a server's log level."""
    now = bridge.state.log_levels.get(server, "")
    entries = [
        ListEntry(level, Row("", f"{level}  (current)" if level == now else level), level)
        for level in LEVELS
    ]

    use = partial(bridge.commands.engine.features.set_log_level, server)
    return ChoiceDialog(f"Log level of {server}", entries, use, now if now in LEVELS else "info")


def pick(
    title: str, noun: str, offered: Iterable[tuple[str, T]], use: Callable[[T], object]
) -> ListDialog[T]:
    """Return the dialog that picks one of several texts, narrowed by what is typed.

    Args:
        title: What is picked.
        noun: The word for one text.
        offered: The texts and what they stand for, the likeliest first.
        use: What is done with what the picked one stands for.
    """
    entries = [
        ListEntry(item, Row("", one_line(text[:MAX_SHOWN])), text[:MAX_SEARCHED].lower())
        for text, item in offered
    ]
    return ListDialog(title, DialogFilterList(noun, entries=entries), use)


def use_one(
    app: App[Any],
    title: str,
    noun: str,
    offered: Sequence[tuple[str, T]],
    use: Callable[[T], object],
) -> None:
    """Use the only one that is offered, or the one that is picked, as of `pick`."""
    if len(offered) == 1:
        use(offered[0][1])
    else:
        app.push_screen(pick(title, noun, offered, use))


class ImportScreen(ListDialog[ImportOffer]):
    """Offer servers of other clients; nothing is started before it stands in the settings.

    Args:
        offers: The servers; at least one.
        take: Writes one.
    """

    KIND = "large imports"
    AUTO_FOCUS = "RowList"
    enter = "import"

    def __init__(self, offers: Sequence[ImportOffer], take: Take) -> None:
        listed = DialogFilterList("server", entries=[*map(_entry, offers)])
        super().__init__("Import servers from other clients", listed)
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
        self.tell(None if item is None else Content("\n").join(offer_lines(item)))


def _entry(offer: ImportOffer) -> ListEntry[ImportOffer]:
    row = Row("", offer.server, offer.state.value, note=offer.client)
    return ListEntry(offer, row, f"{offer.server} {offer.file}")


def offer_lines(offer: ImportOffer) -> Iterator[Content]:
    """Say everything that it would run or contact, the warnings first."""
    yield from (Content.styled(f"! {warning}", "$text-warning") for warning in offer.warnings)
    yield from map(Content, offer.notes)
    if offer.file:
        yield _field("from", offer.file)
    for number, word in enumerate(offer.command):
        yield _field("argument" if number else "command", word)
    for label, values in (
        ("address", [offer.address]),
        ("directory", [offer.cwd]),
        ("variable", offer.env),
        ("header", offer.headers),
    ):
        yield from (_field(label, value) for value in values if value)


def _field(label: str, value: str) -> Content:
    return Content.assemble((f"{label:<11}", "$text-muted"), value)
