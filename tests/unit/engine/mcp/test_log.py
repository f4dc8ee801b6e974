import asyncio
import time

import pytest

from tests.unit.engine.mcp.support import eventually
from tui.engine.mcp.server_log import EVENT_INTERVAL, ServerLog
from tui.model.chat import Severity
from tui.model.events import Event, ServerLogged
from tui.model.servers import Failure, ServerId


def logged(events: list[Event]) -> list[str]:
    return [line.text for e in events if isinstance(e, ServerLogged) for line in e.lines]


async def test_lines_are_published_sanitised_and_in_order() -> None:
    events: list[Event] = []
    log = ServerLog(ServerId("s"), events.append)
    log.write_stderr([b"\x1b[31mred\x1b[0m", b"10%\r50%\r100%\r", b"bad \xff"])
    log.add("gemdeck", Severity.WARNING, "ours")
    await eventually(lambda: bool(events))
    assert logged(events) == ["red", "100%", "bad \ufffd", "ours"]


LINES = [b"\x1b[31mhun\x1b[0mter22", b"x" * 1_995 + b"hunter22", b"first line of a key"]


@pytest.mark.parametrize("line", LINES)
async def test_secrets_are_masked_in_lines_and_in_the_tail(line: bytes) -> None:
    events: list[Event] = []
    secrets = {"hunter22", "first line of a key\nits second line", "abc", ""}
    log = ServerLog(ServerId("s"), events.append, secrets)
    log.write_stderr([line, b"abc"])
    log.add("log", Severity.INFO, line.decode())
    log.flush()
    shown = [*logged(events), *log.tail()]
    assert len(shown) == 5
    assert shown[1] == "abc"  # too short to be told from a word
    for text in shown:
        assert "hunt" not in text
        assert "first line" not in text
    failure = log.mask_failure(Failure("no hunter22", "set hunter22", ("hunter22",)))
    assert failure == Failure("no ***", "set ***", ("***",))


async def test_a_flood_is_thinned_out_and_counted() -> None:
    events: list[Event] = []
    log = ServerLog(ServerId("s"), events.append)
    began = time.monotonic()
    for _ in range(50):
        log.write_stderr([b"line %d" % number for number in range(1_000)])
        await asyncio.sleep(0)
    log.flush()
    assert len(events) <= (time.monotonic() - began) / EVENT_INTERVAL + 2
    assert all(isinstance(e, ServerLogged) and len(e.lines) <= 201 for e in events)
    assert "earlier lines were dropped" in logged(events)[0]
    assert logged(events)[-1] == "line 999"


async def test_the_tail_is_the_last_lines_that_say_something() -> None:
    log = ServerLog(ServerId("s"), lambda _: None)
    log.write_stderr([b"%d" % number for number in range(2_000)])
    log.write_stderr([b"", b"  "])
    assert log.tail(2) == ("1998", "1999")
    assert len(log.tail()) == 20
    log.begin()
    assert log.tail() == ()
    log.flush()
