"""Make a history that was read from a file valid for the service again.

What was cut off by the end of the process is closed, and what no gemdeck would have written (an
edited or damaged file) is left out: roles alternate and begin with the user's, each call has its
response in the next content, and no part has a field that the service would refuse.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from tui.engine.chats.history import without_surrogates
from tui.text import for_model

INTERRUPTED: Final = "Interrupted: gemdeck ended before there was a result. It may have run."
"""The response to a call that has none."""

ENDED: Final = "The turn ended here because gemdeck ended."

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_MIME: Final = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}")

Wire = dict[str, Any]


def valid_contents(contents: Iterable[object]) -> tuple[list[Wire], list[int]]:
    """Return contents that the service takes; the given ones stay as they are.

    Calls without a response at the end are answered as interrupted; apart from that the last
    content may be the user's.

    Returns:
        The contents, and how many of them came before each of the given ones and after the last.
    """
    valid: list[Wire] = []
    places: list[int] = []
    for content in contents:
        places.append(len(valid))
        role, parts = _cleaned(content)
        if role == "user":
            _add_user(valid, parts)
        elif parts and valid:
            _answer_calls(valid)
            _add(valid, role, parts)
    _answer_calls(valid)
    return valid, [*places, len(valid)]


def closed(contents: list[Wire], said: str) -> bool:
    """End the last turn, so that the next content can be the user's; return whether it is kept.

    A message that was never answered is taken out again, as at any other stop before an answer.

    Args:
        contents: Valid contents, changed in place.
        said: What the model had said since the last of them.
    """
    if not contents or contents[-1]["role"] == "model":
        return True
    if not said and not has_responses(contents[-1]):
        del contents[-1]
        return False
    parts = [{"text": said}] if said else []
    contents.append({"role": "model", "parts": [*parts, {"text": f"[{ENDED}]"}]})
    return True


def is_whole(content: object) -> bool:
    """Tell whether the service takes every part of a content."""
    return isinstance(content, dict) and _cleaned(content)[1] == content.get("parts")


def _add_user(valid: list[Wire], parts: Sequence[Wire]) -> None:
    """Add what the user and the tools said; responses without a call are left out."""
    responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
    others = [part for part in parts if "functionResponse" not in part]
    answers = [_response(call, responses) for call in _open_calls(valid)]
    if answers or others:
        _add(valid, "user", [*answers, *others])


def _response(call: Wire, responses: list[Wire]) -> Wire:
    """Take the response to a call out of those that came; without one it was interrupted."""
    for index, response in enumerate(responses):
        if (response["name"], response.get("id")) == (call["name"], call.get("id")):
            return {"functionResponse": responses.pop(index)}
    made = {key: call[key] for key in ("name", "id") if key in call}
    return {"functionResponse": {**made, "response": {"error": INTERRUPTED}}}


def _answer_calls(valid: list[Wire]) -> None:
    """Answer the calls of the last content, if it has any."""
    if calls := _open_calls(valid):
        _add(valid, "user", [_response(call, []) for call in calls])


def _open_calls(valid: Sequence[Wire]) -> list[Wire]:
    if not valid or valid[-1]["role"] != "model":
        return []
    return [part["functionCall"] for part in valid[-1]["parts"] if "functionCall" in part]


def has_responses(content: Wire) -> bool:
    """Tell whether a content has responses to calls."""
    return any("functionResponse" in part for part in content["parts"])


def _add(valid: list[Wire], role: str, parts: Sequence[Wire]) -> None:
    if valid and valid[-1]["role"] == role:
        valid[-1]["parts"] = [*valid[-1]["parts"], *parts]
    else:
        valid.append({"role": role, "parts": [*parts]})


def _cleaned(content: object) -> tuple[str, list[Wire]]:
    """Return the role and the usable parts of a content."""
    match content:
        case {"role": "user" | "model" as role, "parts": list(parts)}:
            return role, [*_usable(parts, role)]
    return "user", []


def _usable(parts: Iterable[object], role: str) -> Iterator[Wire]:
    for part in parts:
        made = _part(part) if isinstance(part, dict) else None
        if made is None or ("functionCall" in made) > (role == "model"):
            continue
        if "functionResponse" in made and role == "model":
            continue
        yield made


def _part(part: Wire) -> Wire | None:
    """Return a part as the service takes it, or None."""
    signature = part.get("thoughtSignature")
    signed = {"thoughtSignature": signature} if isinstance(signature, str) and signature else {}
    match part:
        case {"thought": thought} if thought:
            return None
        case {"text": str(text)} if text or signed:
            return {"text": text if signed else for_model(without_surrogates(text))[0], **signed}
        case {"inlineData": dict(media)}:
            made = _media(media)
            return made and {**made, **signed}
        case {"functionCall": dict(call)}:
            found = _call(call)
            return found and {"functionCall": found, **signed}
        case {"functionResponse": dict(response)}:
            answer = _answer(response)
            return answer and {"functionResponse": answer}
    return None


def _media(media: Wire) -> Wire | None:
    mime_type, data = media.get("mimeType"), media.get("data")
    if not isinstance(mime_type, str) or not isinstance(data, str):
        return None
    if not _MIME.fullmatch(mime_type) or not _BASE64.fullmatch(data):
        return None
    return {"inlineData": {"mimeType": mime_type, "data": data}}


def _call(call: Wire) -> Wire | None:
    arguments = call.get("args") or {}
    if not isinstance(arguments, dict) or not _is_name(call.get("name")):
        return None
    try:
        json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return {**_named(call), "args": arguments}


def _answer(response: Wire) -> Wire | None:
    if not _is_name(response.get("name")):
        return None
    match response.get("response"):
        case {"output": str(text)}:
            said = {"output": without_surrogates(text)}
        case {"error": str(text)}:
            said = {"error": without_surrogates(text)}
        case _:
            return None
    answer: Wire = {**_named(response), "response": said}
    inside = response.get("parts")
    media = [
        made
        for part in (inside if isinstance(inside, list) else ())
        if isinstance(part, dict) and isinstance(part.get("inlineData"), dict)
        if (made := _media(part["inlineData"]))
    ]
    return {**answer, "parts": media} if media else answer


def _is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _named(wire: Wire) -> Wire:
    """Return the name and the id of a call or a response."""
    made: Wire = {"name": wire["name"]}
    if isinstance(wire.get("id"), str) and wire["id"]:
        made["id"] = wire["id"]
    return made
