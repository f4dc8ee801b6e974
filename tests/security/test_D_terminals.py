"""The program in terminals that are odd, tiny, torn or not there."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.terminal import Terminal

RESIZES = 25


def test_D14_a_storm_of_resizes_neither_ends_the_app_nor_leaves_it_torn(tmp_path: Path) -> None:
    sizes = random.Random(14)
    with Terminal(warm.deck("--demo"), cwd=tmp_path) as terminal:
        terminal.wait_for("1 ready")
        for _ in range(RESIZES):
            terminal.resize(sizes.randint(1, 200), sizes.randint(1, 60))
        terminal.resize(1, 1)
        terminal.resize(120, 36)
        screen = terminal.wait_for("1 ready")
        assert "Traceback" not in screen
        terminal.type("still here")
        terminal.wait_for("> still here")
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "NO_COLOR": "1"},
        {"TERM": "dumb", "COLORTERM": ""},
    ],
    ids=["neither UTF-8 nor colours", "a dumb terminal"],
)
def test_D19_an_odd_terminal_gets_the_deck_or_a_word(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    with Terminal(warm.deck("--demo"), cwd=tmp_path, env=environment) as terminal:
        screen = terminal.wait_for("1 ready")
        assert "Traceback" not in screen
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0
