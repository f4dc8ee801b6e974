"""What gemdeck has to say of a call that somebody has to decide on."""

from collections.abc import Iterable, Iterator
from typing import Final

from tui.engine.consent.patterns import is_plain, likeness
from tui.engine.consent.protocol import Inquiry
from tui.engine.tools import OfferedTool
from tui.model.servers import ServerId
from tui.text import sanitize_line

MAX_NAMED: Final = 5
"""Servers or tools that one note names."""

_NO_ARGUMENTS: Final = "{}"


def call_notes(inquiry: Inquiry) -> tuple[str, ...]:
    """Say what is notable about a call, most important first; sanitised."""
    return (
        *_denied_before(inquiry),
        *_has_read(inquiry.tool.server, inquiry.turn.read),
        *_odd_name(inquiry.tool, inquiry.offered),
    )


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
