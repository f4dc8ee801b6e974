"""What a patient user sees of a question, and what a hand that rests on a key does to it."""

from typing import Any, Final

from textual.widget import Widget

from tests.ui.hands import Hands

KEY_REPEAT_SECONDS: Final = 0.03
"""How fast a held key comes."""

HELD_KEYS: Final = 25
"""How often it comes here."""


async def rows_seen_by_paging(hands: Hands[Any], view: Widget) -> list[str]:
    """Page through a text as a user does, and collect each row that was on the screen once."""
    seen: dict[int, str] = {}
    while True:
        top = view.scroll_offset.y
        box = view.content_region
        lines = hands.text.split("\n")[box.y : box.bottom]
        right = box.x + min(box.width, view.virtual_size.width)
        seen |= {top + n: line[box.x : right].rstrip("▁▂▃▄▅▆▇█ ") for n, line in enumerate(lines)}
        await hands.press("pagedown")
        await hands.pilot.pause()
        if view.scroll_offset.y == top:
            return [seen[row] for row in sorted(seen)]


async def hold(hands: Hands[Any], key: str) -> None:
    """Hold a key down for a while."""
    for _ in range(HELD_KEYS):
        hands.clock.advance(KEY_REPEAT_SECONDS)
        await hands.pilot.press(key)
