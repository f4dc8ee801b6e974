import asyncio
import time

from tests.unit.engine.servers.support import eventually
from tui.engine.servers.log import EVENT_INTERVAL, ServerLog
from tui.model.chat import Severity
from tui.model.events import Event, ServerLogged
from tui.model.servers import ServerId


def logged(events: list[Event]) -> list[str]:
    return [line.text for e in events if isinstance(e, ServerLogged) for line in e.lines]


async def test_lines_are_published_sanitised_and_in_order() -> None:
    events: list[Event] = []
    log = ServerLog(ServerId("s"), events.append)
    log.write_stderr([b"\x1b[31mred\x1b[0m", b"10%\r50%\r100%\r", b"bad \xff"])
    log.add("gemdeck", Severity.WARNING, "ours")
    await eventually(lambda: bool(events))
    assert logged(events) == ["red", "100%", "bad \ufffd", "ours"]


async def test_a_flood_is_thinned_out_and_counted() -> None:
    events: list[Event] = []
    log = ServerLog(ServerId("s"), events.append)
    began = time.monotonic()
    while time.monotonic() - began < 0.3:
        log.write_stderr([b"line %d" % number for number in range(1_000)])
        await asyncio.sleep(0)
    log.flush()
    assert len(events) <= 0.3 / EVENT_INTERVAL + 3
    assert all(isinstance(e, ServerLogged) and len(e.lines) <= 201 for e in events)
    assert "earlier lines are left out" in logged(events)[0]
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
