"""Fixtures of the unit tests."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def settled_heap() -> Iterator[None]:
    """Keep the collector off what earlier tests left, whose size would show as held-up loops."""
    gc.freeze()
    yield
    gc.unfreeze()
