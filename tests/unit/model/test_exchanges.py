"""Exchanges: what belongs to a request, and the filter that they pass."""

import mcp_types as types
import pytest

from tests.support.said import Talk, fill
from tui.engine.mcp.wire.wire import Wire
from tui.model.servers import ServerId
from tui.model.wire.exchanges import DISCOVER, LASTING, NO_METHOD, Exchange, exchanges
from tui.model.wire.frame_filter import FrameFilter, parse_filter
from tui.model.wire.frames import Direction, FrameFault, FrameKind, WireFrame


def said(wire: Wire) -> list[Exchange]:
    return [*exchanges(wire.frames(), {}).values()]


def methods(found: list[Exchange]) -> list[list[str]]:
    return [[one.method or one.kind.value for one in found.frames] for found in found]


def test_a_call_has_its_answer_progress_and_logs_and_all_else_stands_between() -> None:
    wire = Wire()
    fill(wire)
    progress, log = ["notifications/progress"] * 3, "notifications/message"
    assert methods(said(wire)) == [
        *(["starting"], ["initialize", "initialize"], ["stderr"], ["tools/list", "tools/list"]),
        *(["tools/call", *progress, log, "tools/call"], ["noise"], ["POST"]),
        *(["resources/read", "resources/read"], ["answer"], ["notifications/tools/list_changed"]),
    ]
    call = said(wire)[4]
    assert call.answer is call.frames[-1]
    assert [one.method for one in call.inner] == [*progress, log]
    assert call.seconds == pytest.approx(call.answer.time - call.head.time)
    assert not call.is_bad
    assert [one.is_bad for one in said(wire)] == [*[False] * 5, True, True, True, True, False]


def test_what_has_not_changed_is_the_same_again() -> None:
    wire = Wire()
    fill(wire)
    open_call = Talk(wire, "late").ask("tools/call", name="slow")
    before = exchanges(wire.frames(), {})
    assert [one.waits for one in before.values()] == [*[False] * 10, True]
    talk = Talk(wire, "late")
    talk.answer(open_call, content=[])
    now = exchanges(wire.frames(), before)
    assert now.keys() == before.keys()
    assert [now[number] is before[number] for number in now] == [*[True] * 10, False]
    assert not [*now.values()][-1].waits


def frame(number: int, kind: FrameKind, **fields: object) -> WireFrame:
    whole = {"direction": Direction.SENT, "server": ServerId("s"), "time": float(number), **fields}
    return WireFrame(number=number, kind=kind, **whole)  # type: ignore[arg-type]


def test_rounds_and_what_calls_it_off_fold_under_the_first_request() -> None:
    asked, heard = {"method": "tools/call", "target": "t"}, {"direction": Direction.RECEIVED}
    frames = [
        frame(1, FrameKind.REQUEST, id="1", pair=2, **asked),
        frame(2, FrameKind.ANSWER, id="1", pair=1, **heard),
        frame(3, FrameKind.REQUEST, id="2", round=2, **asked),
        frame(4, FrameKind.REQUEST, id="3", **asked),
    ]
    first, other = exchanges(frames, {}).values()
    assert [one.number for one in first.frames] == [1, 2, 3]
    assert first.waits, "the second round is open"
    assert other.waits
    frames.append(frame(5, FrameKind.NOTIFICATION, method="notifications/cancelled", id="3"))
    first, other = exchanges(frames, {}).values()
    assert (first.waits, other.waits, other.is_cancelled) == (True, False, True)
    frames[2] = frame(3, FrameKind.REQUEST, id="2", round=2, pair=6, **asked)
    frames.append(frame(6, FrameKind.ANSWER, id="2", pair=3, **heard))
    first, _ = exchanges(frames, {}).values()
    assert first.seconds == 5.0, "to the last answer"
    assert [one.number for one in first.inner] == [2, 3]


def test_a_log_belongs_to_no_request_while_two_are_open() -> None:
    wire = Wire()
    talk = Talk(wire, "s")
    first, second = talk.ask("tools/call", name="a"), talk.ask("tools/call", name="b")
    talk.tell("notifications/message", level="info", data="whose?")
    talk.answer(first, content=[])
    talk.tell("notifications/message", level="info", data="of b")
    talk.answer(second, content=[])
    assert [len(one.frames) for one in said(wire)] == [2, 3, 1]
    talk.ask("tools/call", name="died")
    talk.tap.word("retrying", "exit 1")
    third = talk.ask("tools/call", name="c")
    talk.tell("notifications/message", level="info", data="of c")
    talk.answer(third, content=[])
    assert len(said(wire)[-1].frames) == 3, "what waits for a connection that has ended is not busy"


def test_what_finds_out_the_era_is_a_probe_once_the_same_connection_works() -> None:
    wire = Wire()
    old, new = Talk(wire, "old"), Talk(wire, "new")
    probe, silent = old.ask(DISCOVER), new.ask(DISCOVER)
    old.refuse(probe, "Invalid request parameters")
    before = exchanges(wire.frames(), {})
    assert [(one.is_bad, one.waits) for one in before.values()] == [(True, False), (False, True)]
    new.tap.word("retrying", "exit 1")
    new.ask(DISCOVER)
    for talk in (old, new):
        talk.refuse(talk.ask(LASTING), "What?", types.METHOD_NOT_FOUND)
        talk.refuse(talk.ask(LASTING), "Too many.", types.INTERNAL_ERROR)
        talk.answer(talk.ask("initialize"), capabilities={})
    new.answer(new.ask(DISCOVER), capabilities={})
    now = exchanges(wire.frames(), before)
    shown = [
        (str(one.head.server), one.head.id, one.is_bad) for one in now.values() if not one.is_probe
    ]
    assert shown == [
        *(("new", str(silent), True), ("new", "", False), ("old", "3", True)),
        *(("old", "4", False), ("new", "4", True), ("new", "5", False), ("new", "6", False)),
    ], "what a connection ended with is none, nor is an answered request or another refusal"
    hidden = [one for one in now.values() if one.is_probe]
    assert not any(one.is_bad or one.waits for one in hidden)
    assert [*exchanges(wire.frames(), now).values()] == [*now.values()]
    details = {one.head.method: one.answer.detail for one in hidden if one.answer}
    assert details == {DISCOVER: "", LASTING: NO_METHOD}


def test_the_status_of_a_probe_over_http_is_one() -> None:
    asked = {"method": DISCOVER, "pair": 3}
    refused = {"direction": Direction.RECEIVED, "method": DISCOVER, "pair": 1, "is_error": True}
    frames = [
        frame(1, FrameKind.REQUEST, **asked),
        frame(2, FrameKind.HTTP, direction=Direction.RECEIVED, pair=1, is_error=True),
        frame(3, FrameKind.ANSWER, **refused),
        frame(4, FrameKind.REQUEST, method="initialize", pair=5),
        frame(5, FrameKind.ANSWER, direction=Direction.RECEIVED, pair=4),
    ]
    assert [one.is_probe for one in exchanges(frames, {}).values()] == [True, True, False]


def test_a_filter_is_read_as_it_is_typed() -> None:
    named = [("method", "tools/call"), ("server", "git")]
    for text, found in (
        *(("", FrameFilter([], [])), ("method: >", FrameFilter([], []))),
        *((">1.5s", FrameFilter([], [], 1.5)), (">2m", FrameFilter([], [], 120.0))),
        (">5", FrameFilter([], [], 0.005)),
        ("https://a.b/c >x error", FrameFilter(["https://a.b/c", ">x", "error"], [])),
        (
            "method:tools/call server:git err >200ms Words here",
            FrameFilter(["words", "here"], named, 0.2, errors=True),
        ),
    ):
        assert parse_filter(text) == found


def test_a_filter_keeps_what_has_all_of_it() -> None:
    wire = Wire()
    fill(wire)
    for text, numbers in (
        *(("err", [5, 6, 7, 8]), ("method:list", [3, 9]), ("method:progress", [4])),
        *(("server:every", [6, 7]), ("target:static", [7]), ("id:3", [4])),
        *(("call:main/call-1", [4]), ("branch tools", [4]), (">1m", []), ("401", [6])),
        ("not json", [5]),
    ):
        wanted = parse_filter(text)
        assert [i for i, one in enumerate(said(wire)) if wanted.admits(one)] == numbers, text
    Talk(wire, "s").ask("tools/call", name="slow")
    assert parse_filter(">1m").admits(said(wire)[-1]), "what is open is slow"


def test_a_fault_is_found_by_its_words() -> None:
    bad = frame(1, FrameKind.NOISE, faults=(FrameFault.TOO_LARGE,))
    [one] = exchanges([bad], {}).values()
    assert one.is_bad
    assert parse_filter("too large").admits(one)
