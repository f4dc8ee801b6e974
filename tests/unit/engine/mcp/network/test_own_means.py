"""What the user's entry adds to requests: headers that a program prints."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.servers.web import Exchange, RawServer
from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.mcp.network.support import WEB, define, reason, refused
from tests.unit.engine.mcp.support import call, eventually, running
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.transports.http import headers_command
from tui.engine.mcp.wire.wire import Wire
from tui.model.servers import ServerStatus as S

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


async def test_a_program_prints_headers_before_the_first_request_and_again_after_a_401(
    tmp_path: Path,
) -> None:
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
        with pytest.raises(ToolCallError, match="refuses what headersCommand prints"):
            await call(manager, "echo", {"text": "hi"})
        assert runs.read_text() == "xxx", "once more, and not without end"
        manager.restart(WEB)
        failure = await watcher.fails(WEB, S.STARTING, S.FAILED)
        assert "Run the command by hand" in failure.advice
        await eventually(lambda: "run 4 ***" in watcher.log(WEB))
        assert FIXTURE_SECRET not in str(watcher.events)
        exported = context.wire.export(one.number for one in context.wire.frames())
        assert ("tools/call" in exported, FIXTURE_SECRET in exported) == (True, False)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; sys.exit('no network')", "ended with 1: no network"),
        ("print('token')", "printed no JSON object of headers"),
        ("print('[1]')", "printed no JSON object of headers"),
        ("print('{\"A\": 1}')", "printed a header that is no text"),
        ('print(\'{"A": "s3cr3t-fixture-\\\\n"}\')', "its header 'A' holds characters"),
        ("print('x' * 70_000)", "printed more than 64 KiB"),
        ("import time; time.sleep(60)", "did not end within"),
    ],
)
async def test_why_there_are_no_headers_is_said(
    script: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headers_command, "HEADERS_TIMEOUT", 1.0)
    async with RawServer() as server:
        status, failure = await refused(server.url, **printing(script))
        assert (status in {S.FAILED, S.RETRYING}, server.requests) == (True, [])
    assert words in failure.reason
    assert FIXTURE_SECRET not in str(failure)


async def test_a_command_that_is_not_there_is_said_and_no_shell_runs_it(tmp_path: Path) -> None:
    async with RawServer() as server:
        words = await reason(server.url, command=f"touch {tmp_path}/ran")
    assert "its headersCommand command not found: touch" in words
    assert not (tmp_path / "ran").exists()
