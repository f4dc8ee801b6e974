"""Live reload: real files, real notifications of the system, and what comes of them."""

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.support.measures import Measure
from tests.unit.engine.mcp.support import eventually
from tests.unit.engine.settings.conftest import Machine
from tui.engine import reload
from tui.engine.reload import Reading, SettingsReader, make_plan
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.sources.source import EMPTY
from tui.model.chat import Severity
from tui.model.events import Event, Notice, NoticeRaised
from tui.model.servers import ServerStatus

SERVER = {"command": "x"}


class Stage:
    """A machine whose settings are followed."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.applied: list[LoadedSettings] = []
        self.events: list[Event] = []
        self.reads = 0

    def read(self) -> Reading:
        self.reads += 1
        return Reading(self.machine.load())

    @property
    def notices(self) -> list[Notice]:
        return [event.notice for event in self.events if isinstance(event, NoticeRaised)]

    def names(self) -> list[str]:
        """Name the servers that were applied last."""
        return [str(server.id) for server in self.applied[-1].servers] if self.applied else []

    async def reach(self, *names: str) -> None:
        """Wait until these servers have been applied."""
        await eventually(lambda: self.names() == list(names))

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        first = self.read()
        reader = SettingsReader(self.machine.folder, self.read, first, self.events.append)

        async def apply() -> None:
            while True:
                self.applied.append((await reader.changed()).settings)

        tasks = [asyncio.create_task(reader.watch()), asyncio.create_task(apply())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def stage(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("HOME", str(machine.home))
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(reload, "DEBOUNCE", 0.05)
    return Stage(machine)


@pytest.mark.parametrize("layer", ["defaults", "user", "project", "system"])
async def test_an_edit_of_any_layer_is_picked_up(stage: Stage, layer: str) -> None:
    async with stage.following():
        stage.machine.write(layer, {"mcpServers": {"new": SERVER}})
        await stage.reach("new")
    [server] = stage.applied[-1].servers
    assert server.withheld is (ServerStatus.UNTRUSTED if layer == "project" else None)


async def test_an_editor_that_replaces_the_file_is_noticed_every_time(stage: Stage) -> None:
    file = stage.machine.files["user"]
    async with stage.following():
        for name in ("one", "two", "three"):
            draft = file.with_suffix(".tmp")
            draft.write_text(json.dumps({"mcpServers": {name: SERVER}}))
            draft.replace(file)
            await stage.reach(name)
        file.unlink()
        await stage.reach()


async def test_a_file_behind_a_link_is_followed(stage: Stage, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "gemini.json"
    real.parent.mkdir()
    real.write_text("{}")
    stage.machine.files["user"].symlink_to(real)
    async with stage.following():
        real.write_text(json.dumps({"mcpServers": {"linked": SERVER}}))
        await stage.reach("linked")


async def test_folders_that_come_later_are_followed(stage: Stage) -> None:
    for file in stage.machine.files.values():
        with suppress(OSError):
            file.parent.rmdir()
    async with stage.following():
        file = stage.machine.files["user"]
        file.parent.mkdir()
        await asyncio.sleep(0.15)
        file.write_text(json.dumps({"mcpServers": {"late": SERVER}}))
        await stage.reach("late")
        manifest = file.parent / "extensions" / "weather" / "gemini-extension.json"
        manifest.parent.mkdir(parents=True)
        manifest.write_text(json.dumps({"name": "weather", "mcpServers": {"sky": SERVER}}))
        await stage.reach("late", "sky")
        manifest.write_text(json.dumps({"name": "weather", "mcpServers": {"sea": SERVER}}))
        await stage.reach("late", "sea")
        rules = manifest.parent / "policies"
        rules.mkdir()
        (rules / "mine.toml").write_text('[[rule]]\ndecision = "deny"\nmcpName = "sea"')
        await eventually(lambda: stage.applied[-1].gemdeck.always_deny)
        shutil.rmtree(rules)
        manifest.unlink()
        manifest.parent.rmdir()
        await stage.reach("late")


async def test_a_folder_that_is_moved_away_and_replaced_is_followed(stage: Stage) -> None:
    folder = stage.machine.files["user"].parent
    stage.machine.write("user", {"mcpServers": {"old": SERVER}})
    async with stage.following():
        stage.machine.write("user", {"mcpServers": {"one": SERVER}})
        await stage.reach("one")
        folder.rename(folder.with_name("kept"))
        await stage.reach()
        folder.mkdir()
        stage.machine.write("user", {"mcpServers": {"two": SERVER}})
        await stage.reach("two")
        folder.rename(folder.with_name("kept-as-well"))
        folder.mkdir()
        stage.machine.write("user", {"mcpServers": {"three": SERVER}})
        await stage.reach("three")
        stage.machine.write("user", {"mcpServers": {"four": SERVER}})
        await stage.reach("four")


async def test_a_folder_that_goes_just_before_it_is_watched_is_missed_by_nobody(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stage.machine.files["user"].parent
    plans: list[reload.WatchPlan] = []

    def plan_and_remove(files: Iterable[Path], listed: Iterable[Path]) -> reload.WatchPlan:
        plans.append(make_plan(files, listed))
        if len(plans) == 1:
            folder.rmdir()
        return plans[-1]

    monkeypatch.setattr(reload, "make_plan", plan_and_remove)
    async with stage.following():
        await eventually(lambda: len(plans) >= 2)
        assert str(folder) in plans[0].folders - plans[1].folders
        await asyncio.sleep(0)
        folder.mkdir()
        stage.machine.write("user", {"mcpServers": {"late": SERVER}})
        await stage.reach("late")


async def test_a_half_written_file_keeps_the_servers_and_is_told_once(stage: Stage) -> None:
    stage.machine.write("user", {"mcpServers": {"old": SERVER}})
    async with stage.following():
        stage.machine.write("user", '{"mcpServers": {"ne')
        await eventually(lambda: stage.notices)
        stage.machine.write("user", '{\n"mcpServers": {"new": {"comm')
        await asyncio.sleep(0.15)
        assert stage.applied == []
        [notice] = stage.notices
        assert notice.severity is Severity.ERROR
        assert "~/.gemini/settings.json:1: not valid JSON" in notice.text
        assert notice.advice == "The servers stay as they are until the file is fixed."
        stage.machine.write("user", {"mcpServers": {"new": SERVER}})
        await stage.reach("new")
        stage.machine.write("user", "{")
        await eventually(lambda: len(stage.notices) == 2)


async def test_an_emptied_file_keeps_the_servers_until_it_says_that_there_are_none(
    stage: Stage,
) -> None:
    stage.machine.write("user", {"mcpServers": {"old": SERVER}})
    async with stage.following():
        stage.machine.write("user", "")
        await eventually(lambda: stage.notices)
        assert stage.applied == []
        [notice] = stage.notices
        assert notice.text == f"~/.gemini/settings.json: {EMPTY}"
        assert notice.advice == "The servers stay as they are until the file is fixed."
        stage.machine.write("user", {})
        await eventually(lambda: stage.applied)
        assert stage.names() == []


async def test_a_file_that_was_broken_from_the_start_does_not_hold_others_back(
    stage: Stage,
) -> None:
    stage.machine.write("system", "{")
    async with stage.following():
        stage.machine.write("user", {"mcpServers": {"new": SERVER}})
        await stage.reach("new")
        assert stage.notices == []


async def test_new_problems_become_notices_and_old_ones_do_not(stage: Stage) -> None:
    stage.machine.write("user", {"mcpServers": {"a": {"command": "x", "old": 1}}})
    async with stage.following():
        entry = {"command": "x", "old": 1, "new": 2}
        stage.machine.write("user", {"mcpServers": {"a": entry, "b": {}}})
        await eventually(lambda: stage.applied)
    texts = [notice.text for notice in stage.notices]
    assert len(texts) == 2
    assert any("mcpServers.a.new: unknown key" in text for text in texts)
    assert any("mcpServers.b" in text for text in texts)


async def test_what_is_not_applied_live_is_said(stage: Stage) -> None:
    async with stage.following():
        stage.machine.write("user", {"gemdeck": {"maxToolCalls": 7}})
        await eventually(lambda: stage.notices)
        assert "take effect at the next start" in stage.notices[0].text
        own: dict[str, object] = {"maxToolCalls": 7, "bell": False, "title": False}
        own |= {"protocols": {"a": "handshake"}, "keys": {"deck.tools": "f12"}}
        own["prices"] = {"models": {"m": {"input": 1, "output": 2}}}
        stage.machine.write("user", {"mcpServers": {"a": SERVER}, "gemdeck": own})
        await stage.reach("a")
        assert len(stage.notices) == 1


async def test_other_files_in_the_same_folders_cost_no_reload(stage: Stage) -> None:
    async with stage.following():
        await eventually(lambda: stage.reads >= 2)  # once when the watch begins
        stage.reads = 0
        for number in range(20):
            (stage.machine.home / ".gemini" / f"log{number}").write_text("x")
        await asyncio.sleep(0.2)
        assert stage.reads == 0


async def test_following_costs_next_to_nothing_while_nothing_changes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, measure: Measure
) -> None:
    monkeypatch.setenv("HOME", str(machine.home))
    stage = Stage(machine)
    async with stage.following():
        await asyncio.sleep(0.3)
        for _ in range(5):  # something else in this process may compute meanwhile
            cpu, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
            await asyncio.sleep(1)
            spent = (time.process_time() - cpu) * 1000
            switches = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
            if spent < 10:
                break
    measure(f"settings followed for 1 s: {spent:.1f} ms of CPU, {switches} wake-ups")
    assert spent < 10


def test_following_does_not_keep_the_process_alive(machine: Machine) -> None:
    code = """
import asyncio, sys
from functools import partial
from pathlib import Path
from tui.engine.trust.opened_folder import OpenedFolder
from tui.engine.reload import SettingsReader, read_settings

async def main():
    folder = Path(sys.argv[1])
    opened = OpenedFolder(folder, Path.home(), None, (), print, attended=True)
    read = partial(read_settings, opened, None)
    task = asyncio.create_task(SettingsReader(folder, read, read(), print).watch())
    await asyncio.sleep(0.1)
    task.cancel()

asyncio.run(main())
"""
    environment = {**os.environ, **machine.environ, "HOME": str(machine.home)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(machine.folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,  # a watcher's thread would keep it for ever
        check=True,
    )
    assert done.stderr == ""
