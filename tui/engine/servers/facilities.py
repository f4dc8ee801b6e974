"""What servers may use of us, and what of a server outlasts its connections."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tui.engine.chat.generation import Generator
from tui.engine.events import Publish
from tui.engine.requests import DecliningDesk, Desk
from tui.engine.servers.inbound.grants import SamplingGrants
from tui.engine.servers.withholding import Gate, OpenGate
from tui.model.events import Event
from tui.model.limits import DEFAULT_RESULT_SIZE
from tui.model.servers import ServerId

OpenUrl = Callable[[str], Awaitable[bool]]
"""Opens an address in the user's browser and tells whether that worked. Only called after the
user's consent, with an address in ASCII that was shown whole."""


def _drop(event: Event) -> None:
    del event


async def open_nothing(url: str) -> bool:
    """Open no address, as where there is no browser."""
    del url
    await asyncio.sleep(0)
    return False


@dataclass(slots=True)
class Facilities:
    """What all connections share. Lives on one event loop.

    Attributes:
        publish: Takes events.
        desk: Puts the requests of servers to the user.
        generator: The model that answers sampling requests, or None for no sampling.
        open_url: Opens an address after the user's consent.
        workspaces: The folders that servers are told of as roots; absolute.
        sampling_grants: The servers whose prompts the user lets pass.
        subscriptions: Per server, the resources whose changes the user wants to hear of, by
            their URI as shown.
        log_levels: Per server, the level the user wants it to log from.
        resource_updated: Hears that a server announced a change of a resource.
        gate: Says which of their tools the model must not see.
        max_result_size: Characters of text of one result that the model gets.
    """

    publish: Publish = _drop
    desk: Desk = field(default_factory=DecliningDesk)
    generator: Generator | None = None
    open_url: OpenUrl = open_nothing
    workspaces: tuple[Path, ...] = ()
    sampling_grants: SamplingGrants = field(default_factory=SamplingGrants)
    subscriptions: dict[ServerId, set[str]] = field(default_factory=dict)
    log_levels: dict[ServerId, str] = field(default_factory=dict)
    resource_updated: Callable[[ServerId, str], None] = lambda _server, _uri: None
    gate: Gate = field(default_factory=OpenGate)
    max_result_size: int = DEFAULT_RESULT_SIZE
