"""gemini-cli's tokens, in both shapes: taken over by address, and never changed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.mcp.network.support import define
from tests.unit.engine.sign_in.support import Person, guarded, make_sign_ins, oauth
from tui.engine.sign_in.sign_in_record import AuthError
from tui.engine.sign_in.token_store import GEMINI_TOKENS, gemini_sign_in

URL = "https://mcp.example/one"
TOKEN = {
    "accessToken": f"{FIXTURE_SECRET}a",
    "refreshToken": f"{FIXTURE_SECRET}r",
    "tokenType": "Bearer",
    "scope": "read write",
    "expiresAt": 1_700_000_000_000,
}
REST = {"clientId": "gemini", "tokenUrl": "https://as.example/token", "mcpServerUrl": URL}
NEW = [
    {"serverName": "other", "token": {}, "mcpServerUrl": "https://x"},
    {"serverName": "malformed", "token": {}, "mcpServerUrl": "https://[x:port"},
    {"token": TOKEN, **REST},
]
OLD = {"one": {**TOKEN, **REST}}

pytestmark = pytest.mark.writes_secrets("mcp-oauth-tokens.json", "sign-ins.json")


def write(home: Path, content: object) -> Path:
    path = home / GEMINI_TOKENS
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("content", [NEW, OLD], ids=["new", "old"])
def test_both_shapes_are_read(home: Path, content: object) -> None:
    path = write(home, content)
    before = path.read_bytes()
    record = gemini_sign_in(home, define("https://MCP.example:443/one"))
    assert record.access_token == TOKEN["accessToken"]
    assert record.refresh_token == TOKEN["refreshToken"]
    assert (record.client_id, record.scope) == ("gemini", "read write")
    assert record.expires_at == 1_700_000_000
    assert record.is_due
    assert record.token_endpoint == REST["tokenUrl"]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "has no sign-in of gemini-cli's"),
        ("{", "cannot be read"),
        ("5", "has no sign-in"),
        ([[], 5, None], "has no sign-in"),
        ([{"token": TOKEN, **REST, "mcpServerUrl": "https://mcp.example/two"}], "has no sign-in"),
        ([{"token": {**TOKEN, "accessToken": "a\nb"}, **REST}], "cannot be sent"),
        ([{"token": {**TOKEN, "refreshToken": "a\nb"}, **REST}], "cannot be sent"),
        ([{"token": TOKEN, **REST, "tokenUrl": "http://evil.example/t"}], "not encrypted"),
        ([{"token": TOKEN, **REST, "tokenUrl": "https://127.0.0.1/t"}], "on this computer"),
    ],
)
def test_what_cannot_be_used_is_said(home: Path, content: Any, words: str) -> None:  # noqa: ANN401
    if content is not None:
        write(home, content)
    with pytest.raises(AuthError, match=words):
        gemini_sign_in(home, define(URL))


def test_what_refreshes_a_token_is_kept_only_with_where_to_send_it(home: Path) -> None:
    write(home, [{"token": {**TOKEN, "refreshToken": "a\nb"}, **REST, "tokenUrl": ""}])
    record = gemini_sign_in(home, define(URL))
    assert (record.access_token, record.refresh_token) == (TOKEN["accessToken"], "")


@pytest.mark.slow
async def test_a_token_taken_over_is_refreshed_and_kept_as_ours(home: Path, tmp_path: Path) -> None:
    async with guarded() as server:
        authority = server.authority
        authority.refreshers[str(TOKEN["refreshToken"])] = "read"
        rest = {**REST, "tokenUrl": f"{authority.issuer}/token", "mcpServerUrl": server.url}
        write(home, [{"token": TOKEN, **rest}])
        sign_ins = make_sign_ins(Person(), tmp_path)
        definition = define(server.url, sign_in=oauth())
        assert "gemini-cli" in await sign_ins.import_gemini(definition, home)
        credentials = sign_ins.credentials(definition)
        assert credentials is not None
        assert (await credentials.signature()).token in authority.tokens
        [refresh] = authority.refreshes()
        assert (refresh["client_id"], refresh["resource"]) == ("gemini", server.url)
        await sign_ins.aclose()
        assert sign_ins.store.find(definition) is not None
