"""The terminal's background: how it is asked for, and what the answers say."""

import re
from typing import Final

from textual.message import Message

ASK: Final = "\x1b]11;?\x1b\\\x1b[?2031h"
"""Asks for the color, and for word of later changes."""

ASK_NO_MORE: Final = "\x1b[?2031l"

_COLOR: Final = re.compile(
    r"\x1b\]11;rgba?:([\da-f]{1,4})/([\da-f]{1,4})/([\da-f]{1,4})(?:/[\da-f]{1,4})?(?:\x07|\x1b\\|\x9c)\Z",
    re.IGNORECASE,
)
_SCHEME: Final = re.compile(r"\x1b\[\?997;([12])n\Z")


class BackgroundReported(Message):
    """The terminal told its background."""

    def __init__(self, *, is_dark: bool) -> None:
        super().__init__()
        self.is_dark = is_dark


def read_background(answer: str) -> BackgroundReported | None:
    """Return what an answer of the terminal says of its background; None if it says nothing."""
    if scheme := _SCHEME.search(answer):
        return BackgroundReported(is_dark=scheme[1] == "1")
    if (color := _COLOR.search(answer)) is None:
        return None
    red, green, blue = (int(one, 16) / (16 ** len(one) - 1) for one in color.groups())
    return BackgroundReported(is_dark=0.3 * red + 0.59 * green + 0.11 * blue < 0.5)
