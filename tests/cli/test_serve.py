"""`gemdeck mcp serve`: what a client of another program gets, with the SDK's own client."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.subscriptions import ResourceUpdated

from tests.cli.running import environment, finish, library, opened, run, write_settings
from tests.conftest import World
from tests.security.decks import Turncoat, shop
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.mcp.support import FOLDER
from tui.cli.output import ExitCode
from tui.engine.mcp.transports.stdio.launch import SERVED
from tui.engine.serving.callers import TOKEN_VARIABLE
from tui.engine.serving.lending import answering_others
from tui.model.consent import Choice

__all__ = ["shop"]

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

SCHEMA: Final = {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}}
RESULT: Final[dict[str, Any]] = {
    "content": [
        {"type": "text", "text": "\x1b[31mred", "annotations": {"priority": 0.5}},
        {"type": "image", "mimeType": "image/png", "data": "AA=="},
        {"type": "resource_link", "uri": "a:b", "name": "n"},
    ],
    "structuredContent": {"n": 1},
    "_meta": {"x.example/y": 1},
}
DEFINITION: Final = {
    "title": "A tool",
    "description": "Does it.",
    "annotations": {"readOnlyHint": True},
    "outputSchema": SCHEMA,
}
PROGRESS: Final = {"progress": 1, "total": 4, "message": "m"}
FILES: Final = {
    "claude-code": ".mcp.json in your project",
    "codex": "~/.codex/config.toml",
    "cursor": ".cursor/mcp.json in your project",
    "vscode": ".vscode/mcp.json in your project",
    "gemini-cli": ".gemini/settings.json in your project",
}
ERAS: Final = ("2026-07-28", "legacy")


@asynccontextmanager
async def client(
    *arguments: str,
    cwd: Path | None = None,
    mode: str = "auto",
    env: dict[str, str] | None = None,
    patience: float = PATIENCE,
    **callbacks: Any,  # noqa: ANN401 - of `Client`
) -> AsyncIterator[Client]:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tui", "mcp", "serve", *arguments],
        env={**environment(None), **(env or {})},
        cwd=cwd or Path.home(),
    )
    with anyio.fail_after(patience):
        async with Client(stdio_client(command), mode=mode, **callbacks) as connected:
            yield connected


def text(result: types.CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_gets_what_the_servers_offer(mode: str) -> None:
    served = library(
        tools={"t": ["x"], "look": []},
        definitions={"t": DEFINITION},
        results={"t": RESULT},
        before={"t": [{"method": "notifications/progress", "params": PROGRESS}]},
        prompts={"talk": ["mood!"]},
        resources=["docs://style"],
        templates=["file:///{path}"],
        completions=["happy", "sad"],
    )
    allowed = [{"server": "a", "tool": one} for one in ("t", "read_mcp_resource")]
    rules = {"alwaysAllow": allowed}
    write_settings({"mcpServers": {"a": served}, "gemdeck": rules})
    seen = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.append({"progress": progress, "total": total, "message": message})

    async with client(mode=mode) as connected:
        tool, look = (await connected.list_tools()).tools
        listed = tool.model_dump(by_alias=True, exclude_none=True)
        assert {key: listed[key] for key in DEFINITION} == DEFINITION
        assert (tool.name, look.name) == ("t", "look")
        result = await connected.call_tool("t", {"x": "1"}, progress_callback=report)
        got = result.model_dump(by_alias=True, exclude_none=True, mode="json")
        expected = json.loads(json.dumps(RESULT).replace("\\u001b[31m", ""))
        assert (got["content"], got["structuredContent"]) == (
            expected["content"],
            expected["structuredContent"],
        )
        assert RESULT["_meta"].items() <= got["_meta"].items()
        assert seen == [PROGRESS]
        denied = await connected.call_tool("look", {})
        assert denied.is_error
        assert "open gemdeck in this folder" in text(denied)
        assert "gemdeck.alwaysAllow" in text(denied)
        with pytest.raises(MCPError, match="There is no tool odd"):
            await connected.call_tool("odd", {})
        [prompt] = (await connected.list_prompts()).prompts
        found = await connected.get_prompt(prompt.name, {"mood": "sad"})
        assert [message.role for message in found.messages] == ["user", "assistant", "user"]
        [resource] = (await connected.list_resources()).resources
        for uri in (str(resource.uri), "file:///notes"):
            [content] = (await connected.read_resource(uri)).contents
            assert isinstance(content, types.TextResourceContents)
            assert uri in content.text
        with pytest.raises(MCPError, match="There is no resource odd:one"):
            await connected.read_resource("odd:one")
        about = types.PromptReference(name=prompt.name)
        known = await connected.complete(about, {"name": "mood", "value": "h"})
        assert known.completion.values == ["happy"]


def write_asking(era: str, *allowed: str) -> None:
    """Let the settings have a server that logs, changes and asks, in one era of the protocol."""
    entry = {"command": sys.executable, "args": [str(FOLDER / "asking.py")]}
    rules = [{"server": "asking", "tool": one} for one in allowed]
    own = {"alwaysAllow": rules, "protocols": {"asking": era}}
    write_settings({"mcpServers": {"asking": entry}, "gemdeck": own})


@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_gets_what_servers_log_from_its_level_on(mode: str, era: str) -> None:
    write_asking(era, "log")
    logged = asyncio.Queue[tuple[str, str | None, Any]]()

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        logged.put_nowait((params.level, params.logger, params.data))

    level = "warning" if mode != "legacy" else None
    async with client(mode=mode, logging_callback=log, log_level=level) as connected:
        if mode == "legacy":
            assert connected.server_capabilities.logging is not None
            await connected.set_logging_level("warning")
        for one in ("info", "error"):
            assert not (await connected.call_tool("log", {"level": one})).is_error
        assert await logged.get() == ("error", "asking", "a line of error")
    assert logged.empty()


@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_follows_resources(mode: str, era: str) -> None:
    write_asking(era, "bump")
    told, uri = asyncio.Queue[object](), "counter://now"

    async def take(message: object) -> None:
        told.put_nowait(message)

    async with client(mode=mode, message_handler=take) as connected:
        if mode != "legacy":
            watched = [uri, "odd:one"]
            async with connected.listen(resource_subscriptions=watched) as stream:
                assert stream.honored.resource_subscriptions == [uri]
                await connected.call_tool("bump", {})
                async for event in stream:
                    assert event == ResourceUpdated(uri)
                    break
            return
        with pytest.raises(MCPError, match="no resource odd:one"):
            await connected.subscribe_resource("odd:one")
        await connected.subscribe_resource(uri)
        await connected.call_tool("bump", {})
        while not isinstance(await told.get(), types.ResourceUpdatedNotification):
            pass
        await connected.unsubscribe_resource(uri)


@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize("mode", ERAS)
async def test_L17_a_client_answers_forms_where_a_rule_lets_it(mode: str, era: str) -> None:
    asked = list[types.ElicitRequestFormParams]()

    async def fill_in(_: object, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"name": "Ada", "age": 36})

    write_asking(era, "form", "answer_form")
    async with client(mode=mode, elicitation_callback=fill_in) as connected:
        answer = json.loads(text(await connected.call_tool("form", {})))
    assert answer == {"action": "accept", "content": {"name": "Ada", "age": 36}}
    [params] = asked
    assert params.message == "Who are you?"
    assert params.requested_schema["required"] == ["name", "age"]


async def test_L17_without_a_deck_and_a_rule_forms_are_declined() -> None:
    async def fill_in(*_: object) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Ada", "age": 36})

    write_asking("handshake", "form")
    async with client(mode="legacy", elicitation_callback=fill_in) as connected:
        answer = json.loads(text(await connected.call_tool("form", {})))
    assert answer == {"action": "decline"}


async def test_L17_a_call_is_cancelled_while_its_client_has_a_form(tmp_path: Path) -> None:
    record, has_form = tmp_path / "record", asyncio.Event()
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    before = [{"id": "q", "method": "elicitation/create", "params": form}]
    served = library(tools={"t": []}, before={"t": before}, record=str(record))
    rules = [{"server": "a", "tool": one} for one in ("t", "answer_form")]
    write_settings({"mcpServers": {"a": served}, "gemdeck": {"alwaysAllow": rules}})

    async def wait(*_: object) -> types.ElicitResult:
        has_form.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with client(mode="legacy", elicitation_callback=wait) as connected:
        calling = asyncio.create_task(connected.call_tool("t", {}))
        await has_form.wait()
        calling.cancel()
        await eventually(lambda: "notifications/cancelled" in record.read_text("utf-8"))


async def test_a_deck_that_opens_answers_and_the_client_goes_on_without_it(
    shop: Turncoat, world: World
) -> None:
    work = world.home / "work"
    work.mkdir()
    async with client(cwd=work) as connected:
        assert (await connected.list_tools()).tools == []  # its own gemdeck has no servers
        async with shop.deck() as running, answering_others(running.engine, work):
            assert [one.name for one in (await connected.list_tools()).tools] == ["look", "buy"]
            async with anyio.create_task_group() as group:
                group.start_soon(running.decide, Choice.ONCE)
                result = await connected.call_tool("look", {"text": "a"})
            assert not result.is_error

        found = ""
        while "open gemdeck" not in found:
            try:
                found = text(await connected.call_tool("look", {"text": "b"}))
            except MCPError as error:  # the deck ends just now
                found = str(error)
    assert shop.calls == [("look", {"text": "a"})]


async def test_a_client_goes_over_to_another_deck_when_its_own_closes(
    shop: Turncoat, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were open before the client started; the first is found by its name."""
    work = world.home / "work"
    work.mkdir()
    async with (
        shop.deck() as running,
        answering_others(running.engine, work),
        AsyncExitStack() as first,
    ):
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: 0)
            await first.enter_async_context(answering_others(running.engine, work))
        async with client(cwd=work) as connected:
            await connected.list_tools()
            await first.aclose()
            found = list[str]()
            while not found:
                with suppress(MCPError):  # the deck ends just now
                    found = [one.name for one in (await connected.list_tools()).tools]
            async with anyio.create_task_group() as group:
                group.start_soon(running.decide, Choice.ONCE)
                assert not (await connected.call_tool("look", {"text": "a"})).is_error


async def test_a_client_is_told_why_there_is_nothing_for_it() -> None:
    write_settings({})
    (Path.home() / ".gemini" / "settings.json").write_text("{", encoding="utf-8")
    async with client() as connected:
        for _ in range(2):
            with pytest.raises(MCPError, match=r"cannot serve: .*not valid JSON"):
                await connected.list_tools()


async def test_entries_for_clients_hold_a_token_that_is_kept_as_a_hash(world: World) -> None:
    tokens = []
    for name, file in FILES.items():
        result = await run("mcp", "serve", "--print", name, code=ExitCode.OK)
        printed = result.stdout
        assert f"Add this to {file}" in result.stderr
        read: dict[str, Any] = tomllib.loads(printed) if name == "codex" else json.loads(printed)
        [servers] = read.values()
        entry = servers["gemdeck"]
        assert entry["args"] == ["mcp", "serve"]
        assert entry.get("type") == ("stdio" if name == "vscode" else None)
        tokens.append(entry["env"][TOKEN_VARIABLE])
        assert entry["env"]["GEMDECK_HOME"] == str(world.state)
    kept = (world.state / "callers.json").read_text("utf-8")
    assert len(set(tokens)) == 5
    assert [one for one in tokens if one in kept] == []


async def test_L10_L24_gemdeck_serves_neither_itself_nor_a_folder_without_trust(
    tmp_path: Path,
) -> None:
    result = await run("mcp", "serve", env={SERVED: "1"}, code=ExitCode.ERROR)
    assert "cannot be gemdeck itself" in result.stderr
    own = {"command": sys.executable, "args": ["-m", "tui", "mcp", "serve"]}
    write_settings({"mcpServers": {"own": own, "a": library(tools={"t": []})}})
    (tmp_path / ".gemini").mkdir()
    theirs = json.dumps({"mcpServers": {"theirs": library(tools={"t": []})}})
    (tmp_path / ".gemini" / "settings.json").write_text(theirs, "utf-8")
    async with client(cwd=tmp_path) as connected:
        assert [one.name for one in (await connected.list_tools()).tools] == ["t"]
    entry = {"command": "gemdeck", "args": ["mcp", "serve"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"gemdeck": entry}}), "utf-8")
    found = await run("import", "cursor", "--file", str(tmp_path / "mcp.json"))
    assert "gemdeck itself" in found.stdout + found.stderr
    write_settings({"mcpServers": {"gemdeck": entry}})  # gemini-cli's settings are ours as well
    listed = await run("mcp", "list")
    assert "gemdeck mcp serve" not in listed.stdout + listed.stderr


async def test_clients_that_leave_things_out_or_send_lists_are_answered() -> None:
    write_settings({"mcpServers": {"a": library(tools={"t": []})}})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    hello = {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}
    sent = (
        hello,
        {"method": "notifications/initialized"},
        [{"id": 2, "method": "tools/list"}, {"jsonrpc": "2.0", "id": "3", "method": "ping"}],
    )
    async with opened("mcp", "serve", cwd=Path.home(), **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.send("".join(f"{json.dumps(one)}\n" for one in sent).encode())
        said, answers = b"", dict[object, Any]()
        while len(answers) < 3:
            said += await process.stdout.receive()
            *lines, said = said.split(b"\n")
            told = map(json.loads, lines)
            answers |= {one["id"]: one["result"] for one in told if "id" in one}
        assert answers[1]["serverInfo"]["name"] == "gemdeck"
        assert [one["name"] for one in answers[2]["tools"]] == ["t"]
        assert answers["3"] == {}
        await process.stdin.aclose()
        await finish(process)


async def test_a_signal_ends_it_while_the_client_is_there() -> None:
    """Whose first line begins with a byte order mark."""
    write_settings({"mcpServers": {"a": library(tools={"t": []})}})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    async with opened("mcp", "serve", **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        await process.stdin.send(b"\xef\xbb\xbf" + json.dumps(ping).encode() + b"\r\n")
        assert b'"id":1' in await process.stdout.receive()
        process.send_signal(signal.SIGTERM)
        await finish(process)
