"""Finds the media because of which the service refused a request, and takes them out."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

_PLACE: Final = re.compile(r"contents\[(\d{1,6})\]\.parts\[(\d{1,6})\]")
_KINDS: Final = {
    "image": "image/",
    "document": "application/pdf",
    "pdf": "application/pdf",
    "audio": "audio/",
    "video": "video/",
}
"""Words of error messages, each with the start of the media types that they mean."""

_Wire = dict[str, Any]


def drop_refused(contents: Sequence[_Wire], message: str, start: int) -> list[str]:
    """Replace the media that an error is about by notes in place.

    An error names a place, a kind of media or nothing. What was accepted before is dropped only
    if the error names it and nothing newer fits.

    Args:
        contents: A conversation in wire format.
        message: The service's words.
        start: The index of the first content that the service has not accepted yet.

    Returns:
        The media types of what was dropped.
    """
    words = message.lower()
    kinds = tuple(kind for word, kind in _KINDS.items() if word in words)

    def is_meant(mime_type: str) -> bool:
        return mime_type in words or mime_type.startswith(kinds)

    if place := _PLACE.search(message):
        index, part = int(place[1]), int(place[2])
        return _drop(contents[index : index + 1], lambda _: True, part)
    named = _drop(contents[start:], is_meant) or _drop(contents[:start], is_meant)
    return named or ([] if kinds else _drop(contents[start:], lambda _: True))


def _drop(
    contents: Sequence[_Wire], is_dropped: Callable[[str], bool], only: int | None = None
) -> list[str]:
    dropped: list[str] = []
    for content in contents:
        for index, part in enumerate(content["parts"]):
            if only not in {None, index}:
                continue
            if "inlineData" in part and is_dropped(part["inlineData"]["mimeType"]):
                dropped.append(part["inlineData"]["mimeType"])
                kept = content["parts"]
                content["parts"] = [*kept[:index], {"text": _note(dropped[-1])}, *kept[index + 1 :]]
            elif "functionResponse" in part and (
                inner := _drop_inner(part["functionResponse"], is_dropped)
            ):
                dropped += inner
                content["parts"] = [*content["parts"]]
    return dropped


def _drop_inner(response: _Wire, is_dropped: Callable[[str], bool]) -> list[str]:
    media = response.pop("parts", [])
    kept = [part for part in media if not is_dropped(part["inlineData"]["mimeType"])]
    dropped = [part["inlineData"]["mimeType"] for part in media if part not in kept]
    if kept:
        response["parts"] = kept
    if dropped:
        key, text = next(iter(response["response"].items()))
        response["response"] = {key: "\n".join([text, *map(_note, dropped)])}
    return dropped


def _note(mime_type: str) -> str:
    return f"[The {mime_type} is left out: the service did not accept it.]"
