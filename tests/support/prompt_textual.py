"""What all tests of the screen share of Textual, so that each of them is over soon."""

import gc
from collections.abc import Iterator
from typing import Final

import pytest
import textual.app
import textual.pilot
import textual.strip
from textual._compositor import Compositor
from textual.css import stylesheet
from textual.css.model import RuleSet

from tests.support import idle
from tests.support.frames import plain_cache, render_update
from tests.support.style_cache import parse_once, tokenize_once

GC_THRESHOLDS: Final = (10_000, 20, 50)
"""Allocations, and younger collections, after which the collector looks for garbage."""


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
