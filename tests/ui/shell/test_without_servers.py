"""The servers pane while there are none."""

from tests.ui.harness import running
from tests.ui.shell import decks
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised


async def test_before_and_without_servers_the_pane_says_what_happens_and_what_to_do() -> None:
    async with running(decks.new_store()) as deck:
        assert "Reading the settings" in deck.text
        decks.configure(deck.store)
        await deck.settle()
        assert "No servers yet." in deck.text
        assert "~/.gemini/settings.json" in deck.text
        await deck.press("f2", "d")
        assert deck.commands.calls == [("start_demo_servers", ())]


async def test_without_servers_the_last_error_stays_in_sight() -> None:
    async with running(decks.new_store()) as deck:
        decks.configure(deck.store)
        words = "~/.gemini/settings.json:3: not valid JSON"
        deck.dispatch(NoticeRaised(Notice(Severity.ERROR, words)))
        await deck.until(lambda: "not valid JSON" in deck.text)
        assert "No servers yet." in deck.text
