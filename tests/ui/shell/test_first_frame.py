"""What stands in the first frame: what it shows, and nothing that could come after it."""

from typing import Final

from tests.fakes.commands import RecordingCommands
from tests.ui.harness import WIDE, screen_lines, until
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.panes.browser import ToolsPane
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.transcript import Transcript

MAX_WIDGETS: Final = 16
MAX_RULES: Final = 90
"""A minimal app with a header, a field and a footer has 57."""


async def test_the_first_frame_shows_the_deck_with_few_widgets_and_styles() -> None:
    counts: list[int] = []
    lines: list[str] = []

    def look() -> None:
        counts.extend((len(app.deck.walk_children()), len(app.stylesheet.rules)))
        lines.extend(screen_lines(app))

    app = GemdeckApp(Store(), RecordingCommands(), preferences=UiPreferences(), on_first_paint=look)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.deck.query(ToolsPane))
        assert app.deck.query(Transcript)
        assert app.deck.query(ServersTree)
    widgets, rules = counts
    assert widgets <= MAX_WIDGETS
    assert rules <= MAX_RULES
    text = "\n".join(lines)
    for words in ("gemdeck", "Reading the settings", "What would you like to do?", "message   /"):
        assert words in text, words
