"""What the screens look like. After a wanted change: ``python3 -m tests tests/snapshots
--snapshot-update``, and a look at each picture that changed."""

from collections.abc import Callable

import pytest

from tests.snapshots.decks import HISTORIES, SIZES, deck, pressing

SnapCompare = Callable[..., bool]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", HISTORIES)
def test_the_main_screen(snap_compare: SnapCompare, name: str, size: tuple[int, int]) -> None:
    assert snap_compare(deck(name), terminal_size=size, run_before=pressing())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("key", ["f2", "f3", "f7", "slash"])
def test_a_pane(snap_compare: SnapCompare, key: str, size: tuple[int, int]) -> None:
    assert snap_compare(deck("ready"), terminal_size=size, run_before=pressing(key))
