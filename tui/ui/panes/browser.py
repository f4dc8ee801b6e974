"""The base of the tools, prompts and resources panes: a filtered list above the details."""

from abc import abstractmethod
from collections.abc import Iterable
from itertools import chain
from typing import ClassVar, Final, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.getters import query_one

from tui.model.catalog import Catalog
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.text import counted
from tui.ui.bridge import StoreBridge
from tui.ui.panes.side import SidePart
from tui.ui.widgets.lists.filter_list import FilterList, ListEntry
from tui.ui.widgets.text.plain import PlainText, one_line

T = TypeVar("T")

ENTRY_ACTIONS: Final = frozenset({"choose", "schema", "insert"})
"""Actions that need an entry."""

Catalogs = tuple[tuple[ServerId, Catalog], ...]


def catalogs(state: AppState) -> Catalogs:
    """Select the catalog of every server."""
    return tuple((view.id, view.catalog) for view in state.servers)


class BrowserPane(SidePart, Generic[T]):
    """List one kind of offer of all servers."""

    NOUN: ClassVar[str]
    EMPTY: ClassVar[str]

    entries = query_one(FilterList)
    scroller = query_one(".details", VerticalScroll)
    details = query_one(".details > PlainText", PlainText)

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._catalogs: Catalogs = ()
        self._built: dict[ServerId, tuple[Catalog, list[ListEntry[T]]]] = {}
        self._stale = True

    @abstractmethod
    def list_entries(self, server: ServerId, catalog: Catalog) -> Iterable[ListEntry[T]]:
        """List this pane's kind of offer of one server."""

    @abstractmethod
    def describe(self, item: T) -> Content:
        """Describe an entry for the details below the list."""

    @abstractmethod
    def choose(self, item: T) -> None:
        """Act on an entry; called for Enter and double clicks."""

    def compose(self) -> ComposeResult:
        yield FilterList[T](self.NOUN, self.EMPTY)
        with VerticalScroll(classes="details"):
            yield PlainText()

    def on_mount(self) -> None:
        self._bridge.watch(self, catalogs, self._on_catalogs)

    def focus_main(self) -> None:
        self.entries.focus_list()

    def narrow_to(self, server: ServerId) -> None:
        self.entries.set_filter(f"{server}:".lower())

    def wake(self) -> None:
        if self._stale:
            self._refill()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Enable what is done with an entry only while there is one."""
        is_empty = not self.is_mounted or not self.entries.rows.rows
        return not (is_empty and action in ENTRY_ACTIONS)

    def action_choose(self) -> None:
        """Choose the entry under the cursor, or fold or unfold the server."""
        item = self.entries.current
        if item is not None:
            self.choose(item)
        else:
            self.entries.action_toggle_fold()

    def show_details(self) -> None:
        """Describe the entry under the cursor, or say how many its server has."""
        item, group = self.entries.current, self.entries.group
        self.set_class(item is None and group is None, "-nothing")
        if item is not None:
            self.details.update(self.describe(item))
        elif group is not None:
            number = counted(group.count, self.NOUN)
            self.details.update(Content.assemble((one_line(group.label), "bold"), f"\n{number}"))

    def _on_catalogs(self, value: Catalogs) -> None:
        self._catalogs = value
        self._stale = True
        if self.awake:
            self._refill()

    def _refill(self) -> None:
        """List all offers, reusing the entries of servers whose catalog has not changed."""
        self._stale = False
        before, self._built = self._built, {}
        for server, catalog in self._catalogs:
            kept = before.get(server)
            if kept is None or kept[0] is not catalog:
                kept = catalog, list(self.list_entries(server, catalog))
            self._built[server] = kept
        self.entries.set_entries(list(chain.from_iterable(e for _, e in self._built.values())))

    @on(FilterList.Moved)
    def _on_moved(self, event: FilterList.Moved) -> None:
        event.stop()
        self.scroller.scroll_home(animate=False)
        self.show_details()

    @on(FilterList.Chosen)
    def _on_chosen(self, event: FilterList.Chosen) -> None:
        event.stop()
        self.action_choose()
