"""Only what differs is written, and the terminal shows the same as if all were."""

import random
from io import StringIO
from itertools import pairwise
from typing import Final

import pyte
import pytest
from rich.console import Console
from rich.segment import Segment
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from tui.ui.terminal.drawn import ChangesOnly, Drawn

WIDTH: Final = 24
ROWS: Final = 4
CUTS: Final = ((0, 8, WIDTH), (0, 4, 8, 15, WIDTH), (0, WIDTH))
WORDS: Final = ("plain", "│ box", "日本語", "é e\u0301", "")


def piece(words: str, width: int) -> Strip:
    return Strip([Segment(words)]).adjust_cell_length(width)


def partial(chance: random.Random) -> ChopsUpdate:
    """Draw some spans of lines that are cut anywhere."""
    lines = [chance.choice(CUTS) for _ in range(ROWS)]
    chops = [
        {x: piece(chance.choice(WORDS), end - x) for x, end in pairwise(cuts)} for cuts in lines
    ]
    spans = []
    for y in range(ROWS):
        first, last = sorted(chance.sample(range(WIDTH + 1), 2))
        spans += [(y, 0, WIDTH)] if chance.random() < 0.6 else [(y, first, last)]
    return ChopsUpdate(chops, spans, [list(cuts[1:]) for cuts in lines])


def whole(chance: random.Random) -> LayoutUpdate:
    strips = [[piece(chance.choice(WORDS), WIDTH)] for _ in range(ROWS)]
    return LayoutUpdate([*strips], Region(0, 0, WIDTH, ROWS))


def cells(screen: pyte.Screen) -> list[str]:
    return [screen.buffer[y][x].data for y in range(ROWS) for x in range(WIDTH)]


@pytest.mark.parametrize("seed", range(8))
def test_the_terminal_shows_the_same(seed: int) -> None:
    chance, drawn = random.Random(seed), Drawn()
    console = Console(file=StringIO(), width=WIDTH, force_terminal=True, color_system="truecolor")
    screens = pyte.Screen(WIDTH, ROWS), pyte.Screen(WIDTH, ROWS)
    streams = [pyte.Stream(screen) for screen in screens]
    written = [0, 0]
    for _ in range(60):
        update = (whole if chance.random() < 0.1 else partial)(chance)
        if chance.random() < 0.05:
            drawn.forget()
        twice = update.render_segments(console), ChangesOnly(update, drawn).render_segments(console)
        for number, text in enumerate(twice):
            streams[number].feed(text.replace("\n", "\r\n"))
            written[number] += len(text)
        assert cells(screens[0]) == cells(screens[1])
    assert written[1] < written[0]


def test_what_is_there_is_not_written_again_unless_it_may_have_moved() -> None:
    console, drawn = Console(file=StringIO(), width=WIDTH), Drawn()

    def written(*words: str) -> str:
        cuts = [0, 8, 16, WIDTH]
        chops = {x: piece(one, 8) for x, one in zip(cuts, words, strict=False)}
        update = ChopsUpdate([chops], [(0, 0, WIDTH)], [cuts[1:]])
        return ChangesOnly(update, drawn).render_segments(console)

    assert "one" in written("one", "two", "three")
    assert written("one", "two", "three") == ""
    assert written("one", "2", "three").split() == ["\x1b[1;9H2"]
    changed = written("one", "🇳🇴", "three")
    assert "one" not in changed
    assert "three" in changed, "a terminal may draw a flag wider, over what follows"
    drawn.forget()
    assert "one" in written("one", "🇳🇴", "three")
