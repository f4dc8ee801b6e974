"""What the settings of an opened folder may say, key by key.

A project may add servers, forbid, and lower limits. It never grants anything, and it never
says which model answers, by which key, or from where. Every key of the schema stands here, so
that a new one is decided upon before it can be used.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class ProjectSay(StrEnum):
    """What a project's word on a key is worth."""

    ADDS = "describes the servers it adds"
    FORBIDS = "adds to what is forbidden"
    LOWERS = "can only lower the limit"
    NOTHING = "has no effect"


_ADDS, _NOTHING = ProjectSay.ADDS, ProjectSay.NOTHING

_SERVER: Final = "mcpServers.*."

PROJECT_SAY: Final[Mapping[str, ProjectSay]] = {
    "mcpServers": _ADDS,
    f"{_SERVER}command": _ADDS,
    f"{_SERVER}args": _ADDS,
    f"{_SERVER}env": _ADDS,
    f"{_SERVER}cwd": _ADDS,
    f"{_SERVER}url": _ADDS,
    f"{_SERVER}httpUrl": _ADDS,
    f"{_SERVER}type": _ADDS,
    f"{_SERVER}transportType": _ADDS,
    f"{_SERVER}tcp": _ADDS,
    f"{_SERVER}headers": _ADDS,
    f"{_SERVER}timeout": _ADDS,
    f"{_SERVER}trust": _NOTHING,
    f"{_SERVER}description": _ADDS,
    f"{_SERVER}includeTools": _ADDS,
    f"{_SERVER}excludeTools": _ADDS,
    f"{_SERVER}oauth": _ADDS,
    f"{_SERVER}oauth.enabled": _ADDS,
    f"{_SERVER}oauth.clientId": _ADDS,
    f"{_SERVER}oauth.clientSecret": _ADDS,
    f"{_SERVER}oauth.authorizationUrl": _ADDS,
    f"{_SERVER}oauth.tokenUrl": _ADDS,
    f"{_SERVER}oauth.issuer": _ADDS,
    f"{_SERVER}oauth.registrationUrl": _ADDS,
    f"{_SERVER}oauth.scopes": _ADDS,
    f"{_SERVER}oauth.audiences": _ADDS,
    f"{_SERVER}oauth.redirectUri": _ADDS,
    f"{_SERVER}oauth.tokenParamName": _ADDS,
    # The user's Google credentials would go to an address that the project chooses.
    f"{_SERVER}authProviderType": _NOTHING,
    f"{_SERVER}targetAudience": _NOTHING,
    f"{_SERVER}targetServiceAccount": _NOTHING,
    "mcp": ProjectSay.FORBIDS,
    "mcp.serverCommand": _NOTHING,
    "mcp.allowed": ProjectSay.FORBIDS,
    "mcp.excluded": ProjectSay.FORBIDS,
    "gemdeck": ProjectSay.LOWERS,
    "gemdeck.model": _NOTHING,
    "gemdeck.maxToolCalls": ProjectSay.LOWERS,
    "gemdeck.maxResultSize": ProjectSay.LOWERS,
    "gemdeck.apiVersion": _NOTHING,
    "gemdeck.idleTimeout": ProjectSay.LOWERS,
    "gemdeck.thoughts": _NOTHING,
    "gemdeck.systemInstruction": _NOTHING,
    "gemdeck.protocols": _NOTHING,
    "gemdeck.alwaysAllow": _NOTHING,
    "gemdeck.alwaysDeny": ProjectSay.FORBIDS,
    "gemdeck.alwaysDeny[].server": ProjectSay.FORBIDS,
    "gemdeck.alwaysDeny[].tool": ProjectSay.FORBIDS,
    "gemdeck.alwaysAllow[].server": _NOTHING,
    "gemdeck.alwaysAllow[].tool": _NOTHING,
    "model": _NOTHING,
    "model.name": _NOTHING,
}
"""What a project may say of each key; `*` stands for a server's name, `[]` for an item."""


def counts(path: str) -> bool:
    """Tell whether a project's word on a key counts at all; one that is not listed does not."""
    return PROJECT_SAY.get(path, _NOTHING) is not _NOTHING


def counting_keys(section: str) -> frozenset[str]:
    """Give the keys of a section, such as ``gemdeck`` or ``mcpServers.*``, that count."""
    start = f"{section}."
    rest = (path.removeprefix(start) for path in PROJECT_SAY if path.startswith(start))
    return frozenset(key for key in rest if "." not in key and counts(f"{start}{key}"))
