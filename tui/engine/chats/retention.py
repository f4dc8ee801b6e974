"""Limit how much tool output a conversation keeps for the model.

The newest output stays whole. Older texts are clipped and older media dropped, so that a long
conversation neither grows without bound nor exceeds what the service takes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

_Wire = dict[str, Any]

_PLACE: Final = re.compile(r"contents\[(\d{1,6})\]\.parts\[(\d{1,6})\]")
_KINDS: Final = {
    "image": "image/",
    "document": "application/pdf",
    "pdf": "application/pdf",
    "audio": "audio/",
    "video": "video/",
}
"""Words of error messages, each with the start of the media types that they mean."""


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


MAX_TEXT_KEPT: Final = 4_000_000
"""Most characters of all tool texts together; about what the largest contexts hold."""

TEXT_LEFT: Final = MAX_TEXT_KEPT // 2
"""Characters kept whole once the limit was exceeded.

Well below the limit, since each cut changes the prefix that the service may have cached.
"""

MAX_OLD_TEXT: Final = 2_000
"""Characters kept of an older text."""

MAX_MEDIA_KEPT: Final = 12 * 1024 * 1024
"""Most base64 characters of all media together; the service takes 20 MB a request."""

_NOTICE: Final = 100
"""Longest notice about a cut, in characters; a text within this margin is not cut again."""


def forget_old(contents: list[_Wire]) -> None:
    """Clip old texts and drop old media in place; order and number of contents stay.

    Args:
        contents: A conversation in wire format, oldest first.
    """
    _forget_texts(contents)
    _forget_media(contents)


def _forget_texts(contents: list[_Wire]) -> None:
    newest_first = (part for content in reversed(contents) for part in reversed(content["parts"]))
    responses = [part["functionResponse"] for part in newest_first if _is_response(part)]
    if sum(len(text) for response in responses for text in _texts(response)) <= MAX_TEXT_KEPT:
        return
    room = TEXT_LEFT
    for response in responses:
        room -= sum(map(len, _texts(response)))
        if room < 0:
            response["response"] = {key: _cut(text) for key, text in response["response"].items()}


def _forget_media(contents: list[_Wire]) -> None:
    room = MAX_MEDIA_KEPT
    for content in reversed(contents):
        for index in reversed(range(len(content["parts"]))):
            part = content["parts"][index]
            if "inlineData" in part:
                room -= _size(part)
                if room < 0:
                    content["parts"][index] = {"text": _gone(part)}
            elif _is_response(part):
                room -= _forget_inner_media(part["functionResponse"], room)


def _forget_inner_media(response: _Wire, room: int) -> int:
    """Drop the media of a response beyond the limit; return the size of the rest."""
    taken = 0
    kept: list[_Wire] = []
    gone: list[_Wire] = []
    for part in response.get("parts", ()):
        taken += _size(part)
        (kept if taken <= room else gone).append(part)
    if gone:
        key, text = next(iter(response["response"].items()))
        response["response"] = {key: "\n".join([text, *map(_gone, gone)])}
        response["parts"] = kept
        if not kept:
            del response["parts"]
    return taken


def _is_response(part: _Wire) -> bool:
    return "functionResponse" in part


def _texts(response: _Wire) -> Iterator[str]:
    """Return the texts of a response."""
    yield from response["response"].values()


def _cut(text: str) -> str:
    if len(text) <= MAX_OLD_TEXT + _NOTICE:
        return text
    dropped = len(text) - MAX_OLD_TEXT
    return f"{text[:MAX_OLD_TEXT]}\n… [clipped; {dropped:,} characters were dropped]"


def _size(part: _Wire) -> int:
    return len(part["inlineData"]["data"])


def _gone(part: _Wire) -> str:
    return f"[The {part['inlineData']['mimeType']} is no longer kept.]"
