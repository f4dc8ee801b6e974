"""Servers that start when they are needed: what is kept of them, who wakes them, how they sleep."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.servers.web import RawServer, answer
from tests.support.definitions import altered
from tests.unit.engine.mcp.network.support import define, stateless
from tests.unit.engine.mcp.staging import Stage, on_stage, orders, pairs
from tests.unit.engine.mcp.support import (
    LATER,
    Running,
    call,
    children,
    eventually,
    find_tool,
    permit,
    refuses,
    running,
    script,
    server_processes,
)
from tui.engine.chats.feature_commands import FeatureCommands
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp import manager as module
from tui.engine.mcp.backoff import RetryPolicy
from tui.engine.mcp.catalog.kept_catalogs import MAX_CATALOG, CatalogStore
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerCallError
from tui.model.events import ResourceRead, ServersConfigured, SubscriptionChanged
from tui.model.servers import ServerId, StartMode
from tui.model.servers import ServerStatus as S

RAW = ServerId("raw")
MARK = "ab" * 32


def lazy(*words: str, name: str = "raw", **more: Any) -> ServerDefinition:  # noqa: ANN401
    """Define a stdio server that starts when it is needed."""
    known: dict[str, Any] = {"fingerprint": MARK, "start": StartMode.LAZY}
    return script(name, *words, **known | more)


@asynccontextmanager
async def dozing(
    folder: Path,
    *definitions: ServerDefinition,
    sleep_after: float = 600,
    retry: RetryPolicy = LATER,
) -> Running:
    """Run servers of which what they offer is kept in a folder."""
    context = ClientContext(catalogs=CatalogStore(folder), sleep_after=sleep_after)
    async with running(*definitions, context=context, retry=retry) as (manager, watcher):
        context.publish = watcher
        yield manager, watcher


async def learn(folder: Path, definition: ServerDefinition) -> None:
    """Run a server once, so that what it offers is kept."""
    async with dozing(folder, definition) as (_, watcher):
        await watcher.until(definition.id, S.STARTING, S.READY)


@asynccontextmanager
async def asleep(folder: Path, definition: ServerDefinition, **more: Any) -> Running:  # noqa: ANN401
    """Run a server that is known and sleeps."""
    await learn(folder, altered(definition, args=definition.launch.args[:1]))
    async with dozing(folder, definition, **more) as (manager, watcher):
        await watcher.until(definition.id, S.STARTING, S.ASLEEP)
        yield manager, watcher


async def test_a_known_server_has_no_process_until_a_call_wakes_it(tmp_path: Path) -> None:
    async with asleep(tmp_path, lazy()) as (manager, watcher):
        await eventually(lambda: children() == [])  # what it was known by is gone
        assert manager.waiting_for() == ()
        assert "echo" in watcher.tools("raw")
        assert manager.instructions() == [(RAW, "Be careful.")]
        assert manager.away_words(RAW) == ""
        configured = watcher.of(ServersConfigured)[0].servers[0]
        assert configured.status is S.STOPPED
        said = await call(manager, "echo", {"text": "hello"})
        assert said.display == "hello"
        assert watcher.statuses("raw") == [S.STARTING, S.ASLEEP, S.STARTING, S.READY]
        assert manager.usage(RAW).starts == 0, "it was woken"
        assert manager.usage(RAW).change == {}, "it offers what was kept"


@pytest.mark.slow
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_nothing_is_sent_to_a_server_over_http_that_sleeps(tmp_path: Path, era: str) -> None:
    on = stateless() if era == "stateless" else {}
    async with RawServer(on) as server:
        web = define(server.url, fingerprint=MARK, start=StartMode.LAZY)
        async with dozing(tmp_path, web) as (_, watcher):
            await watcher.until("web", S.STARTING, S.READY)
        server.requests.clear()
        async with dozing(tmp_path, web, sleep_after=0.2) as (manager, watcher):
            info = await watcher.info("web", S.STARTING, S.ASLEEP)
            assert info.is_stateless is (era == "stateless")
            assert find_tool(manager, "echo") is not None
            assert server.requests == []
            for _ in range(2):
                assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
                await watcher.until("web", S.STARTING, S.READY, S.STOPPING, S.ASLEEP)
        assert len(server.calls()) == 2


async def test_many_calls_at_once_wake_a_server_once(tmp_path: Path) -> None:
    record = tmp_path / "record"
    it = lazy(env={"RAW_RECORD": str(record)})
    async with asleep(tmp_path / "kept", it) as (manager, watcher):
        record.unlink()
        texts = [f"{number}" for number in range(50)]
        results = await asyncio.gather(*(call(manager, "echo", {"text": t}) for t in texts))
        assert [result.display for result in results] == texts
        assert watcher.statuses("raw")[2:] == [S.STARTING, S.READY]
    methods = [json.loads(line)["method"] for line in record.read_text().splitlines()]
    assert methods.count("initialize") == 1
    assert methods.count("tools/call") == 50


async def test_prompts_resources_and_requests_wake_a_server_too(tmp_path: Path) -> None:
    async with asleep(tmp_path, lazy(), sleep_after=0.1) as (manager, watcher):
        with pytest.raises(ServerCallError, match="asleep"):
            manager.features(RAW)  # which is for those that are there
        answered = await (await manager.awake(RAW)).request("ping", {})
        assert "error" in answered
        await watcher.until("raw", S.READY, S.STOPPING, S.ASLEEP)
        with pytest.raises(ServerCallError, match="does not support"):
            await manager.render_prompt(RAW, "none", {})
        assert watcher.statuses("raw")[-2:] == [S.STARTING, S.READY]


@pytest.mark.slow
async def test_a_server_sleeps_without_use_and_keeps_what_it_offers(tmp_path: Path) -> None:
    async with dozing(tmp_path, lazy(), sleep_after=0.1) as (manager, watcher):
        await watcher.until("raw", S.STARTING, S.READY, S.STOPPING, S.ASLEEP)
        await eventually(lambda: server_processes() == [])
        assert find_tool(manager, "echo") is not None
        assert manager.instructions() == [(RAW, "Be careful.")]
        hanging = asyncio.create_task(call(manager, "hang"))
        await watcher.until("raw", S.STARTING, S.READY)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watcher.until("raw", S.ASLEEP), 0.4)
        hanging.cancel()
        await watcher.until("raw", S.STOPPING, S.ASLEEP)


@pytest.mark.slow
async def test_a_server_with_a_resource_that_is_followed_does_not_sleep(tmp_path: Path) -> None:
    says = tmp_path / "says.json"
    says.write_text(json.dumps({"resources": ["memo://a"]}))
    shelf = lazy(str(says), name="library")
    server = shelf.id
    async with dozing(tmp_path / "kept", shelf, sleep_after=0.1) as (manager, watcher):
        await watcher.until(server, S.READY, S.STOPPING, S.ASLEEP)
        async with FeatureCommands(manager, manager._context, watcher) as commands:
            commands.subscribe(server, "memo://a", subscribed=True)
            await eventually(lambda: watcher.of(SubscriptionChanged))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(watcher.until(server, S.ASLEEP), 0.4)
            commands.subscribe(server, "memo://a", subscribed=False)
            await watcher.until(server, S.READY, S.STOPPING, S.ASLEEP)
            commands.read_resource(server, "memo://a")
            await eventually(lambda: watcher.of(ResourceRead))
            assert watcher.of(ResourceRead)[0].failure == ""
            commands.add_folder(str(tmp_path))  # which wakes nobody
            await watcher.until(server, S.READY, S.STOPPING, S.ASLEEP)
            assert watcher.statuses(server).count(S.STARTING) == 3


@pytest.mark.slow
async def test_commands_work_from_sleep_as_from_readiness(tmp_path: Path) -> None:
    async with asleep(tmp_path, lazy()) as (manager, watcher):
        manager.stop(RAW)
        await watcher.until("raw", S.ASLEEP, S.STOPPED)
        assert manager.offered_tools() == ()
        for command in (manager.start, manager.restart):
            command(RAW)
            await watcher.until("raw", S.STARTING, S.READY)
            manager.stop(RAW)
            await watcher.until("raw", S.STOPPING, S.STOPPED)
    for way in ("start", "restart", "disable", "close"):
        async with dozing(tmp_path, lazy()) as (manager, watcher):
            await watcher.until("raw", S.STARTING, S.ASLEEP)
            match way:
                case "disable":
                    manager.set_enabled(RAW, enabled=False)
                    await watcher.until("raw", S.STOPPED, S.DISABLED)
                    assert manager.offered_tools() == ()
                case "start" | "restart":
                    getattr(manager, way)(RAW)
                    await watcher.until("raw", S.ASLEEP, S.STARTING, S.READY)


@pytest.mark.slow
async def test_settings_read_again_wake_replace_and_change_when_it_starts(tmp_path: Path) -> None:
    it = lazy()
    async with asleep(tmp_path, it, sleep_after=0.1) as (manager, watcher):
        manager.configure([altered(it, line=7)])
        assert watcher.statuses("raw")[-1] is S.ASLEEP
        manager.configure([replace(it, start=StartMode.EAGER)])
        assert watcher.of(ServersConfigured)[-1].servers[0].status is S.STARTING
        await watcher.until("raw", S.ASLEEP, S.READY)
        manager.configure([it])  # lazy again, and not used for long
        await watcher.until("raw", S.READY, S.STOPPING, S.ASLEEP)
        manager.configure([lazy("many", fingerprint="cd" * 32)])
        await eventually(lambda: "tool_7" in watcher.tools("raw"))
        assert find_tool(manager, "echo") is None
    assert all(CatalogStore(tmp_path).load(mark * 32) for mark in ("ab", "cd"))


async def test_a_server_that_fails_on_waking_says_so_to_the_call(tmp_path: Path) -> None:
    async with asleep(tmp_path, lazy("exit")) as (manager, watcher):
        tool = find_tool(manager, "echo")
        await refuses(r"cannot be called \(retrying\)", manager, "echo")
        assert "giving up" in str((await watcher.fails("raw", S.STARTING, S.RETRYING)).stderr_tail)
        assert tool is not None
        assert manager.offered_tools() == (), "as of any server that fails"
    async with RawServer() as server:
        web = define(server.url, fingerprint="cd" * 32, start=StartMode.LAZY)
        await learn(tmp_path, web)
        server.on = {"initialize": answer(401)}
        async with dozing(tmp_path, web) as (manager, watcher):
            await watcher.until("web", S.ASLEEP)
            await refuses(r"cannot be called \(needs sign-in\)", manager, "echo")


async def test_a_call_waits_a_named_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asleep(tmp_path / "kept", lazy("gated", cwd=tmp_path)) as (manager, watcher):
        cancelled = asyncio.create_task(call(manager, "echo"))
        await watcher.until("raw", S.ASLEEP, S.STARTING)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert manager.waiting_for() == (), "no message waits for it"
        assert find_tool(manager, "echo") is not None, "it wakes"
        monkeypatch.setattr(module, "WAKE_PATIENCE", 0.05)
        await refuses(r"cannot be called \(starting\)", manager, "echo")
        (tmp_path / "gate").touch()
        await watcher.until("raw", S.STARTING, S.READY)
        assert (await call(manager, "echo", {"text": "late"})).display == "late"


@pytest.mark.slow
async def test_a_call_that_finds_a_server_falling_asleep_wakes_it(tmp_path: Path) -> None:
    it = lazy("save", cwd=tmp_path)
    async with dozing(tmp_path / "kept", it, sleep_after=0.05) as (manager, watcher):
        await eventually(lambda: S.STOPPING in watcher.statuses("raw"))
        tool = find_tool(manager, "echo")
        assert tool is not None, "it can be called at any moment"
        result = await manager.call_tool(permit(tool, {"text": "you?"}), lambda _: None)
        assert result.display == "you?"
        ways = [S.STARTING, S.READY, S.STOPPING, S.ASLEEP, S.STARTING, S.READY]
        assert watcher.statuses("raw")[:6] == ways


async def test_two_instances_share_what_is_kept(tmp_path: Path) -> None:
    it = lazy()
    await learn(tmp_path, it)
    async with dozing(tmp_path, it) as (one, seen), dozing(tmp_path, it) as (other, seen_too):
        await seen.until("raw", S.ASLEEP)
        await seen_too.until("raw", S.ASLEEP)
        await asyncio.gather(*(call(one_of, "echo") for one_of in (one, other) * 5))
        assert len(server_processes()) == 2
    assert CatalogStore(tmp_path).load(MARK) is not None


def shape(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(json.dumps({"version": 1, "catalog": text}))


def link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere.json"
    elsewhere.write_text("{}")
    path.symlink_to(elsewhere)


WHOLE = '{"tools": [], "prompts": [], "resources": [], "templates": [], "refused": [], "time": 1, '
INFO = '"info": {"name": "x", "version": "1", "protocol_version": 5}}'
ODD: dict[str, Callable[[Path], object]] = {
    "rubbish": lambda path: path.write_bytes(b"\xff{[" * 100),
    "FIFO": lambda path: os.mkfifo(path, 0o600),
    "link": link,
    "huge": shape("x" * (MAX_CATALOG + 1)),
    "too many values": shape("[" + "[]," * 700_000 + "[]]"),
    "no object": shape("[]"),
    "no lists": shape('{"tools": {}, "time": 1, "refused": []}'),
    "odd info": shape(WHOLE + INFO),
    "empty": shape(""),
}


@pytest.mark.parametrize("how", ODD)
async def test_what_cannot_be_read_teaches_nothing_and_it_starts(tmp_path: Path, how: str) -> None:
    kept = tmp_path / "catalogs"
    await learn(kept, lazy())
    file = kept / f"{MARK}.json"
    file.unlink()
    ODD[how](file)
    if how != "link":
        file.chmod(0o600)
    async with dozing(kept, lazy()) as (manager, watcher):
        await watcher.until("raw", S.STARTING, S.READY)
        assert S.ASLEEP not in watcher.statuses("raw")
        assert find_tool(manager, "echo") is not None
    if how != "link":  # which is left for the user to look at
        async with dozing(kept, lazy()) as (_, watcher):
            await watcher.until("raw", S.STARTING, S.ASLEEP)


async def test_texts_of_a_file_are_as_harmless_as_those_of_a_server(tmp_path: Path) -> None:
    await learn(tmp_path, lazy())
    path = tmp_path / f"{MARK}.json"
    content = json.loads(path.read_text())
    catalog = json.loads(content["catalog"])
    catalog["info"] |= {"instructions": "a\x1b[2Jb", "name": "evil\u202e"}
    catalog["tools"][0]["description"] = "shown\x1b]0;x\x07"
    path.write_text(json.dumps({**content, "catalog": json.dumps(catalog)}))
    async with dozing(tmp_path, lazy()) as (manager, watcher):
        info = await watcher.info("raw", S.STARTING, S.ASLEEP)
        assert "\x1b" not in info.instructions + info.name
        assert "\u202e" not in info.name
        assert all("\x1b" not in tool.description for tool in watcher.catalog("raw").tools)
        assert manager.instructions() == [(RAW, info.instructions)]


async def test_a_pretended_server_sleeps_only_once_it_is_unused() -> None:
    async with lazy_stage() as stage:
        stage.supervisor.begin()
        await stage.reach(S.READY)
        for _ in range(5):
            await asyncio.sleep(0.02)
        assert stage.is_live(), "it is in use"
        stage.connection.unused = 60
        await stage.reach(S.ASLEEP)
        assert stage.connection.closed == 1
        assert stage.supervisor.info == stage.connection.info
        assert stage.supervisor.wake()
        stage.connection.ended.clear()
        await stage.reach_opening(2)


@asynccontextmanager
async def lazy_stage() -> AsyncIterator[Stage]:
    async with on_stage() as stage:
        it = stage.supervisor
        it.redefine(replace(it.definition, start=StartMode.LAZY))
        it._context.sleep_after = 0.01
        yield stage


async def test_commands_in_any_order_break_no_sleep() -> None:
    async with lazy_stage() as stage:
        it = stage.supervisor
        stage.connection.unused = 60
        commands = [*orders(stage), it.wake, it.begin]
        async for _ in pairs(commands, 0, 1, 3, 30):
            assert not it.is_callable or it.status in {S.READY, S.ASLEEP, S.STARTING, S.STOPPING}
        it.set_enabled(enabled=True)
        it.restart()
        await stage.reach(S.ASLEEP)
