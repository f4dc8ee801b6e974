"""What long lists and long results cost in the chat, beside Textual's own means in the same run."""

import asyncio
import gc
import statistics
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import process_time

import anyio
import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.fuzzy import FuzzySearch
from textual.widgets import Static

from tests.support.measures import Measure
from tests.ui.harness import ChatApp, running, until
from tui.engine.workspace import Workspace
from tui.model import events as e
from tui.model.catalog import Catalog, ResourceView
from tui.model.chat import EntryId, Severity, ToolCall, ToolCallStatus
from tui.model.runs import ToolRun, ToolRunChanged
from tui.model.servers import Origin, ServerId, ServerStatus, ServerView, Transport
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.dialogs.tool_run import RunScreen
from tui.ui.messages import ShowRun
from tui.ui.widgets.chat.completion import complete

NAMES = 10_000
TYPED = ("n", "no", "not", "note", "note 9", "zzqx")
ROUNDS = 3

RESULT = "\n".join(
    f"{number} " + "a line of a long result, as of a log" for number in range(45_000)
)
"""About 2 MB."""

SIZE = (120, 36)
TICK = 0.005
"""Seconds between two looks at the loop."""


@asynccontextmanager
async def lags(clock: Callable[[], float] = time.perf_counter) -> AsyncIterator[list[float]]:
    """Record by how much the loop lags behind, or how much of another time it takes meanwhile."""
    found, pause = list[float](), TICK if clock is time.perf_counter else 0.0

    async def tick() -> None:
        while True:
            began = clock()
            await asyncio.sleep(TICK)
            found.append(clock() - began - pause)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        yield found
        group.cancel_scope.cancel()


def p99(found: list[float]) -> float:
    return statistics.quantiles(found, n=100)[-1] if len(found) > 1 else 0.0


def library() -> ServerView:
    """Make a server with many resources."""
    resources = tuple(
        ResourceView(f"memo://shelf/{n % 97}/note-{n}", f"note {n}") for n in range(NAMES)
    )
    return ServerView(
        ServerId("notes"),
        Origin.USER,
        Transport.STDIO,
        "x",
        status=ServerStatus.READY,
        catalog=Catalog(resources=resources),
    )


def test_completing_resources_costs_less_than_the_stock_search(measure: Measure) -> None:
    view = library()
    names = [f"notes:{one.uri} {one.name}" for one in view.catalog.resources]
    ours, stock = [], []
    for _ in range(ROUNDS):
        for typed in TYPED:
            began = process_time()
            complete(f"see @{typed}", (view,))
            ours.append(process_time() - began)
            search, began = FuzzySearch(), process_time()
            for name in names:
                search.match(typed, name)
            stock.append(process_time() - began)
    ratio = statistics.median(ours) / statistics.median(stock)
    measure(
        f"{NAMES:,} resources: a letter takes {statistics.median(ours) * 1000:.0f} ms, at most "
        f"{max(ours) * 1000:.0f}; FuzzySearch {statistics.median(stock) * 1000:.0f} ms"
    )
    assert ratio < 1


@pytest.mark.quick
async def test_completing_paths_costs_less_than_the_stock_search(
    tmp_path: Path, measure: Measure
) -> None:
    for folder in range(100):
        place = tmp_path / f"folder-{folder}"
        place.mkdir()
        for number in range(NAMES // 100):
            (place / f"note-{number}.md").touch()
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n")
    workspace = Workspace(lambda: (tmp_path,))
    times: list[float] = []
    async with lags() as found:
        for typed in TYPED:
            began = process_time()
            await asyncio.to_thread(workspace.complete, typed, 10)
            times.append(process_time() - began)
    async with lags() as stock_found:
        began = process_time()
        await asyncio.to_thread(stock_search, tmp_path)
        stock = (process_time() - began) / len(TYPED)
    measure(
        f"{NAMES:,} files: listed and searched in {times[0] * 1000:.0f} ms, then at most "
        f"{max(times[1:]) * 1000:.0f} ms a letter, FuzzySearch {stock * 1000:.0f} ms; the loop "
        f"lags {p99(found) * 1000:.0f} ms (p99), beside it {p99(stock_found) * 1000:.0f} ms"
    )
    assert statistics.median(times[1:]) < stock


def stock_search(folder: Path) -> None:
    names = [str(path) for path in folder.rglob("*")]
    for typed in TYPED:
        search = FuzzySearch()
        for name in names:
            search.match(typed, name)


class Stock(App[None]):
    """Shows a text as Textual does."""

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(markup=False)


async def cost_of_stock() -> float:
    app = Stock()
    async with app.run_test(size=SIZE) as pilot:
        before = process_time()
        app.query_one(Static).update(RESULT)
        await pilot.pause()
        return process_time() - before


async def cost_of_ours() -> tuple[float, float]:
    """Give the CPU seconds that a result takes on the screen, and by how much the loop lags."""
    app = ChatApp()
    async with app.run_test(size=SIZE) as pilot:
        app.start_turn()
        call = ToolCall(EntryId("call"), ServerId("notes"), "read_log", "{}")
        app.store.dispatch(e.ToolCallRequested(call))
        await pilot.pause()
        async with lags() as found:
            before = process_time()
            app.store.dispatch(
                e.ToolCallChanged(EntryId("call"), ToolCallStatus.OK, 0.1, result=RESULT)
            )
            await until(pilot, lambda: app.chat.transcript.views[-1].entry is not call)
            await pilot.pause()
            used = process_time() - before
            await asyncio.sleep(0.5)
        return used, p99(found)


@pytest.mark.timeout(120)
async def test_a_long_result_costs_less_than_in_the_stock_widget(measure: Measure) -> None:
    stock, (ours, lag) = await cost_of_stock(), await cost_of_ours()
    measure(
        f"a result of {len(RESULT) / 1e6:.1f} MB: {ours * 1000:.0f} ms on the screen, Static "
        f"{stock * 1000:.0f} ms; the loop lags {lag * 1000:.0f} ms (p99)"
    )
    assert ours < stock


LARGE = "\n".join(f"{number} " + "a line of a result of ten megabytes" for number in range(240_000))
"""About 10 MB."""


@pytest.mark.timeout(120)
async def test_a_result_of_ten_megabytes_opens_at_once_and_is_held_once_more(
    measure: Measure,
) -> None:
    call = ToolCall(EntryId("r"), ServerId("notes"), "read_log", "{}", ToolCallStatus.OK, 1, LARGE)
    content = {"content": [{"type": "text", "text": LARGE}]}
    store = Store(AppState())
    store.dispatch(ToolRunChanged(ToolRun(call, content, size=len(LARGE))))
    stock = await cost_of_stock()
    async with running(store, SIZE) as deck:
        before, began = process_time(), time.perf_counter()
        deck.app.deck.post_message(ShowRun(store.state.runs[call.id]))
        await deck.until(lambda: deck.on_top(RunScreen) and "9 a line of" in deck.text)
        used, seconds = process_time() - before, time.perf_counter() - began
        await deck.press("escape")
        gc.collect()
        tracemalloc.start()
        deck.app.deck.post_message(ShowRun(store.state.runs[call.id]))
        await deck.until(lambda: deck.on_top(RunScreen) and "9 a line of" in deck.text)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        await deck.press("escape")
        await deck.until(lambda: not deck.on_top(RunScreen))
        await deck.happen(e.NoticeRaised(e.Notice(Severity.INFO, "another state")))
        gc.collect()
        left = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    measure(
        f"a result of {len(LARGE) / 1e6:.1f} MB: {seconds * 1000:.0f} ms until it is read, "
        f"{used * 1000:.0f} ms of CPU; Static takes {stock * 1000:.0f} ms for "
        f"{len(RESULT) / 1e6:.1f} MB; {held / 1e6:.0f} MB while it is shown, {left / 1e6:.1f} after"
    )
    assert used < stock, "five times as much in less time"
    assert held < 0.8 * len(LARGE), "it is not held twice"
    assert left < 0.2 * len(LARGE)
