"""Servers that ask too much at once, or in batches."""

from tests.ui.hands import asking
from tests.ui.requests.samples import sampling
from tests.unit.engine.mcp.support import running, script
from tui.engine.desk import MAX_WAITING
from tui.model.events import RequestsQueued
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S


async def test_E25_the_question_says_how_many_wait() -> None:
    async with asking(sampling()) as hands:
        hands.app.store.dispatch(RequestsQueued(MAX_WAITING))
        words = f"1 of {1 + MAX_WAITING}"
        await hands.until(lambda: words in hands.text)


async def test_E28_a_batch_is_taken_apart() -> None:
    async with running(script("raw", "batches")) as (manager, watcher):
        await watcher.until(ServerId("raw"), S.READY)
        assert "echo" in {tool.name for tool in manager.offered_tools()}
