"""What it costs to stream Markdown, beside Textual's own `MarkdownStream`, in one run."""

from collections.abc import Awaitable, Callable
from time import monotonic, process_time

import anyio
import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Markdown

from tests.support.measures import Measure
from tests.ui.harness import ChatApp, until
from tui.model import events as e
from tui.model.chat import EntryId
from tui.ui.widgets.chat.entries import ModelEntry, ThoughtEntry

CHUNK = 4
CHUNKS_PER_SECOND = 100
SIZE = (120, 40)
LENGTH = 1_000

BULLETS = "".join(
    f"- item {number} with **bold**, `code` and some more words to read\n" for number in range(200)
)
TABLE = "| name | count | note |\n|---|---:|---|\n" + "".join(
    f"| row {number} | {number} | some `code` |\n" for number in range(200)
)
DOCUMENTS = {"bullets": BULLETS, "table": TABLE}

THOUGHT = "".join(
    f"**Part {number}**\n\nI look at it, and at what it may have to do with the rest.\n\n"
    for number in range(40)
)

Streamed = type[e.TextStreamed] | type[e.ThoughtStreamed]

FOLDED_BUDGET = 0.5
"""Share of the cost of an answer that a folded thought may take; about a fifth is measured."""

BUDGET = 0.7
"""Share of the stock cost that streaming may take; about a fifth is measured."""


class StockApp(App[None]):
    """One Markdown widget in a scrolling container, as Textual's documentation has it."""

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Markdown()


async def at_pace(text: str, write: Callable[[str], Awaitable[None]]) -> None:
    """Hand out `CHUNK` characters a hundred times a second, catching up where it is late."""
    began = monotonic()
    for number, start in enumerate(range(0, len(text), CHUNK), 1):
        await write(text[start : start + CHUNK])
        await anyio.sleep(max(0.0, began + number / CHUNKS_PER_SECOND - monotonic()))


async def cost_of_stock(text: str) -> float:
    """Give the CPU seconds that `MarkdownStream` takes for the text."""
    app = StockApp()
    async with app.run_test(size=SIZE) as pilot:
        app.query_one(VerticalScroll).anchor()
        markdown = app.query_one(Markdown)
        await pilot.pause()
        before = process_time()
        stream = Markdown.get_stream(markdown)
        await at_pace(text, stream.write)
        await stream.stop()
        await pilot.pause()
        assert markdown.source == text
        return process_time() - before


async def cost_of_ours(text: str, event: Streamed | None = e.TextStreamed) -> float:
    """Give the CPU seconds that the whole way from the store to the screen takes.

    Without an event nothing is streamed: that is what the clock of this test itself takes.
    """
    app = ChatApp()
    async with app.run_test(size=SIZE) as pilot:
        app.start_turn()
        await pilot.pause()
        before = process_time()

        async def write(piece: str) -> None:
            if event is not None:
                app.store.dispatch(event(EntryId("answer"), piece))

        await at_pace(text, write)
        app.store.dispatch(e.EntryCompleted(EntryId("answer")))
        await pilot.pause(0.1)
        if event is not None:
            view = app.chat.transcript.views[-1]
            assert isinstance(view, ModelEntry | ThoughtEntry)
            await until(pilot, lambda: view.entry.complete)
            assert view.full_text() == text
        return process_time() - before


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", DOCUMENTS)
async def test_streaming_costs_less_than_the_stock_widget(name: str, measure: Measure) -> None:
    text = DOCUMENTS[name][:LENGTH]
    seconds = len(text) / CHUNK / CHUNKS_PER_SECOND
    ours = await cost_of_ours(text)
    stock = await cost_of_stock(text)
    measure(
        f"streamed {name}: {ours / seconds:.0%} of a core, MarkdownStream {stock / seconds:.0%},"
        f" ratio {ours / stock:.2f}"
    )
    assert ours < stock * BUDGET


@pytest.mark.timeout(120)
async def test_a_folded_thought_costs_next_to_nothing(measure: Measure) -> None:
    text = THOUGHT[:LENGTH]
    seconds = len(text) / CHUNK / CHUNKS_PER_SECOND
    clock = await cost_of_ours(text, None)
    thought = await cost_of_ours(text, e.ThoughtStreamed) - clock
    answer = await cost_of_ours(text) - clock
    measure(
        f"streamed a folded thought: {thought / seconds:.1%} of a core, the same as an answer"
        f" {answer / seconds:.1%}"
    )
    assert thought < answer * FOLDED_BUDGET
