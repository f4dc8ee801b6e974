"""What comes back from a sign-in: to the listener, and from the token endpoint."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.servers.web import free_port
from tests.support.leaks import FIXTURE_SECRET
from tests.support.rows import row
from tests.unit.engine.sign_in.support import needs_ipv6
from tui.engine.sign_in import token_endpoint
from tui.engine.sign_in.callback import CallbackListener
from tui.engine.sign_in.sign_in_record import AuthError, SignInRecord

STATE = "the-right-state"
PATH = "/oauth/callback"
HOST = "localhost:PORT"
FAMILIES = (socket.AF_INET, socket.AF_INET6)
RIGHT = f"GET {PATH}?code=c&state={STATE} HTTP/1.1"


@asynccontextmanager
async def listening(*, may_move: bool = False, port: int = 0) -> AsyncIterator[CallbackListener]:
    where = f"http://localhost:{port or free_port()}{PATH}"
    async with CallbackListener(where, may_move=may_move) as listener:
        listener.expect(STATE)
        yield listener


async def ask(listener: CallbackListener, head: str, *hosts: str, place: str = "127.0.0.1") -> str:
    """Send a request to an address and give the whole answer; `PORT` in hosts is the right one."""
    port = urlsplit(listener.redirect_uri).port
    reader, writer = await asyncio.open_connection(place, port)
    lines = [f"Host: {host.replace('PORT', str(port))}" for host in hosts]
    writer.write("\r\n".join([head, *lines, "", ""]).encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


async def test_the_answer_is_taken_once() -> None:
    async with listening() as listener:
        answer = await ask(listener, f"GET {PATH}?code=c1&state={STATE}&iss=i HTTP/1.1", HOST)
        assert answer.startswith("HTTP/1.1 200")
        assert "default-src 'none'" in answer
        assert "no-referrer" in answer
        again = await ask(listener, f"GET {PATH}?code=c2&state={STATE} HTTP/1.1", HOST)
        assert again.startswith("HTTP/1.1 400")
        assert (await listener.answer).code == "c1"


async def test_nothing_else_is_taken_and_the_sign_in_goes_on() -> None:
    queries = [
        *("code=c&state=wrong", "error=access_denied&state=wrong", "error=access_denied", "code=c"),
        *(f"code=c&state={STATE}&state={STATE}", f"state={STATE}"),
    ]
    hosts = [
        *("evil.example", "evil.example:PORT", "localhost", "localhost:1", "127.0.0.1:PORT", ""),
        *(f"{HOST},{HOST}", f"{HOST},evil.example"),
    ]
    heads = [f"GET {PATH}?{query} HTTP/1.1" for query in queries] + ["GET"]
    heads += [RIGHT.replace(PATH, other) for other in ("/other", f"http://evil.example{PATH}")]
    heads += [RIGHT.replace("GET", method) for method in ("HEAD", "POST")]
    for head, host in [*((head, HOST) for head in heads), *((RIGHT, host) for host in hosts)]:
        async with listening() as listener:
            answer = await ask(listener, head, *filter(None, host.split(",")))
            assert answer.startswith("HTTP/1.1 400"), head
            assert "evil" not in answer, head
            assert not listener.answer.done(), head
            await ask(listener, RIGHT, HOST.upper())
            assert listener.answer.done(), head


async def test_nothing_of_the_request_is_repeated_to_the_browser() -> None:
    async with listening() as listener:
        words = "%3Cscript%3Ealert(1)%3C/script%3E"
        head = f"GET {PATH}?error=x&error_description={words}&state={STATE} HTTP/1.1"
        answer = await ask(listener, head, HOST)
        assert "script" not in answer
        assert (await listener.answer).description == "<script>alert(1)</script>"


async def test_an_endless_request_is_cut_off() -> None:
    async with listening() as listener:
        port = urlsplit(listener.redirect_uri).port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n" + b"x" * 100_000)
        assert await reader.read() == b""
        writer.close()


@needs_ipv6
async def test_the_browser_returns_to_an_address_at_which_nobody_else_listens() -> None:
    for host, literal, places in [
        ("localhost", "127.0.0.1", ["127.0.0.1", "::1"]),
        ("LOCALHOST", "127.0.0.1", ["127.0.0.1", "::1"]),
        *(("127.0.0.1", "127.0.0.1", ["127.0.0.1"]), ("127.0.0.2", "127.0.0.2", ["127.0.0.2"])),
        ("[::1]", "[::1]", ["::1"]),
    ]:
        port = free_port()
        where = f"http://{host}:{port}{PATH}"
        for may_move, back, heard in ((False, host, places), (True, literal, places[:1])):
            async with CallbackListener(where, may_move=may_move) as listener:
                assert listener.redirect_uri == f"http://{back}:{port}{PATH}", host
                for place in ("127.0.0.1", "127.0.0.2", "::1"):
                    if place in heard:
                        answer = await ask(listener, RIGHT, f"{back}:PORT", place=place)
                        assert "belongs to no sign-in" in answer, host
                    else:
                        with row(host), pytest.raises(ConnectionRefusedError):
                            await ask(listener, RIGHT, f"{back}:PORT", place=place)
        with socket.create_server((places[-1], port), family=FAMILIES[":" in places[-1]]):
            with row(host), pytest.raises(AuthError, match=f"port {port} is in use"):
                await CallbackListener(where, may_move=False).__aenter__()
            if len(places) > 1:  # what was taken already is free again
                socket.create_server((places[0], port)).close()


async def test_it_listens_on_this_computer_only() -> None:
    for where in ["https://localhost:7777/x", "http://192.168.0.1:1/x", "http://evil.example/x"]:
        with row(where), pytest.raises(AuthError, match="not a plain http address of this"):
            CallbackListener(where, may_move=True)


async def test_what_is_pasted_is_read_unless_it_belongs_to_another_sign_in() -> None:
    address = "http://localhost:1/x?code="
    async with listening() as listener:
        for pasted in (
            f"{address}abc&state={STATE}",
            f"  {address}a\n bc&state={STATE}\n",
            *(f"code=abc&state={STATE}", "abc"),
        ):
            assert listener.read_pasted(pasted).code == "abc"
        for pasted, words in (
            *((f"{address}abc&state=other", "another sign-in"), ("", "no code"), ("é", "no code")),
            (f"{address}abc", "another sign-in"),
        ):
            with pytest.raises(AuthError, match=words):
                listener.read_pasted(pasted)


TOKEN = f"{FIXTURE_SECRET}access"
RECORD = SignInRecord(
    server="https://h/mcp",
    issuer="https://as.example",
    resource="https://h/mcp",
    client_id="me",
    token_endpoint="https://as.example/token",
    access_token="old",
    refresh_token="r1",
    scope="read",
)


async def answered(status: int = 200, body: bytes | None = None, **fields: Any) -> SignInRecord:  # noqa: ANN401
    """Refresh with this answer."""
    whole = {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600, **fields}
    kept = {name: value for name, value in whole.items() if value is not None}
    sent = json.dumps(kept).encode() if body is None else body

    async def send(*_: object) -> token_endpoint.AuthResponse:
        return token_endpoint.AuthResponse(status, sent)

    return await token_endpoint.refresh(send, RECORD)


async def test_what_is_left_out_stays_as_it_was() -> None:
    fresh = await answered()
    assert fresh.access_token == TOKEN
    assert (fresh.refresh_token, fresh.scope) == ("r1", "read")
    rotated = await answered(refresh_token="r2", scope="read write", expires_in=None)
    assert (rotated.refresh_token, rotated.scope) == ("r2", "read write")
    assert rotated.expires_at is None


async def test_the_time_of_expiry_is_absolute_and_bounded() -> None:
    for said, least, most in [
        *((3600, 3539, 3541), ("3600", 3539, 3541), (3600.0, 3539, 3541)),
        *(
            (0.001, token_endpoint.MIN_LIFE * 0.9 - 1, token_endpoint.MIN_LIFE),
            (1e300, token_endpoint.MAX_LIFE - 61, token_endpoint.MAX_LIFE),
        ),
    ]:
        fresh = await answered(expires_in=said)
        assert fresh.expires_at is not None, said
        assert least <= fresh.expires_at - time.time() <= most, said


async def test_an_absurd_time_of_expiry_is_none_and_costs_no_token() -> None:
    for said in (-1, 0, "", "soon", "nan", True, [1], {"a": 1}):
        fresh = await answered(expires_in=said)
        assert (fresh.expires_at, bool(fresh.access_token)) == (None, True), said


async def test_a_malformed_token_is_refused() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        *(({"access_token": ""}, "cannot be sent"), ({"access_token": 1.5}, "cannot be sent")),
        ({"access_token": 5}, "cannot be sent"),
        ({"access_token": "a\r\nX-Evil: 1"}, "cannot be sent"),
        *(({"access_token": "ü"}, "cannot be sent"), ({"access_token": "a b"}, "cannot be sent")),
        ({"access_token": "a" * 20_000}, "cannot be sent"),
        *(({"refresh_token": "a\n"}, "cannot be sent"), ({"token_type": "mac"}, "unknown type")),
        ({"body": b"<html>"}, "not JSON"),
        ({"body": b'{"expires_in": 1' + b"0" * 500 + b"}"}, "has no access_token|not JSON"),
        ({"status": 302}, "refused .HTTP 302"),
    ]
    for fields, words in rows:
        with row(fields), pytest.raises(AuthError, match=words) as caught:
            await answered(**fields)
        assert FIXTURE_SECRET not in str(caught.value), fields


async def test_only_a_refusal_of_the_credentials_costs_them() -> None:
    for status, error, kind, is_transient in [
        (400, "invalid_grant", token_endpoint.RejectedError, False),
        (401, "invalid_client", token_endpoint.RejectedError, False),
        *((400, "invalid_request", AuthError, False), (500, "invalid_grant", AuthError, True)),
        (429, "slow_down", AuthError, True),
    ]:
        with row(status), pytest.raises(AuthError) as caught:
            await answered(status, error=error, error_description=f"no\x1b[31m {'x' * 999}")
        assert type(caught.value) is kind, status
        assert caught.value.is_transient is is_transient, status
        assert "\x1b" not in caught.value.reason, status
        assert len(caught.value.reason) < 400, status


def test_a_client_authenticates_as_it_was_registered() -> None:
    secret = RECORD.model_copy(update={"client_secret": "s:/ü"})
    ways = ("client_secret_basic", "client_secret_post")
    basic, post = (secret.model_copy(update={"auth_method": way}) for way in ways)
    fields, headers = token_endpoint.authenticated(basic, {"a": "1"})
    assert headers["authorization"] == "Basic bWU6cyUzQSUyRiVDMyVCQw=="
    assert fields == {"a": "1"}
    fields, headers = token_endpoint.authenticated(post, {"a": "1"})
    assert (fields["client_id"], fields["client_secret"]) == ("me", "s:/ü")
    assert "authorization" not in headers
    fields, _ = token_endpoint.authenticated(secret, {"a": "1"})
    assert fields == {"a": "1", "client_id": "me"}
