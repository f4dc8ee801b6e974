"""Servers of other clients on the screen: seen whole, taken over one by one."""

from dataclasses import replace

from tests.ui.harness import running
from tests.ui.shell import decks
from tui.engine.settings.edits import EditError
from tui.model.trust import ImportOffer, ImportState
from tui.ui.dialogs.choices import ImportScreen

FILES = ImportOffer(
    "Cursor",
    "~/.cursor/mcp.json",
    "files",
    ImportState.NEW,
    command=("npx", "-y", "@acme/files", "[red]/home"),
    env=("TOKEN",),
    warnings=("Not pinned (@acme/files).",),
)
OTHER = replace(FILES, server="other", state=ImportState.TAKEN, warnings=())


async def test_a_server_is_shown_whole_and_taken_over_once() -> None:
    taken: list[str] = []

    def take(offer: ImportOffer) -> ImportOffer:
        taken.append(offer.server)
        return replace(offer, state=ImportState.WRITTEN)

    async with running(decks.new_store()) as deck:
        deck.app.push_screen(ImportScreen([FILES, OTHER], take))
        await deck.until(lambda: "variable   TOKEN" in deck.text)
        for words in ("! Not pinned (@acme/files).", "argument   [red]/home", "name is taken here"):
            assert words in deck.text
        await deck.press("enter")
        await deck.until(lambda: "written" in deck.text)
        await deck.press("enter", "down", "enter")
        assert taken == ["files"]
        await deck.press("escape")
        await deck.until(lambda: "Servers of other clients" not in deck.text)


async def test_what_cannot_be_written_is_said() -> None:
    def refuse(_offer: ImportOffer) -> ImportOffer:
        raise EditError("line 3: not valid JSON")

    async with running(decks.new_store()) as deck:
        deck.app.push_screen(ImportScreen([FILES], refuse))
        await deck.until(lambda: "variable   TOKEN" in deck.text)
        await deck.press("enter")
        await deck.until(lambda: "line 3: not valid JSON" in deck.text)


async def test_without_other_clients_the_action_says_so() -> None:
    async with running(decks.new_store()) as deck:
        await deck.app.run_action("open('imports')")
        await deck.until(lambda: "No servers of other clients were found." in deck.text)
