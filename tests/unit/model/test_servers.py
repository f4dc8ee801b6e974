"""The table of status transitions, pair by pair."""

from itertools import product

import pytest

from tui.model.servers import SETTLED, TRANSITIONS, ServerStatus

ALLOWED = """
untrusted     -> stopped, disabled
disabled      -> stopped
stopped       -> starting, disabled
starting      -> ready, needs sign-in, retrying, failed, stopping, stopped
needs sign-in -> starting, stopped, stopping, disabled
ready         -> stopping, retrying, failed, needs sign-in
retrying      -> starting, stopped, failed, disabled
failed        -> starting, stopped, disabled
stopping      -> stopped, failed
"""

INITIAL = {
    ServerStatus.INVALID,
    ServerStatus.UNTRUSTED,
    ServerStatus.DISABLED,
    ServerStatus.STOPPED,
}
"""What a server can be when the settings are read."""


def allowed_pairs() -> set[tuple[str, str]]:
    lines = (line.split("->") for line in ALLOWED.strip().splitlines())
    return {(before.strip(), after.strip()) for before, row in lines for after in row.split(",")}


def reachable(start: set[ServerStatus]) -> set[ServerStatus]:
    seen, new = set(start), set(start)
    while new:
        new = {after for status in new for after in TRANSITIONS[status]} - seen
        seen |= new
    return seen


@pytest.mark.parametrize(("before", "after"), product(ServerStatus, ServerStatus))
def test_each_pair_is_allowed_or_not(before: ServerStatus, after: ServerStatus) -> None:
    assert (after in TRANSITIONS[before]) == ((before.value, after.value) in allowed_pairs())


def test_the_expected_table_names_only_statuses() -> None:
    words = {word for pair in allowed_pairs() for word in pair}
    assert words == {status.value for status in ServerStatus} - {"invalid"}


def test_every_status_has_a_row() -> None:
    assert set(TRANSITIONS) == set(ServerStatus)


def test_nothing_follows_from_invalid_settings() -> None:
    assert TRANSITIONS[ServerStatus.INVALID] == frozenset()


def test_every_status_can_be_reached() -> None:
    assert reachable(INITIAL) == set(ServerStatus)


@pytest.mark.parametrize("status", [s for s in ServerStatus if s is not ServerStatus.INVALID])
def test_no_server_is_stuck(status: ServerStatus) -> None:
    assert {ServerStatus.STOPPED, ServerStatus.READY} <= reachable({status})


def test_no_status_follows_itself() -> None:
    assert not any(status in after for status, after in TRANSITIONS.items())


def test_only_moving_servers_are_unsettled() -> None:
    assert set(ServerStatus) - SETTLED == {ServerStatus.STARTING, ServerStatus.STOPPING}
