"""Secrets of a whole run: in no log, no output and no file but the ones that the user wrote."""

import base64
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from tests import servers
from tests.cli.running import process_as_before, run
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Call, Fail, Say
from tests.security.decks import write_settings
from tests.support.leaks import FIXTURE_SECRET
from tui.engine.engine import Engine, EngineOptions
from tui.engine.files.paths import LOG_NAME, log_dir
from tui.engine.logs.log_file import prepare_process
from tui.engine.logs.redaction import Redactor, mask_of
from tui.engine.mcp.wire.trace import TraceFile
from tui.engine.mcp.wire.wire import Wire
from tui.model.servers import ServerId

TOKEN: Final = FIXTURE_SECRET + "of a server/+"
HEADER: Final = FIXTURE_SECRET + "of-a-header"
QUERY: Final = FIXTURE_SECRET + "of-a-query"
RAW: Final = str(Path(servers.__file__).parent / "raw.py")


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    """Put back what a run sets for its process."""
    with process_as_before():
        yield


def define_leaking_servers() -> None:
    """Define servers that let their secrets slip in all they say, and one that is not there."""

    def leaky(*behaviours: str) -> dict[str, object]:
        return {"command": sys.executable, "args": [RAW, *behaviours], "env": {"RAW_TOKEN": TOKEN}}

    servers = {
        "talks": leaky("leaky"),
        "fails": leaky("leaky", "exit"),
        "refuses": leaky("leaky", "unlistable"),
        "web": {
            "httpUrl": f"http://127.0.0.1:9/mcp?key={QUERY}",
            "headers": {"Authorization": f"Bearer {HEADER}"},
        },
    }
    write_settings({"mcpServers": servers})


@pytest.mark.writes_secrets("settings.json")
async def test_I05_no_secret_of_a_run_is_written_or_said(gemini: FakeGemini) -> None:
    """Not even with the most verbose log; the check after each test looks at every file."""
    define_leaking_servers()
    gemini.steps = [
        [Call([("leak", {})])],
        [Fail(400, f"API key {KEY} not valid; header was Bearer {KEY}.")],
    ]
    trace = log_dir().parent / "trace.jsonl"
    options = ("--debug", "--trace", str(trace), "-o", "json", "--allowed-tools", "talks")
    result = await run("-p", "hello", *options, gemini=gemini)
    [call] = result.json["tool_calls"]
    assert f"{mask_of('RAW_TOKEN')} is not accepted" in call["result"]
    assert "API key" in result.json["error"]["message"]
    assert spoken(result.stdout + result.stderr) == []
    traced = trace.read_text()
    assert "*** is not accepted" in traced
    assert "starting with ***" in traced
    assert spoken(traced) == []
    log = log_dir() / LOG_NAME
    log.unlink()
    gemini.steps = [[Say("Hello.")]]
    assert (await run("-p", "hello", "--wait", "0", gemini=gemini)).code == 0
    assert not log.exists() or log.read_bytes() == b"", "without being asked it holds no chatter"


@pytest.mark.parametrize("is_binary", [False, True])
def test_I05_a_trace_loses_a_secret_that_is_learnt_later(tmp_path: Path, is_binary: bool) -> None:
    redactor, file = Redactor(), tmp_path / "trace.jsonl"
    trace = TraceFile(file, redactor, pytest.fail)
    tap = Wire(redactor=redactor, trace=trace).tap(ServerId("s"))
    forms = [TOKEN, quote(TOKEN, safe=""), TOKEN.replace("/", "\\/"), TOKEN.replace("/", "\\u002F")]
    forms += [base64.b64encode(f"{before}{TOKEN}".encode()).decode() for before in ("", "a", "ab")]
    forms += [f"{TOKEN[:4]}{escape}{TOKEN[4:]}" for escape in ("\\u001b[1m", "\\u001b[31m")]
    for form in forms:
        body = f'{{"text": "{form}"}}'.encode()
        tap.received(b"\xff\x00" + body if is_binary else body)
        tap.stderr([body])
    redactor.register(TOKEN)
    trace.close()
    text = file.read_text()
    assert len(text.splitlines()) == 1 + 2 * len(forms)
    assert text.count("***") >= 2 * len(forms)
    assert spoken(text) == []
    assert spoken(text.replace("\\/", "/").replace("\\", "")) == []
    assert FIXTURE_SECRET not in text
    assert FIXTURE_SECRET[4:] not in text


def spoken(text: str) -> list[str]:
    """List the secrets that a text holds, in whatever form."""
    return [
        form
        for secret in (KEY, TOKEN, HEADER, QUERY)
        for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode())
        if form in text
    ]


@pytest.mark.writes_secrets("settings.json")
async def test_I05_what_libraries_log_loses_the_secrets_of_the_settings(
    gemini: FakeGemini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define_leaking_servers()
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
    options = EngineOptions(tmp_path, follow_settings=False, server_patience=0)
    redactor = prepare_process(verbose=True)
    async with Engine(options, lambda _: None, redactor=redactor) as engine:
        await engine.start()
        library = logging.getLogger("some.library")
        for secret in (KEY, TOKEN, HEADER, QUERY):
            encoded = base64.b64encode(f"user:{secret}".encode()).decode()
            library.warning("%r at https://h/?x=%s", {"h": secret}, quote(secret, safe=""))
            library.warning("Authorization: Basic %s", encoded)
            try:
                raise ValueError(secret)
            except ValueError:
                library.exception("failed")
    log = (log_dir() / LOG_NAME).read_text()
    assert log.count("some.library") == 12
    assert spoken(log) == []
    assert "fixture" not in log


def test_I05_secrets_of_the_environment_are_known_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_TOKEN", TOKEN)
    monkeypatch.setenv("SOME_AUTH", "true")
    prepare_process()
    logging.getLogger("some.library").warning("is it true that %s?", TOKEN)
    [line] = (log_dir() / LOG_NAME).read_bytes().splitlines()
    assert json.loads(line)["message"] == "is it true that ***?"


def test_I05_the_opened_folder_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/home/somebody/shop")
    monkeypatch.setenv("XDG_SESSION_DESKTOP", "a-desktop")
    text = "a-desktop of /home/somebody/shop"
    assert prepare_process().redact(text) == text
