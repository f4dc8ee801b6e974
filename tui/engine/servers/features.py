"""What a connected server can be asked for beside tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tui.engine.tools import MediaPart, TextPart
from tui.model.catalog import ResourceContent


class ServerCallError(Exception):
    """A server did not do what it was asked for; the text says why, for the user."""


class ServerGoneError(ServerCallError):
    """The connection ended meanwhile: what was asked for may well work with the next one."""


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as a server rendered it: for the screen, and for the model."""

    shown: str
    parts: tuple[TextPart | MediaPart, ...]


@dataclass(frozen=True, slots=True)
class ResourceReading:
    """A resource as a server gave it: for the screen, and for the model."""

    content: ResourceContent
    parts: tuple[TextPart | MediaPart, ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """Values that a server suggests; `has_more` says that there are further ones."""

    values: tuple[str, ...] = ()
    has_more: bool = False


class Features(Protocol):
    """The prompts, resources, completions and log levels of one connection.

    Names and URIs are given as they are shown. Every method raises `ServerCallError`; a
    cancelled caller cancels the request on the server.
    """

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> RenderedPrompt:
        """Let the server render a prompt."""

    async def read_resource(self, uri: str) -> ResourceReading:
        """Read a resource."""

    async def subscribe(self, uri: str) -> None:
        """Hear of changes of a resource from now on."""

    async def unsubscribe(self, uri: str) -> None:
        """Hear of them no longer."""

    async def complete(
        self, target: str, argument: str, value: str, context: Mapping[str, str]
    ) -> Completion:
        """Complete an argument of a prompt, or of a resource template.

        Args:
            target: The prompt's name or the URI template.
            argument: The argument's name.
            value: What stands there so far.
            context: The other arguments that are filled in already.
        """

    async def set_log_level(self, level: str) -> None:
        """Tell the server from which level on to log."""

    async def announce_roots(self) -> None:
        """Tell the server that the workspace folders have changed, where it can hear that."""

    async def ping(self) -> float:
        """Ask for a sign of life; gives the seconds it took."""
