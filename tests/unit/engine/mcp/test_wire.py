"""The wire: each frame once, in order, paired and judged, within the bounds of the ring."""

import asyncio
import json
import shlex
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from mcp_types.version import LATEST_MODERN_VERSION

from tests.cli.running import write_settings
from tests.servers.web import SseServer, answer
from tests.support.stalls import LoopWatch
from tests.unit.engine.mcp.asking import ERAS, asking
from tests.unit.engine.mcp.network.support import WEB, answering, broken_off, connected, stateless
from tests.unit.engine.mcp.support import HASTY, Watcher, call, eventually, ready, refuses, script
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.transports.http.http_client import MAX_BODY
from tui.engine.mcp.wire import tap as taps
from tui.engine.mcp.wire.tap import VERSION_KEY, Tap, caused_by
from tui.engine.mcp.wire.wire import Wire
from tui.model.chat import ConversationId, EntryId
from tui.model.events import FramesNoted, NoticeRaised, ToolCallRequested
from tui.model.requests import FormRequest, ReplyAction
from tui.model.servers import ProtocolEra, ServerId, Transport
from tui.model.servers import ServerStatus as S
from tui.model.wire.exchanges import LASTING, exchanges
from tui.model.wire.frames import Direction, FrameBody, FrameFault, FrameKind, WireFrame
from tui.text import sanitize

MAIN, CALL = ConversationId("main"), EntryId("c1")
REQUEST, ANSWER, NOTICE = FrameKind.REQUEST, FrameKind.ANSWER, FrameKind.NOTIFICATION
HTTP, NOISE, WORD = FrameKind.HTTP, FrameKind.NOISE, FrameKind.LIFECYCLE
HANDSHAKE = ("initialize", "notifications/initialized")


def of(wire: Wire, kind: FrameKind, method: str = "") -> list[WireFrame]:
    return [one for one in wire.frames() if one.kind is kind and method in {"", one.method}]


def body_of(wire: Wire, number: int) -> FrameBody:
    """Give what was said in a frame."""
    body = wire.body(number)
    assert body is not None
    return body


@pytest.fixture
def redactor() -> Redactor:
    return Redactor()


@pytest.fixture
def wire(redactor: Redactor) -> Wire:
    return Wire(redactor=redactor)


@pytest.fixture
def tap(wire: Wire) -> Tap:
    return wire.tap(ServerId("s"))


def check_pairs(wire: Wire) -> None:
    """Every request has one answer, which names it, and numbers leave nothing out."""
    frames = wire.frames()
    assert [one.number for one in frames] == [*range(1, wire.last + 1)]
    by_number = {one.number: one for one in frames}
    requests = [one for one in frames if one.kind is REQUEST and one.pair]
    assert requests
    for request in requests:
        answered = by_number[request.pair]
        assert answered.pair == request.number < answered.number
        assert answered.kind is WORD or (answered.id, answered.method, answered.target) == (
            *(request.id, request.method),
            request.target,
        )
        assert answered.seconds == request.seconds
        assert answered.direction is not request.direction


def faults(wire: Wire) -> dict[str, int]:
    """Count what is found wrong."""
    found = [fault for one in wire.frames() for fault in one.faults]
    return {fault: found.count(fault) for fault in found}


def is_checked(wire: Wire) -> bool:
    return all(one.is_checked for tap in wire._taps.values() for one in tap.ring.values())


async def checked(wire: Wire, watcher: Watcher) -> None:
    """Watch until all that was said is checked."""
    wire._publish = watcher
    wire.watch(is_watched=True)
    await eventually(lambda: watcher.of(FramesNoted) and is_checked(wire))
    wire.watch(is_watched=False)


@pytest.mark.parametrize("era", ERAS)
async def test_each_message_is_there_once_in_order_and_paired(era: ProtocolEra) -> None:
    async with ready(script("sample", protocol=era)) as (manager, watcher):
        wire = manager.wire
        with caused_by(MAIN, CALL):
            await call(manager, "add", {"a": 1, "b": 2})
        await checked(wire, watcher)
        check_pairs(wire)
        assert faults(wire) == {}
        assert is_checked(wire)
        opening = [*HANDSHAKE] if era is ProtocolEra.HANDSHAKE else ["server/discover"]
        said = [one.method for one in wire.frames() if one.direction is Direction.SENT]
        assert said[: len(opening)] == opening
        [asked] = of(wire, REQUEST, "tools/call")
        [answered] = of(wire, ANSWER, "tools/call")
        assert (asked.target, asked.conversation, asked.call) == ("add", MAIN, CALL)
        assert {answered.call, answered.attempt, answered.round} == {CALL, 1}
        assert [one.call for one in wire.frames() if one.call] == [CALL, CALL]
        value = body_of(wire, answered.number).value
        assert isinstance(value, dict)
        assert value["result"]["structuredContent"] == {"result": "3"}
        assert wire.body(asked.number + 10_000) is None
        words = """gemdeck mcp call sample add --args '{"a": 1, "b": 2}'"""
        assert wire.command(asked.number) == words
        assert wire.command(answered.number) == ""
        given = {"name": "add", "arguments": {"a": 1, "b": 2}}
        assert wire.request(asked.number) == ("sample", "tools/call", given)
        assert [one.method for one in of(wire, WORD)] == ["starting", "ready"]
        assert {one.direction for one in of(wire, WORD)} == {Direction.OWN}


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_stands_between_a_call_and_its_result(era: ProtocolEra) -> None:
    async with asking(era) as stage:
        with caused_by(MAIN, CALL):
            calling = asyncio.create_task(call(stage.manager, "form"))
        await stage.answer(FormRequest, ReplyAction.DECLINE)
        await calling
        wire = stage.manager.wire
        await checked(wire, stage.watcher)
        check_pairs(wire)
        assert faults(wire) == {}
        rounds = [(one.round, one.attempt, one.call) for one in of(wire, REQUEST, "tools/call")]
        if era is ProtocolEra.STATELESS:
            assert rounds == [(1, 1, CALL), (2, 1, CALL)]
            return
        assert rounds == [(1, 1, CALL)]
        [asked] = of(wire, REQUEST, "elicitation/create")
        [answered] = of(wire, ANSWER, "elicitation/create")
        assert (asked.direction, answered.direction) == (Direction.RECEIVED, Direction.SENT)
        outer = of(wire, REQUEST, "tools/call")[0]
        assert outer.number < asked.number < answered.number < outer.pair


async def test_what_is_no_message_is_a_frame_with_a_verdict() -> None:
    async with ready(script("raw", "noise")) as (manager, _):
        await call(manager, "echo", {"text": "hi"})
        wire = manager.wire
        check_pairs(wire)
        assert set(faults(wire)) == {FrameFault.NOT_JSON, FrameFault.INVALID}
        assert {one.kind for one in wire.frames() if one.faults} == {NOISE}


async def test_broken_answers_and_giant_lines_are_judged() -> None:
    async with ready(script("raw")) as (manager, watcher):
        await refuses("cannot be read", manager, "deep")
        await refuses("too complex", manager, "complex")
        await refuses("larger than 16 MiB", manager, "long")
        await watcher.until("raw", S.READY, S.RETRYING)
        wire = manager.wire
        found = {one.target: one.faults for one in of(wire, ANSWER, "tools/call")}
        assert found == {"deep": (FrameFault.NOT_JSON,), "complex": (FrameFault.TOO_LARGE,)}
        [giant] = of(wire, NOISE)
        assert (giant.faults, giant.size) == ((FrameFault.TOO_LARGE,), 1024)
        [asked] = [one for one in of(wire, REQUEST, "tools/call") if one.target == "long"]
        cut = [one for one in wire.frames() if one.is_cut]
        assert {one.target for one in cut} == {"deep", "complex"}
        body = body_of(wire, cut[0].number)
        assert body.value is None
        assert f"{cut[0].size - taps.MAX_WHOLE:,} bytes not kept" in body.text
        [lost] = [one for one in of(wire, WORD) if one.method == "retrying"]
        assert "larger than 16 MiB" in lost.detail
        assert (asked.pair, asked.faults) == (lost.number, (FrameFault.FAILED,))


async def test_statuses_sessions_and_resumption_stand_between_the_messages() -> None:
    async with answering(broken_off(), sessions=True) as (server, manager, _):
        began = time.perf_counter()
        with caused_by(MAIN, CALL):
            result = await call(manager, "echo")
        assert time.perf_counter() - began >= 0.5
        assert "other" not in result.display
        assert len(server.calls()) == 1
        wire = manager.wire
        asked = of(wire, REQUEST, "tools/call")[0]
        [first, again] = [one for one in of(wire, HTTP) if one.pair == asked.number]
        assert [(one.method, one.status) for one in (first, again)] == [("POST", 200), ("GET", 200)]
        assert again.detail == "resumed after event a1"
        assert first.session == again.session
        assert server.calls()[0].headers["mcp-session-id"] not in wire.export(range(wire.last + 1))
        other, right = of(wire, ANSWER)[-2:]
        assert other.faults == (FrameFault.UNASKED,)
        assert (right.pair, asked.pair) == (asked.number, right.number)
        assert {one.call for one in (asked, first, again, right)} == {CALL}
        check_pairs(wire)


async def test_a_lost_session_is_a_second_attempt_of_the_same_call() -> None:
    async with answering(sessions=True, retry=HASTY) as (server, manager, watcher):
        server.forget()
        with caused_by(MAIN, CALL):
            assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        asked = of(manager.wire, REQUEST, "tools/call")
        assert [(one.attempt, one.call) for one in asked] == [(1, CALL), (2, CALL)]
        failed = next(one for one in of(manager.wire, WORD) if one.faults)
        assert failed.pair == asked[0].number < asked[0].pair < failed.number
        assert "session" in failed.detail
        statuses = [one.status for one in of(manager.wire, HTTP) if one.call == CALL]
        assert statuses == [404, 200]
        sessions = {one.session for one in of(manager.wire, HTTP) if one.call == CALL}
        assert len(sessions) == 2
        assert watcher.statuses(WEB)[1:] == [S.READY, S.RETRYING, S.STARTING, S.READY]
        assert server.methods().count("initialize") == 2
        assert "DELETE" not in server.methods()


async def test_an_answer_that_is_too_large_over_http_fails_in_a_frame() -> None:
    big = answer(200, b"{" + b" " * MAX_BODY, content_type="application/json")
    async with answering(big) as (_, manager, _):
        await refuses("larger than 16 MiB", manager, "echo")
        [failed] = [one for one in of(manager.wire, WORD) if one.faults]
        assert failed.faults == (FrameFault.TOO_LARGE,)


async def test_the_wire_of_sse_names_the_endpoint_without_what_is_secret_in_it() -> None:
    async with SseServer() as server, connected(server.url, Transport.SSE) as (manager, _):
        await call(manager, "echo", {"text": "hi"})
        wire = manager.wire
        told = [one for one in wire.frames() if one.kind in {REQUEST, NOTICE}]
        # The answer comes with the stream, perhaps before its POST is accepted.
        await eventually(lambda: len(of(wire, HTTP, "POST")) == len(told))
        check_pairs(wire)
        [endpoint] = of(wire, HTTP, "endpoint")
        assert endpoint.target.endswith("/messages?session=***")
        assert "secret-session" not in wire.export(range(wire.last + 1))
        assert {one.status for one in of(wire, HTTP, "POST")} == {202, 400}
        assert {one.status for one in of(wire, HTTP) if one.faults} == set()


async def test_what_breaks_the_schema_of_its_revision_is_found_while_somebody_watches() -> None:
    results: dict[str, dict[str, Any]] = {
        "tools/call": {"content": 5, "resultType": "complete"},
        "prompts/list": {"prompts": [], "resultType": "odd"},
    }
    async with answering(stateless(**results)) as (_, manager, watcher):
        assert (await call(manager, "echo")).is_error
        assert faults(manager.wire).keys() <= {FrameFault.FAILED}
        await checked(manager.wire, watcher)
        [wrong] = of(manager.wire, ANSWER, "tools/call")
        assert wrong.faults == (FrameFault.INVALID,)
        assert "content" in wrong.detail
        [odd] = of(manager.wire, ANSWER, "prompts/list")
        assert (odd.faults, odd.detail) == ((FrameFault.UNKNOWN_RESULT,), "odd")


async def test_no_type_of_a_result_ends_the_checking(wire: Wire, tap: Tap) -> None:
    for odd in ([1], {"a": 1}, 1, None, "complete"):
        result = {"resultType": odd, "tools": []}
        params = {"_meta": {VERSION_KEY: LATEST_MODERN_VERSION}}
        tap.sent(Message(id=1, method="tools/list", params=params), b"{}")
        tap.received(json.dumps({"result": result}).encode(), Message(id=1, result=result))
    wire.watch(is_watched=True)
    await eventually(lambda: is_checked(wire))
    found = [one.detail for one in of(wire, ANSWER) if FrameFault.UNKNOWN_RESULT in one.faults]
    assert found == ["list", "dict", "1", ""]
    await wire.aclose()


class Message:
    """A message as the taps read it."""

    def __init__(self, **members: Any) -> None:  # noqa: ANN401
        self.__dict__ |= members


def test_ids_used_twice_and_answers_that_nobody_asked_for_are_found(wire: Wire, tap: Tap) -> None:
    tap.sent(Message(id=1, method="ping", params=None), b"{}")
    for _ in range(2):
        tap.received(b"{}", Message(id=1, result={}))
    tap.received(b"{}", Message(id=7, result={}))
    for _ in range(2):
        tap.received(b"{}", Message(id=7, method="roots/list", params=None))
    tap.sent(Message(id=7, result={}), b"{}")
    tap.received(b"{}", Message(id=7, method="roots/list", params=None))
    said = [one.faults for one in wire.frames()]
    twice, unasked = (FrameFault.REPEATED_ID,), (FrameFault.UNASKED,)
    assert said == [(), (), twice, unasked, (), twice, (), ()]
    assert [one.pair for one in wire.frames()] == [2, 1, 1, 0, 0, 7, 6, 0]
    tap.begin()
    tap.received(b"{}", Message(id=1, result={}))
    assert wire.frames()[-1].faults == unasked


def test_what_is_open_when_the_connection_ends_waits_no_longer(wire: Wire, tap: Tap) -> None:
    for number, method in enumerate(("ping", "tools/call", "tools/call", LASTING)):
        tap.sent(Message(id=number, method=method, params=None), b"{}")
    tap.received(b"{}", Message(id=0, result={}))
    tap.received(b"{}", Message(id=0, method="roots/list", params=None))
    off = {"requestId": 1}
    tap.sent(Message(method="notifications/cancelled", params=off), b"{}")
    tap.word(S.STOPPING, "")
    assert [one.head.id for one in exchanges(wire.frames(), {}).values() if one.waits] == ["2", "0"]
    tap.word(S.FAILED, "gone")
    answered, called_off, call, lasting, asked, *_ = exchanges(wire.frames(), {}).values()
    assert not any(one.waits for one in (answered, called_off, call, lasting, asked))
    assert (answered.is_bad, called_off.is_bad, lasting.is_bad) == (False, False, False)
    assert call.head.faults == asked.head.faults == (FrameFault.FAILED,)


def test_the_ring_holds_its_bounds_and_the_newest(wire: Wire, tap: Tap) -> None:
    tap.sent(Message(id="early", method="ping", params=None), b"{}")
    for number in range(taps.MAX_FRAMES + 500):
        tap.received(b"x" * number, Message(method="m", params={}))
    assert len(tap.ring) == taps.MAX_FRAMES
    assert [one.number for one in wire.frames()] == [*range(502, 502 + taps.MAX_FRAMES)]
    tap.received(b"{}", Message(id="early", result={}))
    assert (wire.frames()[-1].method, wire.frames()[-1].faults) == ("ping", ())
    for _ in range(500):
        tap.received(b"x" * taps.MAX_WHOLE * 20, Message(method="m", params={}))
    kept = sum(taps.FRAME_BYTES + len(one.head) + len(one.tail) for one in tap.ring.values())
    assert (
        taps.MAX_BYTES - taps.MAX_WHOLE - taps.FRAME_BYTES <= kept == tap._bytes <= taps.MAX_BYTES
    )
    assert wire.frames()[-1].size == taps.MAX_WHOLE * 20
    before = len(tap.ring)
    for length in (10, 300_000):
        for _ in range(300):
            tap.stderr([b"y" * length])
        assert len(of(wire, FrameKind.STDERR)) == taps.MAX_STDERR_FRAMES
    assert len(of(wire, NOTICE)) >= before - taps.MAX_STDERR_FRAMES
    for number in range(taps.MAX_OPEN * 2):
        tap.sent(Message(id=number, method="ping", params=None), b"{}")
    assert len(tap._ours) == taps.MAX_OPEN


async def test_who_watches_is_told_seldom_and_nobody_else_is() -> None:
    told_of = list[FramesNoted]()
    wire = Wire(told_of.append)  # type: ignore[arg-type]
    tap = wire.tap(ServerId("s"))
    tap.word("starting", "")
    await asyncio.sleep(0)
    assert told_of == []
    wire.watch(is_watched=True)
    await eventually(lambda: len(told_of) == 1)
    before = wire.frames()
    for _ in range(1_000):
        tap.word("ready", "")
    assert len(told_of) == 1
    await eventually(lambda: len(told_of) == 2)
    assert told_of[-1].wire_revision == wire.revision
    newest = wire.frames(most=400)
    assert [one.number for one in newest] == [*range(602, 1002)]
    await eventually(lambda: told_of[-1].wire_revision == wire.revision)
    assert len(told_of) == 3, "the rest can be had"
    assert wire.frames(most=400)[400:] == newest
    assert len(wire.frames(most=400)) == 1_001
    assert all(new is old for new, old in zip(wire.frames(), before, strict=False))
    await wire.aclose()


async def test_a_flood_is_kept_within_the_bounds_and_its_call_is_found(
    loop_watch: LoopWatch,
) -> None:
    async with ready(script("raw", "flooding")) as (manager, watcher):
        loop_watch.clear()
        assert (await call(manager, "hurry", {"text": "3000"})).display == "done"
        assert watcher.last("raw").status is S.READY
        loop_watch.assert_smooth()
        tap = manager.wire.tap(ServerId("raw"))
        assert len(tap.ring) <= taps.MAX_FRAMES < manager.wire.last
        numbers = [*tap.ring]
        assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
        [answered] = of(manager.wire, ANSWER, "tools/call")
        assert (answered.target, answered.faults) == ("hurry", ())


SECRET = 'k+/"y\\ö of a fixture'
TWICE = json.dumps(json.dumps({"a": SECRET}))


def escaped(text: str) -> str:
    """Escape every letter, as JSON allows."""
    return "".join(f"\\u{ord(letter):04X}" for letter in text)


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False).replace("/", "\\/"),
        f'"{escaped(SECRET)}"',
        TWICE,
        json.dumps(f'{{"a": "{escaped(SECRET)}"}}'),
        json.dumps(f"x\x1b{SECRET}\n"),
        json.dumps(f"{SECRET[:9]}\x1b[31m{SECRET[9:]}"),
        json.dumps(quote(SECRET).lower()),
        json.dumps("".join(f"%{byte:02x}" for byte in SECRET.encode())),
    ],
)
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_secret_is_masked_however_it_is_escaped_and_whenever_it_is_learnt(
    written: str, is_whole: bool, wire: Wire, tap: Tap, redactor: Redactor
) -> None:
    body = '{"id": 1.50, "method": "m\\u002b", "params": {"name": ' + written + "}"
    tap.received((body + "}" * is_whole).encode(), Message(method=SECRET, params={"uri": SECRET}))
    assert SECRET in (wire.frames()[0].method, wire.frames()[0].target)
    redactor.register(SECRET)
    [frame] = wire.frames()
    shown, line = body_of(wire, 1), wire.export([1])
    everything = f"{frame!r} {shown.text} {shown.value} {line} {json.loads(line)}"
    assert "fixture" not in everything
    assert "fixture" not in everything.encode().decode("unicode_escape")
    assert escaped("fixture")[:20] not in everything
    assert '1.50, "method": "m\\u002b"' in shown.text, "the rest stays as it was written"
    assert (frame.method, frame.target) == ("***", "***")
    assert "***" in shown.text


def test_no_part_of_a_secret_is_left_at_a_cut(wire: Wire, tap: Tap, redactor: Redactor) -> None:
    redactor.register(secret := "fixture-of-24-characters")
    half, texts = taps.MAX_WHOLE // 2, list[str]()
    for place in range(-24, 3, 2):
        data = bytearray(b"-" * taps.MAX_WHOLE * 2)
        for at in (half + place, len(data) - half + place):
            data[at : at + len(secret)] = secret.encode()
        tap.received(bytes(data), Message(method="m", params={}))
        texts.append(body_of(wire, wire.last).text)
    part = "-" * (half - 12)
    wire.gave(MAIN, CALL, [TextPart(part + secret + part * 2 + secret + part)])
    texts.append(wire.model_got(MAIN, CALL))
    for text in texts:
        assert "bytes not kept" in text
        assert not any(part in text for part in (secret[:4], secret[-4:], secret[8:12]))


async def test_a_secret_split_by_hidden_text_goes(wire: Wire, tap: Tap, redactor: Redactor) -> None:
    redactor.register(secret := "fixture-of-24-characters")
    for dropped in ("\x1b[1m", "\x1b]8;;x\x07", "\u200b"):
        split = "\u200b" * 8 + f"{secret[:9]}{dropped}{secret[9:]}"
        data = json.dumps({"method": "m", "params": {"name": split}}).encode()
        tap.received(data, Message(method="m", params={"name": split}))
        tap.stderr([split.encode()])
        wire.gave(MAIN, CALL, [TextPart(split)])
        bodies = [wire.body(one.number) for one in wire.frames()]
        assert secret not in f"{wire.frames()} {bodies} {wire.model_got(MAIN, CALL)}", dropped


def test_a_body_is_safe_to_show_as_a_tree_and_standard_error_is_none(wire: Wire, tap: Tap) -> None:
    tap.received(b'{"k\\u001b[2J": ["v\\u001b[2J", 1]}', Message(method="m", params={}))
    tap.stderr([b"123"])
    assert body_of(wire, 1).value == {"k": ["v", 1]}
    assert (body_of(wire, 2).text, body_of(wire, 2).value) == ("123", None)
    assert json.loads(wire.export([2]))["text"] == "123"


def test_a_command_to_copy_holds_what_a_server_named_as_one_word(wire: Wire, tap: Tap) -> None:
    for name in ("x\x1b[", "--trace=x", "-h"):
        said: dict[str, Any] = {"name": name, "arguments": {"a": "\x1b['; echo #"}}
        data = json.dumps({"params": said}).encode()
        tap.sent(Message(id=1, method="tools/call", params=said), data)
        words, options = ["s", sanitize(name)], ["--args", json.dumps(said["arguments"])]
        whole = [*options, "--", *words] if name.startswith("-") else [*words, *options]
        assert shlex.split(wire.command(wire.last)) == ["gemdeck", "mcp", "call", *whole]


async def test_the_secrets_of_a_server_are_in_no_frame(wire: Wire, redactor: Redactor) -> None:
    redactor.register(token := "leaked-fixture/+ of a server")
    context = ClientContext(redactor=redactor, wire=wire)
    leaky = script("raw", "leaky", env={"RAW_TOKEN": token})
    async with ready(leaky, context=context) as (manager, _):
        await refuses("is not accepted", manager, "leak")
        await eventually(lambda: of(wire, FrameKind.STDERR))
        numbers = range(1, wire.last + 1)
        bodies = [wire.body(number) for number in numbers]
        assert "leaked-fixture" not in f"{wire.export(numbers)} {bodies}"


def test_what_is_written_at_any_length_costs_and_shows_little(wire: Wire, tap: Tap) -> None:
    long = "x\x1b[2J" * 1_000_000
    for odd in (long, 10**5_000, {"a": long}, [1], 1.5, True, None):
        params = {"name": odd, "_meta": {"progressToken": odd, VERSION_KEY: odd}}
        tap.received(b"{}", Message(id=odd, method=long, params=params))
        tap.received(b"{}", Message(id=odd, result={"requestState": odd, "resultType": odd}))
        tap.received(b"{}", Message(method="notifications/cancelled", params={"requestId": odd}))
    for frame in wire.frames():
        assert len(repr(frame)) < 10_000
        assert "\x1b" not in repr(frame)
    assert all(len(one.method) < 10_000 for one in tap.ring.values())
    assert json.loads(f"[{wire.export(range(1, 4)).replace(chr(10), ',')}]")


async def test_a_call_leads_to_its_frames_and_is_sent_again_as_it_was(tmp_path: Path) -> None:
    raw = script("raw")
    write_settings(
        {"mcpServers": {"raw": {"command": raw.launch.command, "args": [*raw.launch.args]}}}
    )
    watcher, options = Watcher(), EngineOptions(tmp_path, follow_settings=False, needs_model=False)
    async with Engine(options, watcher) as engine:
        await engine.start()
        await engine.wait_ready()
        await engine.call_tool(ServerId("raw"), "echo", {"text": "hi"}, by_user=True)
        [row] = [event.call for event in watcher.of(ToolCallRequested)]
        asked, answered = [one for one in engine.wire.frames() if one.call == row.id]
        assert (asked.conversation, asked.kind, answered.kind) == (MAIN, REQUEST, ANSWER)
        assert engine.wire.model_got(MAIN, row.id) == "hi"
        assert engine.wire.model_got(MAIN, EntryId("another")) == ""
        [listed] = of(engine.wire, REQUEST, "tools/list")
        engine.runs.send_again(listed.number)
        await eventually(lambda: len(of(engine.wire, ANSWER, "tools/list")) == 2)
        again = of(engine.wire, REQUEST)[-1]
        assert engine.wire.request(again.number) == engine.wire.request(listed.number)
        for number in (asked.number, answered.number):  # nobody is there to be asked
            before = len(watcher.of(NoticeRaised))
            engine.runs.send_again(number)
            await eventually(lambda: len(watcher.of(NoticeRaised)) > before)  # noqa: B023
        assert len(of(engine.wire, REQUEST, "tools/call")) == 1
