"""The user's own servers outside the opened folder: what they start with and are told."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World
from tests.servers.web import Exchange, RawServer
from tests.support.definitions import define_server
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.network.support import WEB, define
from tests.unit.engine.mcp.support import Watcher, call, eventually, running
from tui.engine import browser
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.outside import Outside
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager, server_view
from tui.engine.mcp.transports.stdio.launch import environment_names
from tui.model.servers import Origin, ServerId, Transport
from tui.model.servers import ServerStatus as S

CHANGED = "notifications/roots/list_changed"

WITNESS = """
import json, os, pathlib, sys, threading, time
record, gate = sys.argv[1:]
def note(**what):
    with open(record, "a") as file:
        file.write(json.dumps({"pid": os.getpid(), **what}) + "\\n")
def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def rest(id):
    while not os.path.exists(gate):
        time.sleep(0.01)
    say(id=id, result={"content": []})
mode = oct(os.stat(".").st_mode & 0o777)
note(cwd=os.getcwd(), env=dict(os.environ), files=os.listdir(), mode=mode)
pathlib.Path("left").mkdir()
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method", "answer")
    note(method=method, roots=message.get("result", {}).get("roots"))
    match method:
        case "initialize":
            capabilities = {"tools": {}}
            info = {"name": "witness", "version": "0"}
            result = {"protocolVersion": "2025-06-18", "capabilities": capabilities}
            say(id=id, result={**result, "serverInfo": info})
        case "tools/list":
            schema = {"inputSchema": {"type": "object"}}
            say(id=id, result={"tools": [{"name": n, **schema} for n in ("look", "rest")]})
        case "tools/call" if message["params"]["name"] == "rest":
            threading.Thread(target=rest, args=(id,), daemon=True).start()
        case "tools/call":
            asked = id
            say(id="roots", method="roots/list")
        case "answer":
            say(id=asked, result={"content": []})
        case _ if id is not None:
            say(id=id, error={"code": -32601, "message": "unknown"})
"""
"""Notes how it was started and what it is told, asks for roots, and rests until a file is there."""


@dataclass
class Clone:
    """An opened folder, a server that witnesses, and what runs it."""

    folder: Path
    record: Path
    gate: Path
    context: ClientContext

    def witness(self, **more: Any) -> ServerDefinition:  # noqa: ANN401
        return define_server(
            ServerId("witness"),
            Origin.USER,
            Transport.STDIO,
            command=sys.executable,
            args=("-I", "-S", "-c", WITNESS, str(self.record), str(self.gate)),
            **{"is_outside": True, **more},
        )

    def noted(self, key: str) -> list[Any]:
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        return [line[key] for line in map(json.loads, lines) if line.get(key) is not None]

    @asynccontextmanager
    async def run(
        self, *definitions: ServerDefinition
    ) -> AsyncIterator[tuple[ServerManager, Watcher]]:
        runs = running(*definitions, workspace=self.folder, context=self.context)
        async with runs as (manager, watcher):
            for one in definitions:
                await watcher.until(one.id, S.READY)
            yield manager, watcher

    async def roots(self, manager: ServerManager) -> list[str]:
        """Let the witness ask for roots."""
        before = len(self.noted("roots"))
        await call(manager, "look")
        [roots] = self.noted("roots")[before:]
        return [root["uri"] for root in roots]


@pytest.fixture
def clone(world: World) -> Iterator[Clone]:
    folder = world.home / "clone"
    folder.mkdir()
    outside = Outside(folder, world.home, world.state)
    yield Clone(folder, world.home / "record", world.home / "gate", ClientContext(outside=outside))
    outside.close()


POISON = {
    **{"PYTHONPATH": "{}/src", "NODE_OPTIONS": "--require ./hook.js", "NODE_PATH": "lib"},
    **{"VIRTUAL_ENV": "{}/.venv", "OLDPWD": "/usr", "INIT_CWD": "/usr", "DIRENV_DIR": "-{}"},
    **{"GIT_DIR": "{}/.git", "npm_config_userconfig": "{}/.npmrc", "UV_CONFIG_FILE": "../uv.toml"},
}
"""Variables as an activated environment, runners and shells set them in a folder."""

KEPT = {
    **{"TZ": "Europe/Berlin", "NO_PROXY": "localhost,.example.com", "EDITOR": "vi"},
    **{"XDG_DATA_DIRS": "/usr/share:/usr/local/share", "DOCKER_IMAGE": "owner/repo"},
}
"""Those that may stay."""


def poison(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    places = (".venv/bin", "node_modules/.bin")
    ways = f"{clone.folder}/{places[0]}:{places[1]}::{clone.folder}/{places[1]}:/usr/bin:/bin"
    for name, value in {**POISON, **KEPT, "PWD": "{}", "PATH": ways}.items():
        monkeypatch.setenv(name, value.replace("{}", str(clone.folder)))


async def test_A14_outside_a_server_starts_empty_private_and_without_a_word_of_the_folder(
    clone: Clone, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(clone, monkeypatch)
    monkeypatch.chdir(clone.folder)
    other = replace(clone.witness(), id=ServerId("o/../ther"))
    for _ in range(2):
        async with clone.run(clone.witness(), other) as (manager, _):
            views = [
                server_view(one, manager.catalogs[one.id], ())
                for one in (manager._supervisors.values())
            ]
            assert all(view.is_outside for view in views)
    places = [Path(place) for place in clone.noted("cwd")]
    assert len(set(places)) == 4
    assert {place.parent.parent for place in places} == {world.state / "outside"}
    assert not any(place.exists() for place in places)
    assert clone.noted("files") == [[]] * 4
    assert clone.noted("mode") == ["0o700"] * 4
    for place, env in zip(places, clone.noted("env"), strict=True):
        assert str(clone.folder) not in json.dumps(env)
        assert env["PWD"] == str(place)
        assert env["PATH"] == "/usr/bin:/bin"
        assert env.items() >= KEPT.items()
        assert not env.keys() & POISON.keys()


def test_what_was_left_out_is_named(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(clone, monkeypatch)
    monkeypatch.setenv("BLOCKED_TOKEN", str(clone.folder))
    monkeypatch.delenv("_", raising=False)  # a shell's, which says how Python was started
    own, left_out = clone.witness(env={"GIT_DIR": "/else"}), clone.context.outside.variables[1]
    given, withheld, lost = environment_names(own, os.environ, left_out)
    assert lost == tuple(sorted({*POISON, "PATH"} - {"GIT_DIR"}))
    assert {"PATH", "PWD", "GIT_DIR"} <= {*given}
    assert not {*given} & (POISON.keys() - {"GIT_DIR"})
    assert "BLOCKED_TOKEN" in withheld
    assert environment_names(replace(own, is_outside=False), os.environ, left_out)[2] == ()


async def test_A14_a_place_elsewhere_is_the_users_word_and_the_variables_go_all_the_same(
    clone: Clone, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(clone, monkeypatch)
    async with clone.run(clone.witness(cwd=world.home)):
        pass
    assert clone.noted("cwd") == [str(world.home)]
    [env] = clone.noted("env")
    assert (env["PWD"], env.get("VIRTUAL_ENV")) == (str(world.home), None)
    assert (world.home / "left").is_dir()
    assert not (world.state / "outside").exists()


async def test_A14_only_with_the_yes_a_server_gets_the_folder_and_moves_when_its_calls_have_ended(
    clone: Clone, world: World
) -> None:
    uri = clone.folder.as_uri()
    async with clone.run(clone.witness()) as (manager, watcher):
        assert await clone.roots(manager) == []
        clone.context.workspaces = (clone.folder, world.home / "more", clone.folder / "sub")
        assert await clone.roots(manager) == [(world.home / "more").as_uri()]
        clone.context.workspaces = (clone.folder,)
        resting = asyncio.create_task(call(manager, "rest"))
        await eventually(lambda: "tools/call" in clone.noted("method")[-1:])
        manager.configure([clone.witness(is_outside=False)])
        await eventually(lambda: CHANGED in clone.noted("method"))
        assert await clone.roots(manager) == [uri]
        assert len(clone.noted("cwd")) == 1
        clone.gate.touch()
        assert not (await resting).is_error
        await watcher.until("witness", S.READY, S.STOPPING, S.STOPPED, S.STARTING, S.READY)
        assert clone.noted("cwd")[1:] == [str(clone.folder)]
        assert await clone.roots(manager) == [uri]
        clone.gate.unlink()
        resting = asyncio.create_task(call(manager, "rest"))
        await eventually(lambda: "tools/call" in clone.noted("method")[-1:])
        told = clone.noted("method").count(CHANGED)
        manager.configure([clone.witness()])
        await eventually(lambda: len(clone.noted("cwd")) == 3)
        await watcher.until("witness", S.READY, S.STOPPING, S.STOPPED, S.STARTING, S.READY)
        assert clone.noted("method").count(CHANGED) == told + 1
        assert Path(clone.noted("cwd")[2]).parent.parent == world.state / "outside"
        assert await clone.roots(manager) == []
        with pytest.raises(ToolCallError, match="was closed during the call"):
            await resting


async def test_A14_a_server_on_the_network_is_told_and_goes_on(clone: Clone) -> None:
    answers: list[list[str]] = []

    async def ask(exchange: Exchange) -> None:
        await exchange.begin(200, content_type="text/event-stream")
        await exchange.event({"id": "roots", "method": "roots/list"})
        await eventually(lambda: server.methods()[-1] == "answer")
        roots = server.requests[-1].message["result"]["roots"]
        answers.append([root["uri"] for root in roots])
        message = {"id": exchange.request.message["id"], "result": {"content": list[str]()}}
        await exchange.event(message)

    async with RawServer({"tools/call": ask}) as server:
        one = define(server.url, is_outside=True)
        async with clone.run(one) as (manager, watcher):
            for times, is_outside in enumerate((True, False, True)):
                manager.configure([replace(one, is_outside=is_outside)])
                await eventually(lambda times=times: server.methods().count(CHANGED) == times)  # type: ignore[misc]
                await call(manager, "echo")
            assert watcher.statuses(WEB) == [S.STARTING, S.READY]
    assert answers == [[], [clone.folder.as_uri()], []]


PRINTS = """
import json, os, sys
with open(sys.argv[1], "a") as file:
    file.write(json.dumps({"cwd": os.getcwd(), "env": dict(os.environ)}) + "\\n")
print("{}")
"""


async def test_A14_a_program_that_prints_headers_starts_where_its_server_may(
    clone: Clone, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(clone, monkeypatch)
    words = ("-I", "-S", "-c", PRINTS, str(clone.record))
    async with RawServer() as server:
        one = define(server.url, is_outside=True, command=sys.executable, args=words)
        async with clone.run(one) as (manager, _):
            manager.configure([replace(one, is_outside=False)])
            server.on["tools/call"] = lambda exchange: exchange.respond(401)
            with pytest.raises(Exception, match="rejects the headers that headersCommand prints"):
                await call(manager, "echo")
    first, second = (Path(place) for place in clone.noted("cwd"))
    assert (first.parent.parent, first.exists()) == (world.state / "outside", False)
    assert str(clone.folder) not in json.dumps(clone.noted("env")[0])
    assert second == clone.folder


async def test_A14_what_opens_addresses_is_found_and_runs_outside_the_folder(
    clone: Clone, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(clone, monkeypatch)
    monkeypatch.chdir(clone.folder)
    tools = world.home / "tools"
    for place, word in ((clone.folder / ".venv" / "bin", "evil"), (tools, "good")):
        place.mkdir(parents=True)
        opener = place / ("open" if sys.platform == "darwin" else "xdg-open")
        opener.write_text(f'#!/bin/sh\necho {word} "$PWD" > {world.home}/record\nenv >> "$0.env"\n')
        opener.chmod(0o755)
    path = f"{clone.folder}/.venv/bin:{tools}:/usr/bin:/bin"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setattr(browser, "OPEN_TIMEOUT", PATIENCE)  # it is to have ended
    assert await browser.open_in_browser("https://example.com/")
    assert clone.record.read_text() == "good /\n"
    assert str(clone.folder) not in (tools / f"{opener.name}.env").read_text()
