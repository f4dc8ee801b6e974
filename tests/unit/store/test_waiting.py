"""The words on servers that are awaited."""

import pytest

from tui.model.servers import Origin, ServerId, ServerStatus, ServerView, Transport
from tui.store.selectors import waiting_text
from tui.store.state import AppState


def state(*starting: str) -> AppState:
    """Make a state with one ready server and some that start."""
    views = [
        ServerView(ServerId(name), Origin.USER, Transport.STDIO, "", status=status)
        for name, status in [
            ("up", ServerStatus.READY),
            *((name, ServerStatus.STARTING) for name in starting),
        ]
    ]
    return AppState(servers=tuple(views), configured=True)


@pytest.mark.parametrize(
    ("starting", "words"),
    [
        ([], ""),
        (["a"], "waiting for a"),
        (["a", "b"], "waiting for a, b"),
        (["a", "b", "c"], "waiting for a, b, +1"),
        (["a", "b", "c", "d"], "waiting for a, b, +2"),
    ],
)
def test_awaited_servers_are_named_or_counted(starting: list[str], words: str) -> None:
    assert waiting_text(state(*starting)) == words
