"""`gemdeck key`: what is kept of a key, and for which address."""

import io
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.unit.cli.conftest import Run
from tui.cli import key as key_command
from tui.cli.output import ExitCode
from tui.engine.files.paths import state_dir
from tui.engine.keys.key_store import KeyStore

KEY = "a-key-of-no-worth"
GATEWAY = "https://gateway.example"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_command, "_read_key", lambda: KEY)


@pytest.mark.usefixtures("typed")
def test_a_key_is_kept_shown_without_itself_and_forgotten(run: Run) -> None:
    assert run("key", "show").code == ExitCode.NO_KEY
    kept = run("key", "set", "--no-check")
    assert (kept.code, "The key is kept in the private file" in kept.stdout) == (0, True)
    assert KeyStore().get() == SecretStr(KEY)
    shown = run("key", "show", "--json")
    assert shown.json["service"] == "Gemini"
    assert shown.json["kept"] is True
    assert KEY not in kept.stdout + shown.stdout
    assert run("key", "forget").stdout == "The key was removed.\n"
    assert run("key", "forget").stdout == "No key is kept for the Gemini API.\n"
    assert run("key", "show").code == ExitCode.NO_KEY


@pytest.mark.usefixtures("typed")
def test_a_key_of_an_address_stands_beside_googles(run: Run) -> None:
    run("key", "set", "--no-check")
    run("key", "set", "--no-check", "--address", f"{GATEWAY}/")
    assert run("key", "show", "--json").json["address"] == GATEWAY
    run("key", "set", "--no-check", "--address", "https://other.example")
    assert KeyStore().get(GATEWAY) is None, "it was replaced"
    assert run("key", "forget").stdout == "https://other.example and its key were forgotten.\n"
    assert run("key", "show", "--json").json["address"] == ""
    refused = run("key", "set", "--no-check", "--address", "http://gateway.example")
    assert (refused.code, "https" in refused.stderr) == (ExitCode.ERROR, True)


@pytest.mark.usefixtures("typed")
@pytest.mark.parametrize("command", [("set", "--no-check"), ("forget",)])
def test_an_empty_address_is_refused_and_does_not_stand_for_googles(
    run: Run, command: tuple[str, ...]
) -> None:
    KeyStore().set("googles-key")
    for address in ("", " /"):
        refused = run("key", *command, "--address", address)
        assert (refused.code, "address is empty" in refused.stderr) == (ExitCode.ERROR, True)
    assert KeyStore().get() == SecretStr("googles-key")


def test_a_variable_wins_and_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert run("key", "show").stdout == "Gemini, with credentials from GEMINI_API_KEY.\n"


@pytest.mark.parametrize(
    ("given", "words"), [("", "The key is empty."), ("two words", "has no spaces")]
)
def test_what_is_no_key_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, given: str, words: str
) -> None:
    monkeypatch.setattr(key_command, "_read_key", lambda: given)
    refused = run("key", "set", "--no-check")
    assert (refused.code, words in refused.stderr) == (ExitCode.NO_KEY, True)
    assert not Path(state_dir() / "credentials.json").exists()


def test_a_key_is_typed_in_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    asked: list[str] = []

    def unseen(prompt: str) -> str:
        asked.append(prompt)
        return KEY

    monkeypatch.setattr("click.termui.hidden_prompt_func", unseen)
    assert key_command._read_key() == KEY
    assert len(asked) == 1
