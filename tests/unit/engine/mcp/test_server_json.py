import asyncio
import json
import math
import time
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import any_json
from tests.support.measures import Measure
from tests.support.stalls import HANG_SECONDS
from tui.engine.mcp.transports import jsonrpc_lines
from tui.model import bounded_json
from tui.model.bounded_json import JsonError, read_value, structure

VALUES = any_json(st.text())
MIB = 2**20


def structural(value: object) -> int:
    """Count the structural characters that a value is written with, the slow way."""
    match value:
        case dict():
            inner = sum(1 + structural(item) for item in value.values())
            return 1 + inner + max(0, len(value) - 1)
        case list():
            return 1 + sum(map(structural, value)) + max(0, len(value) - 1)
        case _:
            return 0


@given(VALUES, st.booleans())
def test_both_ways_of_reading_give_what_was_written(value: Any, ascii_only: bool) -> None:  # noqa: ANN401
    text = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace")
    expected = json.loads(text)
    assert read_value(text) == expected
    assert read_value(b"[NaN, %b]" % text) == ["NaN", expected]


@given(VALUES)
def test_structure_is_counted_outside_of_strings(value: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_json, "FEW", -1)
        assert structure(json.dumps(value).encode()) == structural(value)


def test_what_servers_write_amiss_is_mended() -> None:
    rows: list[tuple[bytes, object]] = [
        (rb'"a\ud800b"', "a\ufffdb"),
        (rb'"\uDC00\ud800"', "\ufffd\ufffd"),
        (rb'"\ud83d\ude00\ud83d"', "\U0001f600\ufffd"),
        (rb'["\\ud800", "\ud800"]', ["\\ud800", "\ufffd"]),
        (rb'{"\ud800": 1}', {"\ufffd": 1}),
        (b'"\xff"', "\ufffd"),
        (b"[NaN, Infinity, -Infinity]", ["NaN", "Infinity", "-Infinity"]),
        (b"1e999", math.inf),
    ]
    for text, value in rows:
        assert read_value(text) == value, text


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[1,]",
        b"[" * 100_000 + b"]" * 100_000,
        b"[NaN," + b"[" * 201 + b"]" * 201 + b"]",
        b"9" * 5_000,
        b"[NaN, " + b"9" * 100_000 + b"]",
    ],
    ids=["nothing", "open", "comma", "deep", "deep and odd", "long number", "longer and odd"],
)
def test_what_cannot_be_read_is_refused(text: bytes) -> None:
    with pytest.raises(JsonError, match="cannot be read"):
        read_value(text)


@pytest.mark.parametrize("piece", [b"{},", b"1,"])
def test_too_many_values_are_refused_before_they_are_read(piece: bytes) -> None:
    with pytest.raises(JsonError, match="too complex"):
        read_value(b"[" + piece * (8 * MIB // len(piece)) + b"0]")


def test_a_long_text_is_not_mistaken_for_many_values() -> None:
    words = 'a,b,"c",{1},[2]\\\n' * (MIB // 16)
    assert read_value(json.dumps({"text": words}).encode()) == {"text": words}


async def longest_gap(work: Awaitable[object]) -> tuple[float, float]:
    """Give how long the loop did not get a turn at most while some work went on, and its work."""
    began, last = time.process_time(), time.perf_counter()
    longest = 0.0
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - last)
        last = time.perf_counter()
    await task
    return longest, time.process_time() - began


@pytest.mark.usefixtures("loop_watch")
@pytest.mark.parametrize(
    "value",
    [
        b"[" + b'{"id":1,"of":[0]},' * 65_000 + b"0]",
        b"[" + b"[]," * 2_500_000 + b"0]",
        b'"' + b"\\\\" * (3 * MIB) + b"line\\n" * MIB + b'"',
    ],
    ids=["many values", "too many lists", "escapes"],
)
async def test_what_is_read_or_refused_at_once_is_quick(value: bytes, measure: Measure) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{"v":%b}}' % value
    gap, took = await longest_gap(jsonrpc_lines.read(line))
    size = len(line) / MIB
    measure(f"{size:.1f} MiB of JSON: {took * 1000:.0f} ms of CPU, loop held {gap * 1000:.0f} ms")
    assert took < HANG_SECONDS
