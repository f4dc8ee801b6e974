"""`gemdeck key`, and `mcp auth` where nobody sits at a terminal."""

import asyncio
import io
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from pydantic import SecretStr

from tests.unit.cli.conftest import Run
from tests.unit.engine.mcp.support import eventually
from tui.cli.output import ExitCode
from tui.cli.secret import read_unseen
from tui.cli.servers.server_session import attending
from tui.cli.servers.sign_in import Person
from tui.engine.desk import Desk
from tui.engine.engine import Engine
from tui.engine.files.paths import state_dir
from tui.engine.keys.credentials import KeptService, ServiceStore
from tui.engine.keys.key_store import KeyStore
from tui.model.consent import RequestId
from tui.model.events import Event, RequestRaised
from tui.model.requests import ReplyAction, SignInRequest
from tui.model.servers import ServerId

KEY = "a-key-of-no-worth"
GATEWAY = "https://gateway.example"


def test_a_key_is_kept_shown_without_itself_and_forgotten(run: Run) -> None:
    assert run("key", "show").code == ExitCode.NO_KEY
    kept = run("key", "set", "--no-check", typed=KEY)
    assert (kept.code, "The key is stored in the private file" in kept.stdout) == (0, True)
    assert KeyStore().get() == SecretStr(KEY)
    shown = run("key", "show", "--json")
    assert (shown.json["service"], shown.json["kept"]) == ("Gemini", True)
    assert KEY not in kept.stdout + shown.stdout
    assert run("key", "forget").stdout == "The key was removed.\n"
    assert run("key", "forget").stdout == "No key is stored for the Gemini API.\n"
    assert run("key", "show").code == ExitCode.NO_KEY


def test_a_key_of_an_address_stands_beside_googles(run: Run) -> None:
    run("key", "set", "--no-check", typed=KEY)
    run("key", "set", "--no-check", "--address", f"{GATEWAY}/", typed=KEY)
    assert run("key", "show", "--json").json["address"] == GATEWAY
    run("key", "set", "--no-check", "--address", "https://other.example", typed=KEY)
    assert KeyStore().get(GATEWAY) is None, "it was replaced"
    assert run("key", "forget").stdout == "https://other.example and its key were forgotten.\n"
    assert run("key", "show", "--json").json["address"] == ""
    assert ServiceStore(state_dir(), pytest.fail).get() == KeptService()
    refused = run("key", "set", "--no-check", "--address", "http://gateway.example", typed=KEY)
    assert (refused.code, "https" in refused.stderr) == (ExitCode.ERROR, True)


@pytest.mark.parametrize("command", [("set", "--no-check"), ("forget",)])
def test_an_empty_address_is_refused_and_not_googles(run: Run, command: tuple[str, ...]) -> None:
    KeyStore().set("googles-key")
    for address in ("", " /"):
        refused = run("key", *command, "--address", address)
        assert (refused.code, "address is empty" in refused.stderr) == (ExitCode.ERROR, True)
    assert KeyStore().get() == SecretStr("googles-key")


def test_what_is_no_key_is_refused_and_a_variable_wins_and_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for typed, words in (("", "The key is empty."), ("two words", "has no spaces")):
        refused = run("key", "set", "--no-check", typed=typed)
        assert (refused.code, words in refused.stderr) == (ExitCode.NO_KEY, True)
    assert not Path(state_dir() / "credentials.json").exists()
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert run("key", "show").stdout == "Gemini, with credentials from GEMINI_API_KEY.\n"


def test_a_key_is_typed_in_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    asked: list[str] = []

    def unseen(prompt: str) -> str:
        asked.append(prompt)
        return KEY

    monkeypatch.setattr("click.termui.hidden_prompt_func", unseen)
    assert (read_unseen("API key"), len(asked)) == (KEY, 1)


ADDRESSES: Final[dict[str, Any]] = {
    **{"address": "https://web.example", "host": "as.example", "shown_host": "as.example"},
    **{"issuer": "https://as.example", "url": "https://as.example", "resource": ""},
}
REQUEST: Final = SignInRequest(
    id=RequestId("1"), server=ServerId("web"), scopes=(), notes=(), kept="memory", **ADDRESSES
)


class Terminal(io.StringIO):
    """A terminal on which this is typed before it goes away."""

    def isatty(self) -> bool:
        return True


def sit_down(desk: Desk, *, events: Any = None, says_yes: bool = False) -> Person:  # noqa: ANN401
    engine = SimpleNamespace(desk=desk, events=lambda: events)
    return Person(cast("Engine", engine), says_yes=says_yes)


async def hear(
    answers: list[ReplyAction], *requests: SignInRequest, says_yes: bool = False
) -> None:
    """Ask the person one thing after the other, until all of it is answered."""

    before = len(answers)

    def answered(times: int) -> Callable[[], bool]:
        return lambda: len(answers) == times

    async def asking() -> AsyncIterator[Event]:
        for number, request in enumerate(requests):
            await eventually(answered(before + number))
            yield RequestRaised(request)

    async def sign_in() -> str:
        await eventually(answered(before + len(requests)))
        return ""

    person = sit_down(Desk(lambda _: None), events=asking(), says_yes=says_yes)
    await attending(person.attend(), sign_in())


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[ReplyAction]:
    """Collect what the desk is answered."""
    found: list[ReplyAction] = []
    monkeypatch.setattr(Desk, "answer", lambda *given: found.append(given[-1].action))
    return found


async def test_credentials_that_no_browser_asks_about_need_a_yes(
    monkeypatch: pytest.MonkeyPatch, answers: list[ReplyAction]
) -> None:
    for url, says_yes, allows in [(REQUEST.url, False, True), ("", False, False), ("", True, True)]:
        monkeypatch.setattr("sys.stdin", io.StringIO())
        await hear(answers, replace(REQUEST, url=url), says_yes=says_yes)
        assert answers.pop() is (ReplyAction.ACCEPT if allows else ReplyAction.CANCEL), url
        assert answers == []


async def test_where_it_leads_is_said_first(
    monkeypatch: pytest.MonkeyPatch, answers: list[ReplyAction], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    await hear(answers, REQUEST)
    said = capsys.readouterr().err
    assert "Sign in to web (https://web.example) at as.example.\n" in said
    assert "The code is sent" not in said
    odd = replace(REQUEST, id=RequestId("2"), host="xn--pple-43d.com", shown_host="\u0430pple.com")
    more: dict[str, Any] = {"scopes": ("a", "b"), "notes": ("Look twice.",)}
    facts = {"token_host": "t.example:8", **more}
    await hear(answers, replace(odd, **facts, url="https://as.example/\x1b[2J"))
    said = capsys.readouterr().err
    for words in (
        *("at \u0430pple.com (xn--pple-43d.com).", "The code is sent to t.example:8."),
        *("The authorization server is https://as.example.", "Requested scopes: a, b."),
        *("Look twice.", "Address: https://as.example/"),
    ):
        assert f"{words}\n" in said


async def test_a_terminal_that_goes_away_ends_the_sign_in(
    monkeypatch: pytest.MonkeyPatch, answers: list[ReplyAction]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    await hear(answers, REQUEST, REQUEST)  # the second time an address may be pasted
    assert answers == [ReplyAction.ACCEPT, ReplyAction.CANCEL]


class Broken:
    """The events, for somebody who cannot follow them."""

    def __aiter__(self) -> AsyncIterator[Event]:
        raise OSError("the terminal is gone")


async def test_a_sign_in_does_not_outlive_whoever_answers() -> None:
    ended = asyncio.Event()

    async def sign_in() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    with pytest.raises(OSError, match="the terminal is gone"):
        await attending(sit_down(Desk(lambda _: None), events=Broken()).attend(), sign_in())
    assert ended.is_set()
