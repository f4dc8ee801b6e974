"""Servers and authorization servers that mean harm: refused, in a sentence that says why."""

import asyncio
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.authority import Authority, GuardedServer
from tests.servers.web import Exchange, RawServer, free_port
from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.mcp.network.support import WEB, define
from tests.unit.engine.sign_in.support import Person, deck, guarded, make_sign_ins, oauth
from tui.engine.commands.sign_in_commands import SignInCommands
from tui.engine.late import import_connection
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.transports.http.auth_requests import MAX_ANSWER, make_send
from tui.engine.sign_in.sign_in_record import AuthError
from tui.engine.sign_in.token_endpoint import checked_endpoint, may_reach
from tui.model.requests import Reply, ReplyAction
from tui.model.servers import ServerStatus as S

pytestmark = pytest.mark.writes_secrets("sign-ins.json")


async def refusal(server: GuardedServer, person: Person | None = None, **more: Any) -> str:  # noqa: ANN401
    """Try to sign in; give why that failed. Nobody may have got a token."""
    sign_ins = make_sign_ins(person or Person(), None)
    with pytest.raises(AuthError) as caught:
        await sign_ins.sign_in(define(server.url, sign_in=oauth(**more)))
    await sign_ins.aclose()
    assert not server.authority.tokens
    assert FIXTURE_SECRET not in caught.value.reason
    return caught.value.reason


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"token_endpoint": "http://login.example/token"}, "token endpoint .* not encrypted"),
        ({"authorization_endpoint": "ftp://h/x"}, "metadata is not valid"),
        ({"authorization_endpoint": "http://evil.example/x"}, "not encrypted"),
        (
            {"authorization_endpoint": "https://accounts.google.com@evil.example/x"},
            "hides its host evil.example behind a user name",
        ),
        ({"authorization_endpoint": "https://h/$(id)"}, "not a valid address"),
        ({"authorization_endpoint": "https://h/#x"}, "fragment"),
        ({"authorization_endpoint": f"https://h/{'x' * 3_000}"}, "not a valid address"),
        ({"registration_endpoint": "http://evil.example/x"}, "registration endpoint .* not"),
        ({"code_challenge_methods_supported": None}, "PKCE"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"issuer": "https://evil.example"}, "calls itself https://evil.example"),
        ({"token_endpoint": 5}, "metadata is not valid"),
        ({"registration_endpoint": None}, "cannot register themselves"),
    ],
)
async def test_what_an_authorization_server_says_is_checked(
    metadata: dict[str, Any], words: str
) -> None:
    person = Person()
    async with guarded() as server:
        server.authority.metadata = metadata
        reason = await refusal(server, person)
        assert re.search(words, reason), reason
        assert not person.opened
        assert not server.authority.asked


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ({"resource": "https://other.example/mcp"}, "tokens are for https://other.example/mcp"),
        ({"authorization_servers": ["http://169.254.169.254/"]}, "not encrypted"),
        ({"authorization_servers": []}, "not valid"),
        ({"authorization_servers": ["https://u:p@evil.example"]}, "user name"),
    ],
)
async def test_what_a_server_says_is_checked(resource: dict[str, Any], words: str) -> None:
    async with guarded() as server:
        server.resource = resource
        assert words in await refusal(server)


@pytest.mark.parametrize(
    ("redirect", "words"),
    [
        ({"iss": "https://evil.example"}, "another authorization server"),
        ({"iss": None}, "does not say which server"),
        ({"error": "access_denied", "error_description": "no\x1b[2J", "code": None}, "not given"),
    ],
)
async def test_what_comes_back_is_checked(redirect: dict[str, Any], words: str) -> None:
    async with guarded() as server:
        server.authority.redirect = redirect
        reason = await refusal(server)
        assert words in reason
        assert "\x1b" not in reason


@pytest.mark.parametrize(
    "grants", [{"expires_in": -5}, {"access_token": "a\nb"}, {"token_type": "mac"}]
)
async def test_a_bad_token_is_not_kept(grants: dict[str, Any], tmp_path: Path) -> None:
    async with guarded() as server:
        server.authority.grants = grants
        sign_ins = make_sign_ins(Person(), tmp_path)
        with pytest.raises(AuthError):
            await sign_ins.sign_in(define(server.url, sign_in=oauth()))
        assert FIXTURE_SECRET not in (tmp_path / "sign-ins.json").read_text()


async def test_ten_megabytes_of_metadata_are_not_read() -> None:
    async def endless(exchange: Exchange) -> None:
        body = json.dumps({"issuer": "x" * 10_000_000}).encode()
        await exchange.respond(200, body, content_type="application/json")

    async with RawServer(on={"GET": endless}) as big:
        send = make_send(define(big.url))
        with pytest.raises(AuthError, match=f"more than {MAX_ANSWER // 1024} KiB"):
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


@pytest.mark.parametrize(
    ("address", "server", "around", "may"),
    [
        ("8.8.8.8", "mcp.example", [], True),
        ("127.0.0.1", "mcp.example", [], False),
        ("::1", "mcp.example", ["::1"], False),
        ("::ffff:127.0.0.1", "mcp.example", [], False),
        ("64:ff9b::7f00:1", "mcp.example", [], False),
        ("2002:7f00:1::", "mcp.example", [], False),
        ("169.254.169.254", "mcp.example", ["10.0.0.1"], False),
        ("fe80::1%eth0", "mcp.example", ["10.0.0.1"], False),
        ("0.0.0.0", "mcp.example", ["10.0.0.1"], False),
        ("224.0.0.1", "mcp.example", ["10.0.0.1"], False),
        ("100.64.0.1", "mcp.example", [], False),
        ("10.1.2.3", "mcp.example", ["93.184.216.34"], False),
        ("10.1.2.3", "mcp.example", ["10.9.9.9"], True),
        ("fd00::1", "mcp.example", ["10.9.9.9"], True),
        ("10.1.2.3", "login.example", [], True),
        ("127.0.0.1", "localhost", [], True),
    ],
)
def test_which_addresses_a_sign_in_reaches(
    address: str, server: str, around: list[str], may: bool
) -> None:
    assert may_reach(address, "login.example", server, around) is may


@pytest.mark.parametrize(
    ("url", "server", "words"),
    [
        ("https://localhost/x", "https://h/mcp", "on this computer"),
        ("http://127.0.0.1/x", "https://h/mcp", "on this computer"),
        ("http://h/x", "https://h/mcp", "not encrypted"),
        ("https://h:0/x", "https://h/mcp", "not a valid"),
        ("https://h/a b", "https://h/mcp", "not a valid"),
        ("https:///x", "https://h/mcp", "not a valid"),
        ("--x", "https://h/mcp", "not a valid"),
    ],
)
def test_which_endpoints_are_refused(url: str, server: str, words: str) -> None:
    with pytest.raises(AuthError, match=words):
        checked_endpoint(url, server, "token endpoint")
    assert checked_endpoint("https://h/x", server, "token endpoint")
    assert checked_endpoint("http://localhost:1/x", "http://127.0.0.1:2/mcp", "token endpoint")


Resolve = Callable[..., Any]


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
            await two.watcher.until(WEB, S.STARTING, S.READY)
        assert not any("authorization" in request.headers for request in other.requests)


async def test_another_issuer_gets_nothing_of_the_old_one_and_is_named(tmp_path: Path) -> None:
    person = Person()
    async with guarded() as server, Authority() as second:
        async with deck(server.url, person, tmp_path) as one:
            await one.connect()
            first, server.authority = server.authority, second
            first.tokens.clear()
            first.refreshers.clear()
            one.manager.restart(WEB)
            await one.connect()
        assert len(second.clients) == 1
        assert any("Until now the sign-in was at" in note for note in person.asked[-1].notes)
        sent = b"".join(request.body for request in second.requests)
        assert b"refresh" not in sent.replace(b'refresh_token"]', b"")


async def test_a_host_that_imitates_another_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    person = Person(reply=lambda _: Reply(ReplyAction.CANCEL))
    async with guarded() as server:
        server.authority.metadata = {"authorization_endpoint": "https://xn--pple-43d.com/x"}
        assert "cancelled" in await refusal(server, person)
        [request] = person.asked
        assert request.host != request.shown_host
        assert any("imitate" in note for note in request.notes)


@pytest.mark.parametrize("withheld", [S.UNTRUSTED, S.DISABLED, S.INVALID])
async def test_a_server_that_may_not_run_is_not_contacted(withheld: S) -> None:
    async with guarded() as server:
        definition = define(server.url, withheld=withheld)
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
