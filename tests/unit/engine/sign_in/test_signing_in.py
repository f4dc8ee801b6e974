"""Signing in to a server, against a real authorization server; two gemdecks with one sign-in."""

import asyncio
import errno
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Final
from unittest.mock import Mock
from urllib.parse import unquote

import pytest

from tests.servers.authority import walk_through
from tests.servers.web import RawServer
from tests.support.definitions import altered
from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.mcp.network.support import WEB, define
from tests.unit.engine.mcp.support import eventually
from tests.unit.engine.sign_in.support import (
    Person,
    connected,
    deck,
    guarded,
    make_sign_ins,
    oauth,
    signed_in,
    token_session,
    unsigned,
)
from tui.engine.definitions.definition import SignInSettings
from tui.engine.keys.key_store import CredentialError
from tui.engine.keys.secret_store import SecretStore
from tui.engine.mcp.context import ClientContext
from tui.engine.sign_in.sign_in_record import AuthError, Challenge
from tui.engine.sign_in.token_store import TokenStore
from tui.model.requests import Reply, ReplyAction
from tui.model.servers import ServerId, Transport
from tui.model.servers import ServerStatus as S
from tui.model.settings import AuthProviderType

pytestmark = pytest.mark.writes_secrets("sign-ins.json")


async def test_a_401_is_one_answer_from_working_also_after_a_restart(tmp_path: Path) -> None:
    person = Person()
    async with guarded() as server:
        async with deck(server.url, person, tmp_path) as one:
            failure = await one.fails(S.NEEDS_SIGN_IN)
            assert "requires sign-in" in failure.reason
            assert "Press a" in failure.advice
            assert not person.asked, "nobody is asked unless they want to sign in"
            words = await one.sign_in()
            await one.ready()
            assert "private file" in words
            assert await one.echo() == "hi"
        [request] = [one for one in person.asked if not one.problem]
        authority = server.authority
        assert (request.server, request.host) == (WEB, "127.0.0.1")
        assert (request.scopes, request.resource) == (("read",), server.url)
        assert [request.url] == person.opened
        [asked], [form] = authority.asked, authority.forms
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == form["resource"] == server.url
        assert asked["scope"] == "read"
        assert (tmp_path / "sign-ins.json").stat().st_mode & 0o777 == 0o600

        async with deck(server.url, person, tmp_path) as again:
            await again.ready()
        assert len(person.opened) == 1
        assert len(authority.clients) == 1


async def test_a_token_near_its_end_is_refreshed_before_it_is_used(tmp_path: Path) -> None:
    person = Person()
    async with guarded() as server:
        authority = server.authority
        authority.life = 1e-9
        async with deck(server.url, person, tmp_path) as one:
            await one.watcher.until(WEB, S.STARTING, S.NEEDS_SIGN_IN)
            await one.sign_in()
            record = await one.session.record()
            assert record is not None
            assert record.expires_at is not None
            await one.ready()
        one.sign_ins.store.save(record.model_copy(update={"expires_at": 1.0}))
        server.seen.clear()
        async with deck(server.url, person, tmp_path) as two:
            await two.ready()
        assert record.access_token not in server.seen
        assert len(authority.refreshes()) == 1


async def test_a_client_that_is_known_no_longer_registers_anew(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as one:
        authority = one.authority
        authority.tokens.clear()
        authority.refreshers.clear()
        assert not await one.session.refused(Challenge(), await one.session.signature(), 0)
        authority.fails = [401]
        with pytest.raises(AuthError):
            await one.sign_ins.sign_in(one.definition)
        assert len(authority.clients) == 1
        await one.sign_ins.sign_in(one.definition)
        assert len(authority.clients) == 2


async def test_over_sse_the_token_is_a_parameter_where_the_entry_names_one(tmp_path: Path) -> None:
    async with unsigned(folder=tmp_path, token_param_name="access_token") as (_, sign_ins, http):
        for definition in (replace(http, transport=Transport.SSE), http):
            await sign_ins.sign_in(definition)
            signature = await token_session(sign_ins, definition).signature()
            is_sse = definition.transport is Transport.SSE
            assert dict(signature.query) == ({"access_token": signature.token} if is_sse else {})
            assert ("authorization" in signature.headers) is not is_sse


async def test_a_token_is_refreshed_once_given_up_and_revoked(tmp_path: Path) -> None:
    async with connected(tmp_path) as (server, one):
        authority = server.authority
        authority.tokens.clear()
        authority.slow = 0.05
        assert await asyncio.gather(*(one.echo() for _ in range(20))) == ["hi"] * 20
        [refresh] = authority.refreshes()
        assert refresh["resource"] == server.url
        authority.tokens.clear()
        authority.fails = [503]
        with pytest.raises(Exception, match="authorization server failed"):
            await one.echo()
        assert await one.echo() == "hi", "an endpoint that fails for a while costs no sign-in"
        assert one.watcher.last(WEB).status is S.READY
        assert len(one.person.opened) == 1
        authority.tokens.clear()
        authority.refreshers.clear()
        one.manager.restart(WEB)
        await one.connect()
        assert len(authority.clients) == 1, "the registered client is used again"
        assert "revoked" in await one.sign_ins.sign_out(one.definition)
        assert len(authority.revoked) == 2
        assert FIXTURE_SECRET not in (tmp_path / "sign-ins.json").read_text()
        one.manager.restart(WEB)
        await one.connect()
        assert "were not" not in await one.sign_ins.sign_out(one.definition)
        assert "were not" in await one.sign_ins.sign_out(one.definition)


async def test_without_a_browser_the_address_where_it_ended_is_pasted() -> None:
    ends: list[str] = []

    async def elsewhere(url: str) -> bool:
        ends.append(url)
        return False

    person = Person(browser=elsewhere)
    async with guarded() as server, deck(server.url, person) as one:
        await one.watcher.until(WEB, S.STARTING, S.NEEDS_SIGN_IN)
        signing_in = asyncio.create_task(one.sign_in())
        await eventually(lambda: person.asked and person.asked[-1].problem)
        assert "No browser" in person.asked[-1].problem
        end = (await walk_through(ends[0], comes_back=False)).headers["location"]
        question = person.asked[-1].id
        person.desk.answer(question, Reply(ReplyAction.ACCEPT, text="https://x/?state=no&code=1"))
        await eventually(lambda: "another sign-in" in person.asked[-1].problem)
        person.desk.answer(question, Reply(ReplyAction.ACCEPT, text=f"  {end}\n"))
        await signing_in
        await one.ready()


async def test_cancelling_ends_it_and_the_port_is_free_again() -> None:
    person = Person(reply=lambda _: Reply(ReplyAction.CANCEL))
    settings = oauth()
    async with guarded() as server, deck(server.url, person, sign_in=settings) as one:
        await one.watcher.until(WEB, S.STARTING, S.NEEDS_SIGN_IN)
        for _ in range(2):
            with pytest.raises(AuthError, match="cancelled"):
                await one.sign_in()
        assert not person.opened
        person.reply = lambda _: Reply(ReplyAction.ACCEPT)
        await one.sign_in()
        assert settings.oauth.redirect_uri in unquote(person.opened[0])
        assert len(server.authority.clients) == 1, "a client that was not used is used later"


async def test_a_call_that_lacks_a_scope_asks_for_it_and_goes_on() -> None:
    async with connected(call_scope="write") as (server, one):
        assert await one.echo() == "hi"
        scopes = [request.scopes for request in one.person.asked if not request.problem]
        assert scopes == [("read",), ("read", "write")]
        assert len(server.calls()) == 2, "refused, and sent again"


async def test_a_server_that_never_has_enough_scopes_is_given_up_after_two_sign_ins() -> None:
    async with connected(call_scope="write") as (server, one):
        server.authority.most = "read"
        with pytest.raises(Exception, match="still refuses this for lack of scopes"):
            await one.echo()
        assert len(one.person.opened) == 3
        assert one.watcher.last(WEB).status is S.READY


async def test_the_token_wins_over_a_header_of_the_entry_with_a_word() -> None:
    person = Person()
    headers = {"Authorization": f"Bearer {FIXTURE_SECRET}old"}
    async with guarded() as server, deck(server.url, person, headers=headers) as one:
        await one.watcher.until(WEB, S.STARTING, S.NEEDS_SIGN_IN)
        assert server.seen[0].endswith("old")
        await one.sign_in()
        await one.ready()
        assert server.seen[-1] in server.authority.tokens
        words = "instead of the Authorization"
        await eventually(lambda: any(words in line for line in one.watcher.log(WEB)))


async def test_sign_in_can_be_turned_off() -> None:
    person = Person()
    off = oauth(enabled=False)
    async with guarded() as server, deck(server.url, person, sign_in=off) as one:
        assert (await one.fails(S.FAILED)).advice.startswith("Remove oauth.enabled from its entry")
        with pytest.raises(AuthError, match="forbids"):
            await one.sign_in()
        assert one.sign_ins.credentials(one.definition) is None, "whatever is kept of it"
    assert not person.asked


async def test_two_servers_are_asked_about_in_turn() -> None:
    person = Person(reply=lambda _: None)
    async with guarded() as a, guarded() as b, deck(a.url, person) as one:
        await one.watcher.until(WEB, S.STARTING, S.NEEDS_SIGN_IN)
        other = altered(one.definition, id=ServerId("other"), url=b.url)
        both = [asyncio.create_task(one.sign_ins.sign_in(d)) for d in (one.definition, other)]
        await eventually(lambda: person.asked)
        await asyncio.sleep(0.1)
        assert len(person.asked) == 1
        person.desk.answer(person.asked[0].id, Reply(ReplyAction.CANCEL))
        await eventually(lambda: len(person.asked) == 2)
        person.desk.answer(person.asked[1].id, Reply(ReplyAction.CANCEL))
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        assert all(isinstance(outcome, AuthError) for outcome in outcomes)


async def test_two_accounts_of_one_server_sign_in_and_out_apart(tmp_path: Path) -> None:
    person = Person()
    async with guarded() as server:
        named = {
            name: altered(define(server.url, sign_in=oauth(account=name)), id=ServerId(name))
            for name in "ab"
        }
        sign_ins = make_sign_ins(person, tmp_path)
        for name, one in named.items():
            assert f"{name} (account {name})" in await sign_ins.sign_in(one)
            assert any(f"you call {name}" in note for note in person.asked[-1].notes)
        tokens = [(await token_session(sign_ins, one).signature()).token for one in named.values()]
        assert len({*tokens, ""}) == 3
        assert "revoked" in await sign_ins.sign_out(named["a"])
        await sign_ins.aclose()
        again = make_sign_ins(person, tmp_path)  # another run
        left = [(await token_session(again, one).signature()).token for one in named.values()]
        assert left == ["", tokens[1]]
        await again.aclose()


async def test_a_locked_store_stops_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: object) -> None:
        raise CredentialError("The keyring cannot be read.", advice="Unlock the keyring.")

    monkeypatch.setattr(TokenStore, "find", locked)
    async with guarded() as server, RawServer() as other:
        async with deck(other.url, Person(), tmp_path) as one:
            await one.ready()
        async with deck(server.url, Person(), tmp_path) as two:
            failure = await two.fails(S.RETRYING)
            assert "keyring cannot be read" in failure.reason
            assert failure.advice == "Unlock the keyring."


async def test_a_locked_keyring_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked() -> bool:
        raise CredentialError("The keyring did not answer.", advice="Unlock the keyring.")

    monkeypatch.setattr("tui.engine.sign_in.token_store.uses_keyring", locked)
    google = SignInSettings(provider=AuthProviderType.GOOGLE_CREDENTIALS)
    async with unsigned(folder=tmp_path) as (_, sign_ins, definition):
        for one in (definition, altered(definition, sign_in=google)):
            with pytest.raises(AuthError, match="did not answer"):
                await sign_ins.sign_in(one)


async def test_client_credentials_need_nobody_where_the_settings_say_whom_to_ask() -> None:
    person = Person()
    async with guarded() as server:
        who = {"client_id": "robot", "client_secret": f"{FIXTURE_SECRET}robot"}
        settings = oauth(grant_type="client_credentials", issuer=server.authority.issuer, **who)
        server.authority.metadata = {
            "code_challenge_methods_supported": None,
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
        async with deck(server.url, person, sign_in=settings) as one:
            await one.ready()
        assert server.authority.forms[0]["client_secret"] == f"{FIXTURE_SECRET}robot"
    assert not person.asked


async def test_the_settings_override_what_the_server_says() -> None:
    person = Person()
    async with guarded(publishes=False) as server:
        issuer = server.authority.issuer
        settings = oauth(
            client_id="known",
            authorization_url=f"{issuer}/authorize?tenant=1",
            token_url=f"{issuer}/token",
            scopes=["a", "b"],
            audiences=["https://aud.example"],
        )
        server.authority.clients["known"] = {"redirect_uris": [settings.oauth.redirect_uri]}
        async with deck(server.url, person, sign_in=settings) as one:
            await one.connect()
        [asked] = server.authority.asked
        assert asked["tenant"] == "1"
        assert (asked["client_id"], asked["scope"]) == ("known", "a b")
        assert asked["audience"] == server.authority.forms[0]["audience"] == "https://aud.example"
        assert set(server.authority.clients) == {"known"}


OTHER: Final = """
import asyncio, json, sys
from pathlib import Path
from tests.unit.engine.sign_in.support import Person, make_sign_ins, oauth
from tests.unit.engine.mcp.network.support import define

async def main(url, folder):
    sign_ins = make_sign_ins(Person(), Path(folder))
    credentials = sign_ins.credentials(define(url, sign_in=oauth()))
    print("ready", flush=True)
    sys.stdin.readline()
    signature = await credentials.signature()
    await sign_ins.aclose()
    print(json.dumps(signature.token), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_refresh_a_rotating_token_once(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as one:
        one.sign_ins.store.save(one.due)
        one.authority.slow = 0.3
        others = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", OTHER, one.server.url, str(tmp_path)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        for other in others:
            assert other.stdout is not None
            assert await other.stdout.readline() == b"ready\n"
        ended = await asyncio.gather(*(other.communicate(b"go\n") for other in others))
        tokens = {json.loads(out) for out, _ in ended}
        assert len(one.authority.refreshes()) == 1
        assert len(tokens) == 1
        assert tokens <= set(one.authority.tokens)
        assert one.kept is not None
        assert one.kept.refresh_token in one.authority.refreshers


async def test_a_token_not_kept_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with signed_in(tmp_path) as one:
        await one.session.take(one.due)
        with monkeypatch.context() as full:
            no_room = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            full.setattr("tui.engine.files.atomic.write_private", no_room)
            for _ in range(2):
                signature = await one.session.signature()
                assert signature.token in one.authority.tokens
                assert await one.session.refused(Challenge(401), signature, 0)
                full.setattr("tui.engine.sign_in.token_store.locked", no_room)
        signature = await one.session.signature()
        assert await one.session.refused(Challenge(401), signature, 0)
        assert one.kept is not None
        assert one.kept.access_token in one.authority.tokens


@pytest.mark.parametrize("jump", [-3_600, 86_400])
@pytest.mark.parametrize("refreshes", [True, False])
async def test_a_clock_that_jumps_costs_no_sign_in(
    jump: int, refreshes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with signed_in(tmp_path) as one:
        if not refreshes:
            await one.session.take(one.record.model_copy(update={"refresh_token": ""}))
        now = time.time() + jump
        monkeypatch.setattr(time, "time", lambda: now)
        signature = await one.session.signature()
        assert signature.token in one.authority.tokens
        assert len(one.authority.refreshes()) == (jump > 0 and refreshes)
        assert (await one.session.signature()).token == signature.token
        one.authority.tokens.clear()
        is_refreshed = await one.session.refused(Challenge(401), signature, 0)
        assert is_refreshed is refreshes
        assert ((await one.session.signature()).token in one.authority.tokens) is refreshes


async def test_a_cancelled_sign_in_does_not_hide_what_another_gemdeck_got(tmp_path: Path) -> None:
    refusing = Person(reply=lambda _: Reply(ReplyAction.CANCEL))
    async with unsigned(refusing, tmp_path) as (server, late, definition):
        assert await token_session(late, definition).record() is None
        first = make_sign_ins(Person(), tmp_path)
        await first.sign_in(definition)
        with pytest.raises(AuthError, match="cancelled"):
            await late.sign_in(definition)
        kept = late.store.find(definition)
        assert kept is not None
        assert kept.access_token in server.authority.tokens
        assert len(server.authority.clients) == 1
        await first.aclose()


async def test_a_token_of_another_gemdeck_counts_and_is_refreshed(tmp_path: Path) -> None:
    context = ClientContext()
    async with signed_in(tmp_path, context) as one:
        theirs = f"{FIXTURE_SECRET}theirs"
        await one.session.take(one.due)
        one.sign_ins.store.save(one.record.model_copy(update={"access_token": theirs}))
        assert (await one.session.signature()).token == theirs
        assert theirs not in context.redactor.redact_known(theirs)
        await one.session.take(one.due.model_copy(update={"refresh_token": "old"}))
        one.sign_ins.store.save(one.due.model_copy(update={"access_token": f"{theirs}, due"}))
        assert (await one.session.signature()).token in one.authority.tokens
        [refresh] = one.authority.refreshes()
        assert refresh["refresh_token"] == one.record.refresh_token


async def test_giving_up_loses_no_token_and_signing_out_wins(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as one:
        one.authority.slow = 0.2
        await one.session.take(one.due)
        asking = asyncio.create_task(one.session.signature())
        await eventually(one.authority.refreshes)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await one.sign_ins.aclose()
        kept = one.kept
        assert kept is not None
        assert kept.refresh_token in one.authority.refreshers
        await one.session.take(kept.model_copy(update={"expires_at": 1.0}))
        refreshing = asyncio.create_task(one.session.signature())
        await eventually(lambda: len(one.authority.refreshes()) == 2)
        await one.sign_ins.sign_out(one.definition)
        await asyncio.gather(refreshing, return_exceptions=True)
        assert (await one.session.signature()).token == ""
        assert one.kept is None
        assert not one.authority.refreshers


@pytest.mark.writes_secrets("sign-ins.json", "token")
async def test_a_workload_signs_in_with_the_token_that_its_file_has_then(tmp_path: Path) -> None:
    file, person = tmp_path / "token", Person()
    settings = {"grant_type": "identity_assertion", "client_id": "pod"}
    async with guarded() as server:
        authority = server.authority
        sign_in = oauth(**settings, issuer=authority.issuer, identity_token_file=str(file))
        authority.assertions, authority.grants = [f"{FIXTURE_SECRET}one"], {"refresh_token": None}
        async with deck(server.url, person, tmp_path / "state", sign_in=sign_in) as one:
            words = f"identityTokenFile {file} cannot be read: No such file"
            assert words in (await one.fails(S.RETRYING)).reason
            file.write_text(f"{FIXTURE_SECRET}one\n")
            one.manager.restart(WEB)
            await one.ready()
            [form] = authority.forms
            assert (form["assertion"], form["client_id"]) == (f"{FIXTURE_SECRET}one", "pod")
            file.write_text(f"{FIXTURE_SECRET}two")
            authority.tokens.clear()
            authority.assertions = [f"{FIXTURE_SECRET}two"]
            assert await one.echo() == "hi"
            assert [form["assertion"][-3:] for form in authority.forms] == ["one", "two"]
            authority.tokens.clear()
            for content, words in (("a b", "contains no token"), ("x" * 20_000, "larger than")):
                file.write_text(content)
                with pytest.raises(AuthError, match=words):
                    await one.sign_ins.sign_in(one.definition)
            os.mkfifo(tmp_path / "pipe")
            pipe = oauth(**settings, identity_token_file=str(tmp_path / "pipe"))
            with pytest.raises(AuthError, match="not a regular file"):
                await one.sign_ins.sign_in(altered(one.definition, sign_in=pipe))
            assert len(authority.forms) == 2
        assert person.asked == []


@pytest.mark.writes_secrets("sign-ins.json", "credentials.json")
async def test_a_clients_secret_is_read_at_the_sign_in_alone(tmp_path: Path) -> None:
    SecretStore(tmp_path, pytest.fail).set("client", f"{FIXTURE_SECRET}client")
    settings = {"grant_type": "client_credentials", "client_id": "me"}
    async with guarded() as server:
        issuer = server.authority.issuer
        sign_in = oauth(**settings, issuer=issuer, client_secret="${keyring:client}")
        named = frozenset({"client"})
        async with deck(server.url, Person(), tmp_path, sign_in=sign_in, named=named) as one:
            await one.ready()
            assert server.authority.forms[0]["basic"] == f"me:{FIXTURE_SECRET}client"
            secret = one.session.definition.endpoint.sign_in.oauth.client_secret
            assert secret is not None
            assert secret.get_secret_value() == "${keyring:client}"
