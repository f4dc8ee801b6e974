"""Draws the widgets of a screen, but puts no frame together where nothing would show it.

Without a terminal Textual composes each frame and then drops it, a tenth of what a test of the
screen costs. The widgets are drawn all the same: one that cannot be drawn fails its test.
"""

from typing import Any

from textual._compositor import Compositor
from textual._context import active_app, visible_screen_stack
from textual.geometry import Region
from textual.screen import Screen

_whole_frame = Compositor.render_update


def render_update(
    self: Compositor,
    full: bool = False,
    screen_stack: list[Screen[Any]] | None = None,
    simplify: bool = False,
) -> object:
    """Give a frame where there is a terminal, or one is asked for; else only draw what changed."""
    if full or not active_app.get().is_headless:
        return _whole_frame(self, full, screen_stack, simplify)
    visible_screen_stack.set([] if screen_stack is None else screen_stack)
    screen = self.size.region
    changed = [*self._dirty_regions]
    self._dirty_regions.clear()
    if changed:
        crop = None if screen in changed else Region.from_union(changed).intersection(screen)
        for _ in self._get_renders(crop):
            pass
    return None


def plain_cache(_size: int) -> dict[Any, Any]:
    """Give a strip a cache without a limit, which costs nothing to make: strips are short-lived."""
    return {}
