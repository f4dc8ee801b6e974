"""Servers as people have them: packed answers, cookies of balancers, words of refusals."""

import gzip
import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

from tests.servers.web import Announcer, Exchange, Handler, RawServer, SseServer, answer
from tests.support.leaks import FIXTURE_SECRET
from tests.support.rows import row
from tests.unit.engine.mcp.network.support import WEB, answering, connected, define, refused
from tests.unit.engine.mcp.support import HASTY, LATER, call, eventually, ready, refuses, running
from tui import __version__
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.catalog.offered_tool import TextPart, ToolCallError
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.transports.http import channels, http_client, http_transport
from tui.engine.mcp.transports.http.http_client import MAX_COOKIES, MAX_UNPACKED, find_proxy
from tui.engine.mcp.wire.wire import Wire
from tui.model.servers import ServerStatus as S
from tui.model.servers import Transport
from tui.model.wire.refusals import MAX_SAID

JSON = "application/json"
STREAM = "text/event-stream"
MIB = 2**20
HI = (TextPart("hi"),)
SECRET = f"{FIXTURE_SECRET}of-a-header"
TOKEN = {"Authorization": f"Bearer {SECRET}"}


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    **{"gzip": gzip.compress, "X-GZIP": gzip.compress},
    **{"deflate": zlib.compress, " Deflate ": raw_deflate, "identity": bytes, "": bytes},
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("kind", [JSON, STREAM])
async def test_a_packed_answer_is_read(coding: str, kind: str) -> None:
    async def pack(exchange: Exchange) -> None:
        content = [{"type": "text", "text": words}]
        message = {"jsonrpc": "2.0", "id": exchange.request.message["id"]}
        body = json.dumps({**message, "result": {"content": content}}).encode()
        body = body if kind == JSON else b": ping\n\ndata: " + body + b"\n\n"
        packed = CODINGS[coding](body)
        await exchange.begin(200, content_type=kind, content_encoding=coding)
        for start in range(0, len(packed) - cut, 700):
            await exchange.write(packed[start : min(start + 700, len(packed) - cut)])

    words, cut = "hi", 0
    async with answering(pack) as (_, manager, watcher):
        assert (await call(manager, "echo")).parts == HI
        for size in (MAX_UNPACKED, 5 * MAX_UNPACKED, MIB):
            for more in (-200, -1, 0, 1):
                words = "x" * (size + more)
                assert len((await call(manager, "echo")).display) > 1_000
        if kind == JSON and "i" in coding and coding != "identity":
            words, cut = "hi", 9
            await refuses("closed the connection before", manager, "echo")
        assert watcher.statuses(WEB) == [S.STARTING, S.READY]


async def test_what_is_packed_keeps_the_limits_and_fails_its_call_only() -> None:
    bomb = gzip.compress(b" " * 40 * MIB)
    amiss: list[tuple[bytes, str, str]] = [
        (bomb, "gzip", "larger than 16 MiB"),
        (raw_deflate(b" " * 40 * MIB), "deflate", "larger than 16 MiB"),
        (gzip.compress(bomb), "gzip", "not JSON|broke|is unknown"),
        (b"no gzip", "gzip", "is unknown"),
    ]
    async with answering() as (server, manager, watcher):
        for body, coding, words in amiss:
            for kind in (JSON, STREAM):
                server.on["tools/call"] = answer(
                    200, body, content_type=kind, content_encoding=coding
                )
                with row(coding, kind):
                    await refuses(words if kind == JSON else ".", manager, "echo")
                del server.on["tools/call"]
                assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        server.on["tools/call"] = answer(503, gzip.compress(b"Busy."), content_encoding="gzip")
        await refuses("HTTP 503. Response: Busy", manager, "echo")
        server.on["tools/call"] = answer(503, bomb, content_encoding="gzip")
        await refuses("HTTP 503", manager, "echo")
        assert watcher.statuses(WEB) == [S.STARTING, S.READY]


class Balancer(RawServer):
    """Sets cookies with its first answer; stands in for any host, as a proxy."""

    cookies: tuple[str, ...] = ()

    async def _initialize(self, exchange: Exchange) -> None:
        lines = "\r\nset-cookie: ".join(self.cookies)
        message = exchange.request.message
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "0"}}
        result = {"protocolVersion": "2025-06-18", **about}
        await exchange.give({"id": message["id"], "result": result}, set_cookie=lines)

    def sent(self) -> list[str]:
        return [request.headers.get("cookie", "") for request in self.requests]


async def test_a_cookie_goes_back_to_its_own_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Balancer() as server:
        server.cookies = (
            *(
                f"AWSALB={FIXTURE_SECRET}node1; Path=/; Expires=Wed, 01 Jan 2200 00:00:00 GMT",
                "s=1",
            ),
            *(
                "a=1; Domain=far.invalid",
                "b=1; Domain=.mcp.far.invalid",
                "c=1; Domain=evil.invalid",
            ),
            *("d=1; Secure", "e=1; Path=/elsewhere", "f=1; Max-Age=0"),
        )
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
        async with ready(define("http://mcp.far.invalid/mcp")) as (manager, watcher):
            await call(manager, "echo", {"text": "hi"})
            [first, *_], last = server.sent(), server.sent()[-1]
            assert first == ""
            assert sorted(last.split("; ")) == [f"AWSALB={FIXTURE_SECRET}node1", "s=1"]
            exported = manager.wire.export(range(manager.wire.last + 1))
            assert FIXTURE_SECRET not in f"{exported} {watcher.events}"
            before = len(server.requests)
            manager.restart(WEB)
            await watcher.until(WEB, S.STARTING, S.READY)
            assert server.sent()[before] == "", "a connection begins without any"


async def test_cookies_are_not_kept_without_end_nor_sent_where_they_are_not_from() -> None:
    async with Balancer() as server:
        server.cookies = tuple(f"c{number}=1" for number in range(MAX_COOKIES + 1))
        async with connected(server.url):
            assert set(server.sent()) == {""}
    async with RawServer() as other, Balancer() as server:
        server.cookies = ("node=1",)
        server.on["tools/call"] = answer(307, location=other.url)
        async with connected(server.url) as (manager, _):
            await refuses("which is not followed", manager, "echo")
            assert server.sent()[-1] == "node=1"
            assert other.requests == []


SAYINGS: list[tuple[int, bytes, str, str]] = [
    (421, b"Invalid Host header", "text/plain", "Invalid Host header"),
    (403, b'{"detail": "Not for you."}', JSON, "Not for you."),
    (400, b'{"error": {"code": "x", "message": "Bad plan"}}', JSON, "Bad plan"),
    (402, b'{"title": "Pay", "detail": "Pay first."}', "application/problem+json", "Pay first."),
    (404, b"<html><title>404: no such app</title>", "text/html", "404: no such app"),
    (503, b'{"message": "Deploying"}', JSON, "Deploying"),
    (401, b'{"error": "invalid_token", "error_description": "old"}', JSON, "invalid_token: old"),
]


@pytest.mark.parametrize("transport", [Transport.HTTP, Transport.SSE])
async def test_a_refusal_is_shown_with_what_it_says(transport: Transport) -> None:
    for status, body, kind, words in SAYINGS:
        handler = answer(status, body, content_type=kind)
        async with RawServer(
            on=dict.fromkeys(("server/discover", "initialize", "GET"), handler)
        ) as server:
            _, failure = await refused(server.url, transport, sse_fallback=False)
            with row(status):
                assert failure.reason.endswith(f". Response: {words}")
    async with answering() as (server, manager, _):
        for status, body, kind, words in SAYINGS[:3]:
            server.on["tools/call"] = answer(status, body, content_type=kind)
            await refuses(f"Response: {words}", manager, "echo")


async def test_what_a_message_over_sse_is_refused_with_is_shown() -> None:
    server = SseServer(on={"tools/call": answer(413, b"At most 1 MB.")})
    async with server, connected(server.url, Transport.SSE) as (manager, _):
        await refuses("Response: At most 1 MB.", manager, "echo")


@pytest.mark.parametrize("place", [0, MAX_SAID - 30, MAX_SAID - 8])
@pytest.mark.parametrize("kind", [JSON, "text/plain"])
async def test_D21_a_refusal_that_quotes_a_header_is_masked(place: int, kind: str) -> None:
    async def quote(exchange: Exchange) -> None:
        said = "x" * place + exchange.request.headers["authorization"]
        body = json.dumps({"error": said}) if kind == JSON else said
        await exchange.respond(400, body.encode(), content_type=kind)

    async with RawServer(on={"initialize": quote, "server/discover": quote}) as server:
        _, failure = await refused(server.url, headers=TOKEN, sse_fallback=False)
        assert "Response: " in failure.reason
        assert "s3cr3t" not in repr(failure)
    redactor = Redactor()
    context = ClientContext(redactor=redactor, wire=Wire(redactor=redactor))
    server = RawServer(on={"tools/call": quote})
    async with (
        server,
        ready(define(server.url, headers=TOKEN), context=context) as (manager, watcher),
    ):
        with pytest.raises(ToolCallError, match="Response: ") as caught:
            await call(manager, "echo")
        assert "s3cr3t" not in f"{caught.value} {watcher.events}"
        assert "s3cr3t" not in manager.wire.export(range(manager.wire.last + 1))


@pytest.mark.parametrize(
    ("status", "body", "is_lost"),
    [
        *((401, b"Unauthorized: Session not found", True), (422, b"Unknown session", True)),
        *((400, b"Invalid session ID", True), (410, b'{"error": "Session expired"}', True)),
        *((400, b'{"detail": "Server not initialized"}', True), (404, b"", True)),
        *((400, b"Bad arguments", False), (403, b"no such session", False), (410, b"", False)),
    ],
)
async def test_a_lost_session_is_told_in_any_form(status: int, body: bytes, is_lost: bool) -> None:
    refusals = [answer(status, body)]

    async def once(exchange: Exchange) -> None:
        await (refusals.pop()(exchange) if refusals else exchange.text("hi"))

    async with answering(once, sessions=True, retry=HASTY) as (server, manager, _):
        if is_lost:
            assert (await call(manager, "echo")).parts == HI
        else:
            await refuses(f"HTTP {status}", manager, "echo")
        assert server.methods().count("initialize") == 1 + is_lost
    refusals.append(answer(status, body))
    async with answering(once, retry=HASTY) as (server, manager, _):
        await refuses(f"HTTP {status}", manager, "echo")
        assert server.methods().count("initialize") == 1, "there was no session"


async def test_a_stream_that_was_open_is_asked_for_again_while_it_is_taken() -> None:
    announcer, taken = Announcer(), [409, 429, 400]

    async def busy(exchange: Exchange) -> None:
        if announcer.streams and taken:
            await exchange.respond(taken.pop(), b"Conflict")
        else:
            await announcer(exchange)

    async with answering({"GET": busy}, sessions=True) as (_, _, watcher):
        await eventually(lambda: announcer.streams)
        await announcer.log("one", retry="1")
        await eventually(lambda: "one" in watcher.log(WEB))
        await announcer.streams[0].cut()
        await eventually(lambda: len(announcer.streams) == 2)
        await announcer.log("two")
        await eventually(lambda: "two" in watcher.log(WEB))
        taken.append(405)
        await announcer.streams[1].cut()
        await eventually(
            lambda: any("lost its stream of change notices" in one for one in watcher.log(WEB))
        )
    async with answering({"GET": answer(409)}, sessions=True) as (server, manager, _):
        await call(manager, "echo")
        assert server.methods().count("GET") <= 1, "one that never was open is not asked for again"


def only_up_to(revision: str, body: bytes, kind: str = "text/plain") -> Handler:
    """Refuse any later revision, with these words."""

    async def initialize(exchange: Exchange) -> None:
        asked = exchange.request.message["params"]["protocolVersion"]
        if asked > revision:
            await exchange.respond(400, body, content_type=kind)
            return
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "0"}}
        await exchange.result({"protocolVersion": asked, **about})

    return initialize


async def test_a_revision_that_is_refused_is_asked_for_lower() -> None:
    told = b"Unsupported protocol version: 2025-11-25 (supported versions: 2025-03-26, 2025-06-18)"
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": told.decode()}}
    rows: list[tuple[str, bytes, str, list[str]]] = [
        ("2025-06-18", told, "text/plain", ["2025-06-18"]),
        ("2025-06-18", json.dumps(error).encode(), JSON, ["2025-06-18"]),
        ("2025-03-26", b"Bad MCP-Protocol-Version", "text/plain", ["2025-06-18", "2025-03-26"]),
    ]
    for revision, body, kind, tries in rows:
        server = RawServer(on={"initialize": only_up_to(revision, body, kind)})
        async with server, connected(server.url):
            asked = [one.message for one in server.requests if b'"initialize"' in one.body]
            assert [one["params"]["protocolVersion"] for one in asked][1:] == tries
    for body in (b"Bad Request", b"Unsupported version: only 2001-01-01"):
        async with RawServer(on={"initialize": only_up_to("", body)}) as server:
            _, failure = await refused(server.url, sse_fallback=False)
            assert failure.reason.endswith(f"Response: {body.decode()}")
            assert server.methods().count("initialize") == 1
    async with RawServer(on={"initialize": only_up_to("", b"wrong version")}) as server:
        await refused(server.url, sse_fallback=False)
        assert 1 < server.methods().count("initialize") < 6


async def test_a_notification_whose_answer_never_ends_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def accept(exchange: Exchange) -> None:
        await exchange.begin(202)
        await exchange.hang()

    async def open_stream(exchange: Exchange) -> None:
        await exchange.begin(200, content_type=STREAM)
        await exchange.write(b": open\n\n")
        await exchange.hang()

    monkeypatch.setattr(http_transport, "NOTICE_TIMEOUT", 3_600.0)
    for handler in (accept, open_stream):
        async with answering({"notifications/initialized": handler}) as (_, manager, _):
            assert (await call(manager, "echo", {"text": "hi"})).parts == HI


async def test_a_refusal_that_never_ends_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drip(exchange: Exchange) -> None:
        await exchange.begin(400, content_type="text/plain")
        await exchange.write(b"No, ")
        await exchange.hang()

    monkeypatch.setattr(http_client, "WORDS_TIMEOUT", 1.0)
    async with answering(drip) as (_, manager, _):
        await refuses("Response: No,", manager, "echo")


async def test_a_content_type_may_come_twice() -> None:
    async def twice(exchange: Exchange) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": exchange.request.message["id"]}
        body = json.dumps({**message, "result": {"content": [{"type": "text", "text": "hi"}]}})
        await exchange.respond(200, body.encode(), content_type=kind)

    async with answering(twice) as (_, manager, _):
        for kind in (f"{JSON}, {JSON}", f"{JSON}; charset=utf-8\r\ncontent-type: {JSON}"):  # noqa: B007
            assert (await call(manager, "echo")).parts == HI


async def test_a_header_is_sent_as_it_is_written() -> None:
    headers = {"X.Key_1": "a\tb", "X-Name": "façade"}
    async with RawServer() as server, connected(server.url, headers=headers):
        sent = server.requests[0].headers
        assert (sent["x.key_1"], sent["x-name"]) == ("a\tb", "façade")


@pytest.mark.parametrize(
    ("listed", "without", "through"),
    [
        (
            "*.example.test",
            ["a.example.test", "a.b.example.test"],
            ["example.tests", "anexample.test"],
        ),
        ("10.0.0.0/8, fd00::/8", ["10.1.2.3", "[fd00::1]"], ["11.1.2.3", "[fe00::1]", "a10.test"]),
        (" a.test  ,\t.b.test,,", ["a.test", "x.b.test"], ["c.test", "xb.test"]),
        ("a.test b.test", ["a.test", "b.test"], ["a.test.evil.test"]),
        ("a.test:8443", ["a.test:8443"], ["a.test", "a.test:9"]),
        ("*", ["a.test", "[fd00::1]"], []),
        ("10.0.0.1/99,[", [], ["10.0.0.1", "a.test"]),
    ],
)
def test_whom_no_proxy_names(
    listed: str, without: list[str], through: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", listed)
    for host in (*without, *through):
        assert (find_proxy(httpx2.URL(f"https://{host}/mcp")) is None) is (host in without), host


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain; charset=utf-8",
        "application/json-rpc",
        "application/vnd.x+json",
        "text/json",
    ],
)
async def test_an_answer_is_json_whatever_it_is_called(kind: str) -> None:
    async def rename(exchange: Exchange) -> None:
        content = [{"type": "text", "text": "hi"}]
        message = {"jsonrpc": "2.0", "id": exchange.request.message["id"]}
        body = json.dumps({**message, "result": {"content": content}}).encode()
        await exchange.respond(200, body, **({"content_type": kind} if kind else {}))

    async with answering(rename) as (server, manager, watcher):
        assert (await call(manager, "echo")).parts == HI
        server.on["tools/call"] = answer(200, b"hi", content_type="text/plain")
        await refuses("responded with text/plain instead of MCP", manager, "echo")
        assert watcher.statuses(WEB) == [S.STARTING, S.READY]


@pytest.mark.parametrize("coding", ["UTF-8", "none", "binary", "8bit"])
async def test_a_coding_that_packs_nothing_is_left_alone(coding: str) -> None:
    async def reply(exchange: Exchange) -> None:
        content = [{"type": "text", "text": "hi"}]
        await exchange.result({"content": content}, content_encoding=coding)

    async with answering(reply) as (_, manager, _):
        assert (await call(manager, "echo")).parts == HI


async def test_a_response_counts_also_where_it_is_only_accepted() -> None:
    async def reply(exchange: Exchange) -> None:
        request_id, content = exchange.request.message["id"], [{"type": "text", "text": "hi"}]
        await exchange.give({"id": request_id, "result": {"content": content}}, 202)

    async with answering(reply) as (server, manager, _):
        assert (await call(manager, "echo")).parts == HI
        for kind, body in (("", b""), ("text/plain", b"Accepted"), (JSON, b'{"status": "ok"}')):
            server.on["tools/call"] = answer(202, body, content_type=kind)
            await refuses("accepted the request but will send no response", manager, "echo")


@pytest.mark.parametrize("form", ["event: result\n{}\n\n", "event: Message\n{}\n\n", "{}", "{}\n"])
async def test_an_event_counts_by_what_is_in_it(form: str) -> None:
    async def reply(exchange: Exchange) -> None:
        content = [{"type": "text", "text": "hi"}]
        message = {"jsonrpc": "2.0", "id": exchange.request.message["id"]}
        data = json.dumps({**message, "result": {"content": content}})
        await exchange.respond(200, form.format(f"data: {data}").encode(), content_type=STREAM)

    async with answering(reply) as (_, manager, _):
        assert (await call(manager, "echo")).parts == HI


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"event: error\ndata: The disk is full.\n\n", STREAM, "was complete"),
        (b'event: error\ndata: {"error": "The disk is full."}\n\n', STREAM, "was complete"),
        (b'{"error": "The disk is full."}', JSON, "does not answer the request"),
        (b'{"ok": false, "message": "The disk is full."}', JSON, "does not answer the request"),
        (b"<b>Warning</b>: The disk is full.", JSON, "does not answer the request"),
        (b"<title>The disk is full.</title>", "text/html", "instead of MCP"),
        (b"The disk is full.", "text/plain", "instead of MCP"),
    ],
)
async def test_what_is_sent_in_place_of_a_response_is_shown(
    body: bytes, kind: str, words: str
) -> None:
    async with answering(answer(200, body, content_type=kind)) as (server, manager, _):
        await refuses(f"{words}. Response: .*The disk is full", manager, "echo")
        assert len(server.calls()) == 1


@pytest.mark.parametrize(
    ("status", "after", "method", "times"),
    [
        *((429, "1", "tools/call", 2), (429, "1", "tools/list", 2), (503, "1", "tools/list", 2)),
        *((503, "1", "tools/call", 1), (429, "9", "tools/call", 1), (429, "9", "tools/list", 1)),
        *((429, one, "tools/call", 1) for one in ("soon", "-1", "0", "Wed, 21 Oct 2015 07:28:00")),
    ],
)
async def test_a_server_that_asks_to_wait_is_waited_for(
    status: int, after: str, method: str, times: int
) -> None:
    server, waited = RawServer(), times == 2

    async def once(exchange: Exchange) -> None:
        del server.on[method]
        await exchange.respond(status, b"Busy.", retry_after=after)

    server.on[method] = once
    async with server, running(define(server.url), retry=LATER) as (manager, watcher):
        is_ready = waited or method == "tools/call"
        await watcher.until(WEB, S.STARTING, S.READY if is_ready else S.RETRYING)
        if method == "tools/call" and not waited:
            await refuses("Response: Busy", manager, "echo")
        elif is_ready:
            assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        assert server.methods().count(method) == times


async def test_a_server_that_always_asks_to_wait_is_told_of() -> None:
    async with answering(answer(429, b"Busy.", retry_after="1")) as (server, manager, _):
        await refuses("HTTP 429.; it asks to wait 1 s. Response: Busy", manager, "echo")
        assert len(server.calls()) == 2
        for after, shown in (
            ("3600", "3,600"),
            (format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True), r"3,\d{3}"),
        ):
            server.on["tools/call"] = answer(429, retry_after=after)
            await refuses(f"requests .HTTP 429.; it asks to wait {shown} s; the", manager, "echo")


async def test_a_connection_that_breaks_off_costs_a_question_nothing_and_a_call_once() -> None:
    for method, times in (("initialize", 2), ("tools/list", 2), ("tools/call", 1)):
        server = RawServer()

        async def once(
            exchange: Exchange, on: dict[str, Handler] = server.on, method: str = method
        ) -> None:
            del on[method]
            await exchange.cut()

        server.on[method] = once
        async with server, connected(server.url) as (manager, _):
            if times == 1:
                await refuses("whether the request had any effect is unknown", manager, "echo")
            assert server.methods().count(method) == times, method


@pytest.mark.parametrize(
    "sent",
    [
        *(b"220 mail.example ESMTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Type nothing\r\n\r\n"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    ],
)
async def test_what_is_not_http_is_told_as_that(sent: bytes) -> None:
    async with answering(lambda exchange: exchange.write(sent)) as (_, manager, _):
        await refuses("sent a response that is not valid HTTP", manager, "echo")


async def test_the_newer_era_is_asked_for_once_and_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "PROBE_PATIENCE", 0.5)
    async with answering({"server/discover": Exchange.hang}) as (server, manager, _):
        assert (await call(manager, "echo", {"text": "hi"})).parts == HI
        assert server.methods()[:2] == ["server/discover", "initialize"]


async def test_an_event_stream_may_begin_with_a_byte_order_mark() -> None:
    async def mark(exchange: Exchange) -> None:
        await exchange.begin(200, content_type=STREAM)
        await exchange.write(b"\xef\xbb\xbf")
        content = [{"type": "text", "text": "hi"}]
        await exchange.event({"id": exchange.request.message["id"], "result": {"content": content}})

    async with answering(mark) as (_, manager, _):
        assert (await call(manager, "echo")).parts == HI


async def test_a_session_id_may_come_twice() -> None:
    async def begin(exchange: Exchange) -> None:
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "0"}}
        result = {"protocolVersion": "2025-06-18", **about}
        await exchange.result(result, mcp_session_id=f"a\r\nmcp-session-id: {second}")

    for second in ("a", "b"):
        async with RawServer(on={"initialize": begin}) as server:
            if second == "b":
                _, failure = await refused(server.url)
                assert "sent an invalid session id" in failure.reason
                continue
            async with connected(server.url) as (manager, _):
                await call(manager, "echo")
                assert server.calls()[0].headers["mcp-session-id"] == "a"


async def test_a_token_that_is_refused_is_told_as_such() -> None:
    refusing = answer(401, b"wrong audience")
    async with RawServer(on={"initialize": refusing, "server/discover": refusing}) as server:
        _, failure = await refused(server.url, headers=TOKEN)
        assert failure.reason.startswith("rejected the token (HTTP 401). Response: wr")
        _, failure = await refused(server.url)
        assert failure.reason.startswith("requires sign-in (HTTP 401)")


async def test_each_request_says_who_asks() -> None:
    for headers, name in (({}, f"gemdeck/{__version__}"), ({"User-Agent": "mine"}, "mine")):
        async with RawServer() as server, connected(server.url, headers=headers):
            assert {one.headers["user-agent"] for one in server.requests} == {name}
