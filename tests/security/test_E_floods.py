"""Servers that ask too much at once, or in batches."""

import json
import sys
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.terminal import Terminal
from tests.support.waiting import eventually
from tests.unit.engine.mcp.support import running, script
from tui.engine.desk import MAX_WAITING
from tui.engine.engine import Engine, EngineOptions
from tui.model.events import Event, NoticeRaised, RequestRaised, RequestsQueued, ServerLogged
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S

FLOODING = Path(__file__).parent.parent / "servers" / "flooding.py"


def write_settings(home: Path, record: Path, *modes: str) -> None:
    entry = {
        "command": sys.executable,
        "args": [str(FLOODING), *modes],
        "env": {"FLOOD_RECORD": str(record)},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps({"mcpServers": {"eager": entry}}))


@pytest.mark.parametrize("mode", ["forms", "prompts"])
async def test_E25_of_a_hundred_requests_those_that_are_not_put_are_declined_with_a_word(
    home: Path, tmp_path: Path, mode: str
) -> None:
    record, events = tmp_path / "record", list[Event]()
    write_settings(home, record, mode)
    options = EngineOptions(
        tmp_path, demo=True, attended=True, follow_settings=False, server_patience=0
    )
    declined = 100 - 1 - MAX_WAITING
    async with Engine(options, events.append) as engine:
        await engine.start()
        await eventually(
            lambda: record.exists() and len(record.read_bytes().splitlines()) >= declined
        )
        await eventually(lambda: sum(words.count("declined unasked") for words in log(events)) > 1)
        assert sum(isinstance(event, RequestRaised) for event in events) == 1
    replies = [json.loads(line) for line in record.read_text().splitlines()[:declined]]
    assert all("declin" in str(reply) or "rejected" in str(reply) for reply in replies)
    notices = [event.notice for event in events if isinstance(event, NoticeRaised)]
    [told] = [n for n in notices if n.text.startswith("eager asks for too much at once")]
    assert told.advice == f"{1 + MAX_WAITING} requests already wait for the user."
    assert max(e.count for e in events if isinstance(e, RequestsQueued)) == MAX_WAITING


def log(events: list[Event]) -> list[str]:
    """Give the lines in the log of the server."""
    logged = (e for e in events if isinstance(e, ServerLogged) and e.server == ServerId("eager"))
    return [line.text for event in logged for line in event.lines]


def test_E25_the_question_says_how_many_wait(home: Path, tmp_path: Path) -> None:
    write_settings(home, tmp_path / "record", "forms")
    with Terminal(warm.deck("--demo"), cwd=tmp_path) as terminal:
        terminal.wait_for("A server asks for input")
        terminal.wait_for(f"1 of {1 + MAX_WAITING} · {100 - 1 - MAX_WAITING} more declined")
        terminal.press("ctrl+q")


async def test_E28_a_batch_is_taken_apart() -> None:
    async with running(script("raw", "batches")) as (manager, watcher):
        await watcher.until(ServerId("raw"), S.READY)
        assert "echo" in {tool.name for tool in manager.offered_tools()}
