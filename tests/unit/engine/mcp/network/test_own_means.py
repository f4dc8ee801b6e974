"""What the user's entry adds to requests: headers that a program prints, and certificates."""

import os
import ssl
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from cryptography.hazmat.primitives import serialization

from tests.servers.authority import Authority, GuardedServer
from tests.servers.web import Exchange, RawServer, SseServer
from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.mcp.network.support import (
    WEB,
    certificate,
    connected,
    define,
    reason,
    refused,
)
from tests.unit.engine.mcp.support import call, eventually, running
from tests.unit.engine.sign_in.support import Person, deck, oauth
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.transports.http import headers_command
from tui.engine.mcp.transports.http.auth_requests import make_send
from tui.engine.mcp.wire.wire import Wire
from tui.engine.sign_in.sign_in_record import AuthError
from tui.model.servers import ServerStatus as S
from tui.model.servers import Transport
from tui.model.settings import TlsSettings

SECRET = f"{FIXTURE_SECRET}printed"

PRINTS = """
import json, os, sys
counter, token = sys.argv[1:]
count = len(open(counter).read()) if os.path.exists(counter) else 0
open(counter, "a").write("x")
print(f"run {count} {token}{count}", file=sys.stderr)
print(json.dumps({"Authorization": f"Bearer {token}{count}", "X-Env": os.environ["OWN"]}, indent=1))
print(sys.stdin.read())
"""
"""Prints a token that tells how often it was asked for one."""


@dataclass
class Turnstile(RawServer):
    """A server that takes one token, and remembers those that came."""

    token: str = ""
    seen: list[str] = field(default_factory=list)

    async def _answer(self, exchange: Exchange) -> None:
        self.seen.append(exchange.request.headers.get("authorization", ""))
        if self.seen[-1] == f"Bearer {self.token}":
            await super()._answer(exchange)
        else:
            await exchange.respond(401)


def printing(script: str, *words: str) -> dict[str, Any]:
    """Say that a Python program prints headers."""
    return {"command": sys.executable, "args": ("-I", "-S", "-c", script, *words)}


async def test_a_program_prints_headers_at_first_and_after_a_401(tmp_path: Path) -> None:
    runs, redactor = tmp_path / "runs", Redactor()
    context = ClientContext(redactor=redactor, wire=Wire(redactor=redactor))
    more = printing(PRINTS, str(runs), SECRET) | {"env": {"OWN": "mine"}}
    async with (
        Turnstile(token=f"{SECRET}0") as server,
        running(define(server.url, **more), context=context) as (manager, watcher),
    ):
        await watcher.until(WEB, S.STARTING, S.READY)
        assert runs.read_text() == "x"
        assert server.requests[0].headers["x-env"] == "mine"
        server.token = f"{SECRET}1"
        assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        assert runs.read_text() == "xx"
        assert server.seen[-2:] == [f"Bearer {SECRET}0", f"Bearer {SECRET}1"]
        server.token = "another"
        with pytest.raises(ToolCallError, match="rejects the headers that headersCommand prints"):
            await call(manager, "echo", {"text": "hi"})
        assert runs.read_text() == "xxx", "once more, and not without end"
        manager.restart(WEB)
        failure = await watcher.fails(WEB, S.STARTING, S.FAILED)
        assert "Run the command yourself" in failure.advice
        await eventually(lambda: "run 4 ***" in watcher.log(WEB))
        assert FIXTURE_SECRET not in str(watcher.events)
        exported = context.wire.export(one.number for one in context.wire.frames())
        assert ("tools/call" in exported, FIXTURE_SECRET in exported) == (True, False)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; sys.exit('no network')", "exited with code 1: no network"),
        ("print('token')", "did not print a JSON object of headers"),
        ("print('[1]')", "did not print a JSON object of headers"),
        ("print('{\"A\": 1}')", "printed a header that is not text"),
        ('print(\'{"A": "s3cr3t-fixture-\\\\n"}\')', "has a header 'A' with characters"),
        ('print(\'{"Content-Length": "3"}\')', "which only the request itself can set"),
        ("print('x' * 70_000)", "printed more than 64 KiB"),
        ("print('x' * 70_000, end='')", "printed more than 64 KiB"),
        ("print('{\"A\": \"s3cr3t-fixture-\"}'); raise SystemExit('s3cr3t-fixture-')", "1: ***"),
        ("import time; time.sleep(60)", "did not finish within"),
    ],
)
async def test_why_none_is_sent(script: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "did not finish" in words:
        monkeypatch.setattr(headers_command, "HEADERS_TIMEOUT", 1.0)
    async with RawServer() as server:
        status, failure = await refused(server.url, **printing(script))
        assert (status in {S.FAILED, S.RETRYING}, server.requests) == (True, [])
    assert words in failure.reason
    assert FIXTURE_SECRET not in str(failure)


async def test_the_last_line_that_a_program_prints_need_not_end() -> None:
    script = "print('{\"Authorization\": \"Bearer mine\"}', end='')"
    async with Turnstile(token="mine") as server, connected(server.url, **printing(script)):
        assert set(server.seen) == {"Bearer mine"}


async def test_a_command_that_is_not_there_is_said_and_no_shell_runs_it(tmp_path: Path) -> None:
    async with RawServer() as server:
        words = await reason(server.url, command=f"touch {tmp_path}/ran")
    assert "its headersCommand command not found: touch" in words
    assert not (tmp_path / "ran").exists()


@dataclass(frozen=True)
class Authorities:
    """Files of an authority of the test's own, a server and a client that it vouches for."""

    authority: Path
    server: Path
    client: Path

    def context(self, *, wants_client: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server)
        if wants_client:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Authorities:
    folder = tmp_path_factory.mktemp("tls")
    authority = certificate(folder, name="authority")
    of = (certificate(folder, name=name, signer=authority) for name in ("server", "client"))
    return Authorities(authority, *of)


@pytest.fixture(autouse=True)
def _own_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share no context, as some trust more than others; it is as Python 3.13 makes it."""

    def strict(**given: bool) -> ssl.SSLContext:
        context = httpcore2._ssl.default_ssl_context(**given)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(httpcore2, "default_ssl_context", strict)


def tls(**given: Path | None) -> TlsSettings:
    return TlsSettings.model_validate({key: str(path) for key, path in given.items() if path})


async def test_a_private_authority_counts_for_its_server_alone(files: Authorities) -> None:
    async with RawServer(tls=files.context()) as server, RawServer(tls=files.context()) as other:
        async with connected(server.url, tls=tls(ca_file=files.authority)) as (manager, _):
            assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        assert "cannot be trusted" in await reason(other.url)
        assert other.requests == []


async def test_a_client_certificate_is_shown_over_http_and_sse(files: Authorities) -> None:
    own = tls(ca_file=files.authority, cert_file=files.client)
    async with RawServer(tls=files.context(wants_client=True)) as server:
        async with connected(server.url, tls=own) as (manager, _):
            assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        came = len(server.requests)
        status, failure = await refused(server.url, tls=tls(ca_file=files.authority))
        assert status is S.RETRYING, failure
        assert len(server.requests) == came
    more = {**printing('print(\'{"X-Own": "mine"}\')'), "tls": own}
    async with (
        SseServer(tls=files.context(wants_client=True)) as sse,
        connected(sse.url, Transport.SSE, **more) as (manager, _),
    ):
        assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        assert {request.headers["x-own"] for request in sse.requests} == {"mine"}


@pytest.mark.writes_secrets("sign-ins.json")
async def test_a_sign_in_has_its_servers_certificates(files: Authorities, tmp_path: Path) -> None:
    own = tls(ca_file=files.authority, cert_file=files.client)
    context = files.context(wants_client=True)
    settings = {"grant_type": "client_credentials", "client_id": "me", "client_secret": SECRET}
    async with (
        Authority(tls=context) as authority,
        GuardedServer(authority=authority, tls=context) as server,
    ):
        sign_in = oauth(**settings, issuer=authority.issuer)
        async with deck(server.url, Person(), tmp_path, sign_in=sign_in, tls=own) as one:
            await one.watcher.until(WEB, S.STARTING, S.READY)
            assert [form["grant_type"] for form in authority.forms] == ["client_credentials"]


async def test_only_hosts_that_the_entry_names_see_the_certificate(files: Authorities) -> None:
    own = tls(ca_file=files.authority, cert_file=files.client)
    async with RawServer(tls=files.context(wants_client=True)) as authority:
        for settings, came in (({}, 0), ({"issuer": authority.url}, 1)):
            sign_in = oauth(**settings)
            asked = define("https://localhost:9/mcp", sign_in=sign_in, tls=own)
            with suppress(AuthError):
                await make_send(asked)("GET", authority.url, {}, None)
            assert len(authority.requests) == came


async def test_a_file_that_cannot_be_used_is_named(files: Authorities, tmp_path: Path) -> None:
    words, pipe = tmp_path / "words", tmp_path / "pipe"
    words.write_text("no certificate")
    os.mkfifo(pipe)
    url = "https://127.0.0.1:9/mcp"
    for given, why in (
        ({"ca_file": tmp_path / "none"}, f"tls.caFile cannot be used: {tmp_path}/none: No such"),
        ({"ca_file": words}, f"tls.caFile cannot be used: {words}: "),
        ({"cert_file": pipe}, f"tls.certFile cannot be used: {pipe}: not a regular file"),
        ({"cert_file": words}, f"tls.certFile cannot be used: {words}: "),
        ({"cert_file": files.client, "key_file": files.server}, "KEY_VALUES_MISMATCH"),
        ({"cert_file": files.client, "key_file": pipe}, "tls.keyFile cannot be used"),
    ):
        status, failure = await refused(url, tls=tls(**given))
        assert (status, why in failure.reason) == (S.FAILED, True), failure
    key = serialization.load_pem_private_key(files.client.read_bytes(), None)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    words.write_bytes(key.private_bytes(*form, serialization.BestAvailableEncryption(b"words")))
    _, failure = await refused(url, tls=tls(cert_file=files.client, key_file=words))
    assert "tls.certFile cannot be used" in failure.reason, "nobody was asked for its password"
