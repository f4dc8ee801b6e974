"""The last door before the terminal: no control character passes, whatever let it through."""

import re
from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


class ControlCharacterFilter(LineFilter):
    """Replaces C0, DEL and C1 characters in what widgets draw.

    Text from outside is made safe where it enters; this holds where that was forgotten, and for
    what the user pastes. Control segments are the driver's own and pass.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        """Give the segments with each control character replaced by U+FFFD."""
        if not any(_CONTROL.search(segment.text) for segment in segments):
            return segments
        return [
            segment
            if segment.control is not None
            else Segment(_CONTROL.sub("\ufffd", segment.text), segment.style)
            for segment in segments
        ]
