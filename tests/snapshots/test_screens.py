"""What the screens look like. After a wanted change: ``python3 -m tests tests/snapshots
--snapshot-update``, and a look at each picture that changed."""

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.snapshots.decks import (
    HISTORIES,
    SIZES,
    deck,
    pressing,
    settle,
    wait_until_filled,
)
from tui.model.trust import ImportOffer, ImportState
from tui.ui.dialogs.server_imports import ImportScreen

SnapCompare = Callable[..., bool]

FILES = ImportOffer(
    "Claude Desktop",
    "~/.config/Claude/claude_desktop_config.json",
    "files",
    ImportState.NEW,
    command=("npx", "-y", "@acme/server-files", "/home/me/notes"),
    env=("FILES_TOKEN",),
    warnings=(
        "Not pinned (@acme/server-files): whoever publishes the package decides what runs next"
        " time.",
    ),
)
SEARCH = ImportOffer(
    "Cursor",
    "~/.cursor/mcp.json",
    "search",
    ImportState.TAKEN,
    address="https://search.example.com/mcp",
    headers=("Authorization",),
)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", HISTORIES)
def test_the_main_screen(snap_compare: SnapCompare, name: str, size: tuple[int, int]) -> None:
    assert snap_compare(deck(name), terminal_size=size, run_before=pressing())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("key", ["f2", "f3", "f7", "slash"])
def test_a_pane(snap_compare: SnapCompare, key: str, size: tuple[int, int]) -> None:
    assert snap_compare(deck("ready"), terminal_size=size, run_before=pressing(key))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_servers_of_other_clients(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    async def offer(pilot: Pilot[Any]) -> None:
        await wait_until_filled(pilot)
        pilot.app.push_screen(ImportScreen((FILES, SEARCH), lambda one: one))
        await settle(pilot)

    assert snap_compare(deck("ready"), terminal_size=size, run_before=offer)
