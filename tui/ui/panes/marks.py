"""Servers and tools that are marked, in several places, for a profile."""

from abc import abstractmethod
from typing import Final

from textual.message_pump import MessagePump

from tui.model.servers import ServerId
from tui.ui.bridge import StoreBridge
from tui.ui.widgets.key_bar import SaysWhy

MARK: Final = "* "
"""Stands before the name of what is marked."""

Mark = tuple[ServerId, str]
"""A tool and its server, or a whole server without a tool."""


class Marking(SaysWhy, MessagePump):
    """Marks by one key, and makes a profile of all that is marked by another."""

    _bridge: StoreBridge

    @property
    @abstractmethod
    def markable(self) -> Mark | None:
        """What the key marks, or None if there is nothing."""

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        if action == "save_profile" and not self._bridge.state.marks:
            return "Mark servers or tools first, with *."
        if action == "mark" and not {"*", "$"}.isdisjoint("".join(self.markable or ())):
            return "A profile cannot name this: * and $ have another meaning there."
        return super().why_not(action, parameters)

    def action_label(self, action: str) -> str | None:
        is_marked = action == "mark" and self.markable in self._bridge.state.marks
        return "unmark" if is_marked else None

    def action_mark(self) -> None:
        """Mark it, or no longer: either a server as a whole, or some of its tools."""
        if (one := self.markable) is not None:
            marks = self._bridge.state.marks
            kept = {mark for mark in marks if mark[0] != one[0] or bool(mark[1]) == bool(one[1])}
            self._bridge.commands.mark(frozenset(kept ^ {one}))

    async def action_save_profile(self) -> None:
        await self.app.run_action("app.open('profile')")
