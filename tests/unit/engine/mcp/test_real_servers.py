"""Servers as real processes: the good one, and one for each fault."""

import asyncio
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.measures import Measure
from tests.support.stalls import LoopWatch
from tests.unit.engine.mcp.processes import pid_of
from tests.unit.engine.mcp.support import (
    call,
    children,
    eventually,
    ready,
    refuses,
    running,
    script,
)
from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart, ToolCallError
from tui.engine.mcp.session import listing
from tui.model.chat import Progress
from tui.model.events import CatalogChanged, ServersConfigured
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S


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
        failed = await call(manager, "fail", {"reason": "rain"})
        assert failed.is_error
        picture = await call(manager, "picture")
        assert isinstance(picture.parts[1], MediaPart)
        assert json.loads((await call(manager, "measure")).display) == {"width": 3}


async def test_calls_run_in_parallel_and_report_progress() -> None:
    async with ready(script("sample")) as (manager, _):
        seen: list[Progress] = []
        began = time.monotonic()
        await asyncio.gather(
            *(call(manager, "count", {"to": 3, "pause": 0.15}, seen.append) for _ in range(5))
        )
        assert time.monotonic() - began < 1.5
        assert Progress(1.0, 3.0, "at 1") in seen
        assert Progress(2.0, 3.0, "at 2") in seen


async def test_the_events_tell_the_whole_story() -> None:
    async with ready(script("raw")) as (_, watcher):
        kinds = [type(event) for event in watcher.events]
        assert kinds[0] is ServersConfigured
        [configured] = watcher.of(ServersConfigured)
        assert configured.servers[0].status is S.STOPPED
        assert configured.servers[0].target.endswith("tests/servers/raw.py")
        assert kinds.index(CatalogChanged) < len(kinds) - 1
        assert watcher.last("raw").info is not None
    assert watcher.statuses("raw") == [S.STARTING, S.READY, S.STOPPING, S.STOPPED]
    assert children() == []


async def test_a_server_killed_while_idle_is_noticed_at_once(measure: Measure) -> None:
    async with ready(script("raw")) as (manager, watcher):
        victim = pid_of("raw.py")
        began = time.perf_counter()
        os.kill(victim, signal.SIGKILL)
        failed = await watcher.until("raw", S.READY, S.RETRYING)
        delay = time.perf_counter() - began
        measure(f"idle server killed: noticed after {delay * 1000:.1f} ms")
        assert delay < 0.1
        assert failed.failure is not None
        assert failed.failure.reason == "was ended by SIGKILL"
        assert manager.offered_tools() == ()
        manager.start(ServerId("raw"))
        await watcher.until("raw", S.RETRYING, S.STARTING, S.READY)


async def test_a_server_killed_in_a_call_fails_the_call_with_the_reason() -> None:
    async with ready(script("raw")) as (manager, _):
        calling = asyncio.create_task(call(manager, "hang"))
        await asyncio.sleep(0)
        began = time.perf_counter()
        os.kill(pid_of("raw.py"), signal.SIGKILL)
        with pytest.raises(ToolCallError, match="was ended by SIGKILL during the call"):
            await calling
        assert time.perf_counter() - began < 0.5


async def test_a_server_that_dies_of_a_call_says_its_last_words() -> None:
    async with ready(script("raw")) as (manager, watcher):
        with pytest.raises(ToolCallError, match="exited with code 7") as caught:
            await call(manager, "die")
        assert "effect is unknown" in str(caught.value)
        assert "dying now" in str(caught.value)
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.stderr_tail == ("dying now",)


async def test_a_server_that_exits_at_once_shows_its_last_stderr_lines() -> None:
    async with running(script("raw", "exit"), script("raw", server="good")) as (_, watcher):
        failed = await watcher.fails("raw", S.STARTING, S.RETRYING)
        assert failed.reason == "exited with code 3 before it was ready"
        assert failed.stderr_tail == ("cannot read the config", "giving up")
        await watcher.until("good", S.READY)


async def test_a_program_that_does_not_exist_fails_with_advice() -> None:
    missing = replace(script("raw"), command="no-such-program-here", args=())
    async with running(missing) as (_, watcher):
        failed = await watcher.fails("raw", S.STARTING, S.FAILED)
        assert failed.reason == "command not found: no-such-program-here"
        assert failed.advice.startswith("Install it")


async def test_a_file_that_is_no_program_fails_with_the_systems_reason(tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.write_bytes(b"\x00\x01 no program")
    odd.chmod(0o755)
    async with running(replace(script("raw"), command=str(odd), args=())) as (_, watcher):
        failed = await watcher.fails("raw", S.STARTING, S.FAILED)
        assert failed.reason == "could not be started: Exec format error"


async def test_a_server_that_never_answers_can_be_stopped_and_disturbs_nobody() -> None:
    async with running(script("raw", "mute"), script("raw", server="good")) as (manager, watcher):
        await watcher.until("good", S.READY)
        assert watcher.statuses("raw") == [S.STARTING]
        manager.stop(ServerId("raw"))
        await watcher.until("raw", S.STARTING, S.STOPPING, S.STOPPED)
        assert {tool.server for tool in manager.offered_tools()} == {"good"}


async def test_a_version_nobody_knows_is_refused() -> None:
    async with running(script("raw", "old")) as (_, watcher):
        failed = await watcher.fails("raw", S.STARTING, S.FAILED)
        assert failed.reason == ("Unsupported protocol version from the server: 1999-01-01")


async def test_a_restart_leaves_the_others_alone() -> None:
    async with ready(script("raw"), script("raw", server="other")) as (manager, watcher):
        manager.restart(ServerId("raw"))
        await watcher.until("raw", S.STOPPING, S.STOPPED, S.STARTING, S.READY)
        assert watcher.statuses("other") == [S.STARTING, S.READY]
        assert len(watcher.of(CatalogChanged)) <= 3


async def test_bad_bytes_and_noise_between_messages_disturb_nothing() -> None:
    async with ready(script("raw", "noise", "bad_utf8")) as (manager, watcher):
        assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        await eventually(lambda: len(watcher.log("raw")) >= 3)
        log = watcher.log("raw")
        assert "not a message, ignored: npm notice: a new version is out" in log
        assert any("\ufffd" in line for line in log)


@pytest.mark.parametrize(
    ("tool", "reason"),
    [("deep", "sent a reply that cannot be read"), ("complex", "sent a reply that is too complex")],
)
async def test_a_reply_that_cannot_be_read_fails_its_call_at_once(tool: str, reason: str) -> None:
    async with ready(script("raw")) as (manager, _):
        began = time.perf_counter()
        await refuses(f"The server {reason}.*effect is unknown", manager, tool)
        assert time.perf_counter() - began < 1
        assert (await call(manager, "echo", {"text": "on"})).display == "on"


async def test_half_a_surrogate_pair_and_odd_numbers_do_not_lose_a_result() -> None:
    async with ready(script("raw")) as (manager, _):
        assert (await call(manager, "surrogate")).display == "half \ufffd"
        assert json.loads((await call(manager, "not_finite")).display) == {"a": ["NaN", "inf"]}


async def test_a_large_structured_result_holds_nothing_up(loop_watch: LoopWatch) -> None:
    async with ready(script("raw")) as (manager, _):
        loop_watch.clear()
        result = await call(manager, "rows")
        assert result.display.startswith('{\n  "rows": [\n    {')
        loop_watch.assert_smooth()


async def test_an_error_of_the_server_is_not_taken_for_the_end_of_the_connection() -> None:
    async with ready(script("raw")) as (manager, _):
        await refuses(
            r"refused the call: no such row \(error -32000\)", manager, "own_error", {"text": "{}"}
        )


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"row": 7, "hint": ["a"]}, 'its data: {"row": 7, "hint": ["a"]}'),
        ("try\x1b[2J again", "its data: try again"),
        (0, "its data: 0"),
        ([[]] * 2_000, "its data is too complex to be shown"),
        ("x" * 9_000, "x…"),
    ],
)
async def test_the_data_of_an_error_is_shown(data: object, shown: str) -> None:
    async with ready(script("raw")) as (manager, _):
        with pytest.raises(ToolCallError) as caught:
            await call(manager, "own_error", {"text": json.dumps({"data": data})})
        assert str(caught.value).startswith(
            "The server refused the call: no such row (error -32000)"
        )
        assert str(caught.value).endswith(shown)


@pytest.mark.parametrize(
    ("result", "warning"),
    [
        ({"structuredContent": {"n": 1}}, ""),
        ({"structuredContent": {"n": "1"}}, "result.n: '1' is not of type 'integer'"),
        ({"structuredContent": [1]}, "result: [1] is not of type 'object'"),
        ({"structuredContent": {}}, "result: 'n' is a required property"),
        ({"content": [{"type": "text", "text": "1"}]}, "it has no structured content"),
        ({"isError": True}, ""),
    ],
)
async def test_a_result_that_breaks_its_output_schema_carries_a_warning(
    result: dict[str, object], warning: str
) -> None:
    async with ready(script("raw", "measuring")) as (manager, _):
        measured = await call(manager, "measure", {"text": json.dumps(result)})
        words = f"[Warning: the result does not match the tool's output schema: {warning}]"
        assert measured.display.endswith(words if warning else measured.display)
        assert (TextPart(words) in measured.parts) is bool(warning)


async def test_results_that_are_partly_odd_are_used_as_far_as_they_go() -> None:
    async with ready(script("raw")) as (manager, _):
        odd = (await call(manager, "odd")).parts
        assert TextPart("5") in odd
        assert "“hologram”" in str(odd[0])
        assert "1" in (await call(manager, "loose")).display


async def test_arguments_that_cannot_be_sent_fail_their_call_only() -> None:
    async with ready(script("raw")) as (manager, _):
        await refuses("cannot be sent", manager, "echo", {"text": "\ud800"})
        assert (await call(manager, "echo", {"text": "on"})).display == "on"


async def test_a_message_over_the_limit_ends_the_server_and_not_the_app(
    loop_watch: LoopWatch,
) -> None:
    async with ready(script("raw")) as (manager, watcher):
        before = psutil.Process().memory_info().rss
        loop_watch.clear()
        await refuses("wrote a message of more than 16 MiB", manager, "long")
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.reason == "wrote a message of more than 16 MiB"
        assert psutil.Process().memory_info().rss - before < 60_000_000
    loop_watch.assert_smooth()


async def test_malformed_tools_are_shown_and_the_good_ones_work() -> None:
    async with ready(script("raw", "malformed")) as (manager, watcher):
        assert [tool.id for tool in manager.offered_tools()] == ["echo", "empty"]
        tools = watcher.catalog("raw").tools
        assert len(tools) == 8
        assert sum(bool(tool.problem) for tool in tools) == 6
        assert len({tool.id for tool in tools}) == 8
        assert (await call(manager, "echo", {"text": "x"})).display == "x"


async def test_all_pages_are_read() -> None:
    async with ready(script("raw", "paging")) as (manager, _):
        assert len(manager.offered_tools()) == 15


@pytest.mark.parametrize(
    ("behaviour", "count", "word"),
    [
        ("cursor_loop", 1, "repeats a cursor"),
        ("endless_pages", 100, "is too long"),
        ("fat_pages", 4, "is too long"),
    ],
)
async def test_pages_without_end_end(
    behaviour: str, count: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_ITEMS", 100)
    async with ready(script("raw", behaviour)) as (manager, watcher):
        assert len(manager.offered_tools()) == count
        await eventually(lambda: any(word in line for line in watcher.log("raw")))
