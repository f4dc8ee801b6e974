"""What a server or the way to it may answer instead of MCP, and what the user reads then."""

import socket
import ssl
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.servers.sample import server as sample
from tests.servers.web import Exchange, Handler, RawServer, answer, free_port, serving
from tests.unit.engine.mcp.network.support import (
    WEB,
    answering,
    certificate,
    connected,
    define,
    reason,
    refused,
)
from tests.unit.engine.mcp.support import call, eventually, ready, refuses
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.engine.mcp.transports.http import http_client as client_module
from tui.engine.mcp.transports.http.http_client import find_proxy
from tui.model.servers import ServerStatus as S
from tui.model.servers import Transport

SECRET = "fixture-token"


def refusing(handler: Handler) -> RawServer:
    """Make a server that answers every handshake in one way."""
    return RawServer(on={"server/discover": handler, "initialize": handler})


@pytest.mark.parametrize(
    ("status", "expected", "words", "advice"),
    [
        (400, S.RETRYING, "refused the request (HTTP 400)", "Check `url`"),
        (404, S.RETRYING, "offers nothing at this address (HTTP 404)", "/mcp"),
        (405, S.FAILED, "accepts no messages at this address (HTTP 405)", '"sse"'),
        (429, S.RETRYING, "limits the rate of requests (HTTP 429)", "later"),
        (500, S.RETRYING, "failed with HTTP 500", "try again later"),
        (599, S.RETRYING, "failed with HTTP 599", "try again later"),
    ],
)
async def test_a_status_is_told_in_words(status: int, expected: S, words: str, advice: str) -> None:
    async with refusing(answer(status)) as server:
        ended, failure = await refused(server.url)
    assert (ended, failure.reason) == (expected, words)
    assert advice in failure.advice


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("transport", [Transport.HTTP, Transport.SSE])
async def test_a_server_that_wants_a_sign_in_waits(status: int, transport: Transport) -> None:
    async with refusing(answer(status)) as server:
        if transport is Transport.SSE:
            server.on["GET"] = answer(status)
        fallback = transport is Transport.HTTP
        ended, failure = await refused(server.url, transport, sse_fallback=fallback)
        assert ("GET" in server.methods()) is (transport is Transport.SSE), "it is not looked for"
    assert ended is S.NEEDS_SIGN_IN
    assert f"HTTP {status}" in failure.reason
    assert "put a token into `headers`" in failure.advice
    assert '"Authorization": "Bearer' in failure.advice


async def test_credentials_turned_down_later_end_in_a_sign_in() -> None:
    async with RawServer(on={"tools/call": answer(401)}) as server:
        async with connected(server.url) as (manager, watcher):
            await refuses(r"requires sign-in .* had no effect", manager, "echo")
            await watcher.until(WEB, S.READY, S.NEEDS_SIGN_IN)
        assert len(server.calls()) == 1


async def test_a_call_that_is_refused_leaves_the_connection_as_it_is() -> None:
    async with answering() as (server, manager, watcher):
        for status, words in [
            (403, r"refused access \(HTTP 403\); the request had no effect"),
            (404, "offers nothing at this address"),
            (413, "too large"),
            (500, "failed with HTTP 500; whether the request had any effect is unknown"),
        ]:
            server.on["tools/call"] = answer(status)
            await refuses(words, manager, "echo")
        del server.on["tools/call"]
        assert (await call(manager, "echo", {"text": "hi"})).parts == (TextPart("hi"),)
        assert watcher.statuses(WEB) == [S.STARTING, S.READY]


async def test_an_error_of_the_server_itself_is_told_as_such() -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.refuse(400, -32602, "no such \x1b]0;x\x07tool")

    async def impersonate(exchange: Exchange) -> None:
        await exchange.refuse(200, -31002, "forgotten")

    async with answering(refuse) as (server, manager, _):
        await refuses(r"refused the call: no such tool \(error -32602\)", manager, "echo")
        server.on["tools/call"] = impersonate
        await refuses("refused the call: forgotten", manager, "echo")
        assert len(server.calls()) == 2


async def test_a_page_instead_of_an_answer_is_named() -> None:
    kinds = {"text/html; charset=utf-8": "a web page (text/html)", "image/png": "image/png"}
    for kind, words in kinds.items():
        async with refusing(answer(200, b"<html><script>", content_type=kind)) as server:
            assert await reason(server.url) == f"responded with {words} instead of MCP"


async def test_an_answer_that_answers_nothing_fails_the_call_at_once() -> None:
    async with answering() as (server, manager, watcher):
        bodies = (b"not json", b"[1]", b'{"jsonrpc":"2.0","id":"other","result":{}}')
        useless = [answer(200, body, content_type="application/json") for body in bodies]
        for handler in (*useless, answer(202)):
            server.on["tools/call"] = handler
            words = "is unknown" if handler in useless else "will send no response"
            await refuses(words, manager, "echo")
            del server.on["tools/call"]
            assert (await call(manager, "echo", {"text": "hi"})).parts == (TextPart("hi"),)
        assert watcher.statuses(WEB)[-1] is S.READY


@pytest.mark.parametrize(
    ("status", "transport"),
    [(301, Transport.HTTP), (303, Transport.HTTP), (307, Transport.HTTP), (308, Transport.SSE)],
)
async def test_a_redirect_to_another_origin_is_refused(status: int, transport: Transport) -> None:
    async with RawServer() as other:
        place = f"http://user:{SECRET}@localhost:{other.port}/mcp"
        redirect = answer(status, location=f"{place}?key={SECRET}")
        server = refusing(redirect)
        server.on["GET"] = redirect
        async with server:
            headers = {"Authorization": f"Bearer {SECRET}"}
            _, failure = await refused(server.url, transport, headers=headers)
        assert other.requests == []
    expected = f"redirects to http://localhost:{other.port}/mcp, which is not followed"
    assert failure.reason == expected
    assert SECRET not in repr(failure)


async def test_an_odd_redirect_is_no_way_out() -> None:
    for location in ("", "http://[", "ftp://x/", "//127.0.0.2/", "\\\\x"):
        async with refusing(answer(307, location=location)) as server:
            assert (await refused(server.url))[0] in {S.FAILED, S.RETRYING}, location


async def test_a_redirect_within_the_origin_is_followed_three_times() -> None:
    class Hopping(RawServer):
        """Sends each request on, to a path of one more slash."""

        hops = 2

        async def _answer(self, exchange: Exchange) -> None:
            path = exchange.request.path
            if path.count("/") <= self.hops:
                await exchange.respond(308, location=path + "/")
            else:
                await super()._answer(exchange)

    async with Hopping() as server:
        async with connected(server.url) as (manager, _):
            assert (await call(manager, "echo", {"text": "hi"})).parts == (TextPart("hi"),)
        server.hops = 9
        assert "redirects to" in await reason(server.url)


async def test_nobody_at_the_address_is_told_apart_from_no_such_host() -> None:
    port = free_port()
    expected = f"refused the connection: nothing is listening at 127.0.0.1:{port}"
    assert await reason(f"http://127.0.0.1:{port}/mcp") == expected
    assert await reason(f"http://127.0.0.1:{port}/sse", Transport.SSE) == expected
    expected = "was not found: there is no host nowhere.invalid"
    assert await reason("http://nowhere.invalid/mcp") == expected


async def test_a_server_that_accepts_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECT_TIMEOUT", 0.2)
    # A listener whose queue of connections is full answers no further one.
    with socket.socket() as listener, ExitStack() as queue:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        port = listener.getsockname()[1]
        assert "did not accept a connection" in await reason(f"http://127.0.0.1:{port}/mcp")


async def test_a_definition_that_cannot_work_fails_for_good_and_keeps_its_secret() -> None:
    addresses = ("no address", "ftp://127.0.0.1/", "http://", "http://127.0.0.1:99999/")
    odd = ({"X-Key": f"{SECRET}\r\nX-Other: 1"}, {"X-Key": f"{SECRET}ł"}, {"X Key": SECRET})
    tries: list[tuple[str, dict[str, str]]] = [(url, {}) for url in addresses]
    tries += [("http://127.0.0.1/mcp", headers) for headers in odd]
    for url, headers in tries:
        status, failure = await refused(url, headers=headers)
        assert status is S.FAILED, (url, headers)
        assert SECRET not in repr(failure)


def encrypting(file: Path) -> RawServer:
    """Make a server that encrypts with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return RawServer(tls=context)


@pytest.mark.parametrize(
    ("host", "days", "known", "words"),
    [
        ("127.0.0.1", 1, False, "self-signed certificate"),
        ("127.0.0.1", -1, True, "certificate has expired"),
        ("127.0.0.9", 1, True, "IP address mismatch"),
    ],
)
async def test_a_certificate_that_proves_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, days: int, known: bool, words: str
) -> None:
    file = certificate(tmp_path, host, days=days)
    if known:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    async with encrypting(file) as server:
        status, failure = await refused(server.url, headers={"Authorization": SECRET})
        assert server.requests == []
    assert status is S.FAILED
    assert failure.reason.startswith("has a certificate that cannot be trusted")
    assert words in failure.reason


async def test_an_authority_of_ours_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = certificate(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    async with encrypting(file) as server, connected(server.url) as (manager, _):
        assert (await call(manager, "echo", {"text": "hi"})).parts == (TextPart("hi"),)


async def test_https_towards_a_plain_server_is_named() -> None:
    async with serving(sample.streamable_http_app()) as base:
        address = base.replace("http:", "https:")
        assert "does not use TLS correctly" in await reason(address)


def test_the_proxy_is_of_the_environment_not_for_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://user:pw@proxy.invalid:3128")
    monkeypatch.setenv("all_proxy", "proxy.invalid:1080")
    monkeypatch.setenv("no_proxy", "plain.invalid")
    assert find_proxy(httpx2.URL("https://x.invalid/")) == "http://user:pw@proxy.invalid:3128"
    assert find_proxy(httpx2.URL("http://x.invalid/")) == "http://proxy.invalid:1080"
    assert find_proxy(httpx2.URL("https://plain.invalid/")) is None
    for host in ("127.0.0.1", "localhost", "[::1]", "a.localhost"):
        assert find_proxy(httpx2.URL(f"https://{host}:8/")) is None


async def test_a_proxy_is_used_and_named_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    async with RawServer() as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:{SECRET}@127.0.0.1:{proxy.port}")
        async with ready(define("http://far.invalid/mcp")) as (_, watcher):
            await eventually(lambda: any("not encrypted" in line for line in watcher.log(WEB)))
            assert f"reached through the proxy 127.0.0.1:{proxy.port}" in watcher.log(WEB)
            assert SECRET not in repr(watcher.events)
        assert proxy.requests[0].path == "http://far.invalid/mcp"
