"""What the side pane asks of each of its parts."""

from abc import abstractmethod

from textual.containers import Vertical

from tui.model.servers import ServerId


class SidePart(Vertical):
    """One of the parts behind the tabs of the side pane. It does nothing while it is hidden."""

    @property
    def awake(self) -> bool:
        """Whether the part can be seen, so that what it draws is worth drawing."""
        return all(node.display for node in self.ancestors_with_self)

    @abstractmethod
    def wake(self) -> None:
        """Catch up with what changed while the part was hidden."""

    @abstractmethod
    def focus_main(self) -> None:
        """Give the focus to what the part is about."""

    @abstractmethod
    def narrow_to(self, server: ServerId) -> None:
        """Show only what belongs to one server."""
