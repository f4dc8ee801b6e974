"""The grants screen: the rules for tools and the trust in the folder, both revocable."""

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from tui.model.consent import GrantScope, GrantView
from tui.model.trust import FolderTrust
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import DetailsScreen, ListDialog
from tui.ui.widgets.header import trust_tone
from tui.ui.widgets.lists.filter_list import FilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.describe import describe_grant
from tui.ui.widgets.text.plain import moment, one_line

EMPTY: Final = """\
No grants yet: every tool asks before it runs.

Answer a question with "always" to add one, or list tools
in ~/.gemini/settings.json under "gemdeck": "alwaysAllow"
and "alwaysDeny"."""


class GrantsScreen(ListDialog[GrantView]):
    """List the rules for tools and show whether the folder is trusted.

    Args:
        bridge: Provides the rules, and revokes one or the trust in the folder.
    """

    BINDINGS = keymap.bindings(keymap.Place.GRANTS)
    AUTO_FOCUS = "RowList"
    KIND = "large grants"

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__("Grants", FilterList("grant", EMPTY))
        self._bridge = bridge

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda s: (s.workspace, s.folder_trust), self._show_folder)
        self._bridge.watch(self, lambda state: state.grants, self._show_rules)

    def _show_rules(self, grants: Sequence[GrantView]) -> None:
        self.listed.set_entries([*map(_entry, grants)])

    async def choose(self, item: GrantView) -> None:
        """Show all of the rule."""
        self.app.push_screen(DetailsScreen("Grant", self._bridge, lambda _: describe_grant(item)))

    def moved(self, item: GrantView | None) -> None:
        self.tell(None if item is None else describe_grant(item))

    def action_revoke(self) -> None:
        """Revoke the rule under the cursor on the second press."""
        if (grant := self.listed.current) is None:
            return
        if not grant.revocable:
            self.say(f"This grant comes from {grant.origin}: change it there.")
            return
        name = f"{grant.effect} {grant.server} {grant.what}, {grant.scope}"
        if self.is_again("grants.revoke", grant.id, f"revoke: {name}"):
            self._bridge.commands.engine.access.policy.revoke(grant.id)
            if grant.scope != GrantScope.SESSION:  # which no command knows
                self._bridge.commands.tell("grants revoke", grant.id)
            self.say("Revoked. Its tools ask again.")

    def action_save(self) -> None:
        """Save the rule under the cursor on the second press, if it goes with the session."""
        if (grant := self.listed.current) is None:
            return
        if grant.scope != GrantScope.SESSION:
            self.say("Only session grants can be saved; this one is already saved.")
        elif self.is_again("grants.save", grant.id, f"save for this folder: {grant.what}"):
            self._bridge.commands.engine.access.policy.save(grant.id)
            self.say("Saved for this folder.")

    def action_review_folder(self) -> None:
        self._bridge.commands.engine.review_folder()

    def action_forget_folder(self) -> None:
        """Forget the decision about the folder on the second press."""
        if self.is_again("grants.forget", "", "forget this folder."):
            self._bridge.commands.engine.forget_folder()
            self.say("Forgotten. Nothing from this folder runs until you trust it again.")

    def _show_folder(self, view: tuple[str, FolderTrust]) -> None:
        workspace, trust = view
        word = trust.value or "no decision yet"
        parts = ("folder  ", "$text-muted"), one_line(workspace), "  ", (word, trust_tone(trust))
        self.head.say(Content.assemble(*parts))


def _entry(grant: GrantView) -> ListEntry[GrantView]:
    used = moment(grant.used_at, "used %Y-%m-%d", "never used")
    where = f"where {grant.where} · " if grant.where else ""
    note = f"{where}{grant.scope} · {grant.origin} · {used}"
    return ListEntry(
        item=grant,
        row=Row(grant.effect.value, f"{grant.server}.{grant.tool}", note=note),
        label=f"{grant.server}:{grant.tool} {grant.effect} {grant.scope}".lower(),
        text=f"{grant.where} {grant.origin}".lower(),
    )
