"""Keys of services of chat completions: each goes to its own address, and no project names one."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.fakes.completions import KEY, FakeCompletions
from tests.fakes.gemini_script import Fail, Say
from tests.security.decks import write_settings
from tests.servers.web import HttpServer, answer
from tui.cli.output import ExitCode
from tui.engine.definitions.definition import Inheritance
from tui.engine.files.paths import log_dir
from tui.engine.keys import credentials
from tui.engine.keys.credentials import KeptService, ModelAccess
from tui.engine.keys.key_store import CredentialError, FilePlace, KeyStore
from tui.engine.keys.services import SERVICE_KEYS, WELL_KNOWN, known_services
from tui.model.settings import GemdeckSettings

SECRET = "s3cr3t-fixture-of-a-header"
ALL_KEYS = {variable: f"{KEY}-{variable}" for variable in SERVICE_KEYS}


def reached(name: str, settings: dict[str, object], environ: dict[str, str]) -> ModelAccess:
    """Give how a service of these settings is reached."""
    read = GemdeckSettings.model_validate({"services": settings})
    service = known_services(read, environ)[name]
    return credentials.service_access(service, environ, KeyStore(FilePlace(None)))


def test_I40_each_key_of_the_environment_goes_to_its_own_service_alone() -> None:
    for name, service in WELL_KNOWN.items():
        access = reached(name, {}, ALL_KEYS)
        key = access.api_key.get_secret_value() if access.api_key is not None else ""
        assert key == ALL_KEYS.get(service.variable, ""), name
        given = set(access.headers.values()) & set(ALL_KEYS.values())
        assert given <= {key}, name
        assert access.base_url == service.url


def test_I40_an_entry_under_a_well_known_name_gets_no_key_of_the_environment() -> None:
    for url in ("https://evil.example/v1", "http://127.0.0.1:9/v1"):
        for name in WELL_KNOWN:
            try:
                access = reached(name, {name: {"url": url}}, ALL_KEYS)
            except CredentialError:
                continue
            assert access.api_key is None
            assert access.secrets == frozenset()


def test_I40_another_address_of_the_environment_must_be_safe_and_has_its_own_key() -> None:
    moved = {**ALL_KEYS, "OPENAI_BASE_URL": "https://gateway.example/v1/"}
    assert reached("openai", {}, moved).base_url == "https://gateway.example/v1"
    for url in ("http://gateway.example/v1", "https://user@x/v1", "https://x/v1?a", "ftp://x", "x"):
        with pytest.raises(CredentialError, match="not a safe address"):
            reached("openai", {}, {**ALL_KEYS, "OPENAI_BASE_URL": url})


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1/v1", "https://u:p@x.example/v1", "https://x.example/v1?key=a", "x"]
)
def test_I40_an_address_of_the_settings_is_https_or_on_this_computer(url: str) -> None:
    with pytest.raises(ValueError, match=r"url|address"):
        GemdeckSettings.model_validate({"services": {"x": {"url": url}}})


@pytest.mark.parametrize("name", ["models", "Publishers", "projects", "tunedModels", "a/b", ""])
def test_I40_no_service_takes_the_names_of_geminis_models(name: str) -> None:
    with pytest.raises(ValueError, match="must be a single word"):
        GemdeckSettings.model_validate({"services": {name: {"url": "https://x.example"}}})


@pytest.mark.writes_secrets("credentials.json")
def test_I41_a_key_is_kept_for_one_service_at_one_address() -> None:
    keys = KeyStore()
    keys.set(KEY, "https://one.example/v1", "one")
    assert keys.get("https://one.example/v1/", "one") is not None
    for address, service in (
        *(("https://one.example/v1", ""), ("https://one.example/v1", "two")),
        *(("https://two.example/v1", "one"), ("", "one"), ("", "")),
    ):
        assert keys.get(address, service) is None


def test_I42_no_server_inherits_a_key_of_a_service() -> None:
    for is_small in (True, False):
        passed = Inheritance().of({**ALL_KEYS, "PATH": "/bin"}, is_small=is_small)
        assert set(passed) == {"PATH"}


@pytest.mark.writes_secrets("settings.json")
async def test_I43_a_project_names_no_service_no_model_and_no_key(tmp_path: Path) -> None:
    """Not even one that the user has, by files of its own or by its `.env`."""
    async with FakeCompletions([[Say("here")]]) as fake, HttpServer(handle=answer(200)) as evil:
        entry = {"url": f"{evil.origin}/v1", "key": "$OPENAI_API_KEY", "headers": {"a": "b"}}
        content = {"gemdeck": {"services": {"fake": entry, "new": entry}, "model": "new/x"}}
        folder = tmp_path / "project"
        (folder / ".gemini").mkdir(parents=True)
        (folder / ".gemini" / "settings.json").write_text(json.dumps(content))
        (folder / ".env").write_text(f"OPENAI_BASE_URL={evil.origin}\nOPENAI_API_KEY=x\n")
        write_settings({"gemdeck": {"services": {"fake": {"url": fake.url, "key": KEY}}}})
        trusting = ("--trust-folder", str(folder))
        good = await run("-m", "fake/large", "-p", "hi", *trusting, cwd=folder, code=0)
        assert good.stdout == "here\n"
        assert "has no effect in a project's file" in good.stderr
        environ = {"OPENAI_API_KEY": KEY}
        bad = await run("-p", "hi", *trusting, cwd=folder, env=environ, code=ExitCode.NO_KEY)
        assert "No Gemini API key" in bad.stderr
        assert evil.requests == []


@pytest.mark.writes_secrets("settings.json")
async def test_I44_keys_and_headers_of_services_are_masked_everywhere() -> None:
    async with FakeCompletions() as fake:
        fake.steps = [(Fail(400, f"the key {KEY} with {SECRET} is odd"),)]
        headers = {"x-api-key": SECRET}
        entry = {"url": fake.url, "key": KEY, "headers": headers}
        write_settings({"gemdeck": {"services": {"fake": entry}}})
        said = []
        failed = await run("-m", "fake/large", "-p", "hi", "--debug", code=ExitCode.ERROR)
        assert "[key] with [key]" in failed.stderr
        said += [failed.stderr, *(one.read_text() for one in log_dir().glob("*"))]
        environ = {"GEMINI_MODEL": "fake/large"}
        for command in (
            *(("doctor",), ("doctor", "--json"), ("settings", "show"), ("key", "show")),
            *(("settings", "show", "--json"), ("settings", "check")),
        ):
            result = await run(*command, env=environ)
            said += [result.stdout, result.stderr]
        assert fake.requests[0].headers["x-api-key"] == SECRET
    for text in said:
        assert KEY not in text
        assert SECRET not in text


def test_I45_what_an_administrator_enforces_no_service_evades() -> None:
    access = reached("openai", {}, ALL_KEYS)
    with pytest.raises(CredentialError, match="allows only vertex-ai, but this run uses the serv"):
        credentials.permitted(access, ("vertex-ai", "/etc/gemini-cli/settings.json"))
    settings = GemdeckSettings()
    kept = KeptService(credentials.Service.NAMED, model="openai/x")
    keys = KeyStore(FilePlace(None))
    found = credentials.find_model(settings, {"OPENAI_API_KEY": KEY}, keys, kept)
    assert found is not None
    assert found.model == "openai/x"
    environ = {"OPENAI_API_KEY": KEY, "GEMINI_API_KEY": "another"}
    found = credentials.find_model(settings, environ, keys, kept)
    assert found is not None
    assert found.service is None
    assert os.environ.get("OPENAI_API_KEY") is None
