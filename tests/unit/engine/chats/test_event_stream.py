"""Event streams as the standard has them, and as gateways send them."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Final

import httpx2
import pytest
from anyio.lowlevel import checkpoint

from tui.engine.chats.backends.event_stream import StreamEvent, read_events, read_values

EVENTS: Final[dict[str, tuple[str, list[tuple[str, str]]]]] = {
    "the standard's first": ("data: YHOO\ndata: +2\ndata: 10\n\n", [("message", "YHOO\n+2\n10")]),
    "the standard's second": (
        ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n",
        [("message", "first event"), ("message", "second event"), ("message", " third")],
    ),
    "empty data": ("data\n\ndata\ndata\n\ndata:\n\n", [("message", "\n")]),
    "one blank is left out": ("data:a\n\ndata: b\n\n", [("message", "a"), ("message", "b")]),
    "names": ("event: ping\ndata: x\n\ndata: y\n\n", [("ping", "x"), ("message", "y")]),
    "a name without data": ("event: ping\n\ndata: y\n\n", [("message", "y")]),
    "a time, an id, unknown fields": (
        "retry: 3000\n\nid: 7\n\nretry: soon\nodd: x\nevent :x\n data: y\ndata: z\n\n",
        [("message", "z")],
    ),
    "CR": ("data: a\rdata: b\r\rdata: c\r\r", [("message", "a\nb"), ("message", "c")]),
    "all line ends": (
        "data: a\r\ndata: b\n\rdata: c\r\n\r\n",
        [("message", "a\nb"), ("message", "c")],
    ),
    "no other line ends": ("data: a\u2028b\x0bc\x85d\n\n", [("message", "a\u2028b\x0bc\x85d")]),
    "a byte order mark": ("\ufeffdata: a\n\n", [("message", "a")]),
    "only a first one": ("\ufeff\ufeffdata: a\n\ndata: \ufeffb\n\n", [("message", "\ufeffb")]),
    "the caller's": ("data: {}\n\ndata: [DONE]\n\n", [("message", "{}"), ("message", "[DONE]")]),
    "nothing": ("", []),
    "comments alone": (":\n: ping\n\n:::\n\n", []),
}

DOCUMENTS: Final[dict[str, tuple[str, list[object]]]] = {
    "one": ('{\n  "a": [1]\n}\n', [{"a": [1]}]),
    "a list": ('[{"a": 1}\n,\r\n{"b": 2}]\n', [{"a": 1}, {"b": 2}]),
    "one a line": ('{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
    "a byte order mark": ('\ufeff{"a": 1}', [{"a": 1}]),
    "in the middle": ('data: 1\n\n{\r\n"a": 2\r\n}\r\ndata: [DONE]\r\n\r\n', [1, {"a": 2}]),
    "in the middle of an event": ('data: 1\n{"a": 2}', [1, {"a": 2}]),
    "a page": ("<html>\n<p>data: 1</html>", []),
}


async def read(*pieces: bytes, limit: int = 1_000) -> list[StreamEvent]:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            await checkpoint()
            yield piece

    return [event async for event in read_events(body(), limit)]


def splits(whole: bytes) -> Sequence[Sequence[bytes]]:
    """Split it nowhere, everywhere, and once at each place."""
    once = [(whole[:place], whole[place:]) for place in range(len(whole))]
    return [(whole,), [bytes([byte]) for byte in whole], *once]


@pytest.mark.parametrize(("body", "events"), EVENTS.values(), ids=EVENTS)
async def test_events_are_the_standards_wherever_the_body_is_split(
    body: str, events: list[tuple[str, str]]
) -> None:
    for pieces in splits(body.encode()):
        found = [(event.name, event.data) for event in await read(*pieces)]
        assert found == events, pieces


@pytest.mark.parametrize(("body", "values"), DOCUMENTS.values(), ids=DOCUMENTS)
async def test_what_is_no_event_stream_comes_as_one_event(body: str, values: list[object]) -> None:
    for pieces in splits(body.encode()):
        events = await read(*pieces)
        assert [one for event in events for one in read_values(event.data)] == values, pieces
        assert not events[-1].is_ended


@pytest.mark.parametrize("end", ["", "\n", "\r", "\r\n"])
async def test_an_event_without_its_end_comes_and_is_told(end: str) -> None:
    first, last = await read(f"data: a\n\ndata: b{end}".encode())
    assert (first, last) == (StreamEvent("message", "a", True), StreamEvent("message", "b", False))


async def test_bytes_that_are_no_text_stay_in_their_event() -> None:
    first, last = await read(b"data: \xff\xc3\n\ndata: b\n\n")
    assert (first.data, last.data) == ("\ufffd\ufffd", "b")


@pytest.mark.parametrize("body", [b"data: %s\n\n", b"data: a\n" + b"data: %s\n" * 2, b"{%s"])
async def test_a_large_event_ends_the_stream(body: bytes) -> None:
    whole = body.replace(b"%s", b"x" * 600)
    assert len(await read(b"data: a\n\n", whole, limit=2_000)) > 1
    with pytest.raises(httpx2.SSEError):
        await read(b"data: a\n\n", *splits(whole)[1], limit=600)


@pytest.mark.parametrize(
    ("data", "values"),
    [("[DONE]", []), ("{}", [{}]), ("{", []), (" [1, 2] x", [1, 2]), ("[" * 100_000, []), ("", [])],
)
def test_values_are_read_as_far_as_they_go(data: str, values: list[object]) -> None:
    assert read_values(data) == values
    assert read_values(json.dumps({"a": data})) == [{"a": data}]
