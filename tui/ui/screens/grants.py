"""The rules on tools: what may run, where each comes from, and the way to take it back."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.timer import Timer
from textual.types import CSSPathType

from tui.model.consent import GrantView
from tui.model.trust import FolderTrust
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.screens.details import DetailsScreen
from tui.ui.screens.dialog import DIALOG_STYLES, Dialog
from tui.ui.screens.disclosure import CONSENT_STYLES
from tui.ui.screens.second_press import REPEAT_SECONDS, SecondPress
from tui.ui.widgets.describe import describe_grant, moment
from tui.ui.widgets.filter_list import FilterList, ListEntry
from tui.ui.widgets.header import trust_tone
from tui.ui.widgets.plain import PlainText, fit, one_line
from tui.ui.widgets.row_list import Row, RowList

EMPTY: Final = """\
No rules yet: every tool asks before it runs.

Answer a question with "always" to make one, or name tools
in ~/.gemini/settings.json, under "gemdeck": "alwaysAllow"
and "alwaysDeny"."""

WIDE: Final = 96
"""Cells from which the list has all columns."""

SLIM: Final = 56
"""Cells below which it has no more than the names."""

EFFECT_WIDTH: Final = 5
"""Cells of the effect, in a column of its own."""

SCOPE_WIDTH: Final = 21
"""Cells of the scope."""

ORIGIN_WIDTH: Final = 17
"""Cells of where a rule comes from."""

DATE_WIDTH: Final = 10
"""Cells of a date."""

GAP: Final = 2
"""Cells between two columns."""

HEADINGS: Final = ("server", "tool", "how far", "from", "given", "last used")


def grants_view(state: AppState) -> tuple[GrantView, ...]:
    """Take the rules from the state."""
    return state.grants


def folder_view(state: AppState) -> tuple[str, FolderTrust]:
    """Take from the state what is said of the folder."""
    return state.workspace, state.folder_trust


def column_widths(width: int) -> tuple[int, ...]:
    """Give the widths of the columns behind the effect, which may be fewer than `HEADINGS`."""
    fixed: tuple[int, ...] = ()
    if width >= WIDE:
        fixed = (SCOPE_WIDTH, ORIGIN_WIDTH, DATE_WIDTH, DATE_WIDTH)
    elif width >= SLIM:
        fixed = (SCOPE_WIDTH,)
    room = max(2, width - EFFECT_WIDTH - GAP - sum(fixed) - GAP * (len(fixed) + 1))
    server = room * 2 // 5
    return server, room - server, *fixed


def columns(texts: tuple[str, ...], widths: tuple[int, ...]) -> str:
    """Write texts into columns; those for which there is no column are left out."""
    return (" " * GAP).join(
        fit(one_line(text), width) for text, width in zip(texts, widths, strict=False)
    )


class GrantList(FilterList[GrantView]):
    """The rules, under the headings of their columns."""

    headings = query_one(".grants-columns", PlainText)

    def __init__(self) -> None:
        super().__init__("rule", EMPTY)

    def compose(self) -> ComposeResult:
        """Compose the list with the headings over its rows."""
        for widget in super().compose():
            if isinstance(widget, RowList):
                yield PlainText(classes="grants-columns")
            yield widget

    def fill(self, grants: Sequence[GrantView]) -> None:
        """List rules, in columns as wide as there is room for."""
        widths = column_widths(self.rows.scrollable_content_region.width)
        self.headings.update(Content("rule".ljust(EFFECT_WIDTH + GAP) + columns(HEADINGS, widths)))
        self.set_entries([_entry(grant, widths) for grant in grants])


class GrantsScreen(Dialog):
    """Lists the rules on tools and what is said of the folder.

    Args:
        bridge: Where both come from.
        commands: Where a rule, or the folder's trust, is taken back.
        clock: Gives seconds, for keys that have to be pressed twice.
    """

    BINDING_GROUP_TITLE = "Grants"
    CSS_PATH: ClassVar[CSSPathType | None] = [DIALOG_STYLES, CONSENT_STYLES]
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.GRANTS)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012 - as the base

    grants = query_one(GrantList)
    details = query_one(".grant-details", PlainText)
    hint = query_one(".grants-hint", PlainText)

    def __init__(
        self, bridge: StoreBridge, commands: Commands, *, clock: Callable[[], float] = monotonic
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._views: tuple[GrantView, ...] = ()
        self._second: SecondPress[str] = SecondPress(clock)
        self._silence: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out the folder, the list, what is under its cursor and the keys."""
        with Vertical(classes="dialog grants") as frame:
            frame.border_title = Content("Grants: what may run")
            yield PlainText(classes="grants-folder")
            yield GrantList()
            yield PlainText(classes="grant-details")
            yield PlainText(classes="grants-hint")

    def on_mount(self) -> None:
        """Follow the rules and the folder."""
        self._bridge.watch(self, folder_view, self._show_folder)
        self._bridge.watch(self, grants_view, self._show_grants)
        self.grants.focus_list()
        self.call_after_refresh(self._show_hint)

    def on_resize(self) -> None:
        """Fit the columns to the width."""
        self.call_after_refresh(self._fill)

    @property
    def current(self) -> GrantView | None:
        """The rule under the cursor."""
        return self.grants.current

    def action_choose(self) -> None:
        """Show all of the rule under the cursor."""
        if self.current is not None:
            self.app.push_screen(DetailsScreen("Rule", describe_grant(self.current)))

    def action_revoke(self) -> None:
        """Take the rule under the cursor back, once the key was pressed again."""
        grant = self.current
        if grant is None:
            return
        if not grant.revocable:
            self._say(f"This rule stands in {grant.origin}: change it there.")
        elif self._is_again(f"grant {grant.id}"):
            self._commands.revoke_grant(grant.id)
            self._say("Taken back: its tools ask again.")
        else:
            key = self._key("grants.revoke")
            name = f"{grant.server} {grant.tool}"
            self._say(f"Press {key} again to take back: {grant.effect} {name}, {grant.scope}")

    def action_review_folder(self) -> None:
        """Ask anew about the folder."""
        self._commands.review_folder()

    def action_forget_folder(self) -> None:
        """Take back what was said of the folder, once the key was pressed again."""
        if self._bridge.state.folder_trust is FolderTrust.NOTHING_TO_TRUST:
            self._say("This folder brings no settings of its own: there is nothing to forget.")
        elif self._is_again("folder"):
            self._commands.forget_folder()
            self._say("Forgotten: what the folder brings does not run until you trust it again.")
        else:
            self._say(f"Press {self._key('grants.forget')} again to forget this folder.")

    @on(FilterList.Moved)
    def _on_moved(self, event: FilterList.Moved) -> None:
        event.stop()
        grant = self.current
        self.details.update(Content() if grant is None else describe_grant(grant))
        self.set_class(grant is None, "-nothing")

    @on(FilterList.Chosen)
    def _on_chosen(self, event: FilterList.Chosen) -> None:
        event.stop()
        self.action_choose()

    def _show_folder(self, view: tuple[str, FolderTrust]) -> None:
        workspace, trust = view
        word = trust.value or "not asked about yet"
        self.query_one(".grants-folder", PlainText).update(
            Content.assemble(
                ("folder  ", "$foreground 60%"),
                one_line(workspace),
                "  ",
                (word, trust_tone(trust)),
            )
        )

    def _show_grants(self, grants: tuple[GrantView, ...]) -> None:
        self._views = grants
        self._fill()

    def _fill(self) -> None:
        self.grants.fill(self._views)

    def _is_again(self, what: str) -> bool:
        """Tell whether a key was pressed again for the same; if not, wait for that."""
        again = self._second.take(what)
        if not again:
            self._second.expect(what)
        return again

    def _say(self, words: str) -> None:
        self.hint.update(Content.styled(one_line(words), "$text-warning"))
        if self._silence is not None:
            self._silence.stop()
        self._silence = self.set_timer(REPEAT_SECONDS, self._show_hint)

    def _show_hint(self) -> None:
        keys = (
            f"{self._key('grants.revoke')} take back",
            f"{self._key('grants.details')} details",
            f"{self._key('list.filter')} filter",
            f"{self._key('grants.folder')} review",
            f"{self._key('grants.forget')} forget folder",
            f"{self._key('dialog.close')} close",
        )
        self.hint.update(Content.styled("  ".join(keys), "$foreground 60%"))

    def _key(self, binding_id: str) -> str:
        """Write the key of an action as it is mapped now."""
        bindings = (active.binding for active in self.active_bindings.values())
        return next((self.app.get_key_display(one) for one in bindings if one.id == binding_id), "")


def _entry(grant: GrantView, widths: tuple[int, ...]) -> ListEntry[GrantView]:
    texts = (
        grant.server,
        grant.tool,
        grant.scope,
        grant.origin,
        moment(grant.granted_at, "%Y-%m-%d", ""),
        moment(grant.used_at, "%Y-%m-%d", "never"),
    )
    return ListEntry(
        item=grant,
        row=Row(grant.effect.value.ljust(EFFECT_WIDTH), columns(texts, widths)),
        label=f"{grant.server}:{grant.tool} {grant.effect} {grant.scope}".lower(),
        text=grant.origin.lower(),
    )
