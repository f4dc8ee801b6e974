from itertools import product

import pytest

from tui.model.servers import TRANSITIONS, ServerStatus, advance


@pytest.mark.parametrize(("current", "following"), product(ServerStatus, repeat=2))
def test_a_server_moves_only_along_the_table(
    current: ServerStatus, following: ServerStatus
) -> None:
    if following in TRANSITIONS[current]:
        assert advance(current, following) is following
    else:
        with pytest.raises(RuntimeError):
            advance(current, following)


def test_every_status_has_its_row() -> None:
    assert set(TRANSITIONS) == set(ServerStatus)
