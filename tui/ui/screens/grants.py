"""The grants screen: the rules for tools and the trust in the folder, both revocable."""

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

from tui.model.consent import GrantView
from tui.model.trust import FolderTrust
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.questions.arming import REPEAT_SECONDS, SecondPress
from tui.ui.screens.details import DetailsScreen
from tui.ui.screens.dialog import Dialog
from tui.ui.widgets.header import trust_tone
from tui.ui.widgets.key_bar import HintLine, key_hints
from tui.ui.widgets.lists.filter_list import FilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row, RowList
from tui.ui.widgets.text.describe import describe_grant, moment
from tui.ui.widgets.text.plain import PlainText, fit, one_line

EMPTY: Final = """\
No rules yet: every tool asks before it runs.

Answer a question with "always" to make one, or name tools
in ~/.gemini/settings.json, under "gemdeck": "alwaysAllow"
and "alwaysDeny"."""

WIDE: Final = 96
"""Width in cells from which the list has all columns."""

SLIM: Final = 56
"""Width in cells below which the list has only the names."""

EFFECT_WIDTH: Final = 5
SCOPE_WIDTH: Final = 21
ORIGIN_WIDTH: Final = 17
DATE_WIDTH: Final = 10
GAP: Final = 2
"""Widths of the columns, and of the gap between two, in cells."""

HEADINGS: Final = ("server", "tool", "scope", "source", "created", "last used")


def column_widths(width: int) -> tuple[int, ...]:
    """Return the widths of the columns after the effect, possibly fewer than `HEADINGS`."""
    fixed: tuple[int, ...] = ()
    if width >= WIDE:
        fixed = (SCOPE_WIDTH, ORIGIN_WIDTH, DATE_WIDTH, DATE_WIDTH)
    elif width >= SLIM:
        fixed = (SCOPE_WIDTH,)
    room = max(2, width - EFFECT_WIDTH - GAP - sum(fixed) - GAP * (len(fixed) + 1))
    server = room * 2 // 5
    return server, room - server, *fixed


def columns(texts: tuple[str, ...], widths: tuple[int, ...]) -> str:
    """Lay texts out in columns, leaving out those without a column."""
    return (" " * GAP).join(
        fit(one_line(text), width) for text, width in zip(texts, widths, strict=False)
    )


class GrantList(FilterList[GrantView]):
    """The rules below their column headings."""

    headings = query_one(".grants-columns", PlainText)

    def __init__(self) -> None:
        super().__init__("rule", EMPTY)
        self._grants: Sequence[GrantView] = ()

    def compose(self) -> ComposeResult:
        for widget in super().compose():
            if isinstance(widget, RowList):
                yield PlainText(classes="grants-columns")
            yield widget

    def show(self, grants: Sequence[GrantView]) -> None:
        self._grants = grants
        self.lay_out()

    def lay_out(self) -> None:
        """List the rules in columns that fit the width."""
        widths = column_widths(self.rows.room)
        self.headings.update(Content("rule".ljust(EFFECT_WIDTH + GAP) + columns(HEADINGS, widths)))
        self.set_entries([_entry(grant, widths) for grant in self._grants])


class GrantsScreen(Dialog):
    """List the rules for tools and show whether the folder is trusted.

    Args:
        bridge: Provides the state.
        commands: Revokes a rule or the trust in the folder.
        clock: Time in seconds, for keys that must be pressed twice.
    """

    BINDING_GROUP_TITLE = "Grants"
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.GRANTS)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012 - as the base

    grants = query_one(GrantList)
    details = query_one(".grant-details", PlainText)
    hint = query_one(".grants-hint", HintLine)

    def __init__(
        self, bridge: StoreBridge, commands: Commands, *, clock: Callable[[], float] = monotonic
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._second: SecondPress[str] = SecondPress(clock)
        self._message_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog grants") as frame:
            frame.border_title = Content("Grants: rules for tools")
            yield PlainText(classes="grants-folder")
            yield GrantList()
            yield PlainText(classes="grant-details")
            yield HintLine(classes="grants-hint")

    def on_mount(self) -> None:
        self._bridge.watch(
            self, lambda state: (state.workspace, state.folder_trust), self._show_folder
        )
        self._bridge.watch(self, lambda state: state.grants, self.grants.show)
        self.grants.focus_list()
        self.call_after_refresh(self._show_hint)

    def on_resize(self) -> None:
        self.call_after_refresh(self.grants.lay_out)

    def action_choose(self) -> None:
        grant = self.grants.current
        if grant is not None:
            self.app.push_screen(DetailsScreen("Rule", describe_grant(grant)))

    def action_revoke(self) -> None:
        """Revoke the rule under the cursor on the second press."""
        grant = self.grants.current
        if grant is None:
            return
        if not grant.revocable:
            self._show_message(f"This rule comes from {grant.origin}: change it there.")
        elif self._is_again(f"grant {grant.id}"):
            self._commands.revoke_grant(grant.id)
            self._show_message("Revoked: its tools ask again.")
        else:
            key = self._key("grants.revoke")
            name = f"{grant.server} {grant.tool}"
            self._show_message(f"Press {key} again to revoke: {grant.effect} {name}, {grant.scope}")

    def action_review_folder(self) -> None:
        self._commands.review_folder()

    def action_forget_folder(self) -> None:
        """Forget the decision about the folder on the second press."""
        if self._is_again("folder"):
            self._commands.forget_folder()
            self._show_message("Forgotten: nothing from this folder runs until you trust it again.")
        else:
            self._show_message(f"Press {self._key('grants.forget')} again to forget this folder.")

    @on(FilterList.Moved)
    def _on_moved(self, event: FilterList.Moved) -> None:
        event.stop()
        grant = self.grants.current
        self.details.update(Content() if grant is None else describe_grant(grant))
        self.set_class(grant is None, "-nothing")

    @on(FilterList.Chosen)
    def _on_chosen(self, event: FilterList.Chosen) -> None:
        event.stop()
        self.action_choose()

    def _show_folder(self, view: tuple[str, FolderTrust]) -> None:
        workspace, trust = view
        word = trust.value or "no decision yet"
        self.query_one(".grants-folder", PlainText).update(
            Content.assemble(
                ("folder  ", "$text-muted"),
                one_line(workspace),
                "  ",
                (word, trust_tone(trust)),
            )
        )

    def _is_again(self, what: str) -> bool:
        """Whether this is the second press; if not, wait for it."""
        again = self._second.take(what)
        if not again:
            self._second.expect(what)
        return again

    def _show_message(self, text: str) -> None:
        self.hint.update(Content.styled(one_line(text), "$text-warning"))
        if self._message_timer is not None:
            self._message_timer.stop()
        self._message_timer = self.set_timer(REPEAT_SECONDS, self._show_hint)

    def _show_hint(self) -> None:
        names = ("grants.revoke", "grants.details", "list.filter", "dialog.close")
        ids = (*names, "grants.folder", "grants.forget")
        labels = ("revoke", "details", "filter", "close", "review", "forget folder")
        self.hint.update(key_hints(*zip(map(self._key, ids), labels, strict=True)))

    def _key(self, binding_id: str) -> str:
        return keymap.key_of(self.app, self.active_bindings, binding_id)


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
