"""Where tokens are kept and for which server they count; gemini-cli's are taken over by address."""

import json
from pathlib import Path
from threading import Thread

import pytest

from tests.support.leaks import FIXTURE_SECRET
from tests.support.rows import row
from tests.unit.engine.mcp.network.support import define
from tests.unit.engine.sign_in.support import Person, guarded, make_sign_ins, oauth, token_session
from tests.unit.engine.test_credentials import MemoryKeyring, ring
from tui.engine.definitions.definition import SignInSettings
from tui.engine.keys.key_store import SERVICE, CredentialError, KeyringPlace, KeyStore
from tui.engine.sign_in import token_store
from tui.engine.sign_in.sign_in_record import AuthError, SignInRecord, canonical_address
from tui.model.settings import OAuthSettings

__all__ = ["ring"]

URL = "https://mcp.example/one"
RECORD = SignInRecord(
    server=URL,
    issuer="https://as.example",
    resource=URL,
    client_id="me",
    access_token=f"{FIXTURE_SECRET}a",
    refresh_token=f"{FIXTURE_SECRET}r",
    expires_at=5.0,
)
kept_there = pytest.mark.writes_secrets(token_store.FILE_NAME)


@kept_there
def test_a_sign_in_is_found_by_the_server_and_not_by_its_name(tmp_path: Path) -> None:
    token_store.TokenStore(tmp_path).save(RECORD)
    store = token_store.TokenStore(tmp_path)
    assert store.find(define(URL)) == RECORD
    assert store.find(define("HTTPS://MCP.example:443/one#x")) == RECORD
    for other in ("https://mcp.example/two", "http://mcp.example/one", "https://evil.example/one"):
        assert store.find(define(other)) is None
    assert "private file" in store.place


@kept_there
@pytest.mark.parametrize(
    ("settings", "fits"),
    [
        *(({}, True), ({"issuer": "https://as.example/"}, True)),
        *(({"issuer": "https://other.example"}, False), ({"client_id": "me"}, True)),
        *(({"client_id": "you"}, False), ({"client_id": "https://me.example/client.json"}, False)),
        ({"token_url": "https://other.example/token"}, False),
        *(({"account": "work"}, False), ({"client_id": "me", "account": "work"}, False)),
        ({"client_id": "you", "is_registered": True}, False),
        ({"client_id": "me", "is_registered": True}, True),
        ({"client_id": "https://me.example/client.json", "is_registered": True}, True),
    ],
)
def test_a_sign_in_counts_with_its_settings_only(
    tmp_path: Path, settings: dict[str, object], fits: bool
) -> None:
    store, settings = token_store.TokenStore(tmp_path), dict(settings)
    is_registered = settings.pop("is_registered", False)
    store.save(RECORD.model_copy(update={"is_registered": is_registered}))
    sign_in = SignInSettings(OAuthSettings.model_validate(settings))
    assert (store.find(define(URL, sign_in=sign_in)) is not None) is fits


@kept_there
def test_each_account_has_its_own_and_neither_takes_the_others(tmp_path: Path) -> None:
    names = ("", "work", "home")
    kept = {name: RECORD.model_copy(update={"account": name, "scope": name}) for name in names}
    store = token_store.TokenStore(tmp_path)
    servers = {name: define(URL, sign_in=oauth(account=name)) for name in names}
    for name, record in kept.items():
        assert store.find(servers[name]) is None
        store.save(record)
        assert store.find(servers[name]) == record
    store.forget(kept["work"])
    assert [store.find(servers[name]) for name in names] == [kept[""], None, kept["home"]]


@kept_there
def test_issuer_resource_and_client_each_have_their_own(tmp_path: Path) -> None:
    store = token_store.TokenStore(tmp_path)
    parts = ("issuer", "resource", "client_id")
    others = [RECORD.model_copy(update={part: f"https://{part}.example"}) for part in parts]
    for record in (RECORD, *others):
        store.save(record)
    assert len({record.key for record in (RECORD, *others)}) == 4
    assert store.find(define(URL)) == others[-1]
    store.forget(others[-1])
    assert store.find(define(URL)) == others[-2]
    assert all(store.get(record.key) == record for record in (RECORD, *others[:-1]))


@kept_there
def test_only_so_many_are_kept(tmp_path: Path) -> None:
    store = token_store.TokenStore(tmp_path)
    more = range(token_store.MAX_KEPT + 3)
    many = [RECORD.model_copy(update={"client_id": str(n)}) for n in more]
    for record in many:
        store.save(record)
    assert [store.get(record.key) is None for record in many[:4]] == [True] * 3 + [False]


def test_a_keyring_is_used_where_there_is_one(tmp_path: Path, ring: MemoryKeyring) -> None:
    store = token_store.TokenStore(tmp_path)
    store.save(RECORD)
    assert store.place == "the system keyring"
    assert not (tmp_path / token_store.FILE_NAME).exists()
    assert {service for service, _ in ring.kept} == {SERVICE}
    assert token_store.TokenStore(tmp_path).find(define(URL)) == RECORD
    ring.locked = True
    with pytest.raises(CredentialError, match="keyring cannot be read"):
        store.find(define(URL))
    assert not (tmp_path / token_store.FILE_NAME).exists(), "no silent fallback into a file"


def test_two_clients_of_a_server_lose_nothing_to_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ring: MemoryKeyring
) -> None:
    mine, other = RECORD, RECORD.model_copy(update={"client_id": "another"})
    beside = Thread(target=lambda: token_store.TokenStore(tmp_path).save(other))
    read = ring.get_password

    def read_slowly(service: str, username: str) -> str | None:
        found = read(service, username)
        if username.startswith("server:") and beside.ident is None:
            beside.start()
            beside.join(0.2)  # it ends meanwhile, unless it has to wait for us
        return found

    monkeypatch.setattr(ring, "get_password", read_slowly)
    token_store.TokenStore(tmp_path).save(mine)
    beside.join()
    [listed] = [text for (_, user), text in ring.kept.items() if user.startswith("server:")]
    assert {mine.key, other.key} == set(json.loads(listed))


def test_a_keyring_that_hangs_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def hang(*_: object) -> None:
        raise TimeoutError

    monkeypatch.delenv("GEMDECK_HOME")
    monkeypatch.setattr("tui.engine.keys.key_store.within", hang)
    for ask in (
        lambda: token_store.TokenStore(tmp_path).find(define(URL)),
        lambda: token_store.TokenStore(tmp_path).place,
        *(lambda: KeyringPlace("sign-in:1").get(), lambda: KeyStore().get()),
    ):
        with pytest.raises(CredentialError, match="did not answer") as caught:
            ask()
        assert "Unlock the keyring" in caught.value.advice


def test_without_a_state_folder_it_lasts_until_the_end_of_the_run() -> None:
    store = token_store.TokenStore(None)
    store.save(RECORD)
    assert store.find(define(URL)) == RECORD
    assert "this run" in store.place


def test_an_address_has_one_form() -> None:
    whole = "https://mcp.example/A?x=1"
    assert canonical_address("HTTPS://Mcp.Example:443/A?x=1#f") == whole
    assert canonical_address("http://h:8080") == "http://h:8080"
    assert canonical_address("http://[::1]:80/x") == "http://[::1]/x"
    assert canonical_address("https://user@h/x") == "https://h/x"


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
    path = home / token_store.GEMINI_TOKENS
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("content", [NEW, OLD], ids=["new", "old"])
def test_both_shapes_are_read(home: Path, content: object) -> None:
    path = write(home, content)
    before = path.read_bytes()
    record = token_store.gemini_sign_in(home, define("https://MCP.example:443/one"))
    assert record.access_token == TOKEN["accessToken"]
    assert record.refresh_token == TOKEN["refreshToken"]
    assert (record.client_id, record.scope) == ("gemini", "read write")
    assert record.expires_at == 1_700_000_000
    assert record.is_due
    assert record.token_endpoint == REST["tokenUrl"]
    assert path.read_bytes() == before


def test_what_cannot_be_used_is_said(home: Path) -> None:
    for content, words in [
        *((None, "has no sign-in from gemini-cli"), ("{", "cannot be read")),
        *(("5", "has no sign-in"), ([[], 5, None], "has no sign-in")),
        ([{"token": TOKEN, **REST, "mcpServerUrl": "https://mcp.example/two"}], "has no sign-in"),
        ([{"token": {**TOKEN, "accessToken": "a\nb"}, **REST}], "cannot be sent"),
        ([{"token": {**TOKEN, "refreshToken": "a\nb"}, **REST}], "cannot be sent"),
        ([{"token": TOKEN, **REST, "tokenUrl": "http://evil.example/t"}], "not encrypted"),
        ([{"token": TOKEN, **REST, "tokenUrl": "https://127.0.0.1/t"}], "on this computer"),
    ]:
        if content is not None:
            write(home, content)
        with row(content), pytest.raises(AuthError, match=words):
            token_store.gemini_sign_in(home, define(URL))


def test_what_refreshes_a_token_is_kept_only_with_where_to_send_it(home: Path) -> None:
    write(home, [{"token": {**TOKEN, "refreshToken": "a\nb"}, **REST, "tokenUrl": ""}])
    record = token_store.gemini_sign_in(home, define(URL))
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
        session = token_session(sign_ins, definition)
        assert (await session.signature()).token in authority.tokens
        [refresh] = authority.refreshes()
        assert (refresh["client_id"], refresh["resource"]) == ("gemini", server.url)
        await sign_ins.aclose()
        assert sign_ins.store.find(definition) is not None
