"""Reads the answer to ``initialize``: what does not matter in it keeps no server out."""

import re
from typing import Any, Final

import mcp_types as types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

MAX_REPAIRS: Final = 8
"""Rounds in which members that are not valid are mended."""

MAX_ODD: Final = 100
"""Members that are mended in a round; an answer with more of them stays as it is."""

_OBJECT: Final = frozenset({"model_type", "dict_type", "model_attributes_type"})
_REVISION: Final = re.compile(r"\b20\d\d-\d\d-\d\d\b")


def is_handshake(raw: dict[str, Any]) -> bool:
    """Return whether a result answers ``initialize``."""
    return "protocolVersion" in raw and not raw.keys().isdisjoint({"serverInfo", "capabilities"})


def repair_handshake(raw: dict[str, Any]) -> dict[str, Any]:
    """Return an answer to ``initialize`` in which only the revision may be wrong.

    A server may leave out its name and version, and PHP writes an empty list for an empty object.
    Other members that are not valid are left out, also below `raw`, which nobody else holds.
    """
    mended = {**raw}
    own = raw["serverInfo"] if isinstance(raw.get("serverInfo"), dict) else {}
    mended["serverInfo"] = own | {one: _scalar(own.get(one)) for one in ("name", "version")}
    if mended.get("capabilities") is None:  # it does not say: it is asked for what most have
        mended["capabilities"] = {"tools": {}}
    for _ in range(MAX_REPAIRS):
        try:
            types.InitializeResult.model_validate(mended, by_name=False)
        except ValidationError as error:
            if error.error_count() > MAX_ODD:
                break
            for one in error.errors(include_url=False):
                _mend(mended, one["loc"], is_object=one["type"] in _OBJECT)
        else:
            break
    return mended


def _mend(top: dict[str, Any], place: tuple[int | str, ...], *, is_object: bool) -> None:
    """Mend or leave out the innermost member on the way to a place that is there."""
    at: Any = top
    for number, key in enumerate(place):
        if not isinstance(at, dict) or key not in at or key == "protocolVersion":
            return
        value = at[key]
        if number == len(place) - 1 or not isinstance(value, dict):
            if is_object and value in ([], True):
                at[key] = {}
            else:
                del at[key]
            return
        at = value


def _scalar(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) else ""


def lower_revision(message: types.JSONRPCMessage, words: str) -> types.JSONRPCRequest | None:
    """Return ``initialize`` with a lower revision, after a refusal that is about the revision.

    Args:
        message: What was refused.
        words: What the server says; a revision that it names is taken.
    """
    if not isinstance(message, types.JSONRPCRequest) or message.method != "initialize":
        return None
    params = dict(message.params or {})
    asked, named = str(params.get("protocolVersion")), _REVISION.findall(words)
    lower = [one for one in HANDSHAKE_PROTOCOL_VERSIONS if one < asked]
    fitting = [one for one in lower if one in named] if set(named) - {asked} else lower
    if "version" not in words.lower() or not fitting:
        return None
    return message.model_copy(update={"params": {**params, "protocolVersion": max(fitting)}})
