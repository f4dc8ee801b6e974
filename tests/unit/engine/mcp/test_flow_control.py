"""How much a server may send, by a clock of the test and with servers that flood."""

import time

import pytest
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from tests.support.measures import Measure
from tests.support.stalls import LoopWatch
from tests.unit.engine.mcp.support import Watcher, call, eventually, ready, script
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.transports import jsonrpc_lines as lines
from tui.engine.mcp.transports.jsonrpc_lines import FloodError, FlowControl
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S

CHANGED = b'{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}'
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'
REPLY = b'{"jsonrpc":"2.0","id":1,"result":{}}'


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.slept += seconds


@pytest.fixture
def clock() -> Time:
    """Give a clock that stands still."""
    return Time()


@pytest.fixture
def watcher() -> Watcher:
    """Record what is logged."""
    return Watcher()


@pytest.fixture
def flow(clock: Time, watcher: Watcher) -> FlowControl:
    """Give the flow of a server."""
    return FlowControl(ServerLog(ServerId("s"), watcher), clock, clock.sleep)


async def test_a_burst_is_taken_at_once_what_follows_paced(flow: FlowControl, clock: Time) -> None:
    for _ in range(int(lines.BURST * 0.9)):
        assert await flow.take(CHANGED) is not None
    assert clock.slept == 0
    for _ in range(int(lines.BURST * 0.1 + 3 * lines.RATE)):
        assert await flow.take(CHANGED) is not None
    assert 2.9 < clock.slept < 3.2


async def test_bytes_count_too(flow: FlowControl, clock: Time) -> None:
    message = REPLY.replace(b"{}", b'{"t":"%b"}' % (b"x" * 16 * 2**20))
    for _ in range(5):
        await flow.take(message)
    assert clock.slept == 0
    for _ in range(4):
        await flow.take(message)
    assert clock.slept == pytest.approx(
        (8 * (len(message) / lines.PIECE + 1) - lines.BURST) / lines.RATE, abs=0.1
    )


async def test_a_server_that_never_rests_is_given_up(flow: FlowControl, clock: Time) -> None:
    async def flood() -> None:
        while True:
            await flow.take(CHANGED)

    with pytest.raises(FloodError, match="1,000 messages or 16 MiB a second") as caught:
        await flood()
    assert caught.value.permanent
    assert lines.MAX_EXCESS < clock.slept < lines.MAX_EXCESS + 1


async def test_a_rest_makes_an_excess_forgotten(flow: FlowControl, clock: Time) -> None:
    for _ in range(2):
        for _ in range(int(lines.BURST + 0.8 * lines.MAX_EXCESS * lines.RATE)):
            await flow.take(CHANGED)
        clock.now += 6


async def test_only_reports_are_dropped(flow: FlowControl, clock: Time, watcher: Watcher) -> None:
    flow.note_sent(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))
    taken = [await flow.take(PROGRESS) for _ in range(20_000)]
    assert lines.BURST * 0.4 < sum(message is not None for message in taken) < lines.BURST * 0.6
    assert clock.slept == 0
    assert await flow.take(REPLY) is not None
    await eventually(lambda: watcher.log("s"))
    [line] = watcher.log("s")
    assert "some are dropped" in line
    clock.now += 5
    assert await flow.take(PROGRESS) is not None


async def test_noise_is_limited_and_paced(flow: FlowControl, clock: Time, watcher: Watcher) -> None:
    for _ in range(150_000):
        assert await flow.take(b"noise") is None
    assert 1.5 < clock.slept < 5
    await eventually(lambda: len(watcher.log("s")) > lines.MAX_NOISE_LINES)
    assert len(watcher.log("s")) == lines.MAX_NOISE_LINES + 1


async def test_no_part_of_a_secret_is_left_where_a_line_is_cut(watcher: Watcher) -> None:
    secret = "a-secret-of-this-fixture"
    for cut in range(1, len(secret)):
        log = ServerLog(ServerId("s"), watcher)
        log.own.register(secret)
        await FlowControl(log).take(b"x" * (lines.HEAD - cut) + secret.encode() + b" and more")
        assert log.printed.endswith("xxx"), log.printed


async def test_the_answer_of_a_handshake_may_not_be_of_many_values(flow: FlowControl) -> None:
    reply = REPLY.replace(b"{}", b'{"a":[%b0]}' % (b"0," * 60_000))
    for method in ("initialize", "server/discover"):
        flow.note_sent(JSONRPCRequest(jsonrpc="2.0", id=1, method=method))
        assert isinstance(await flow.take(reply), JSONRPCError)
    flow.note_sent(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list"))
    assert isinstance(await flow.take(reply), JSONRPCResponse)


async def test_lines_that_make_no_event_are_paced(flow: FlowControl, clock: Time) -> None:
    await flow.take_lines(500_000)
    assert 4.9 < clock.slept < 5.1


@pytest.mark.usefixtures("hasty_ends")
@pytest.mark.parametrize("line", ["", CHANGED.decode()], ids=["blank", "changes"])
async def test_a_server_that_floods_without_end_is_stopped_and_the_others_are_not(
    line: str, monkeypatch: pytest.MonkeyPatch, measure: Measure, loop_watch: LoopWatch
) -> None:
    monkeypatch.setattr(lines, "MAX_EXCESS", 0.5)
    async with ready(script("raw", "flooding"), script("raw", server="good")) as (manager, watcher):
        loop_watch.clear()
        began, cpu_began = time.monotonic(), time.process_time()
        with pytest.raises(ToolCallError, match="sent more than 1,000 messages") as caught:
            await call(manager, "flood", {"text": line})
        spent = (time.process_time() - cpu_began) / (time.monotonic() - began)
        assert "whether it had any effect is unknown" in str(caught.value)
        measure(f"a flood of {line[:1]!r}…: {spent * 100:.0f} % of a core until it was stopped")
        failed = await watcher.fails("raw", S.READY, S.FAILED)
        assert failed.reason.startswith("sent more than 1,000 messages")
        assert watcher.last("good").status is S.READY
        loop_watch.assert_smooth()
