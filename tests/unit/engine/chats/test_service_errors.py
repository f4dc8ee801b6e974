"""What a service refuses, in the words that people met: what is said of it, and what can help."""

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Final

import anyio
import pytest

from tests.fakes.gemini_script import Fail
from tests.servers.web import HttpServer, answer
from tests.support.waiting import PATIENCE
from tests.unit.engine.chats.support import open_backend
from tests.unit.engine.chats.test_gemini_backend import DECLARATION, collect, failures, request
from tui.engine.chats.backends.backend import ModelError
from tui.engine.chats.backends.gemini import MAX_WRONG
from tui.engine.chats.backends.service_errors import (
    Refusal,
    RequestContext,
    from_status,
    known_refusals,
)
from tui.engine.chats.step import ModelStep
from tui.model.chat import BackendKind, EntryId
from tui.model.events import Event, TextStreamed

HELLO: Final = 'data: {"candidates": [{"content": {"parts": [{"text": "Hello"}]}}]}\n\n'
END: Final = (
    'data: {"candidates": [{"content": {"parts": [{"text": "!"}]}, "finishReason": "STOP"}]}'
)
NO_ERROR: Final = '{"error": null, '
CUT: Final = "closed the connection before its response was complete"
WRONG: Final = [
    {"field": "contents[1].parts[0]", "description": "no data"},
    {"field": "x", "description": "Not valid."},
]
MANY: Final = [{"field": "x", "description": f"{number:02}"} for number in range(MAX_WRONG + 9)]
HALF: Final = 'data: {"candidates": [{"content": {"par'

STREAMS: Final[Mapping[str, tuple[str, str]]] = {
    "comments and names": (f": ping\n\nevent: chunk\nid: 1\nretry: 9\n{HELLO}:\n\n{END}\n\n", ""),
    "no blank, CR": (f"{HELLO}{END}".replace(": {", ":{", 1).replace("\n", "\r"), ""),
    "a mark of the order": (f"\ufeff{HELLO}{END}\n\n", ""),
    "[DONE]": (f"{HELLO}{END}\n\ndata: [DONE]\n\n", ""),
    "pings with data": (f'{HELLO}event: ping\ndata: {{"type": "ping"}}\n\n{END}\n\n', ""),
    "a ping in words": (f"{HELLO}event: ping\ndata: now\n\n{END}\n\n", ""),
    "a ping in bare words": (f"data: ping\n\n{HELLO}data: ping\n\n{END}\n\ndata: ping\n\n", ""),
    "no value": (f'{HELLO}data: null\n\n{END.replace("{", NO_ERROR, 1)}\n\ndata: null', ""),
    "no end of the last event": (f"{HELLO}{END}", ""),
    "one document": (END.removeprefix("data: ").replace("!", "Hello!").replace("{", "{\n "), ""),
    "a list": (f"[{HELLO[6:].strip()}\n,\r\n{END[6:]}\n]", ""),
    "cut within an event": (f"{HELLO}{HALF}", CUT),
    "cut within a first event": (HALF, CUT),
    "cut between events": (HELLO, "the stream ended early"),
    "an error in a half event": (
        f'{HELLO}{HALF}\ndata: {{"type": "error", "error": {{"message": "read failed"}}}}\n\n',
        "aborted the answer: read failed",
    ),
    "an error as an event": (
        f'{HELLO}event: error\ndata: {{"message": "out of memory"}}\n\n',
        "aborted the answer: out of memory",
    ),
    "an error in words": (f"{HELLO}data: error: no GPU\n\n", "aborted the answer: error: no GPU"),
    "an error as a string": (f'{HELLO}data: "no GPU"\n\n', 'aborted the answer: "no GPU"'),
    "an error between events": (
        f'{HELLO}{{\n "error": {{\n  "code": 503, "message": "Busy."\n }}\n}}\n\n{END}\n\n',
        "overloaded or failing (HTTP 503): Busy.",
    ),
    "an error with an odd code": (
        f'{HELLO}data: {{"error": {{"code": "rate_limit", "message": "Slow down."}}}}\n\n',
        "aborted the answer: Slow down.",
    ),
    "a malformed call in a list": (
        '[{"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "f(x"}]}]',
        "malformed tool call: f(x",
    ),
    "words in place of an answer": (
        '{"message": "out of memory", "code": 5}',
        "The service aborted the answer: out of memory",
    ),
    "an end by a failure": (
        f'{HELLO}data: {{"candidates": [{{"finishReason": "NETWORK_ERROR"}}]}}\n\n',
        "The service aborted the answer: network error.",
    ),
    "a refused prompt": (
        'data: {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "A name."}}\n\n',
        "refused the message (OTHER): A name.",
    ),
    "nested beyond measure": (f"data: {'[' * 200_000}\n\n", "could not be read"),
    "more values than are parsed": (f"data: [{'1,' * 300_000}1]\n\n", "too complex"),
    "a page": ("<!doctype html>\n<p>data: 1</p>", "The service sent a web page"),
    "nothing": ("", "empty answer"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "words"), STREAMS.values(), ids=STREAMS)
async def test_a_stream_is_an_answer_or_says_why_not(body: str, words: str) -> None:
    shown: list[str] = []

    def publish(event: Event) -> None:
        shown.extend([event.delta] if isinstance(event, TextStreamed) else [])

    async with HttpServer(handle=answer(200, body.encode(), content_type="text/plain")) as server:
        backend = await open_backend(server.origin)
        step = ModelStep(publish, lambda: EntryId("e"), lambda: None)
        with anyio.fail_after(PATIENCE):
            if words:
                with pytest.raises(ModelError, match=re.escape(words)):
                    await step.run(backend, request(DECLARATION))
            else:
                await step.run(backend, request(DECLARATION))
        await backend.aclose()
    assert "".join(shown) == ("" if "Hello" not in body else "Hello" if words else "Hello!")


async def test_known_refusals_get_words_and_advice_of_their_own() -> None:
    rows = [row for row in known_refusals() if "service" not in row]
    seen = [(row, told) for row in rows for told in row["seen"]]
    steps = [(Fail(int(told[:3]), told[4:], retry_delay="5s"),) for _, told in seen]
    for (row, told), error in zip(seen, await failures(*steps), strict=True):
        says = row["says"].format(model="gemini-3.8-flash", status=told[:3])
        assert str(error) == f"{says}: {told[4:]}"
        assert error.advice == row.get("advice", error.advice)
        assert "F9" in error.advice or "advice" in row
        assert error.lacks == row.get("lacks", "")
        assert (error.retryable, error.retry_after) == (False, None)
        assert "again" not in error.advice


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "some words"}, "some words"),
        ({"detail": [{"loc": ["body", "x"], "msg": "some words"}]}, "x: some words"),
        (
            {
                "error": {
                    "code": 400,
                    "message": "Not valid.",
                    "details": [{"fieldViolations": WRONG}],
                }
            },
            "Not valid. contents[1].parts[0]: no data",
        ),
        (
            {"error": {"message": "Many:", "details": [{"fieldViolations": MANY}]}},
            f"Many:{''.join(f' x: {number:02}' for number in range(MAX_WRONG))}",
        ),
    ],
)
async def test_a_refusals_words_are_shown_wherever_they_stand(body: object, words: str) -> None:
    async with HttpServer(handle=answer(400, json.dumps(body).encode())) as server:
        with pytest.raises(ModelError) as caught:
            await collect(await open_backend(server.origin))
    assert str(caught.value) == f"The service refused the request: {words}"


def test_known_words_are_looked_for_in_little_time() -> None:
    context = RequestContext(BackendKind.GEMINI, "gemini-9", "", 1.0)
    begin = time.process_time()
    for words, reasons in (("api " * 20_000, []), ("x", ["api"] * 20_000)):
        error = from_status(Refusal.read(400, words, reasons, [], context.clean), context)
        assert "The service refused the request" in str(error)
    assert time.process_time() - begin < 1


def test_vertex_is_refused_with_advice_of_its_own() -> None:
    context = RequestContext(BackendKind.VERTEX, "gemini-9", "", 1.0)
    error = from_status(Refusal(403, "denied", "denied"), context)
    assert str(error) == "Vertex refused access (HTTP 403): denied"
    assert "Vertex AI API" in error.advice


async def test_the_time_to_try_again_is_the_services() -> None:
    rows = (
        ("Slow down.", "34.4s", 34.4, "in 34 s"),
        ("Slow down.", "430.5ms", 0.4305, "in a moment"),
        ("Slow down.", "", 15.0, "later"),
        ("Please wait 20 seconds.", "", 20.0, "in 20 s"),
        ("Please retry in 47.43s.", "", 47.43, "in 47 s"),
        ("Your quota will reset after 12h34m16s.", "", 45_256.0, "in 12 h 34 min"),
        ("Quota exceeded.", "45256s", 45_256.0, "in 12 h 34 min"),
        ("Try again in 5 minutes.", "", 300.0, "in 5 min"),
        ("It resets in 2 days 1 hour.", "", 176_400.0, "in 49 h 0 min"),
        (f"Please retry in {'9' * 5_000}", "soon", 15.0, "later"),
    )
    steps = [(Fail(429, message, retry_delay=delay),) for message, delay, *_ in rows]
    for (*_, seconds, when), error in zip(rows, await failures(*steps), strict=True):
        assert error.retry_after == pytest.approx(seconds)
        assert (error.retryable, error.advice) == (True, f"Try again {when}.")


async def test_a_day_is_over_in_california_and_a_full_service_is_no_quota() -> None:
    used_up, full = await failures(
        (Fail(429, "x", "10s", "GenerateRequestsPerDayPerProject"),),
        (Fail(429, "No capacity available for model on the server"),),
    )
    assert (used_up.retryable, str(used_up)) == (False, "The quota for today is used up: x")
    assert "Pacific time" in used_up.advice
    assert "overloaded" in str(full)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (format_datetime(datetime.now(UTC) + timedelta(hours=3.5), usegmt=True), "in 3 h"),
        (format_datetime(datetime.now(UTC) - timedelta(hours=3)), "in a moment"),
        ("Thu, 32 Foo 2026 25:00:00 GMT", "later"),
        ("90", "in 90 s"),
    ],
    ids=["a date", "a date that has passed", "no date", "seconds"],  # the same in each worker
)
async def test_a_header_says_when_by_seconds_or_by_a_date(value: str, advice: str) -> None:
    body = b'{"error": {"code": 503, "message": "Busy."}}'
    async with HttpServer(handle=answer(503, body, retry_after=value)) as server:
        with pytest.raises(ModelError) as caught:
            await collect(await open_backend(server.origin))
    assert f"Try again {advice}" in caught.value.advice
