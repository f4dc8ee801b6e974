"""Authorization servers as people have them: what they refuse, forget and leave out."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.servers.authority import Form, GuardedServer
from tests.servers.web import Exchange, answer, free_port
from tests.support.definitions import altered
from tests.support.leaks import FIXTURE_SECRET
from tests.support.rows import row
from tests.unit.engine.mcp.support import eventually
from tests.unit.engine.sign_in.support import Person, make_sign_ins, oauth, signed_in, unsigned
from tui import __version__
from tui.engine.sign_in import token_endpoint
from tui.engine.sign_in.sign_in_record import AuthError, Challenge, Signature, SignInRecord
from tui.engine.sign_in.sign_ins import SignIns
from tui.engine.sign_in.token_endpoint import AuthResponse, RejectedError, Send
from tui.model.requests import Reply, ReplyAction

pytestmark = pytest.mark.writes_secrets("sign-ins.json")

BASIC: Final = {
    "client_secret": f"{FIXTURE_SECRET}client",
    "token_endpoint_auth_method": "client_secret_basic",
}
LACKING: Final = {"error": "invalid_client", "error_description": "Missing client_id"}


def lacks_id(path: str, form: Form) -> Form | None:
    """Look for the client's id in forms alone, as the MCP SDK's own server does."""
    return LACKING if path in {"/token", "/revoke"} and "client_id" not in form else None


async def kept_of(sign_ins: SignIns, definition: Any) -> SignInRecord:  # noqa: ANN401
    kept = sign_ins.store.find(definition)
    assert kept is not None
    return kept


async def test_a_client_asks_for_the_way_to_authenticate_that_all_servers_read() -> None:
    basic, post = "client_secret_basic", "client_secret_post"
    for offered, asked in (([basic, post], post), ([basic], basic), ([post, "none"], "none")):
        async with unsigned() as (server, sign_ins, definition):
            server.authority.metadata = {"token_endpoint_auth_methods_supported": offered}
            server.authority.registration = {} if asked == "none" else {"client_secret": "x" * 9}
            await sign_ins.sign_in(definition)
            [client] = server.authority.clients.values()
            assert client["token_endpoint_auth_method"] == asked
            assert ("client_secret" in server.authority.forms[0]) is (asked == post)


async def test_who_is_not_recognized_by_basic_names_its_id_in_the_form_as_well() -> None:
    async with unsigned() as (server, sign_ins, definition):
        authority = server.authority
        authority.registration, authority.refuses = BASIC, lacks_id
        await sign_ins.sign_in(definition)
        first, second = authority.forms
        assert second == {**first, "client_id": "client-1"}
        assert second["basic"].startswith("client-1:")
        assert "are revoked" in await sign_ins.sign_out(definition)
        assert len(authority.revoked) == 2


@pytest.mark.parametrize(
    ("registration", "error", "forms"),
    [
        *((BASIC, "", 1), (BASIC, "invalid_grant", 1), (BASIC, "unauthorized_client", 1)),
        (BASIC, "invalid_client", 2),
        ({**BASIC, "token_endpoint_auth_method": "client_secret_post"}, "invalid_client", 1),
        ({}, "invalid_client", 1),
    ],
)
async def test_only_then_and_only_once(registration: Form, error: str, forms: int) -> None:
    def refuses(path: str, _: Form) -> Form | None:
        return {"error": error} if error and path == "/token" else None

    async with unsigned() as (server, sign_ins, definition):
        server.authority.registration, server.authority.refuses = registration, refuses
        if error:
            with pytest.raises(AuthError, match=error):
                await sign_ins.sign_in(definition)
        else:
            await sign_ins.sign_in(definition)
        sent = server.authority.forms
        assert len(sent) == forms
        if "client_secret_basic" in registration.values():
            assert ["client_id" in form for form in sent] == [False, True][:forms]


@pytest.mark.parametrize(
    ("error", "clients"),
    [("invalid_client", 2), ("unauthorized_client", 2), ("invalid_grant", 1)],
)
async def test_a_client_that_a_renewal_calls_unknown_registers_anew(
    error: str, clients: int, tmp_path: Path
) -> None:
    async with signed_in(tmp_path) as one:
        one.authority.refuses = lambda path, _: {"error": error} if path == "/token" else None
        await one.session.take(one.due)
        assert (await one.session.signature()).token == ""
        one.authority.refuses = lambda _path, _form: None
        await one.sign_ins.sign_in(one.definition)
        assert len(one.authority.clients) == clients
        assert one.kept is not None
        assert not one.kept.is_doubtful


async def test_a_client_that_the_code_is_not_exchanged_for_registers_anew(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as one:
        for error, clients in (("invalid_client", 1), ("", 2)):
            answers = {"/token": {"error": error}} if error else {}
            one.authority.refuses = lambda path, _, answers=answers: answers.get(path)  # type: ignore[misc]
            try:
                await one.sign_ins.sign_in(one.definition)
            except AuthError:
                assert one.kept is not None
                assert one.kept.access_token == one.record.access_token
            assert len(one.authority.clients) == clients


@pytest.mark.parametrize("interrupts", [False, True])
async def test_a_browser_that_does_not_come_back_costs_no_token_that_counts(
    tmp_path: Path, interrupts: bool
) -> None:
    async def looks(_: str) -> None:
        """Show a page that says that there is no such client."""

    async with signed_in(tmp_path) as one:
        person = Person(browser=looks)
        again = make_sign_ins(person, tmp_path)
        trying = asyncio.create_task(again.sign_in(one.definition))
        await eventually(partial(person.was_asked, 2))
        await one.session.take(one.due)
        fresh = await one.session.signature()  # meanwhile another gemdeck refreshes it
        if interrupts:
            trying.cancel()
        else:
            person.desk.answer(person.asked[-1].id, Reply(ReplyAction.CANCEL))
        await asyncio.wait({trying})
        assert one.kept is not None
        assert (one.kept.access_token, one.kept.is_doubtful) == (fresh.token, True)
        assert one.kept.refresh_token in one.authority.refreshers
        later = make_sign_ins(Person(), tmp_path)
        await later.sign_in(one.definition)
        assert len(one.authority.clients) == 2
        await again.aclose()
        await later.aclose()


TARGET: Final = {"error": "invalid_target", "error_description": "no such resource"}
ENTRA: Final = {"error": "invalid_request", "error_description": "AADSTS9010010: resource"}


@pytest.mark.parametrize("place", ["/authorize", "/token"])
async def test_a_resource_that_entra_refuses_is_left_out_once(place: str, tmp_path: Path) -> None:
    async with unsigned(folder=tmp_path) as (server, sign_ins, definition):
        authority = server.authority
        authority.refuses = lambda path, form: (
            ENTRA if path == place and "resource" in form else None
        )
        await sign_ins.sign_in(definition)
        named = ["resource" in one for one in authority.asked]
        sent = ["resource" in one for one in authority.forms]
        assert named == [True, False][: len(named)]
        assert sent == [True, False][-len(sent) :]
        assert (len(named), len(sent)) == ((2, 1) if place == "/authorize" else (1, 2))
        kept = await kept_of(sign_ins, definition)
        assert not kept.names_resource
        await token_endpoint.refresh(await sign_ins.load_send(definition), kept)
        assert "resource" not in authority.refreshes()[-1]


@pytest.mark.parametrize("place", ["/authorize", "/token"])
async def test_H09_a_resource_that_others_refuse_is_left_out_by_the_settings_alone(
    place: str,
) -> None:
    async with unsigned() as (server, sign_ins, definition):
        server.authority.refuses = lambda path, form: (
            TARGET if path == place and "resource" in form else None
        )
        with pytest.raises(AuthError, match="no such resource") as caught:
            await sign_ins.sign_in(definition)
        assert "oauth.resource" in caught.value.advice
        asked = [*server.authority.asked, *server.authority.forms]
        assert all("resource" in one for one in asked), "no token that is bound to nobody"
        for value in (False, ""):
            await sign_ins.sign_in(altered(definition, sign_in=oauth(resource=value)))


async def test_a_renewal_that_refuses_the_resource_goes_on_without(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as one:
        one.authority.refuses = lambda path, form: (
            ENTRA if path == "/token" and "resource" in form else None
        )
        for _ in range(2):
            kept = await kept_of(one.sign_ins, one.definition)
            await one.session.take(kept.model_copy(update={"expires_at": 1.0}))
            assert (await one.session.signature()).token in one.authority.tokens
        assert ["resource" in form for form in one.authority.refreshes()] == [True, False, False]


async def test_the_settings_leave_the_resource_out() -> None:
    async with unsigned(resource=False) as (server, sign_ins, definition):
        await sign_ins.sign_in(definition)
        [asked], [form] = server.authority.asked, server.authority.forms
        assert not {"resource"} & (asked.keys() | form.keys())


async def test_consent_is_asked_for_only_where_there_was_no_refresh_token(tmp_path: Path) -> None:
    async with unsigned(folder=tmp_path, scopes=["read", "offline_access"]) as (server, one, web):
        for given, prompt in ((None, None), ("r" * 20, "consent"), ("r" * 20, None)):
            server.authority.grants = {"refresh_token": given}
            await one.sign_in(web)
            assert server.authority.asked[-1].get("prompt") == prompt
    async with unsigned(folder=tmp_path) as (server, one, web):
        server.authority.grants = {"refresh_token": None}
        for _ in range(2):
            await one.sign_in(web)
            assert "prompt" not in server.authority.asked[-1]


async def test_a_registration_is_tried_with_less_and_says_what_is_refused() -> None:
    rows: list[tuple[Form, Any, list[str], str]] = [
        ({"error": "invalid_scope"}, None, ["authorization_code", "refresh_token"], ""),
        ({"error": "invalid_client_metadata"}, ["authorization_code"], ["authorization_code"], ""),
        ({"error": "invalid_client_metadata"}, ["implicit"], ["authorization_code"], ""),
        (
            {"error": "invalid_redirect_uri", "error_description": "https only"},
            None,
            [],
            "https on",
        ),
        (
            {"error": "unapproved_client", "detail": "ask the \x1b[31madministrator"},
            None,
            [],
            "HTTP 400, unapproved_client: ask the administrator",
        ),
        ({"msg": "Unrecognized field"}, None, ["authorization_code", "refresh_token"], ""),
    ]
    seen: list[Form] = []
    for error, grants, tried, words in rows:
        seen.clear()

        def refuses(path: str, form: Form, error: Form = error) -> Form | None:
            seen.extend([form] if path == "/register" else [])
            return error if path == "/register" and "scope" in form else None

        async with unsigned(scopes=["read"]) as (server, sign_ins, definition):
            server.authority.metadata = {"grant_types_supported": grants}
            server.authority.refuses = refuses
            with row(error):
                if words:
                    with pytest.raises(AuthError, match=words):
                        await sign_ins.sign_in(definition)
                    assert len(seen) == 1
                else:
                    await sign_ins.sign_in(definition)
                    assert (seen[0]["scope"], seen[1]["grant_types"]) == ("read", str(tried))
                    assert seen[0].keys() - seen[1].keys() == {"scope", "application_type"}


async def test_who_is_too_busy_to_register_a_client_is_to_be_asked_later() -> None:
    busy = {"error": "temporarily_unavailable"}
    for status in (429, 503):
        async with unsigned() as (server, sign_ins, definition):
            server.authority.metadata = {"registration_endpoint": f"{server.authority.issuer}/busy"}
            server.authority.on["/busy"] = answer(status, json.dumps(busy).encode())
            with row(status), pytest.raises(AuthError, match="temporarily_unavailable") as caught:
                await sign_ins.sign_in(definition)
            assert (caught.value.advice, caught.value.is_transient) == ("Try again later.", True)


async def test_odd_members_of_a_registration_do_not_matter() -> None:
    secret = {"client_secret": f"{FIXTURE_SECRET}client"}
    rows: list[tuple[dict[str, Any], str]] = [
        ({"redirect_uris": None, "grant_types": "code", "client_secret": None}, ""),
        ({"client_id_issued_at": "now", "contacts": {}, "client_uri": ""}, ""),
        ({**secret, "client_secret_expires_at": "never"}, ""),
        ({"client_id": ""}, "did not register gemdeck .HTTP 201, no client_id"),
        ({"client_id": [5], **secret}, "did not register gemdeck .HTTP 201, no client_id"),
        ({"client_id": True}, "did not register gemdeck .HTTP 201, no client_id"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "in an unusable way"),
        ({"token_endpoint_auth_method": "client_secret_post"}, "in an unusable way"),
        ({"client_secret": [FIXTURE_SECRET]}, "in an unusable way"),
    ]
    for given, words in rows:
        async with unsigned() as (server, sign_ins, definition):
            server.authority.registration = given
            if not words:
                await sign_ins.sign_in(definition)
                continue
            with row(given), pytest.raises(AuthError, match=words) as caught:
                await sign_ins.sign_in(definition)
            assert FIXTURE_SECRET not in f"{caught.value.reason} {caught.value.advice}"


CLIENT: Final = SignInRecord(
    server="https://h/mcp",
    issuer="https://as.example",
    resource="https://h/mcp",
    client_id="me",
    client_secret=f"{FIXTURE_SECRET}client:/ü",
    auth_method="client_secret_basic",
    token_endpoint="https://as.example/token",
    revocation_endpoint="https://as.example/revoke",
    access_token=f"{FIXTURE_SECRET}old",
    refresh_token=f"{FIXTURE_SECRET}renewal",
)


def answering(*answers: tuple[int, bytes]) -> Send:
    """Give each request its answer."""
    rest = iter(answers)

    async def send(*_: object) -> AuthResponse:
        status, body = next(rest)
        return AuthResponse(status, body)

    return send


async def test_tokens_come_as_a_form_and_errors_with_any_status() -> None:
    form = b"access_token=t1&scope=&token_type=bearer&expires_in=3600\n"
    fresh = await token_endpoint.refresh(answering((200, form)), CLIENT)
    assert (fresh.access_token, fresh.refresh_token) == ("t1", CLIENT.refresh_token)
    assert fresh.expires_at is not None
    bad = b'{"error": "bad_verification_code", "error_description": "expired"}'
    for body, kind, words in [
        (bad, AuthError, "refused .bad_verification_code: expired"),
        (b'{"error": "invalid_grant"}', RejectedError, "refused .invalid_grant"),
        (b"error=invalid_grant&error_description=expired", RejectedError, "invalid_grant"),
        (b"access_token=" + b"x" * 70_000, AuthError, "cannot be sent"),
        (b"&".join([b"a=b"] * 40), AuthError, "cannot be sent|not JSON"),
        (b"access_token=a%0Ab", AuthError, "cannot be sent"),
        (b'{"ok": true, "authed_user": {"access_token": "t"}}', AuthError, "has no access_token"),
    ]:
        with row(body), pytest.raises(AuthError, match=words) as caught:
            await token_endpoint.refresh(answering((200, body)), CLIENT)
        assert type(caught.value) is kind


async def test_a_failure_that_passes_is_shown_with_its_words_and_costs_no_sign_in() -> None:
    for status, body, words in (
        (400, {"error": "temporarily_unavailable", "error_description": "Back at 5."}, "Back at 5"),
        *((400, {"error": code}, code) for code in ("server_error", "slow_down")),
        (503, {"message": "Maintenance."}, "HTTP 503, Maintenance"),
    ):
        send = answering((status, json.dumps(body).encode()))
        with row(body), pytest.raises(AuthError, match=f"failed .*{words}") as caught:
            await token_endpoint.refresh(send, CLIENT)
        assert caught.value.is_transient


async def test_what_a_refusal_quotes_of_the_request_is_masked() -> None:
    _, headers = token_endpoint.authenticated(CLIENT, {})
    form = {"grant_type": "x", "code": f"{FIXTURE_SECRET}code", "assertion": f"{FIXTURE_SECRET}jwt"}
    form |= {"code_verifier": f"{FIXTURE_SECRET}verifier"}
    quoted = (*form.values(), CLIENT.client_secret, CLIENT.refresh_token, headers["authorization"])
    for secret in quoted[1:]:
        for before in ("no: ", "x" * 190):
            said = f"{before}{secret}"
            body = json.dumps({"error": "invalid_request", "error_description": said}).encode()
            for quoting in (body, said.encode(), f"<h1>{said}</h1>".encode()):
                with pytest.raises(AuthError) as caught:
                    await token_endpoint.ask_for_token(answering((400, quoting)), CLIENT, form)
                assert "s3cr3t" not in caught.value.reason
                assert secret[:24] not in caught.value.reason, secret


async def test_a_refresh_token_that_is_revoked_is_what_counts() -> None:
    without = CLIENT.model_copy(update={"refresh_token": ""})
    for first, second, is_done in (
        *((200, 200, True), (204, 400, True), (200, 400, True), (400, 200, False)),
    ):
        answers = (first, b""), (second, b'{"error": "unsupported_token_type"}')
        for client in (CLIENT, without):
            assert await token_endpoint.revoke(answering(*answers), client) is is_done


METADATA: Final = "/.well-known/oauth-authorization-server"


def is_its_own(server: GuardedServer, named: object) -> None:
    """Let a server with these authorization servers say itself how to sign in."""
    own = server.authority.described() | {"issuer": server.origin}
    server.resource = {"authorization_servers": named}
    server.on[METADATA] = answer(200, json.dumps(own).encode())
    server.authority.on[METADATA] = answer(404)
    server.authority.redirect = {"iss": server.origin}


def has_others(server: GuardedServer, *others: str) -> None:
    """Name other authorization servers before the one that there is."""
    server.resource = {"authorization_servers": [*others, server.authority.issuer]}


def writes_no_lists(server: GuardedServer) -> None:
    """Write texts in place of lists of one."""
    server.resource = {"authorization_servers": server.authority.issuer}
    server.authority.metadata = {"code_challenge_methods_supported": "S256"}


def marks_bytes(server: GuardedServer) -> None:
    """Begin metadata with a byte order mark."""
    body = b"\xef\xbb\xbf" + json.dumps(server.authority.described()).encode()
    server.authority.on[METADATA] = answer(200, body)


def numbers_clients(server: GuardedServer) -> None:
    """Give clients a number as their id."""

    async def register(exchange: Exchange) -> None:
        server.authority.clients["1"] = json.loads(exchange.request.body)
        await exchange.json({"client_id": 1}, 201)

    server.authority.on["/register"] = register


def grants(server: GuardedServer, **more: object) -> None:
    """Give tokens with these members."""
    server.authority.grants = more


@pytest.mark.parametrize(
    "prepare",
    [
        *(partial(is_its_own, named=None), partial(is_its_own, named=[])),
        lambda server: has_others(server, f"{server.origin}/nothing"),
        lambda server: has_others(server, f"http://127.0.0.1:{free_port()}"),
        marks_bytes,
        *(partial(grants, token_type=kind) for kind in ("", "BEARER", "bearer ")),
        *(numbers_clients, writes_no_lists),
    ],
)
async def test_what_does_not_matter_keeps_nobody_out(
    prepare: Callable[[GuardedServer], None],
) -> None:
    async with unsigned() as (server, sign_ins, definition):
        prepare(server)
        await sign_ins.sign_in(definition)
        assert len(server.authority.tokens) == 1


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (["https://10.1.2.3"], "which is refused"),
        (["http://far.example"], "not encrypted"),
        (["{web}/a", "{web}/b", "{web}/c"], "{web}/a and {web}/b and {web}/c, which fails"),
    ],
)
async def test_who_names_several_authorization_servers_gets_no_more_than_with_one(
    others: list[str], words: str
) -> None:
    async with unsigned() as (server, sign_ins, definition):
        has_others(server, *(one.format(web=server.origin) for one in others))
        with pytest.raises(AuthError, match=words.format(web=server.origin)):
            await sign_ins.sign_in(definition)
        assert server.authority.requests == []


async def test_an_empty_address_of_registration_is_none() -> None:
    async with unsigned(client_id="own") as (server, sign_ins, definition):
        where = definition.endpoint.sign_in.oauth.redirect_uri
        server.authority.clients["own"] = {"redirect_uris": [where]}
        server.authority.metadata = {"registration_endpoint": ""}
        await sign_ins.sign_in(definition)


async def test_an_empty_scope_of_a_token_is_what_was_asked_for() -> None:
    asked = CLIENT.model_copy(update={"scope": "read"})
    for said in ("", " ", None):
        body = json.dumps({"access_token": "t", "scope": said}).encode()
        assert (await token_endpoint.refresh(answering((200, body)), asked)).scope == "read"


async def test_a_token_that_has_the_scopes_it_lacks_is_renewed_first(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as one:
        lacking = Challenge(403, scope=one.record.scope, error="insufficient_scope")
        sent = Signature(one.record.access_token)
        assert await one.session.refused(lacking, sent, 0)
        assert (len(one.authority.refreshes()), len(one.authority.asked)) == (1, 1)
        sent = Signature((await one.session.signature()).token)
        assert await one.session.refused(lacking, sent, 1)
        assert (len(one.authority.refreshes()), len(one.authority.asked)) == (1, 2)


async def test_servers_and_authorities_learn_who_asks() -> None:
    async with unsigned() as (server, sign_ins, definition):
        await sign_ins.sign_in(definition)
        mine = [one for one in server.authority.requests if "accept" in one.headers]
        asked = {one.headers.get("user-agent") for one in mine if one.path != "/consent"}
        assert f"gemdeck/{__version__}" in asked
        assert None not in asked
