"""Which hosts are this machine."""

import pytest

from tui.model.addresses import is_loopback


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost.", "app.localhost", "app.localhost.", "127.0.0.1", "127.9.9.9", "::1"],
)
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "example.com", "localhost.example.com", "notlocalhost", "10.0.0.1", "2130706433", "::2"],
)
def test_elsewhere(host: str) -> None:
    assert not is_loopback(host)
