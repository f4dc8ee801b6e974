"""Servers as real processes: the good one, and one for each fault."""

import asyncio
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.stalls import LoopWatch
from tests.unit.engine.mcp.processes import pid_of
from tests.unit.engine.mcp.support import (
    Watcher,
    call,
    eventually,
    find_tool,
    permit,
    ready,
    refuses,
    running,
    script,
)
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.backoff import RetryPolicy
from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart, ToolCallError
from tui.engine.mcp.session import listing
from tui.engine.mcp.transports.stdio import process as process_module
from tui.model.chat import Progress
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S

pytestmark = pytest.mark.usefixtures("hasty_ends")

RAW = ServerId("raw")
TOKEN = "hunter22-token"


async def test_a_good_server_is_connected_listed_and_called() -> None:
    async with running(script("sample")) as (manager, watcher):
        ready = await watcher.info("sample", S.STARTING, S.READY)
        assert (ready.name, ready.version) == ("sample", "1.2.3")
        assert ready.protocol_version == "2026-07-28"
        assert ready.instructions == "Add numbers with care."
        catalog = watcher.catalog("sample")
        assert [tool.id for tool in catalog.tools] == ["add", "count", "fail", "picture", "measure"]
        assert catalog.tools[0].claims == ("read-only",)
        assert [prompt.name for prompt in catalog.prompts] == ["greet"]
        assert [resource.uri for resource in catalog.resources] == ["memo://today"]
        assert [template.uri_template for template in catalog.templates] == ["memo://{day}"]
        assert (await call(manager, "add", {"a": 2, "b": 3})).parts == (TextPart("5"),)
        assert (await call(manager, "fail", {"reason": "rain"})).is_error
        assert isinstance((await call(manager, "picture")).parts[1], MediaPart)
        assert json.loads((await call(manager, "measure")).display) == {"width": 3}
        seen: list[Progress] = []
        counting = {"to": 2, "pause": 0.5}
        # The second is answered while the first has not ended.
        slow = asyncio.create_task(call(manager, "count", counting, seen.append))
        assert (await call(manager, "add", {"a": 2})).display == "3"
        assert not slow.done()
        await slow
        assert seen == [Progress(1.0, 2.0, "at 1"), Progress(2.0, 2.0, "at 2")]


async def test_a_server_that_ends_is_noticed_says_its_last_words_and_comes_back() -> None:
    # Of a shorter wait nobody might see that it retries.
    async with ready(script("raw"), retry=RetryPolicy(first_delay=1.0)) as (manager, watcher):
        os.kill(pid_of("raw.py"), signal.SIGKILL)
        failed = await watcher.fails("raw", S.READY, S.RETRYING)
        assert failed.reason == "was killed by SIGKILL"
        assert manager.offered_tools() == ()
        await watcher.until("raw", S.RETRYING, S.STARTING, S.READY)
        calling = asyncio.create_task(call(manager, "hang"))
        await eventually(lambda: "hang" in {one.target for one in manager.wire.frames()})
        os.kill(pid_of("raw.py"), signal.SIGKILL)
        with pytest.raises(ToolCallError, match=r"was killed by SIGKILL during the call"):
            await calling
        await watcher.until("raw", S.RETRYING)
        manager.start(RAW)
        await watcher.until("raw", S.RETRYING, S.STARTING, S.READY)
        with pytest.raises(ToolCallError, match="exited with code 7") as caught:
            await call(manager, "die")
        assert "effect is unknown" in str(caught.value)
        assert "dying now" in str(caught.value)
        assert (await watcher.fails("raw", S.RETRYING)).stderr_tail == ("dying now",)


async def test_a_name_stays_with_the_server_whose_tool_it_meant(tmp_path: Path) -> None:
    """The first of two servers is late: a name that both have means the second's tool by then."""
    is_up = tmp_path / "up"
    raw = script("raw", server="staging", env={"WHO": "staging"})
    code = f"import os, runpy, sys; os.stat({str(is_up)!r}); sys.argv = [{raw.launch.args[0]!r}]; "
    late = ("-c", code + "runpy.run_path(sys.argv[0], run_name='__main__')")
    staging = replace(raw, launch=replace(raw.launch, args=late))
    prod = script("raw", server="prod", env={"WHO": "prod"})
    async with running(staging, prod) as (manager, watcher):

        async def who(name: str) -> str:
            told: str = json.loads((await call(manager, name)).display)["env"]["WHO"]
            return told

        await watcher.until("staging", S.STARTING, S.RETRYING)
        await watcher.until("prod", S.READY)
        assert await who("environment") == "prod"
        is_up.touch()
        manager.start(staging.id)
        await watcher.until("staging", S.RETRYING, S.STARTING, S.READY)
        assert await who("environment") == "prod"
        assert await who("staging__environment") == "staging"
        assert find_tool(manager, "prod__environment") is None


async def test_a_server_that_never_answers_can_be_stopped_and_disturbs_nobody() -> None:
    definitions = [script("raw", "mute"), script("raw", server="good"), script("raw", "old")]
    definitions[-1] = replace(definitions[-1], id=ServerId("old"))
    async with running(*definitions) as (manager, watcher):
        await watcher.until("good", S.READY)
        failed = await watcher.fails("old", S.STARTING, S.FAILED)
        assert failed.reason == "Unsupported protocol version from the server: 1999-01-01"
        await manager.wait_discovered(0.05)  # which ends with its patience
        assert watcher.statuses("raw") == [S.STARTING]
        manager.stop(RAW)
        await watcher.until("raw", S.STARTING, S.STOPPING, S.STOPPED)
        assert {tool.server for tool in manager.offered_tools()} == {"good"}


async def test_noise_on_either_stream_disturbs_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    async with ready(script("raw", "noise", "bad_utf8", "stderr")) as (manager, watcher):
        assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        for words in ("npm notice: a new version is out", "\ufffd broken", "done\ufffd", "yyyy"):
            await eventually(lambda: words in "\n".join(watcher.log("raw")))  # noqa: B023 - at once
        log = watcher.log("raw")
        assert "not a message, ignored: npm notice: a new version is out" in log
        assert "done\ufffd" in log
        assert [len(line) for line in log if line.startswith("yyyy")] == [2_000]
    assert capfd.readouterr() == ("", "")


async def test_a_flood_of_stderr_disturbs_nobody(loop_watch: LoopWatch) -> None:
    async with running(script("raw", "flood"), script("raw", server="good")) as (manager, watcher):
        await watcher.until("good", S.READY)
        loop_watch.clear()
        assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        await watcher.until("raw", S.READY)
        await eventually(lambda: watcher.log("raw")[-1:] == ["line 59999 of a flood"])
        assert len(watcher.events) < 300
    loop_watch.assert_smooth()


async def test_what_is_odd_or_an_error_concerns_its_call_only(loop_watch: LoopWatch) -> None:
    async with ready(script("raw")) as (manager, watcher):
        unreadable = "The server sent a response that {}.*effect is unknown"
        await refuses(unreadable.format("cannot be read"), manager, "deep")
        await refuses(unreadable.format("is too complex"), manager, "complex")
        await refuses("cannot be sent", manager, "echo", {"text": "\ud800"})
        odd = (await call(manager, "odd")).parts
        assert TextPart("5") in odd
        assert "“hologram”" in str(odd[0])
        for more, shown in [
            ({}, "(error -32000)"),
            ({"data": {"row": 7, "hint": ["a"]}}, 'its data: {"row": 7, "hint": ["a"]}'),
            ({"data": "try\x1b[2J again"}, "its data: try again"),
            ({"data": 0}, "its data: 0"),
            ({"data": [[]] * 2_000}, "its data is too complex to be shown"),
            ({"data": "x" * 9_000}, "x…"),
        ]:
            with pytest.raises(ToolCallError) as caught:
                await call(manager, "own_error", {"text": json.dumps(more)})
            words = str(caught.value)
            assert words.startswith("The server refused the call: no such row (error -32000)")
            assert words.endswith(shown)
        loop_watch.clear()
        rows = await call(manager, "rows")
        assert rows.display.startswith('{\n  "rows": [\n    {')
        loop_watch.assert_smooth()
        assert watcher.statuses("raw") == [S.STARTING, S.READY]


async def test_a_result_that_breaks_its_output_schema_carries_a_warning() -> None:
    async with ready(script("raw", "measuring")) as (manager, _):
        for result, warning in [
            ({"structuredContent": {"n": 1}}, ""),
            ({"structuredContent": {"n": "1"}}, "result.n: '1' is not of type 'integer'"),
            ({"structuredContent": [1]}, "result: [1] is not of type 'object'"),
            ({"structuredContent": {}}, "result: 'n' is a required property"),
            ({"content": [{"type": "text", "text": "1"}]}, "it has no structured content"),
            ({"isError": True}, ""),
        ]:
            measured = await call(manager, "measure", {"text": json.dumps(result)})
            words = f"[Warning: the result does not match the tool's output schema: {warning}]"
            assert (TextPart(words) in measured.parts) is bool(warning), result
            assert measured.display.endswith(words) is bool(warning), result


async def test_a_message_over_the_limit_ends_the_server_alone(loop_watch: LoopWatch) -> None:
    async with ready(script("raw")) as (manager, watcher):
        before = psutil.Process().memory_info().rss
        loop_watch.clear()
        await refuses("sent a message larger than 16 MiB", manager, "long")
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.reason == "sent a message larger than 16 MiB"
        assert psutil.Process().memory_info().rss - before < 60_000_000
    loop_watch.assert_smooth()


async def test_a_server_that_reads_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "WRITE_TIMEOUT", 0.2)
    async with ready(script("raw", "sleepy")) as (manager, watcher):
        long = {"text": "x" * 1_000_000}
        with pytest.raises(ToolCallError, match="did not read its standard input"):
            await asyncio.gather(call(manager, "sleep"), call(manager, "echo", long))
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.reason.startswith("did not read its standard input")


async def test_all_pages_are_read_and_endless_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_ITEMS", 100)
    for behaviour, count, word in [
        ("paging", 15, ""),
        ("cursor_loop", 1, "repeated a cursor"),
        ("endless_pages", 100, "returned too much"),
        ("fat_pages", 4, "returned too much"),
    ]:
        async with ready(script("raw", behaviour)) as (manager, watcher):
            assert len(manager.offered_tools()) == count, behaviour
            await eventually(lambda: word in "".join(watcher.log("raw")))  # noqa: B023 - at once


async def test_a_declared_list_that_does_not_exist_is_empty() -> None:
    async with ready(script("raw", "liar")) as (_, watcher):
        assert watcher.catalog("raw").prompts == ()


async def test_a_tool_that_changed_or_whose_server_stopped_is_not_run(tmp_path: Path) -> None:
    async with ready(script("raw", "changing", cwd=tmp_path)) as (manager, watcher):
        shown = find_tool(manager, "echo")
        assert shown is not None
        manager.stop(RAW)
        assert find_tool(manager, "echo") is None
        with pytest.raises(ToolCallError, match=r"cannot be called \(stopping"):
            await manager.call_tool(permit(shown), lambda _: None)
        (tmp_path / "changed").touch()
        await watcher.until("raw", S.STOPPED)
        manager.start(RAW)
        await watcher.until("raw", S.STOPPED, S.STARTING, S.READY)
        with pytest.raises(ToolCallError, match="changed this tool"):
            await manager.call_tool(permit(shown), lambda _: None)


def leaky(*behaviours: str) -> ServerDefinition:
    env = {"RAW_TOKEN": TOKEN}
    return script("raw", "leaky", *behaviours, env=env, secrets=frozenset({TOKEN}))


def assert_masked(watcher: Watcher, *texts: str) -> None:
    assert TOKEN not in str(watcher.events)
    assert TOKEN not in str(texts)


async def test_a_secret_is_masked_in_the_log_and_in_errors_of_calls() -> None:
    async with ready(leaky()) as (manager, watcher):
        with pytest.raises(ToolCallError) as refused:
            await call(manager, "leak")
        assert "refused the call: [secret RAW_TOKEN hidden by gemdeck] is not" in str(refused.value)
        with pytest.raises(ToolCallError) as ended:
            await call(manager, "die")
        assert "starting with ***\ndying now" in str(ended.value)
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.stderr_tail == ("starting with ***", "dying now")
        logged = {"starting with ***", "logged [secret RAW_TOKEN hidden by gemdeck]"}
        await eventually(lambda: logged <= set(watcher.log("raw")))
        assert_masked(watcher, str(refused.value), str(ended.value))


async def test_a_server_that_did_not_start_says_why_without_a_secret() -> None:
    for behaviour, reason, *said in (
        (
            "exit",
            "exited with code 3 during startup: cannot read the config",
            "cannot read the config",
            "giving up",
        ),
        (
            "unlistable",
            "could not list its tools: the list is broken [secret RAW_TOKEN hidden by gemdeck]"
            " (error -32603)",
        ),
    ):
        async with running(leaky(behaviour)) as (_, watcher):
            failed = await watcher.fails("raw", S.STARTING, S.RETRYING)
            assert failed.reason == reason
            assert failed.stderr_tail == ("starting with ***", *said)
            assert_masked(watcher)
