"""What gemdeck has to say of a call that somebody has to decide on."""

from collections.abc import Iterable, Iterator
from typing import Final

from tui.engine.consent.protocol import Inquiry
from tui.engine.consent.rules.patterns import is_plain, likeness
from tui.engine.consent.rules.policy import Policy
from tui.engine.tools import OfferedTool
from tui.model.servers import Origin, ServerId
from tui.text import sanitize_line

MAX_NAMED: Final = 5
"""Servers or tools that one note names."""

_NO_ARGUMENTS: Final = "{}"


_PLACES: Final = {
    Origin.SYSTEM_DEFAULTS: "the system's settings",
    Origin.USER: "your settings",
    Origin.PROJECT: "this folder",
    Origin.SYSTEM: "the system's settings",
    Origin.EXTENSION: "an extension of yours",
    Origin.DEMO: "gemdeck's demo",
}
"""Where servers come from, in words."""

_UNSAVED: Final = "Rules cannot be saved now: what you allow for good ends with this run."


def call_notes(inquiry: Inquiry, policy: Policy | None = None) -> tuple[str, ...]:
    """Say what is notable about a call, most important first; sanitised.

    Args:
        inquiry: The call.
        policy: The rules, which know all servers; without one only those of the call are known.
    """
    servers = set(policy.origins) if policy is not None else set()
    return (
        *_denied_before(inquiry),
        *_odd_server(inquiry.tool.server, servers | {tool.server for tool in inquiry.offered}),
        *_has_read(inquiry.tool.server, inquiry.turn.read),
        *_odd_name(inquiry.tool, inquiry.offered),
        *([_UNSAVED] if policy is not None and not policy.is_kept else []),
    )


def origin_words(server: ServerId, policy: Policy) -> str:
    """Say where a server comes from; nothing of one that is not defined any longer."""
    origin = policy.origins.get(server)
    return _PLACES[origin] if origin is not None else ""


def _denied_before(inquiry: Inquiry) -> Iterator[str]:
    """Find a denied call with the very same arguments: it may be tried under another name."""
    if inquiry.shown == _NO_ARGUMENTS:
        return
    for call in inquiry.turn.denied:
        if call.shown == inquiry.shown:
            yield (
                "You denied a call with these very arguments before in this turn: "
                f"{_name(call.tool)}."
            )
            return


def _has_read(own: ServerId, read: Iterable[ServerId]) -> Iterator[str]:
    """Name the other servers whose data the model may be acting on."""
    others = [server for server in read if server != own]
    if others:
        yield f"This turn has read data from {_listed(others)}."


def _odd_server(own: ServerId, servers: Iterable[ServerId]) -> Iterator[str]:
    """Find a server's name that a hurried reader takes for that of another server."""
    look = likeness(own)
    alike = sorted(other for other in servers if other != own and likeness(other) == look)
    if alike:
        yield f"Its server's name looks like that of another server: {_listed(alike)}."


def _odd_name(tool: OfferedTool, offered: Iterable[OfferedTool]) -> Iterator[str]:
    """Find a name that a hurried reader takes for that of another tool."""
    if not is_plain(tool.name):
        yield "Its name has characters that names of tools may not have. Look twice."
    look = likeness(tool.name)
    alike = [
        _name(other)
        for other in offered
        if other.name != tool.name and likeness(other.name) == look
    ]
    if alike:
        yield f"Its name looks like that of another tool: {_listed(alike)}."


def _name(tool: OfferedTool) -> str:
    return f"{tool.server} {sanitize_line(tool.view.name)}"


def _listed(names: list[ServerId] | list[str]) -> str:
    """Join names to a phrase; of many, only the first."""
    *first, last = names[:MAX_NAMED]
    more = len(names) - MAX_NAMED
    if more > 0:
        return f"{', '.join([*first, last])} and {more} more"
    return f"{', '.join(first)} and {last}" if first else str(last)
