"""Servers that ask too much at once, or in batches."""

import json
import sys
from pathlib import Path

import pytest

from tests.security.decks import write_settings
from tests.support.waiting import eventually
from tests.ui.hands import asking
from tests.ui.requests.samples import sampling
from tests.unit.engine.mcp.support import running, script
from tui.engine.desk import MAX_WAITING
from tui.engine.engine import Engine, EngineOptions
from tui.model.events import Event, NoticeRaised, RequestRaised, RequestsQueued, ServerLogged
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S

FLOODING = Path(__file__).parent.parent / "servers" / "flooding.py"


DECLINED = 100 - 1 - MAX_WAITING


@pytest.mark.parametrize("mode", ["forms", "prompts"])
async def test_E25_of_a_hundred_requests_those_that_are_not_put_are_declined_with_a_word(
    tmp_path: Path, mode: str
) -> None:
    record, events = tmp_path / "record", list[Event]()
    entry = {"command": sys.executable, "args": [str(FLOODING), mode]}
    flood = {**entry, "env": {"FLOOD_RECORD": str(record)}}
    write_settings({"mcpServers": {"eager": flood}})
    options = EngineOptions(
        tmp_path, demo=True, attended=True, follow_settings=False, server_patience=0
    )
    async with Engine(options, events.append) as engine:
        await engine.start()
        await eventually(
            lambda: record.exists() and len(record.read_bytes().splitlines()) >= DECLINED
        )
        await eventually(lambda: sum(words.count("declined unasked") for words in log(events)) > 1)
        assert sum(isinstance(event, RequestRaised) for event in events) == 1
    replies = [json.loads(line) for line in record.read_text().splitlines()[:DECLINED]]
    assert all("declin" in str(reply) or "rejected" in str(reply) for reply in replies)
    notices = [event.notice for event in events if isinstance(event, NoticeRaised)]
    [told] = [n for n in notices if n.text.startswith("eager asks for too much at once")]
    assert told.advice == f"{1 + MAX_WAITING} requests already wait for the user."
    queued = [event for event in events if isinstance(event, RequestsQueued)]
    assert max(event.count for event in queued) == MAX_WAITING
    assert max(event.declined for event in queued) == DECLINED


def log(events: list[Event]) -> list[str]:
    """Give the lines in the log of the server."""
    logged = (e for e in events if isinstance(e, ServerLogged) and e.server == ServerId("eager"))
    return [line.text for event in logged for line in event.lines]


async def test_E25_the_question_says_how_many_wait() -> None:
    async with asking(sampling()) as hands:
        hands.app.store.dispatch(RequestsQueued(MAX_WAITING, DECLINED))
        words = f"1 of {1 + MAX_WAITING} · {DECLINED} more declined"
        await hands.until(lambda: words in hands.text)


async def test_E28_a_batch_is_taken_apart() -> None:
    async with running(script("raw", "batches")) as (manager, watcher):
        await watcher.until(ServerId("raw"), S.READY)
        assert "echo" in {tool.name for tool in manager.offered_tools()}
