"""What an event costs on its way to the screen."""

import time
from collections.abc import Callable
from typing import Final

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Label

from tests.support.measures import Measure
from tests.support.samples import SERVER, TURN, populated_state, server_view
from tests.support.waiting import eventually
from tui.model import events as e
from tui.model.chat import EntryId, TurnPhase, Usage
from tui.model.servers import ServerStatus
from tui.store import selectors
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Listener, Store
from tui.ui.bridge import MIN_INTERVAL, StoreBridge

SUBSCRIBERS: Final = 20
EVENTS: Final = 10_000
ROUNDS: Final = 3

DISPATCH_LIMIT: Final = 200
"""One dispatch to all subscribers as a multiple of calling as many bare functions.

Machines differ by half of it in how quick a bare call is.
"""


def stream() -> list[e.Event]:
    """Make what a busy turn publishes: mostly text, now and then something else."""
    made: list[e.Event] = []
    for number in range(EVENTS // 10):
        made += [e.TextStreamed(EntryId(f"t{number // 50}"), "four") for _ in range(7)]
        made.append(e.TurnPhaseChanged(TURN, list(TurnPhase)[number % 3]))
        made.append(e.UsageReported(Usage(prompt=number + 1)))
        made.append(e.ServerStatusChanged(SERVER, list(ServerStatus)[number % 10]))
    return made


def on_change(
    store: Store, question: Callable[[AppState], object], hear: Callable[[object], None]
) -> Listener:
    """Make a listener that hears of a part of the state only when it changed."""
    last = question(store.state)

    def listen(state: AppState) -> None:
        nonlocal last
        value = question(state)
        if value is not last and value != last:
            last = value
            hear(value)

    return listen


def subscribe_panes(store: Store, hear: Callable[[object], None]) -> None:
    """Subscribe as the panes of a screen do."""
    questions: tuple[Callable[[AppState], object], ...] = (
        lambda state: state.conversation.transcript,
        lambda state: state.conversation.turn,
        lambda state: state.conversation.usage,
        lambda state: state.servers,
        lambda state: state.pending,
        selectors.server_counts,
        lambda state: state.pending[:1],
        lambda state: state.notices,
        lambda state: selectors.server(state, SERVER),
    )
    for number in range(SUBSCRIBERS):
        store.listen(on_change(store, questions[number % len(questions)], hear))


@pytest.mark.quick
def test_dispatching_costs_little_more_than_the_calls(measure: Measure) -> None:
    heard: list[object] = []
    events = stream()
    bare = [heard.append] * SUBSCRIBERS
    dispatching, calling = [], []
    for _ in range(ROUNDS):
        store = Store(populated_state())
        subscribe_panes(store, heard.append)
        started = time.process_time()
        for event in events:
            store.dispatch(event)
        dispatching.append(time.process_time() - started)
        assert len(heard) > EVENTS
        heard.clear()

        started = time.process_time()
        for event in events:
            for call in bare:
                call(event)
        calling.append(time.process_time() - started)
        heard.clear()

    dispatched, called = min(dispatching), min(calling)
    ratio = dispatched / called
    measure(
        f"dispatch: {dispatched / EVENTS * 1e6:.1f} µs an event with {SUBSCRIBERS} subscribers, "
        f"{ratio:.0f} times as many bare calls (limit {DISPATCH_LIMIT})"
    )
    assert ratio < DISPATCH_LIMIT


@pytest.mark.quick
async def test_ten_thousand_events_are_a_handful_of_updates(measure: Measure) -> None:
    class Shown(App[None]):
        def compose(self) -> ComposeResult:
            yield Label("nothing yet", markup=False)

    store = Store(populated_state())
    app = Shown()
    async with app.run_test() as pilot:
        bridge = StoreBridge(app, store, Commands(store.dispatch))
        bridge.start()
        label = app.query_one(Label)
        shown: list[str] = []

        def show(servers: object) -> None:
            shown.append(str(servers))
            label.update(f"{len(shown)}")

        bridge.watch(label, lambda state: (state.servers, state.conversation.transcript.live), show)
        events = stream()
        started = time.monotonic()
        for number, event in enumerate(events):
            store.dispatch(event)
            if number % 100 == 0:
                await pilot.pause(0)
        store.dispatch(e.ServersConfigured((server_view("last"),)))
        await eventually(lambda: shown and "last" in shown[-1])
        seconds = time.monotonic() - started
        bridge.stop()

    measure(f"bridge: {EVENTS} events in {seconds:.2f} s became {len(shown)} updates of a widget")
    assert len(shown) <= seconds / MIN_INTERVAL + 3
