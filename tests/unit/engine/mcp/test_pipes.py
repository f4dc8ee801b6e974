import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.mcp.transports.stdio.process import LineSplitter, LineTooLongError


@given(st.lists(st.binary(max_size=20)))
def test_lines_are_the_same_however_the_stream_is_cut(chunks: list[bytes]) -> None:
    splitter = LineSplitter(10_000)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert [*lines, splitter.finish()] == b"".join(chunks).split(b"\n")


def test_a_line_over_the_limit_is_an_error() -> None:
    splitter = LineSplitter(5)
    assert splitter.feed(b"12345\n1234") == [b"12345"]
    with pytest.raises(LineTooLongError):
        splitter.feed(b"56")
    for data in (b"123456\n", b"1\n123456\n2", b"1\n123456"):
        with pytest.raises(LineTooLongError):
            LineSplitter(5).feed(data)


def test_a_line_over_the_limit_can_be_cut() -> None:
    splitter = LineSplitter(3, cut=True)
    assert splitter.feed(b"12345\n6") == [b"123"]
    assert splitter.feed(b"78") == []
    assert splitter.feed(b"9\nab\n") == [b"678", b"ab"]


@given(st.lists(st.text("ab\n", max_size=20).map(str.encode)))
def test_lines_are_cut_alike_however_the_stream_is_cut(chunks: list[bytes]) -> None:
    splitter = LineSplitter(3, cut=True)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    whole = b"".join(chunks).split(b"\n")
    assert [*lines, splitter.finish()] == [line[:3] for line in whole]


def test_empty_lines_by_the_hundred_thousand_cost_little() -> None:
    began = time.process_time()
    assert len(LineSplitter(16 * 2**20).feed(b"\n" * 2**20)) == 2**20
    assert time.process_time() - began < 1


def test_a_long_line_costs_its_length() -> None:
    splitter = LineSplitter(64 * 1024 * 1024)
    chunk = b"x" * 4_096
    began = time.process_time()
    for _ in range(10_000):
        splitter.feed(chunk)
    assert len(splitter.finish()) == 40_960_000
    assert time.process_time() - began < 1
