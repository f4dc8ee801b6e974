"""Definitions of servers from flat fields, each put into the part that it belongs to."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from tui.engine.definitions.definition import Endpoint, Entry, Launch, ServerDefinition
from tui.model.servers import Origin, ServerId, Transport

_PARTS = {
    one.name: part
    for part, blank in {
        "entry": Entry(Origin.USER),
        "launch": Launch(),
        "endpoint": Endpoint(),
    }.items()
    for one in fields(blank)
}


def define_server(
    server: str = "s",
    origin: Origin = Origin.USER,
    transport: Transport = Transport.STDIO,
    command: str = "",
    args: tuple[str, ...] = (),
    **more: Any,  # noqa: ANN401
) -> ServerDefinition:
    """Define a server."""
    blank = ServerDefinition(ServerId(server), transport, Entry(origin))
    return altered(blank, command=command, args=args, **more)


def altered(one: ServerDefinition, **changes: Any) -> ServerDefinition:  # noqa: ANN401
    """Return a server with other values of fields, its own or its parts'."""
    parts: dict[str, dict[str, Any]] = {}
    for name in changes.keys() & _PARTS.keys():
        parts.setdefault(_PARTS[name], {})[name] = changes.pop(name)
    new: Mapping[str, Any] = {
        part: replace(getattr(one, part), **given) for part, given in parts.items()
    }
    return replace(one, **new, **changes)
