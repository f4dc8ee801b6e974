"""What the panes behind the tabs of the side pane have in common, and how two of them mark."""

from abc import abstractmethod
from typing import Final

from textual.containers import Vertical
from textual.message_pump import MessagePump

from tui.model.servers import ServerId
from tui.ui.bridge import StoreBridge
from tui.ui.widgets.key_bar import SaysWhy

MARK: Final = "* "
"""Stands before the name of what is marked."""

ProfileItem = tuple[ServerId, str]
"""A tool and its server, or a whole server without a tool."""


class SidePart(Vertical):
    """A pane behind one of the tabs of the side pane. It does nothing while it is hidden."""

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = bridge.commands

    @property
    def awake(self) -> bool:
        return all(node.display for node in self.ancestors_with_self)

    @abstractmethod
    def wake(self) -> None:
        """Catch up with what changed while the part was hidden."""

    @abstractmethod
    def focus_main(self) -> None:
        """Focus the main widget."""

    @abstractmethod
    def narrow_to(self, to: str) -> None:
        """Show only what belongs to one server; in the protocol, what passes a filter."""


class Marking(SaysWhy, MessagePump):
    """Marks servers and tools by one key, and makes a profile of all that is marked by another."""

    _bridge: StoreBridge

    @property
    @abstractmethod
    def markable(self) -> ProfileItem | None:
        """What the key marks, or None if there is nothing."""

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        if action == "save_profile" and not self._bridge.state.marks:
            return "Mark servers or tools first, with *."
        if action == "mark" and {*"*$"}.intersection("".join(self.markable or ())):
            return "The name contains * or $, which mean something else in a profile."
        return super().why_not(action, parameters)

    def action_mark(self) -> None:
        """Mark it, or no longer: either a server as a whole, or some of its tools."""
        if (one := self.markable) is not None:
            marks = self._bridge.state.marks
            kept = {mark for mark in marks if mark[0] != one[0] or bool(mark[1]) == bool(one[1])}
            self._bridge.commands.mark(frozenset(kept ^ {one}))

    async def action_save_profile(self) -> None:
        await self.app.run_action("app.open('profile')")
