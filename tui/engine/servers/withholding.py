"""Which tools of a server the model does not see although they could be called, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tui.engine.servers.catalog import Tool
from tui.engine.settings.definitions import ServerDefinition


@dataclass(frozen=True, slots=True)
class Withheld:
    """Why a tool is withheld; `changed` where the user has yet to accept how it changed."""

    reason: str
    changed: bool = False


class Gate(Protocol):
    """Stands between what servers offer and what the model is offered."""

    async def prepare(self, definition: ServerDefinition) -> None:
        """Get ready to judge a server's tools; awaited before it is started."""

    def withhold(
        self, definition: ServerDefinition, tools: Sequence[Tool]
    ) -> Mapping[str, Withheld]:
        """Say which tools the model must not see.

        It is called with each new offer of a server, before any of it is offered.

        Args:
            definition: The server.
            tools: All its tools, also those that cannot be used.

        Returns:
            The withheld ones by their names as the server spells them.
        """


class OpenGate:
    """A `Gate` that withholds nothing."""

    async def prepare(self, definition: ServerDefinition) -> None:
        """Need nothing."""

    def withhold(
        self,
        definition: ServerDefinition,  # noqa: ARG002 - part of the protocol
        tools: Sequence[Tool],  # noqa: ARG002 - part of the protocol
    ) -> Mapping[str, Withheld]:
        """Withhold nothing."""
        return {}
