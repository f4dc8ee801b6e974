"""What the panes behind the tabs of the side pane have in common."""

from abc import abstractmethod

from textual.containers import Vertical

from tui.ui.bridge import StoreBridge


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
