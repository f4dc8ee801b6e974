"""Limit how much tool output a conversation keeps for the model.

The newest output stays whole. Older texts are clipped and older media dropped, so that a long
conversation neither grows without bound nor exceeds what the service takes.
"""

from collections.abc import Iterator
from typing import Any, Final

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

_Wire = dict[str, Any]


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
