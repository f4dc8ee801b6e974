"""Pictures come from a Textual and from questions that keep them waiting for nothing."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.snapshots.decks import SHORT_ARMING, Album
from tests.support.prompt_textual import prompt_textual, pytest_collection_finish
from tui.ui.questions import arming

__all__ = ["prompt_textual", "pytest_collection_finish"]


@pytest.fixture(autouse=True)
def any_machine() -> Iterator[None]:
    """Make the pictures the same on a slow machine and on one elsewhere.

    A question takes an answer soon: a picture shows that it does, not when. Times are those of
    Greenwich.
    """
    time.tzset()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(arming, "ARMING_SECONDS", SHORT_ARMING)
        yield


@pytest.fixture
def album(snapshot: SnapshotAssertion, tmp_path: Path) -> Iterator[Album]:
    """Give the pictures of a test, which fails in the end if one looks otherwise."""
    pictures = Album(snapshot, tmp_path)
    yield pictures
    assert pictures.changed == []
