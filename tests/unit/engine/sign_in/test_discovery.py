"""Where a sign-in may lead: pages of other authorization servers, private networks, bad days."""

import asyncio
import json
import socket
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.servers.authority import Authority
from tests.servers.web import Exchange, RawServer
from tests.unit.engine.mcp.network.support import define
from tests.unit.engine.sign_in.support import Person, guarded, make_sign_ins, oauth
from tui.engine.mcp.transports.http.auth_requests import make_send
from tui.engine.sign_in.discovery import Discovery, SignInPlace
from tui.engine.sign_in.sign_in_record import AuthError, Challenge
from tui.engine.sign_in.token_endpoint import AuthResponse
from tui.model.requests import Reply, ReplyAction

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

    async def find(self, **settings: object) -> SignInPlace:
        definition = define(SERVER, sign_in=oauth(**settings))
        real = make_send(definition)

        async def send(
            method: str, url: str, headers: Mapping[str, str], body: bytes | None
        ) -> AuthResponse:
            if urlsplit(url).hostname not in {"mcp.example", "as.example"}:
                return await real(method, url, headers, body)
            status, content = self.documents.get(url, (404, {}))
            return AuthResponse(status, {}, json.dumps(content).encode())

        return await Discovery(definition, send).find(Challenge())

    async def _look_up(self, host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        try:  # as the C library does, which takes 127.1 for an address
            place = socket.inet_ntoa(socket.inet_aton(host))
        except OSError:
            if (name := host.removesuffix(".example")) not in self._names:
                raise socket.gaierror(socket.EAI_NONAME, "unknown") from None
            place = self._names[name]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port))]


@pytest.mark.parametrize(
    ("page", "inside"),
    [
        *(("127.1", True), ("2130706433", True), ("0x7f.1", True), ("127.0.0.1.", True)),
        *(("[::ffff:127.0.0.1]", True), ("169.254.169.254", True), ("0.0.0.0", True)),
        *(("93.184.216.34", True), ("[2606:2800:21f::1]", True), ("1572395042", True)),
        *(("10.1.2.3", False), ("login.example", False), ("[fd00::1]", False)),
    ],
)
async def test_a_page_in_a_private_network_or_without_a_name_is_refused_to_a_server_outside(
    page: str, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web(monkeypatch, f"https://{page}:9/authorize", login="10.1.2.3")
    with pytest.raises(AuthError, match="refused"):
        await web.find()
    own = f"https://{page}:9/authorize"
    assert (await web.find(authorization_url=own, token_url="https://h/t")).token_endpoint
    web = Web(monkeypatch, own, login="10.1.2.3", mcp="10.9.9.9")
    if inside:
        with pytest.raises(AuthError, match="refused"):
            await web.find()
    else:
        monkeypatch.setattr(
            "tui.engine.mcp.transports.http.auth_requests._exchange", lambda *_: unreachable()
        )
        assert (await web.find()).authorization_endpoint == own


async def unreachable() -> AuthResponse:
    raise AuthError("does not answer", is_transient=True)


async def test_a_proxy_is_no_way_into_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    web = Web(monkeypatch, "https://169.254.169.254/authorize")
    with pytest.raises(AuthError, match="private network"):
        await web.find()


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("url", [RESOURCE, METADATA])
async def test_a_bad_day_is_not_for_ever(
    url: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web(monkeypatch)
    assert (await web.find()).issuer == "https://as.example"
    web.documents[url] = (status, {})
    with pytest.raises(AuthError, match=str(status)) as caught:
        await web.find()
    assert caught.value.is_transient


async def test_a_code_is_not_carried_from_one_authorization_server_to_another() -> None:
    person = Person()
    async with guarded() as server, Authority() as victim:
        thief = server.authority
        victim.clients = thief.clients
        silent = {"authorization_response_iss_parameter_supported": None}
        victim.metadata, victim.redirect = silent, {"iss": None}
        thief.metadata = {**silent, "authorization_endpoint": f"{victim.issuer}/authorize"}
        sign_ins = make_sign_ins(person, None)
        with pytest.raises(AuthError) as caught:
            await sign_ins.sign_in(define(server.url, sign_in=oauth()))
        assert f"{victim.issuer}, whose answer would go to {thief.issuer}" in caught.value.reason
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

    person = Person(reply=lambda _: Reply(ReplyAction.CANCEL))
    async with guarded() as server, RawServer(on={"GET": answer}) as other:
        issuer, page = server.authority.issuer, other.url.removesuffix("/mcp")
        server.authority.metadata = {"authorization_endpoint": f"{page}/authorize"}
        sign_ins = make_sign_ins(person, None)
        words = "cancelled" if is_asked else "page of another authorization server"
        with pytest.raises(AuthError, match=words):
            await sign_ins.sign_in(define(server.url, sign_in=oauth()))
        if is_asked:
            [request] = person.asked
            place, host = (urlsplit(url).netloc for url in (page, issuer))
            assert (request.issuer, request.token_host) == (issuer, host)
            [note] = [note for note in request.notes if "belong together" in note]
            assert f"page is at {place}, its issuer at {host}" in note


async def test_tokens_may_come_from_another_host_which_is_named() -> None:
    person = Person(reply=lambda _: Reply(ReplyAction.CANCEL))
    async with guarded() as server, RawServer() as other:
        page = urlsplit(server.authority.issuer).netloc
        tokens = urlsplit(other.url).netloc
        for endpoint, named in ((f"http://{tokens}/token", tokens), (f"http://{page}/token", "")):
            server.authority.metadata = {"token_endpoint": endpoint}
            sign_ins = make_sign_ins(person, None)
            with pytest.raises(AuthError, match="cancelled"):
                await sign_ins.sign_in(define(server.url, sign_in=oauth()))
            assert person.asked[-1].token_host == named
            assert not any("belong together" in note for note in person.asked[-1].notes)
