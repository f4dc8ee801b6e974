"""What the app holds in memory: with two servers and a model, and after many turns."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.benchmarks.test_start_up import home_in, settle
from tests.fakes.gemini import FakeGemini, Request, Step
from tests.fakes.gemini_script import Action, Call, Say
from tests.support.measures import Measure
from tests.support.terminal import Terminal

BUDGET: Final = 100
"""Megabytes (PSS) with two servers and a model."""

LIMIT: Final = 125
"""The same, as it fails the test."""

GROWTH_BUDGET: Final = 10
"""Megabytes of many turns, beyond the same session when it was resumed."""

GROWTH_LIMIT: Final = 40

WORDS: Final = (
    5 * "The basil needs water **twice** a week, and `mint` more often. See the list below. "
)


class Deck:
    """Starts the app in a home with two servers, from modules that are compiled."""

    def __init__(self, folder: Path, address: str = "http://127.0.0.1:9") -> None:
        self._env = home_in(folder, address)
        with self.start() as terminal:  # compiles, which takes memory
            terminal.wait_for("gemini-")

    def start(self, *arguments: str) -> Terminal:
        terminal = Terminal(
            [sys.executable, "-m", "tui", *arguments], env=self._env, cwd=Path(self._env["HOME"])
        )
        terminal.wait_for("2 ready")
        return terminal


def megabytes(terminal: Terminal, kind: str = "rss") -> float:
    """Measure the app alone, once it rests."""
    app = psutil.Process(terminal.pid)
    settle(app)
    return float(getattr(app.memory_full_info(), kind)) / 1e6


def ask(terminal: Terminal, number: int) -> None:
    terminal.type(f"question {number}\r")
    terminal.wait_for(f"Answer {number}.")
    terminal.forget()  # it writes some 60 kB a turn


def grow(deck: Deck, texts: int, tools: int) -> dict[str, float]:
    """Have these turns, resume their session and have another turn; give the megabytes."""
    with deck.start() as terminal:
        for number in range(texts):
            ask(terminal, number)
        after_texts = megabytes(terminal)
        for number in range(texts, texts + tools):
            ask(terminal, number)
        after_tools = megabytes(terminal)
        terminal.type("/quit\r")
        terminal.wait_for_exit()
    with deck.start("--resume") as terminal:
        terminal.wait_for(f"Answer {texts + tools - 1}.")
        resumed = megabytes(terminal)
        ask(terminal, texts + tools)
        return {
            "after the texts": after_texts,
            "after the tools": after_tools,
            "resumed": resumed,
            "resumed and with a call": megabytes(terminal),
        }


def model(texts: int) -> Step:
    """Answer each question with its number; from the given one on, after a call."""

    def step(request: Request) -> Sequence[Action]:
        last = request.contents[-1]["parts"][-1]
        asked = [
            part["text"] for one in request.contents for part in one["parts"] if "text" in part
        ]
        number = next(int(text.split()[1]) for text in reversed(asked) if "question" in text)
        if "functionResponse" not in last and number >= texts:
            return [Call([("add", {"a": number})])]
        return [Say(WORDS), Say(f"Answer {number}.")]

    return step


def test_the_memory_with_two_servers_and_a_model(tmp_path: Path, measure: Measure) -> None:
    with Deck(tmp_path).start() as terminal:
        terminal.wait_for("gemini-")
        resident, own = megabytes(terminal), megabytes(terminal, "pss")
    measure(
        f"memory with two servers and a model: {own:.0f} MB PSS (budget {BUDGET}), "
        f"{resident:.0f} MB resident"
    )
    assert own < LIMIT


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("texts", "tools"), [(60, 20), pytest.param(500, 200, marks=pytest.mark.long)]
)
async def test_turns_grow_it_by_little_more_than_what_was_said(
    texts: int, tools: int, tmp_path: Path, measure: Measure
) -> None:
    async with FakeGemini() as fake:
        fake.steps = [model(texts)] * (texts + 2 * tools + 2)
        deck = await asyncio.to_thread(Deck, tmp_path, fake.url)
        found = await asyncio.to_thread(grow, deck, texts, tools)
        assert fake.violations == []
    figures = ", ".join(f"{name} {value:.0f} MB" for name, value in found.items())
    growth = found["after the tools"] - found["resumed and with a call"]
    measure(f"{texts} turns of text and {tools} with a tool, resident: {figures}")
    measure(f"growth beyond a resumed session: {growth:.0f} MB (budget {GROWTH_BUDGET})")
    assert growth < GROWTH_LIMIT
