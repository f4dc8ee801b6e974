"""Validate an entry of ``mcpServers``, without the slips that gemini-cli only warns of."""

import difflib
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from tui.engine.definitions.expansion import KeyPath
from tui.engine.settings.raw_entries import MAX_NAME
from tui.engine.settings.sources.source import known_keys, validation_problems
from tui.model.sections.sign_in_settings import OAuthSettings
from tui.model.settings import ServerSettings

_TARGETS: Final = ("httpUrl", "url", "command")
_SPARE: Final = frozenset({"authProviderType", "description", "tcp", "timeout", "trust"})
"""Keys without which a server is reached all the same, and may do no more."""

KNOWN: Final = known_keys(ServerSettings)
KNOWN_OAUTH: Final = known_keys(OAuthSettings)
_GRANTS: Final = frozenset(
    {"alwaysAllow", "alwaysAllowed", "autoApprove", "autoApproved", "autoAllow", "allowedTools"}
)
"""Keys by which other clients let tools run unasked."""


def known_part(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that mean something."""
    known = {key: value for key, value in raw.items() if key in KNOWN}
    if isinstance(oauth := known.get("oauth"), dict):
        known["oauth"] = {key: value for key, value in oauth.items() if key in KNOWN_OAUTH}
    return known


def salvaged(raw: Mapping[str, Any]) -> tuple[ServerSettings, list[tuple[KeyPath, str]]]:
    """Validate an entry without what is wrong and neither reaches nor restricts the server.

    Returns:
        The settings, and what was left out, with the reasons.

    Raises:
        ValidationError: If anything else is wrong.
    """
    try:
        return ServerSettings.model_validate(raw), []
    except ValidationError as error:
        target = next((at for at, key in enumerate(_TARGETS) if raw.get(key)), len(_TARGETS))
        spare = _SPARE.union(_TARGETS[target + 1 :])
        slips = validation_problems(error)
        wrong = {keys[0] if keys else "" for keys, _ in slips}
        if not wrong <= spare:
            raise
    return ServerSettings.model_validate({key: raw[key] for key in raw if key not in wrong}), slips


def words_on(key: str, known: frozenset[str]) -> str:
    """Say what is wrong with a key that is not known."""
    if key in _GRANTS:
        return "has no effect; use gemdeck.alwaysAllow, or answer `always` when asked"
    near = difflib.get_close_matches(key[:MAX_NAME], known, n=1, cutoff=0.75)
    return f"unknown key, ignored; did you mean {near[0]}?" if near else "unknown key, ignored"
