"""What the screens look like. After a wanted change: ``python3 -m tests tests/snapshots
--snapshot-update``, and a look at each picture that changed."""

import pytest

from tests.snapshots.decks import HISTORIES, NARROW, WIDE, Album, deck, press
from tui.model.trust import ImportOffer, ImportState
from tui.ui.dialogs.choices import ImportScreen

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


@pytest.mark.parametrize("name", HISTORIES)
async def test_the_main_screen(album: Album, name: str) -> None:
    wide = name in {"reading", "queued", "done"}
    await album.take_all(deck(HISTORIES[name]), name, wide=wide)


async def test_a_pane(album: Album) -> None:
    await album.take_all(deck(HISTORIES["ready"]), "slash", "slash")
    async with album.of(deck(HISTORIES["ready"]), NARROW) as pilot:
        await press(pilot, "f2")
        await album.take(pilot, "f2")
        await pilot.resize_terminal(*WIDE)
        await album.take(pilot, "f2")
        for key in ("f3", "f7"):
            await press(pilot, key)
            await album.take(pilot, key)


async def test_servers_of_other_clients(album: Album) -> None:
    async with album.of(deck(HISTORIES["ready"]), NARROW) as pilot:
        pilot.app.push_screen(ImportScreen((FILES, SEARCH), lambda one: one))
        await album.take(pilot, "")
        await pilot.resize_terminal(*WIDE)
        await album.take(pilot, "")
