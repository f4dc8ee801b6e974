import json
import re
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail, null
from keyring.errors import KeyringLocked
from pydantic import SecretStr

from tests.support.definitions import altered, define_server
from tests.support.rows import row
from tui.engine.engine import Engine, EngineOptions
from tui.engine.files.atomic import write_private
from tui.engine.keys import key_store
from tui.engine.keys.credentials import (
    KeptService,
    ModelAccess,
    Service,
    ServiceStore,
    checked_base_url,
    find_access,
    key_access,
    overruling,
    vertex_access,
    with_file,
)
from tui.engine.keys.key_store import (
    NAMED,
    SERVICE,
    USER,
    CredentialError,
    FilePlace,
    KeyringPlace,
    KeyStore,
)
from tui.engine.keys.secret_store import with_named_secrets
from tui.engine.logs.redaction import Redactor
from tui.model.chat import BackendKind
from tui.model.events import Event, ModelSelected, NoticeRaised
from tui.model.servers import Origin, ServerId, Transport

KEY = "AIzaSyExampleExampleExample"


class MemoryKeyring(KeyringBackend):
    """A keyring in memory; `locked` makes it refuse."""

    priority = 5

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False
        self.check: Callable[[], None] = self._check

    def get_password(self, service: str, username: str) -> str | None:
        self.check()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError

    def _check(self) -> None:
        if self.locked:
            raise KeyringLocked("locked: " + KEY)


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryKeyring]:
    """Put a keyring in memory in the place of the user's, and the state where it usually is."""
    monkeypatch.delenv("GEMDECK_HOME")
    before = keyring.get_keyring()
    ring = MemoryKeyring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


@pytest.fixture
def empty(tmp_path: Path) -> KeyStore:
    return file_store(tmp_path / "credentials.json")


def file_store(path: Path) -> KeyStore:
    return KeyStore(FilePlace(path))


def secret(access: ModelAccess | None) -> str | None:
    assert access is not None
    return access.api_key.get_secret_value() if access.api_key else None


# Which credentials


def test_keys_count_in_the_order_of_the_google_sdk_and_without_any_the_user_has_to_choose(
    empty: KeyStore,
) -> None:
    for nothing in ({}, {"GEMINI_API_KEY": "  ", "GOOGLE_CLOUD_PROJECT": "p"}):
        assert find_access(nothing, empty) is None
    empty.set("stored")
    environ = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}
    ranks = (("", empty.place, "stored"), (" gemini\n", "GEMINI_API_KEY", "gemini"))
    for value, source, key in (*ranks, ("google", "GOOGLE_API_KEY", "google")):
        environ |= {source: value} if value else {}
        found = find_access(environ, empty)
        assert found is not None
        assert (secret(found), found.kind) == (key, BackendKind.GEMINI)
        assert found.source.startswith(source)
    assert found is not None
    assert found.source == "GOOGLE_API_KEY (GEMINI_API_KEY is also set but not used)"
    same = find_access({**environ, "GEMINI_API_KEY": "google"}, empty)
    assert same is not None
    assert same.source == "GOOGLE_API_KEY"


def test_a_project_and_a_location_without_a_key_or_a_switch_mean_vertex(empty: KeyStore) -> None:
    environment = "Vertex environment"
    access = ModelAccess(BackendKind.VERTEX, project="p", source=environment, is_kept=False)
    here, place = replace(access, location="europe-west1"), {"GOOGLE_CLOUD_PROJECT": "p"}
    assert find_access({**place, "GOOGLE_CLOUD_LOCATION": "europe-west1"}, empty) == here
    vertex = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
    for switch, value in product(vertex, ("true", "True", "1")):
        found = find_access({switch: value, "GEMINI_API_KEY": "k", **place}, empty)
        assert found == replace(access, location="global"), (switch, value)


def test_a_switch_that_is_off_chooses_nothing_and_one_that_is_on_takes_a_key(
    empty: KeyStore,
) -> None:
    switch, other = "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"
    for environ, kind in (
        ({other: "false", switch: "true", "GEMINI_API_KEY": "k"}, BackendKind.GEMINI),
        ({switch: "1", "GOOGLE_API_KEY": "k"}, BackendKind.VERTEX),
    ):
        access = find_access(environ, empty)
        assert access is not None
        assert (access.kind, secret(access), access.source) == (kind, "k", [*environ][-1])
    with pytest.raises(CredentialError, match="GOOGLE_CLOUD_PROJECT is not set") as caught:
        find_access({switch: "true"}, empty)
    assert f"unset {switch}" in caught.value.advice


def test_vertex_by_hand_needs_a_project_and_no_location() -> None:
    assert vertex_access({}, " my-project ", "").location == "global"
    for project, location in (("p/../x", "l"), ("p", "evil.example/"), ("", "l")):
        with pytest.raises(CredentialError, match="not a valid name") as caught:
            vertex_access({}, project, location)
        assert "Set GOOGLE_CLOUD_PROJECT" in caught.value.advice


def test_no_secret_of_the_environment_is_quoted_or_in_the_representation(empty: KeyStore) -> None:
    with pytest.raises(CredentialError, match="GEMINI_API_KEY is not an API key") as caught:
        find_access({"GEMINI_API_KEY": "hunter2 hunter2"}, empty)
    assert "hunter2" not in str(caught.value) + caught.value.advice
    for odd, name in (("\u028b", "latin small letter v with hook"), ("\x07", "U+0007".lower())):
        with pytest.raises(CredentialError, match=re.escape(f"this one has: {name}.")):
            find_access({"GEMINI_API_KEY": f"hunter2{odd}"}, empty)
    environ = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "https://h/hunter2"}
    shown = repr(find_access(environ, empty))
    assert not [one for one in (KEY, "hunter2") if one in shown]


# Where the key may go


def test_a_key_may_go_to_https_or_this_machine(empty: KeyStore) -> None:
    https = ("https://gateway.example.com", "https://gateway.example.com:8443/gemini/")
    http = ("http://127.0.0.1:8080", "http://127.8.9.1/", "http://localhost:9", "http://[::1]:80/x")
    for url in (*https, *http):
        access = find_access({"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": f" {url} "}, empty)
        assert access is not None
        assert access.base_url == url


def test_a_key_goes_nowhere_else(empty: KeyStore) -> None:
    for url in [
        *("http://gateway.example.com", "http://127.0.0.1.evil.example"),
        *("http://localhost@evil.example", "https://user:pw@gateway.example.com"),
        *("http://0.0.0.0:80", "ftp://127.0.0.1", "gateway.example.com", "https://"),
        *("https://h:99999", "https://h?x=1", "https://h#x", "https://h/\x00"),
        *("https://h\\@evil.example", "https://h\\.evil.example", "https://exa mple"),
        *("https://\u0435xample.com", "https://h/" + "x" * 3000, "http://[::1"),
    ]:
        environ = {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": url}
        with row(url), pytest.raises(CredentialError, match="GOOGLE_GEMINI_BASE_URL") as caught:
            find_access(environ, empty)
        assert "https" in caught.value.advice, url
        with row(url), pytest.raises(CredentialError):
            key_access(environ, SecretStr("k"), "pasted")


def test_a_file_of_the_users_gives_a_key_and_a_project_and_never_an_address() -> None:
    own = {"GEMINI_API_KEY": "k", "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_GENAI_USE_VERTEXAI": "1"}
    addresses = {"GOOGLE_GEMINI_BASE_URL": "https://h", "GOOGLE_VERTEX_BASE_URL": "https://h"}
    mine = {"GEMINI_API_KEY": "mine"}
    assert with_file({**own, **addresses, "PATH": "."}, mine) == {**own, **mine}


def test_a_key_goes_only_to_the_address_it_was_entered_for(empty: KeyStore) -> None:
    here, there = "https://one.example", "https://two.example/gemini"
    empty.set("google's")
    empty.set("mine", f"{here}/")
    kept = KeptService(Service.ADDRESS, here)

    def found(environ: dict[str, str], kept: KeptService = kept) -> tuple[str, str] | None:
        access = find_access(environ, empty, kept)
        return (access.base_url, secret(access) or "") if access is not None else None

    def at(url: str) -> dict[str, str]:
        return {"GOOGLE_GEMINI_BASE_URL": url}

    assert (found({}), found({}, KeptService())) == ((here, "mine"), ("", "google's"))
    assert found({}, KeptService(Service.ADDRESS, there)) is None, "no other key is tried"
    assert (found(at(there)), found(at(here), KeptService())) == (None, (here, "mine"))
    env = {"GEMINI_API_KEY": "theirs"}
    assert found(env) == ("", "theirs"), "a key of the environment goes to no kept address"
    assert found({**env, **at(there)}) == (there, "theirs")
    assert (overruling({}), overruling(env)) == ("", "GEMINI_API_KEY")
    with pytest.raises(CredentialError, match="stored address is not a safe address"):
        find_access({}, empty, KeptService(Service.ADDRESS, "http://evil.example"))


def test_the_kept_service_is_private_and_read_strictly(tmp_path: Path) -> None:
    said: list[str] = []
    store = ServiceStore(tmp_path, said.append)
    assert store.get() == KeptService()
    choice = KeptService(Service.VERTEX, project="p", location="global")
    store.set(choice)
    file = tmp_path / "service.json"
    assert (ServiceStore(tmp_path, said.append).get(), said) == (choice, [])
    assert file.stat().st_mode & 0o077 == 0
    for unsound in ('"service": "elsewhere"', '"address": 1', '"service": null'):
        file.write_text(f'{{"version": 1, {unsound}}}')
        assert ServiceStore(tmp_path, said.append).get() == KeptService()
    file.chmod(0o666)
    assert ServiceStore(tmp_path, said.append).get() == KeptService()
    assert "service.json is not used" in said[0]


def test_vertex_has_its_own_base_url() -> None:
    environ = {"GOOGLE_GEMINI_BASE_URL": "https://g", "GOOGLE_VERTEX_BASE_URL": "https://v"}
    assert vertex_access(environ, "p", "l").base_url == "https://v"
    assert key_access(environ, SecretStr("k"), "pasted").base_url == "https://g"
    assert checked_base_url("https://h", "X") == "https://h"


# Where the key is kept


@pytest.mark.parametrize("pasted", ["", "  \n", "two words", "a\tb", "a\x1b[0m", "é", "x" * 4_097])
@pytest.mark.usefixtures("ring")
def test_what_cannot_be_a_key_is_refused(empty: KeyStore, pasted: str) -> None:
    for store in (empty, KeyStore(KeyringPlace())):
        with pytest.raises(ValueError, match=r"key|characters") as caught:
            store.set(pasted)
        assert not pasted.strip() or pasted not in str(caught.value)
        assert store.get() is None


@pytest.mark.parametrize("priority", [0.5, 5])
def test_the_keyring_keeps_the_key_without_the_space_around_it(
    ring: MemoryKeyring, priority: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryKeyring, "priority", priority)
    store = KeyStore()
    assert "keyring" in store.place
    assert store.get() is None
    store.set(f"\n {KEY}\r\n")
    assert (ring.kept, store.get()) == ({(SERVICE, USER): KEY}, SecretStr(KEY))
    address = "https://one.example"
    store.set("mine", address)
    assert ring.kept == {(SERVICE, USER): KEY, (SERVICE, f"{USER} {address}"): "mine"}
    assert (store.get(), store.get(address)) == (SecretStr(KEY), SecretStr("mine"))


@pytest.mark.parametrize("signs_in", [False, True])
async def test_a_secret_that_a_server_names_is_masked(ring: MemoryKeyring, signs_in: bool) -> None:
    ring.kept[SERVICE, f"{NAMED}github"] = "hunter2-of-github"
    server = define_server(ServerId("git"), Origin.USER, Transport.STDIO)
    server = altered(server, env={"T": "${keyring:github}"}, named=frozenset({"github"}))
    redactor = Redactor()
    filled = await with_named_secrets(server, redactor, signs_in=signs_in)
    assert redactor.redact("It is hunter2-of-github.") == "It is ***."
    assert (filled.launch.env["T"] == "hunter2-of-github") is not signs_in


def test_a_locked_keyring_says_so_to_who_needs_a_key(ring: MemoryKeyring) -> None:
    store, environ = KeyStore(), {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}
    ring.locked = True
    for action in (store.get, lambda: store.set(KEY)):
        with pytest.raises(CredentialError, match="keyring") as caught:
            action()
        assert "Unlock" in caught.value.advice
        assert KEY not in str(caught.value)
    with pytest.raises(CredentialError):
        find_access({}, store)
    access = find_access(environ, store)
    assert access is not None
    assert access.kind is BackendKind.VERTEX
    assert secret(find_access({"GEMINI_API_KEY": "k"}, store)) == "k"


@pytest.mark.parametrize("backend", [fail.Keyring, null.Keyring])
@pytest.mark.usefixtures("ring")
def test_without_a_keyring_that_keeps_anything_a_private_file_does(
    backend: type[KeyringBackend], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.engine.keys.key_store.state_dir", lambda: tmp_path)
    keyring.set_keyring(backend())
    store = KeyStore()
    assert str(tmp_path) in store.place
    store.set(KEY)
    assert store.get() == SecretStr(KEY)


def test_a_moved_state_folder_keeps_the_key_out_of_the_keyring(
    ring: MemoryKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMDECK_HOME", str(tmp_path / "state"))
    store = KeyStore()
    store.set(KEY)
    assert ring.kept == {}
    file = tmp_path / "state" / "credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"version": 1, USER: KEY}
    assert KeyStore().get() == SecretStr(KEY)
    assert KEY not in store.place


def test_the_file_keeps_what_else_is_in_it_and_without_a_usable_key_has_none(
    tmp_path: Path,
) -> None:
    file = tmp_path / "credentials.json"
    write_private(file, b'{"version": 1, "other": 1}')
    for key in ("one", "two"):
        file_store(file).set(key)
    assert json.loads(file.read_text()) == {"version": 1, "other": 1, USER: "two"}
    keys = ('"gemini-api-key": "k"', '"version": 1, "gemini-api-key": 5')
    contents = ("{", "[]", '{"version": 1, "gemini-api-key": ""}', *(f"{{{key}}}" for key in keys))
    for number, content in enumerate(contents):
        file = tmp_path / f"{number}.json"
        write_private(file, content.encode())
        assert file_store(file).get() is None, content


def test_a_stored_text_that_is_no_key_is_an_error_that_does_not_quote_it(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    write_private(file, json.dumps({"version": 1, USER: "hunter2\nhunter2"}).encode())
    with pytest.raises(CredentialError, match="not a valid API key") as caught:
        file_store(file).get()
    assert "hunter2" not in str(caught.value)


def test_a_file_that_cannot_be_written_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "no folder").touch()
    store = file_store(tmp_path / "no folder" / "credentials.json")
    with pytest.raises(CredentialError, match="cannot be written") as caught:
        store.set(KEY)
    assert "folder" in caught.value.advice
    assert KEY not in str(caught.value)


@pytest.fixture
def hangs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Give what hangs until the end of the test; a keyring is not waited for as long."""
    gate = threading.Event()
    monkeypatch.setattr(key_store, "KEYRING_LIMIT", 0.05)

    def hang() -> None:
        gate.wait(20)

    yield hang
    gate.set()


async def test_a_keyring_that_does_not_answer_counts_as_absent_with_a_notice(
    ring: MemoryKeyring, hangs: Callable[[], None], tmp_path: Path
) -> None:
    ring.check = hangs
    events: list[Event] = []
    async with Engine(EngineOptions(tmp_path), events.append) as engine:
        await engine.start()
    (notice,) = [event.notice for event in events if isinstance(event, NoticeRaised)]
    assert "did not answer" in notice.text
    assert "Unlock the keyring" in notice.advice
    assert "set GEMINI_API_KEY" in notice.advice
    assert [e.model.backend for e in events if isinstance(e, ModelSelected)] == ["demo"]


@pytest.mark.usefixtures("ring")
def test_a_keyring_whose_choice_hangs_is_no_reason_for_a_file(
    hangs: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "get_keyring", hangs)
    with pytest.raises(CredentialError, match="did not answer"):
        KeyStore().set(KEY)
