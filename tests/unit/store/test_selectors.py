"""What panes ask of the state."""

import pytest

from tests.support.samples import (
    SERVER,
    TEXT,
    TURN,
    populated_state,
    server_view,
)
from tui.model import events as e
from tui.model.chat import TurnOutcome
from tui.model.servers import ServerId, ServerStatus
from tui.store import selectors
from tui.store.reducer import reduce
from tui.store.selectors import Discovery
from tui.store.state import AppState


def with_statuses(*statuses: ServerStatus) -> AppState:
    views = tuple(server_view(f"s{number}", status) for number, status in enumerate(statuses))
    return reduce(AppState(), e.ServersConfigured(views))


def test_discovery_waits_for_the_settings() -> None:
    assert selectors.discovery(AppState()) is Discovery.NOT_STARTED
    assert selectors.discovery(with_statuses()) is Discovery.COMPLETED


@pytest.mark.parametrize("status", ServerStatus)
def test_discovery_is_over_once_no_server_moves(status: ServerStatus) -> None:
    moving = status in {ServerStatus.STARTING, ServerStatus.STOPPING}
    expected = Discovery.IN_PROGRESS if moving else Discovery.COMPLETED
    assert selectors.discovery(with_statuses(ServerStatus.READY, status)) is expected


def test_servers_are_found_by_id() -> None:
    state = populated_state()
    assert selectors.server(state, SERVER) is state.servers[0]
    assert selectors.server(state, ServerId("nobody")) is None


def test_disabled_servers_do_not_count() -> None:
    state = with_statuses(ServerStatus.READY, ServerStatus.FAILED, ServerStatus.DISABLED)
    assert selectors.ready_count(state) == (1, 2)


def test_entries_span_settled_and_live_turns() -> None:
    before = populated_state()
    finished = reduce(before, e.TurnFinished(TURN, TurnOutcome.COMPLETED))
    ids = [entry.id for entry in selectors.entries(finished)]
    assert ids == [entry.id for entry in selectors.entries(before)]
    more = reduce(finished, e.TextStreamed(TEXT, "more"))
    assert [entry.id for entry in selectors.entries(more)] == [*ids, TEXT]
