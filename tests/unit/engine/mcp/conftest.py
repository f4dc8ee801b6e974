"""Gives tests a zygote of their own, and a server that they share."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest

from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.asking import ERAS, Stage, asking
from tui.engine.mcp.session import connection
from tui.engine.mcp.transports.stdio import process
from tui.engine.mcp.transports.stdio.zygote import Zygote


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    with closing(Zygote()) as zygote:
        yield zygote


@pytest.fixture(scope="module", params=ERAS)
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """Run the server that asks once for a module, in each era and in an oddly named folder."""
    folder = tmp_path_factory.mktemp("server") / "a b ä"
    folder.mkdir()
    async with asking(request.param, workspace=folder) as stage:
        yield stage


@pytest.fixture
async def stage(server: Stage) -> Stage:
    """Give the server that asks, as if it had just been started."""
    await server.begin()
    return server


@pytest.fixture
def hasty_ends(monkeypatch: pytest.MonkeyPatch) -> float:
    """Give servers that are to end this fraction of their time, and the reason all it takes."""
    monkeypatch.setattr(connection, "ENDING_GRACE", PATIENCE)
    for name in ("EOF_GRACE", "TERMINATE_GRACE", "KILL_GRACE"):
        monkeypatch.setattr(process, name, getattr(process, name) * 0.2)
    return 0.2
