"""The steps of a sign-in: what is sent, which client is used, and what an answer is worth."""

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.servers.authority import GuardedServer, walk_through
from tests.servers.web import free_port
from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.mcp.network.support import define
from tests.unit.engine.mcp.support import eventually
from tests.unit.engine.sign_in import support
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.transports.http.auth_requests import make_send
from tui.engine.sign_in.callback import Redirect
from tui.engine.sign_in.discovery import SignInPlace
from tui.engine.sign_in.flow import Consent, SignInFlow, unattended_token
from tui.engine.sign_in.sign_in_record import AuthError, Challenge, SignInRecord
from tui.engine.sign_in.sign_ins import SignIns
from tui.engine.sign_in.token_endpoint import AuthResponse
from tui.model.requests import Reply, ReplyAction
from tui.model.settings import OAuthSettings

pytestmark = pytest.mark.writes_secrets("sign-ins.json")

ISSUER: Final = "https://as.example"
PROVIDER: Final = "https://idp.example/token"
Settings = dict[str, Any]


async def through(consent: Consent) -> Redirect:
    """Agree in the browser, which comes back."""
    assert consent.listener is not None
    await walk_through(consent.url)
    return await consent.listener.answer


async def sign_in(
    server: GuardedServer,
    ask: Callable[[Consent], Any] = through,
    known: SignInRecord | None = None,
    **settings: object,
) -> SignInRecord:
    """Sign in to a server once."""
    definition = define(server.url, sign_in=support.oauth(**settings))

    async def keep(client: SignInRecord) -> None:
        assert not client.access_token

    return await SignInFlow(definition, make_send(definition), ask, known, keep).run(Challenge())


async def test_what_an_address_says_of_the_sign_in_itself_does_not_count() -> None:
    async with support.guarded() as server:
        authority = server.authority
        own = {"state": "theirs", "redirect_uri": "https://evil.example", "tenant": "1"}
        address = f"{authority.issuer}/authorize?{urlencode(own)}&code_challenge=x"
        authority.metadata = {"authorization_endpoint": address}
        assert (await sign_in(server)).access_token in authority.tokens
        assert authority.asked[0]["tenant"] == "1"


@pytest.mark.parametrize("change", [lambda iss: iss[:-1], lambda iss: f"{iss}0", lambda _: "http"])
async def test_whoever_answers_is_the_one_that_was_asked(change: Callable[[str], str]) -> None:
    async with support.guarded() as server:
        server.authority.redirect = {"iss": change(server.authority.issuer)}
        with pytest.raises(AuthError, match="wrong authorization server"):
            await sign_in(server)
        assert not server.authority.forms


@pytest.mark.parametrize("names_itself", [True, None])
async def test_a_code_alone_is_enough_for_who_has_no_name(names_itself: bool | None) -> None:
    async def paste(consent: Consent) -> Redirect:
        assert consent.listener is not None
        end = (await walk_through(consent.url, comes_back=False)).headers["location"]
        return consent.listener.read_pasted(dict(parse_qsl(urlsplit(end).query))["code"])

    async with support.guarded() as server:
        server.authority.metadata = {"authorization_response_iss_parameter_supported": names_itself}
        if names_itself:
            with pytest.raises(AuthError, match="does not name its authorization server") as caught:
                await sign_in(server, paste)
            assert caught.value.advice == "If you pasted a code, paste the whole address."
            assert not server.authority.forms
        else:
            assert (await sign_in(server, paste)).access_token


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=support.needs_ipv6)])
async def test_a_client_of_the_settings_comes_back_to_its_address_or_not_at_all(host: str) -> None:
    port = free_port()
    settings: Settings = {"client_id": "known", "redirect_uri": f"http://localhost:{port}/back"}
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    async with support.guarded() as server:
        server.authority.clients["known"] = {"redirect_uris": [settings["redirect_uri"]]}
        with socket.create_server((host, port), family=family):
            with pytest.raises(AuthError, match=f"port {port} is in use"):
                await sign_in(server, **settings)
            assert not server.authority.asked
            moved = await sign_in(server, redirect_uri=settings["redirect_uri"])
            assert moved.redirect_uri.startswith("http://localhost:"), "the user's own name stays"
            assert urlsplit(moved.redirect_uri).port != port
        assert (await sign_in(server, **settings)).client_id == "known"
        assert server.authority.asked[-1]["redirect_uri"] == settings["redirect_uri"]


async def tries(one: SignIns, definition: ServerDefinition, words: str) -> None:
    """Try to sign in, which fails."""
    with pytest.raises(AuthError, match=words):
        await one.sign_in(definition)


async def test_each_server_has_one_client_whatever_comes_of_the_sign_in(tmp_path: Path) -> None:
    person = support.Person(reply=lambda _: Reply(ReplyAction.CANCEL))
    async with support.unsigned(person, tmp_path) as (server, sign_ins, definition):
        authority = server.authority
        for attempt in range(7):
            if attempt == 3:
                person.reply = lambda _: Reply(ReplyAction.ACCEPT)
            authority.says_no = 3 <= attempt < 5
            authority.fails = [503] if attempt >= 5 else []
            words = "access_denied" if authority.says_no else "cancelled|HTTP 503"
            await tries(support.make_sign_ins(person, tmp_path), definition, words)
        await sign_ins.sign_in(definition)
        assert len(authority.clients) == 1


async def test_a_client_alone_is_no_sign_in_and_goes_when_signing_out(tmp_path: Path) -> None:
    person = support.Person(reply=lambda _: Reply(ReplyAction.CANCEL))
    async with support.unsigned(person, tmp_path) as (server, sign_ins, definition):
        await tries(sign_ins, definition, "cancelled")
        assert sign_ins.store.find(definition) is not None
        assert "were not signed in" in await sign_ins.sign_out(definition)
        assert sign_ins.store.find(definition) is None
        assert not server.authority.revoked


@pytest.mark.parametrize("interrupts", [False, True])
async def test_a_client_that_may_be_unknown_there_is_not_used_for_ever(
    tmp_path: Path, interrupts: bool
) -> None:
    async def looks(_: str) -> None:
        """Show a page that says that there is no such client."""

    person = support.Person(browser=looks)
    async with support.unsigned(person, tmp_path) as (server, sign_ins, definition):
        for number, clients in enumerate((1, 1, 2), 1):
            trying = asyncio.create_task(tries(sign_ins, definition, "cancelled"))
            await eventually(partial(person.was_asked, 2 * number))
            if interrupts:
                trying.cancel()
                await asyncio.wait({trying})
            else:
                person.desk.answer(person.asked[-1].id, Reply(ReplyAction.CANCEL))
                await trying
            assert len(server.authority.clients) == clients


async def test_a_client_whose_secret_expired_registers_anew(tmp_path: Path) -> None:
    secret = f"{FIXTURE_SECRET}client"
    method = {"client_secret": secret, "token_endpoint_auth_method": "client_secret_basic"}
    for later in (0, 4_000_000_000):
        async with support.unsigned(folder=tmp_path) as (server, sign_ins, definition):
            authority = server.authority
            for ends_at, client in ((1, 1), (1, 2), (later, 3), (1, 3)):
                authority.registration = {**method, "client_secret_expires_at": ends_at}
                await sign_ins.sign_in(definition)
                assert len(authority.clients) == client
                assert authority.forms[-1]["basic"] == f"client-{client}:{secret}"


async def test_a_sign_in_that_fails_costs_no_token(tmp_path: Path) -> None:
    person = support.Person()
    async with support.unsigned(person, tmp_path) as (server, sign_ins, definition):
        await sign_ins.sign_in(definition)
        record = await support.token_session(sign_ins, definition).record()
        assert record is not None
        server.authority.fails = [401]
        await tries(support.make_sign_ins(person, tmp_path), definition, "temporarily_unavailable")
        assert len(server.authority.clients) == 1
        port = urlsplit(record.redirect_uri).port or 0
        person.reply = lambda _: Reply(ReplyAction.CANCEL)
        with socket.create_server(("127.0.0.1", port)):  # so it registers another address
            await tries(support.make_sign_ins(person, tmp_path), definition, "cancelled")
        assert len(server.authority.clients) == 2
        assert sign_ins.store.find(definition) == record


class Sent:
    """What an authorization server and an identity provider are sent."""

    def __init__(self) -> None:
        self.forms: list[tuple[str, dict[str, str]]] = []

    async def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AuthResponse:
        assert (method, headers["accept"]) == ("POST", "application/json")
        self.forms.append((url, dict(parse_qsl((body or b"").decode()))))
        kind = "n_a" if url == PROVIDER else "bearer"
        return AuthResponse(200, json.dumps({"access_token": url, "token_type": kind}).encode())


async def unattended(sent: Sent, **settings: object) -> SignInRecord:
    token, resource = f"{ISSUER}/token", "https://mcp.example/"
    place = SignInPlace(ISSUER, resource, "read", "", token_endpoint=token)
    of = {"server": f"{resource}mcp", "issuer": ISSUER, "resource": resource}
    client = SignInRecord(**of, client_id="robot", token_endpoint=token)
    return await unattended_token(OAuthSettings.model_validate(settings), sent, place, client)


async def test_an_identity_provider_vouches_for_the_user() -> None:
    sent = Sent()
    settings = {"grant_type": "identity_assertion", "audiences": ["a", "b"]}
    with pytest.raises(AuthError, match="needs an identity token"):
        await unattended(sent, **settings)
    settings |= {"identity_token": f"{FIXTURE_SECRET}id", "identity_token_url": PROVIDER}
    settings |= {"identity_client_id": "employee"}
    assert (await unattended(sent, **settings)).access_token == f"{ISSUER}/token"
    [(provider, asked), (_, form)] = sent.forms
    assert (provider, asked["client_id"]) == (PROVIDER, "employee")
    assert (asked["audience"], asked["resource"]) == (ISSUER, "https://mcp.example/")
    assert (asked["subject_token"], asked["scope"]) == (f"{FIXTURE_SECRET}id", "read")
    assert asked["subject_token_type"].endswith(":id_token")
    assert asked["requested_token_type"].endswith(":id-jag")
    assert (form["assertion"], form["client_id"]) == (PROVIDER, "robot")
    assert (form["resource"], form["scope"]) == ("https://mcp.example/", "read")
    assert (form["grant_type"].endswith(":jwt-bearer"), form["audience"]) == (True, "a b")


async def test_a_key_signs_for_the_client_and_is_never_said() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    encoding = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    sent, settings = Sent(), {"grant_type": "client_credentials", "signing_algorithm": "ES256"}
    pem = key.private_bytes(*encoding).decode()
    await unattended(sent, **settings, private_key=pem)
    [(_, form)] = sent.forms
    assert form["client_assertion_type"].endswith(":jwt-bearer")
    said = jwt.decode(form["client_assertion"], key.public_key(), ["ES256"], audience=ISSUER)
    assert (said["iss"], said["sub"]) == ("robot", "robot")
    with pytest.raises(AuthError, match="private key cannot sign") as caught:
        await unattended(sent, **settings, private_key=f"{FIXTURE_SECRET}no key")
    assert FIXTURE_SECRET not in str(caught.value)
