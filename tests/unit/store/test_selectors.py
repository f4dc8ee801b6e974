"""What panes ask of the state."""

from dataclasses import replace

import pytest

from tests.support.samples import SERVER, TEXT, TURN, populated_state, server_view
from tui.model import events as e
from tui.model.chat import TurnOutcome
from tui.model.servers import ServerId, ServerStatus
from tui.store import selectors
from tui.store.reducer import reduce
from tui.store.state import AppState

_S = ServerStatus


def with_statuses(*statuses: ServerStatus) -> AppState:
    views = tuple(server_view(f"s{number}", status) for number, status in enumerate(statuses))
    return reduce(AppState(), e.ServersConfigured(views))


def test_servers_are_found_by_id() -> None:
    state = populated_state()
    assert selectors.server(state, SERVER) is state.servers[0]
    assert selectors.server(state, ServerId("nobody")) is None


def test_servers_are_counted_by_status_without_the_disabled_ones() -> None:
    state = with_statuses(_S.FAILED, _S.READY, _S.STARTING, _S.READY, _S.DISABLED)
    counts = ((_S.READY, 2), (_S.FAILED, 1), (_S.STARTING, 1))
    assert selectors.server_counts(state) == counts
    assert selectors.server_counts(with_statuses(_S.DISABLED)) == ()


@pytest.mark.parametrize("status", [one for one in ServerStatus if one is not _S.DISABLED])
def test_no_status_is_left_out_of_the_count(status: ServerStatus) -> None:
    assert selectors.server_counts(with_statuses(status)) == ((status, 1),)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        *((0, ""), (1, "waiting for s1"), (2, "waiting for s1, s2"), (3, "waiting for s1, s2, +1")),
        (4, "waiting for s1, s2, +2"),
    ],
)
def test_awaited_servers_are_named_or_counted(count: int, words: str) -> None:
    state = with_statuses(_S.READY, *[_S.STARTING] * count)
    assert selectors.waiting_text(state) == words


def test_a_start_counts_from_the_server_that_has_been_starting_longest() -> None:
    state = with_statuses(_S.READY, _S.STARTING, _S.STARTING, _S.STARTING)
    assert selectors.starting_since(state) == 0
    views = tuple(replace(view, since=n * 10.0) for n, view in enumerate(state.servers))
    assert selectors.starting_since(replace(state, servers=views)) == 10


def test_entries_span_settled_and_live_turns() -> None:
    before = populated_state()
    finished = reduce(before, e.TurnFinished(TURN, TurnOutcome.COMPLETED))
    ids = [entry.id for entry in selectors.entries(finished)]
    assert ids == [*(entry.id for entry in selectors.entries(before)), f"{TURN}-end"]
    more = reduce(finished, e.TextStreamed(TEXT, "more"))
    assert [entry.id for entry in selectors.entries(more)] == [*ids, TEXT]
