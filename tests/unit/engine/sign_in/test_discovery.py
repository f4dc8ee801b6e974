"""Where a sign-in may lead, and servers that mean harm: refused, in a sentence that says why."""

import asyncio
import json
import re
import socket
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.servers.authority import Authority, GuardedServer
from tests.servers.web import Exchange, RawServer, free_port
from tests.support.leaks import FIXTURE_SECRET
from tests.support.rows import row
from tests.unit.engine.mcp.network.support import WEB, define
from tests.unit.engine.sign_in.support import (
    Person,
    connected,
    deck,
    guarded,
    make_sign_ins,
    oauth,
    unsigned,
)
from tui.engine.late import import_connection
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.transports.http import auth_requests
from tui.engine.mcp.transports.http.auth_requests import MAX_ANSWER, make_send
from tui.engine.server_setup.sign_in_commands import SignInCommands
from tui.engine.sign_in.discovery import Discovery, SignInPlace
from tui.engine.sign_in.sign_in_record import AuthError, Challenge, read_challenge
from tui.engine.sign_in.token_endpoint import AuthResponse, checked_endpoint, may_reach
from tui.model.requests import Reply, ReplyAction
from tui.model.servers import ServerStatus as S

pytestmark = pytest.mark.writes_secrets("sign-ins.json")

SERVER: Final = "https://mcp.example/mcp"
RESOURCE: Final = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
METADATA: Final = "https://as.example/.well-known/oauth-authorization-server"


class Web:
    """The network: two public hosts with documents; requests elsewhere are really sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, page: str = "", **names: str) -> None:
        self.documents: dict[str, tuple[int, Any]] = {
            RESOURCE: (200, {"resource": SERVER, "authorization_servers": ["https://as.example"]}),
            METADATA: (
                200,
                {
                    "issuer": "https://as.example",
                    "authorization_endpoint": page or "https://as.example/authorize",
                    "token_endpoint": "https://as.example/token",
                    "code_challenge_methods_supported": ["S256"],
                },
            ),
        }
        self._names = {"mcp": "93.184.216.34", **names}
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", self._look_up)

    async def find(self, challenge: Challenge | None = None, **settings: object) -> SignInPlace:
        definition = define(SERVER, sign_in=oauth(**settings))
        real = make_send(definition)

        async def send(
            method: str, url: str, headers: Mapping[str, str], body: bytes | None
        ) -> AuthResponse:
            if urlsplit(url).hostname not in {"mcp.example", "as.example"}:
                return await real(method, url, headers, body)
            status, content = self.documents.get(url, (404, {}))
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            return AuthResponse(status, body)

        return await Discovery(definition, send).find(challenge or Challenge())

    async def _look_up(self, host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        try:  # as the C library does, which takes 127.1 for an address
            place = socket.inet_ntoa(socket.inet_aton(host))
        except OSError:
            if (name := host.removesuffix(".example")) not in self._names:
                raise socket.gaierror(socket.EAI_NONAME, "unknown") from None
            place = self._names[name]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port))]


async def test_a_page_inside_or_without_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for page, inside in [
        *(("127.1", True), ("2130706433", True), ("0x7f.1", True), ("127.0.0.1.", True)),
        *(("[::ffff:127.0.0.1]", True), ("169.254.169.254", True), ("0.0.0.0", True)),
        *(("93.184.216.34", True), ("[2606:2800:21f::1]", True), ("1572395042", True)),
        *(("10.1.2.3", False), ("login.example", False), ("[fd00::1]", False)),
    ]:
        web = Web(monkeypatch, f"https://{page}:9/authorize", login="10.1.2.3")
        with row(page), pytest.raises(AuthError, match="refused"):
            await web.find()
        own = f"https://{page}:9/authorize"
        assert (await web.find(authorization_url=own, token_url="https://h/t")).token_endpoint, page
        web = Web(monkeypatch, own, login="10.1.2.3", mcp="10.9.9.9")
        if inside:
            with row(page), pytest.raises(AuthError, match="refused"):
                await web.find()
        else:
            monkeypatch.setattr(auth_requests, "_exchange", lambda *_: unreachable())
            assert (await web.find()).authorization_endpoint == own, page


async def unreachable() -> AuthResponse:
    raise AuthError("does not respond", is_transient=True)


async def test_a_proxy_is_no_way_into_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    web = Web(monkeypatch, "https://169.254.169.254/authorize")
    with pytest.raises(AuthError, match="private network"):
        await web.find()


async def test_a_bad_day_is_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    for url, status in product((RESOURCE, METADATA), (429, 503)):
        web = Web(monkeypatch)
        assert (await web.find()).issuer == "https://as.example"
        web.documents[url] = (status, {})
        with pytest.raises(AuthError, match=str(status)) as caught:
            await web.find()
        assert caught.value.is_transient, (url, status)


async def test_a_challenge_names_the_metadata_in_odd_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    for named in ('"/meta"', "/meta", "'https://mcp.example/meta'", '"https://mcp.example/meta"'):
        web = Web(monkeypatch)
        web.documents["https://mcp.example/meta"] = web.documents.pop(RESOURCE)
        challenge = read_challenge(401, [f"Bearer resource_metadata={named}"])
        with row(named):
            assert (await web.find(challenge)).issuer == "https://as.example"
    for named in ("//evil.test/meta", "//[", "meta"):
        web = Web(monkeypatch)
        with row(named), pytest.raises(AuthError):
            await web.find(Challenge(resource_metadata=named))


PAGE: Final = (200, b"<!doctype html><title>Our app</title>")
ROOT: Final = "https://mcp.example/.well-known/oauth-protected-resource"
OPENID: Final = "https://as.example/.well-known/openid-configuration"


async def test_an_odd_answer_does_not_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[tuple[int, Any]] = [PAGE, (404, {}), (502, b"bad gateway"), (200, b"{")]
    for odd in (*answers, (200, [1]), (401, b"")):
        for first, second in ((RESOURCE, ROOT), (METADATA, OPENID)):
            web = Web(monkeypatch)
            web.documents[second] = web.documents[first]
            web.documents[first] = odd
            with row(odd, first):
                assert (await web.find()).token_endpoint == "https://as.example/token"


async def test_the_error_names_each_address_and_what_it_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = Web(monkeypatch)
    web.documents |= {METADATA: PAGE, OPENID: (502, b"bad \x1b[31mgateway")}
    with pytest.raises(AuthError) as caught:
        await web.find()
    assert f"{METADATA} sent a web page; {OPENID} sent HTTP 502, bad gateway" in str(caught.value)
    assert caught.value.is_transient
    web.documents[OPENID] = (200, {"issuer": "https://as.example"})
    with pytest.raises(AuthError, match=f"{OPENID} sent its authorization_endpoint is missing"):
        await web.find()


async def test_members_of_metadata_that_do_not_matter_may_be_odd(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = ("service_documentation", "op_policy_uri", "op_tos_uri", "resource_documentation")
    lists = ("ui_locales_supported", "scopes_supported", "response_types_supported")
    rows: list[tuple[str, Any]] = []
    rows += [(name, value) for name in addresses for value in ("", "/relative", 5, None)]
    odd: list[Any] = ["en", {}, [5], None]
    rows += [(name, value) for name in lists for value in odd]
    rows += [("token_endpoint_auth_methods_supported", "none"), ("revocation_endpoint", 5)]
    for name, value in rows:
        web = Web(monkeypatch)
        for url in (RESOURCE, METADATA):
            web.documents[url][1][name] = value
        with row(name, value):
            assert (await web.find()).registration_endpoint == ""
    for name in ("issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint"):
        web = Web(monkeypatch)
        web.documents[METADATA][1].update({name: 5, "op_tos_uri": ""})
        with row(name), pytest.raises(AuthError, match=f"its {name} is missing or not valid"):
            await web.find()
    for name, value in (("resource", 5), ("authorization_servers", {"a": "https://as.example"})):
        web = Web(monkeypatch)
        web.documents[RESOURCE][1][name] = value
        with (
            row(name),
            pytest.raises(
                AuthError, match=f"invalid metadata for its sign-in: its {name} is missing or"
            ),
        ):
            await web.find()


async def test_what_cannot_be_shown_is_no_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    web = Web(monkeypatch)
    told = ["read", "admin\x1b[2J", "\x1b]0;admin\x07", "\u202eroot", "write"]
    web.documents[RESOURCE][1]["scopes_supported"] = told
    assert (await web.find()).scope == "read write"


async def test_pkce_may_be_told_by_the_second_document(monkeypatch: pytest.MonkeyPatch) -> None:
    web = Web(monkeypatch)
    told = web.documents[METADATA][1]
    silent = {name: value for name, value in told.items() if "challenge" not in name}
    web.documents[METADATA] = (200, silent)
    for other in (None, {**told, "issuer": "https://evil.example"}, silent):
        web.documents[OPENID] = (404, {}) if other is None else (200, other)
        with row(other), pytest.raises(AuthError, match=r"PKCE|calls itself") as caught:
            await web.find()
        if other is None:
            assert "oauth.authorizationUrl and oauth.tokenUrl" in caught.value.advice
    web.documents[OPENID] = (200, told)
    assert (await web.find()).token_endpoint


async def test_a_code_is_not_carried_from_one_authorization_server_to_another() -> None:
    person = Person()
    async with guarded() as server, Authority() as victim:
        thief = server.authority
        victim.clients = thief.clients
        silent = {"authorization_response_iss_parameter_supported": None}
        victim.metadata, victim.redirect = silent, {"iss": None}
        thief.metadata = {**silent, "authorization_endpoint": f"{victim.issuer}/authorize"}
        words = f"{victim.issuer}, whose response would go to {thief.issuer}"
        assert words in await refusal(server, person)
        assert [thief.forms, thief.clients, victim.asked, person.asked] == [[], {}, [], []]


@pytest.mark.parametrize("place", ["oauth-authorization-server", "openid-configuration"])
@pytest.mark.parametrize(
    ("status", "content", "is_asked"),
    [
        *((200, {"issuer": "https://other.example"}, False), (200, {"issuer": "{issuer}0"}, False)),
        *((200, {"issuer": "{issuer}"}, True), (200, {"issuer": 5}, True), (200, [], True)),
        *((404, {"issuer": "https://other.example"}, True), (302, {}, True), (500, {}, True)),
    ],
)
async def test_what_a_page_of_another_host_says_of_its_issuer_counts(
    place: str, status: int, content: object, is_asked: bool
) -> None:
    async def answer(exchange: Exchange) -> None:
        if exchange.request.path != f"/.well-known/{place}":
            await exchange.respond(404)
            return
        body = json.dumps(content).replace("{issuer}", server.authority.issuer)
        await exchange.respond(status, body.encode(), location="https://h/sign-in")

    person = cancelling()
    async with guarded() as server, RawServer(on={"GET": answer}) as other:
        issuer, page = server.authority.issuer, other.url.removesuffix("/mcp")
        server.authority.metadata = {"authorization_endpoint": f"{page}/authorize"}
        words = "cancelled" if is_asked else "page of another authorization server"
        assert words in await refusal(server, person)
        if is_asked:
            [request] = person.asked
            place, host = (urlsplit(url).netloc for url in (page, issuer))
            assert (request.issuer, request.token_host) == (issuer, host)
            [note] = [note for note in request.notes if "belong together" in note]
            assert f"page is at {place}, its issuer at {host}" in note


async def test_tokens_may_come_from_another_host_which_is_named() -> None:
    person = cancelling()
    async with guarded() as server, RawServer() as other:
        page = urlsplit(server.authority.issuer).netloc
        tokens = urlsplit(other.url).netloc
        for endpoint, named in ((f"http://{tokens}/token", tokens), (f"http://{page}/token", "")):
            server.authority.metadata = {"token_endpoint": endpoint}
            assert "cancelled" in await refusal(server, person)
            assert person.asked[-1].token_host == named
            assert not any("belong together" in note for note in person.asked[-1].notes)


async def refusal(server: GuardedServer, person: Person | None = None) -> str:
    """Try to sign in; give why that failed. Nobody may have got a token."""
    sign_ins = make_sign_ins(person or Person(), None)
    with pytest.raises(AuthError) as caught:
        await sign_ins.sign_in(define(server.url, sign_in=oauth()))
    await sign_ins.aclose()
    assert not server.authority.tokens
    assert FIXTURE_SECRET not in caught.value.reason
    return caught.value.reason


def cancelling() -> Person:
    """Give somebody who signs in nowhere."""
    return Person(reply=lambda _: Reply(ReplyAction.CANCEL))


async def test_what_an_authorization_server_says_is_checked() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"token_endpoint": "http://login.example/token"}, "token endpoint .* not encrypted"),
        ({"authorization_endpoint": "ftp://h/x"}, "authorization_endpoint is missing or not v"),
        ({"authorization_endpoint": "http://evil.example/x"}, "not encrypted"),
        ({"authorization_endpoint": "https://google.com@evil.example"}, "hides its host evil.ex"),
        ({"authorization_endpoint": "https://h/$(id)"}, "not a valid address"),
        ({"authorization_endpoint": "https://h/#x"}, "fragment"),
        ({"authorization_endpoint": f"https://h/{'x' * 3_000}"}, "not a valid address"),
        ({"registration_endpoint": "http://evil.example/x"}, "registration endpoint .* not"),
        ({"code_challenge_methods_supported": None}, "PKCE"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"issuer": "https://evil.example"}, "calls itself https://evil.example"),
        ({"token_endpoint": 5}, "token_endpoint is missing or not valid"),
        ({"registration_endpoint": None}, "does not let clients register"),
    ]
    person = Person()
    async with guarded() as server:
        for metadata, words in rows:
            server.authority.metadata = metadata
            reason = await refusal(server, person)
            assert re.search(words, reason), reason
        assert (person.opened, server.authority.asked) == ([], [])


async def test_what_a_server_says_and_what_comes_back_is_checked() -> None:
    rows: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"resource": "https://other.example/mcp"}, {}, "tokens for https://other.example/mcp"),
        ({"authorization_servers": ["http://169.254.169.254/"]}, {}, "not encrypted"),
        ({"authorization_servers": []}, {}, "which fails"),
        ({"authorization_servers": ["https://u:p@evil.example"]}, {}, "user name"),
        ({}, {"iss": "https://evil.example"}, "the wrong authorization server"),
        ({}, {"iss": None}, "does not name its authorization server"),
        ({}, {"error": "no", "error_description": "no\x1b[2J", "code": None}, "did not grant"),
    ]
    async with guarded() as server:
        for resource, redirect, words in rows:
            server.resource, server.authority.redirect = resource, redirect
            reason = await refusal(server)
            assert words in reason, (resource, redirect)
            assert "\x1b" not in reason, redirect


async def test_a_bad_token_is_not_kept(tmp_path: Path) -> None:
    async with unsigned(folder=tmp_path) as (server, sign_ins, definition):
        for name, value in (("access_token", "a\nb"), ("token_type", "mac")):
            server.authority.grants = {name: value}
            with row(name), pytest.raises(AuthError):
                await sign_ins.sign_in(definition)
            assert FIXTURE_SECRET not in (tmp_path / "sign-ins.json").read_text(), name


async def test_ten_megabytes_of_metadata_are_not_read() -> None:
    async def endless(exchange: Exchange) -> None:
        body = json.dumps({"issuer": "x" * 10_000_000}).encode()
        await exchange.respond(200, body, content_type="application/json")

    async with RawServer(on={"GET": endless}) as big:
        send = make_send(define(big.url))
        with pytest.raises(AuthError, match=f"larger than {MAX_ANSWER // 1024} KiB"):
            await send("GET", big.url, {}, None)


async def test_a_redirect_elsewhere_is_not_followed() -> None:
    async def elsewhere(exchange: Exchange) -> None:
        await exchange.respond(307, location=f"{other.url}?{exchange.request.path}")

    async with RawServer() as other, RawServer(on={"GET": elsewhere, "answer": elsewhere}) as one:
        send = make_send(define(one.url))
        for method, body in (("GET", None), ("POST", b"{}")):
            with pytest.raises(AuthError, match="not followed") as caught:
                await send(method, one.url, {"authorization": "Basic eA=="}, body)
            assert caught.value.advice == "", "it is no address for `url`"
        assert not other.requests


def test_which_addresses_a_sign_in_reaches() -> None:
    for address, server, around, may in [
        *(("8.8.8.8", "mcp.example", [], True), ("127.0.0.1", "mcp.example", [], False)),
        *(("::1", "mcp.example", ["::1"], False), ("::ffff:127.0.0.1", "mcp.example", [], False)),
        ("64:ff9b::7f00:1", "mcp.example", [], False),
        ("2002:7f00:1::", "mcp.example", [], False),
        ("169.254.169.254", "mcp.example", ["10.0.0.1"], False),
        ("fe80::1%eth0", "mcp.example", ["10.0.0.1"], False),
        ("0.0.0.0", "mcp.example", ["10.0.0.1"], False),
        ("224.0.0.1", "mcp.example", ["10.0.0.1"], False),
        ("100.64.0.1", "mcp.example", [], False),
        ("10.1.2.3", "mcp.example", ["93.184.216.34"], False),
        ("10.1.2.3", "mcp.example", ["10.9.9.9"], True),
        *(("fd00::1", "mcp.example", ["10.9.9.9"], True), ("10.1.2.3", "login.example", [], True)),
        ("127.0.0.1", "localhost", [], True),
    ]:
        assert may_reach(address, "login.example", server, around) is may


@pytest.mark.parametrize(
    ("url", "words"),
    [
        *(("https://localhost/x", "on this computer"), ("http://127.0.0.1/x", "on this computer")),
        *(("http://h/x", "not encrypted"), ("https://h:0/x", "not a valid")),
        *(("https://h/a b", "not a valid"), ("https:///x", "not a valid"), ("--x", "not a valid")),
    ],
)
def test_which_endpoints_are_refused(url: str, words: str) -> None:
    with pytest.raises(AuthError, match=words):
        checked_endpoint(url, "https://h/mcp", "token endpoint")
    assert checked_endpoint("https://h/x", "https://h/mcp", "token endpoint")
    assert checked_endpoint("http://localhost:1/x", "http://127.0.0.1:2/mcp", "token endpoint")


async def test_a_name_that_leads_inside_is_not_contacted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with RawServer() as inside:
        closed = free_port()
        answers = {"login.example": "127.0.0.1", "mcp.example": "93.184.216.34"}
        asked: list[str] = []

        async def look_up(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
            asked.append(host)
            place = (answers[host], port)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place)]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
        url = f"https://login.example:{inside.port}/token"
        with pytest.raises(AuthError, match="private network"):
            await make_send(define("https://mcp.example/mcp"))("GET", url, {}, None)
        assert asked == ["login.example", "mcp.example"]
        assert not inside.requests
        own = f"https://login.example:{closed}/token"
        send = make_send(define("https://mcp.example/mcp", sign_in=oauth(token_url=own)))
        with pytest.raises(AuthError, match="refused the connection"):
            await send("GET", own, {}, None)


async def test_a_server_swapped_under_the_same_name_gets_no_token(tmp_path: Path) -> None:
    person = Person()
    async with guarded() as server, RawServer() as other:
        async with deck(server.url, person, tmp_path) as one:
            await one.connect()
        async with deck(other.url, person, tmp_path) as two:
            await two.ready()
        assert not any("authorization" in request.headers for request in other.requests)


async def test_another_issuer_gets_nothing_of_the_old_one_and_is_named(tmp_path: Path) -> None:
    async with connected(tmp_path) as (server, one), Authority() as second:
        first, server.authority = server.authority, second
        first.tokens.clear()
        first.refreshers.clear()
        one.manager.restart(WEB)
        await one.connect()
        assert len(second.clients) == 1
        assert any("The sign-in was at" in note for note in one.person.asked[-1].notes)
        sent = b"".join(request.body for request in second.requests)
        assert b"refresh" not in sent.replace(b'refresh_token"]', b"")


async def test_a_host_that_imitates_another_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    person = cancelling()
    async with guarded() as server:
        server.authority.metadata = {"authorization_endpoint": "https://xn--pple-43d.com/x"}
        assert "cancelled" in await refusal(server, person)
        [request] = person.asked
        assert request.host != request.shown_host
        assert any("imitate" in note for note in request.notes)


@pytest.mark.parametrize("withheld", [S.UNTRUSTED, S.DISABLED, S.INVALID])
async def test_a_server_that_may_not_run_is_not_contacted(withheld: S) -> None:
    async with guarded() as server:
        definition = define(server.url).held(withheld, "why", "")
        context = ClientContext()
        manager = ServerManager(lambda _: None, context, import_connect=import_connection)
        commands = SignInCommands(manager, context, None, lambda: [definition])
        for command in (commands.sign_in, commands.sign_out):
            with pytest.raises(AuthError, match=f"is {withheld}"):
                await command(definition.id)
        assert not server.requests


async def test_a_token_goes_nowhere_unencrypted() -> None:
    sign_ins = make_sign_ins(Person(), None)
    with pytest.raises(AuthError, match="not encrypted"):
        await sign_ins.sign_in(define("http://mcp.example/mcp", sign_in=oauth()))
