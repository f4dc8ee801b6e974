"""What a token endpoint may answer, and what becomes of it."""

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.leaks import FIXTURE_SECRET
from tui.engine.sign_in.sign_in_record import AuthError, SignInRecord
from tui.engine.sign_in.token_endpoint import (
    MAX_LIFE,
    MIN_LIFE,
    AuthResponse,
    RejectedError,
    authenticated,
    refresh,
)

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

    async def send(_m: str, _u: str, _h: Mapping[str, str], _b: bytes | None) -> AuthResponse:
        return AuthResponse(status, {}, sent)

    return await refresh(send, RECORD)


async def test_what_is_left_out_stays_as_it_was() -> None:
    fresh = await answered()
    assert fresh.access_token == TOKEN
    assert (fresh.refresh_token, fresh.scope) == ("r1", "read")
    rotated = await answered(refresh_token="r2", scope="read write", expires_in=None)
    assert (rotated.refresh_token, rotated.scope) == ("r2", "read write")
    assert rotated.expires_at is None


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        *((3600, 3539, 3541), ("3600", 3539, 3541), (3600.0, 3539, 3541)),
        *((0.001, MIN_LIFE * 0.9 - 1, MIN_LIFE), (1e300, MAX_LIFE - 61, MAX_LIFE)),
    ],
)
async def test_the_time_of_expiry_is_absolute_and_bounded(
    said: object, least: float, most: float
) -> None:
    fresh = await answered(expires_in=said)
    assert fresh.expires_at is not None
    assert least <= fresh.expires_at - time.time() <= most


@pytest.mark.parametrize("said", [-1, 0, "soon", "nan", True, [1], {"a": 1}])
async def test_an_absurd_time_of_expiry_is_refused(said: object) -> None:
    with pytest.raises(AuthError, match=r"makes no sense|not JSON"):
        await answered(expires_in=said)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"access_token": ""}, "cannot be sent"),
        ({"access_token": None}, "cannot be sent"),
        ({"access_token": 5}, "cannot be sent"),
        ({"access_token": "a\r\nX-Evil: 1"}, "cannot be sent"),
        ({"access_token": "ü"}, "cannot be sent"),
        ({"access_token": "a b"}, "cannot be sent"),
        ({"access_token": "a" * 20_000}, "cannot be sent"),
        ({"refresh_token": "a\n"}, "cannot be sent"),
        ({"token_type": "mac"}, "unknown kind"),
        ({"body": b"<html>"}, "not JSON"),
        ({"body": b'{"expires_in": 1' + b"0" * 500 + b"}"}, "cannot be sent|not JSON"),
        ({"status": 302}, "refused .HTTP 302"),
    ],
)
async def test_a_malformed_token_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(AuthError, match=words) as caught:
        await answered(**fields)
    assert FIXTURE_SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error", "kind", "is_transient"),
    [
        (400, "invalid_grant", RejectedError, False),
        (401, "invalid_client", RejectedError, False),
        (400, "invalid_request", AuthError, False),
        (500, "invalid_grant", AuthError, True),
        (429, "slow_down", AuthError, True),
    ],
)
async def test_only_a_refusal_of_the_credentials_costs_them(
    status: int, error: str, kind: type[AuthError], is_transient: bool
) -> None:
    with pytest.raises(AuthError) as caught:
        await answered(status, error=error, error_description=f"no\x1b[31m {'x' * 999}")
    assert type(caught.value) is kind
    assert caught.value.is_transient is is_transient
    assert "\x1b" not in caught.value.reason
    assert len(caught.value.reason) < 400


def test_a_client_authenticates_as_it_was_registered() -> None:
    secret = RECORD.model_copy(update={"client_secret": "s:/ü"})
    fields, headers = authenticated(
        secret.model_copy(update={"auth_method": "client_secret_basic"}), {"a": "1"}
    )
    assert headers["authorization"] == "Basic bWU6cyUzQSUyRiVDMyVCQw=="
    assert fields == {"a": "1"}
    fields, headers = authenticated(
        secret.model_copy(update={"auth_method": "client_secret_post"}), {"a": "1"}
    )
    assert (fields["client_id"], fields["client_secret"]) == ("me", "s:/ü")
    assert "authorization" not in headers
    fields, _ = authenticated(secret, {"a": "1"})
    assert fields == {"a": "1", "client_id": "me"}
