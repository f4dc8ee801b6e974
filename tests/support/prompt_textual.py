"""What all tests of the screen share of Textual, so that each of them is over soon.

Every app parses the styles of all its widgets anew, a fifth of what a test of the screen costs, so
each style sheet is parsed once in a run: parsed rules are never changed; Textual itself keeps and
shares them within one app. Without a terminal Textual composes each frame and then drops it, a
tenth of the cost, so no frame is put together where nothing would show it. The widgets are drawn
all the same: one that cannot be drawn fails its test. What shows through a dialog was drawn before,
and is drawn again, dimmed, only where somebody looks.
"""

import gc
from collections.abc import Iterator
from typing import Any, Final

import pytest
import textual.app
import textual.pilot
import textual.strip
from textual._compositor import Compositor
from textual._context import active_app, visible_screen_stack
from textual.css import stylesheet
from textual.css.model import RuleSet
from textual.css.parse import parse
from textual.css.tokenize import tokenize_values
from textual.css.tokenizer import Token
from textual.css.types import CSSLocation
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from tests.support import idle

GC_THRESHOLDS: Final = (10_000, 20, 50)
"""Allocations, and younger collections, after which the collector looks for garbage."""

_tokens: dict[frozenset[tuple[str, str]], dict[str, list[Token]]] = {}
_rules: dict[object, tuple[object, list[RuleSet]]] = {}
"""What was parsed, with the variables it was parsed with, whose id stays theirs thereby."""


def tokenize_once(values: dict[str, str]) -> dict[str, list[Token]]:
    """Tokenize a theme's variables; the same variables give the same object."""
    key = frozenset(values.items())
    if key not in _tokens:
        _tokens[key] = tokenize_values(values)
    return _tokens[key]


def parse_once(
    scope: str,
    css: str,
    read_from: CSSLocation,
    variable_tokens: dict[str, list[Token]] | None = None,
    **options: Any,  # noqa: ANN401 - what Textual passes on
) -> list[RuleSet]:
    """Parse a style sheet, or give what it was parsed to before."""
    key = (scope, css, read_from, id(variable_tokens), *sorted(options.items()))
    if key not in _rules:
        rules = list(parse(scope, css, read_from, variable_tokens=variable_tokens, **options))
        _rules[key] = (variable_tokens, rules)
    return _rules[key][1]


NOBODY: Final[list[Screen[Any]]] = []
"""The screens behind a dialog while nobody looks at them."""

_whole_frame = Compositor.render_update
_lines = Screen.render_lines


def render_update(
    self: Compositor,
    full: bool = False,
    screen_stack: list[Screen[Any]] | None = None,
    simplify: bool = False,
) -> object:
    """Give a frame where there is a terminal, or one is asked for; else only draw what changed."""
    if full or not active_app.get().is_headless:
        return _whole_frame(self, full, screen_stack, simplify)
    visible_screen_stack.set(NOBODY)
    screen = self.size.region
    changed = [*self._dirty_regions]
    self._dirty_regions.clear()
    if changed:
        crop = None if screen in changed else Region.from_union(changed).intersection(screen)
        for _ in self._get_renders(crop):
            pass
    return None


def render_lines(self: Screen[Any], crop: Region) -> list[Strip]:
    """Draw what no widget of a screen covers; of a dialog that is what shows through it."""
    if visible_screen_stack.get(None) is NOBODY and self.styles.background.a < 1:
        return []
    return _lines(self, crop)


def plain_cache(_size: int) -> dict[Any, Any]:
    """Give a strip a cache without a limit, which costs nothing to make: strips are short-lived."""
    return {}


@pytest.fixture(autouse=True)
def prompt_textual() -> Iterator[None]:
    """Let a pilot wait no longer than for what is to do, and the app do nothing for nobody.

    Each style is parsed once, and no frame is put together for a terminal that is not there.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(textual.app, "wait_for_idle", idle.wait_for_idle)
        monkeypatch.setattr(textual.pilot, "wait_for_idle", idle.wait_for_idle)
        monkeypatch.setattr(textual.pilot.Pilot, "_wait_for_screen", idle.wait_for_turns)
        monkeypatch.setattr(stylesheet, "tokenize_values", tokenize_once)
        monkeypatch.setattr(stylesheet, "parse", parse_once)
        monkeypatch.setattr(textual.strip, "FIFOCache", plain_cache)
        monkeypatch.setattr(Compositor, "render_update", render_update)
        monkeypatch.setattr(Screen, "render_lines", render_lines)
        monkeypatch.setattr(RuleSet, "__hash__", object.__hash__)
        yield


def pytest_collection_finish() -> None:
    """Leave what stands once all tests are imported to no further search for garbage.

    Apps are made of cycles, so the collector runs often, and each time it would look through
    every module; that is a quarter of what these tests cost.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
