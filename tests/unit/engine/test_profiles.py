"""Profiles: which servers run, what each tab's model is given, and what outlives the run."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gemini import FakeGemini, Step
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Deck, Turncoat, deck, tool, write_settings
from tests.support.waiting import eventually
from tests.unit.engine.mcp.support import FOLDER
from tui.model.chat import ChatNotice, ToolCallStatus
from tui.model.servers import ServerStatus
from tui.store.selectors import entries

READY, OFF = ServerStatus.READY, ServerStatus.DISABLED
DONE: Step = [Say("done")]
READING = {"list_mcp_resources", "read_mcp_resource"}
PROFILES = {
    "buying": {"servers": ["shop"], "tools": [{"server": "shop", "tool": "b*"}]},
    "reading": {"servers": ["lib", "shop"]},
    "banking": {"servers": ["bank", "gone"]},
}


COUNTING = """
import os, sys

with open(sys.argv[1], "a") as file:
    file.write(".")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Notes that it was started, and goes on as a server."""


class Town:
    """The settings of three servers, and how often each was started."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch
        (folder / "counting.py").write_text(COUNTING)
        says = folder / "library.json"
        says.write_text(json.dumps({"resources": ["memo://today"]}))
        shop, bank = Turncoat("shop", folder), Turncoat("bank", folder)
        shop.offer(tool("look"), tool("buy"))
        bank.offer(tool("send"))
        library = {"command": sys.executable, "args": [str(FOLDER / "library.py"), str(says)]}
        entries = {"shop": shop.entry, "bank": bank.entry, "lib": library}
        self._commands = {name: [one["command"], *one["args"]] for name, one in entries.items()}

    def settings(self, **profiles: object) -> dict[str, Any]:
        counting = str(self._folder / "counting.py")
        entries = {
            name: {
                "command": sys.executable,
                "args": [counting, str(self._folder / name), *command],
            }
            for name, command in self._commands.items()
        }
        return {"mcpServers": entries, "gemdeck": {"profiles": {**PROFILES, **profiles}}}

    @asynccontextmanager
    async def deck(self, script: list[Step], profile: str, **more: Any) -> AsyncIterator[Deck]:  # noqa: ANN401
        """Run an engine with these servers and a profile."""
        options = {"settings": self.settings(), "profile": profile, "ready": False, **more}
        async with FakeGemini(script) as fake, deck(fake, self._monkeypatch, **options) as it:
            yield it
        assert fake.violations == []

    def starts(self) -> dict[str, int]:
        """How often the process of each server was started."""
        places = {name: self._folder / name for name in self._commands}
        found = {name: len(at.read_text()) for name, at in places.items() if at.exists()}
        return {name: number for name, number in found.items() if number}


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    return Town(tmp_path, monkeypatch)


async def stand(it: Deck, **wanted: ServerStatus) -> None:
    """Wait until these servers stand so."""
    await eventually(lambda: {name: it.status(name) for name in wanted} == wanted)


def said(it: Deck) -> str:
    """The last notice."""
    return "".join(one.text for one in it.store.state.notices[-1:])


async def test_only_what_a_profile_names_starts_and_another_one_starts_and_stops_the_rest(
    town: Town,
) -> None:
    script: list[Step] = [[Call([("look", {}), ("buy", {})])], DONE, DONE, DONE]
    async with town.deck(script, "buying", allows_all=True) as it:
        await stand(it, shop=READY, bank=OFF, lib=OFF)
        bank = next(one for one in it.store.state.servers if one.id == "bank")
        assert bank.failure is not None
        assert bank.failure.reason == "Not in the profile buying."
        await it.ask("go")
        assert {*it.fake.requests[0].declared} == {"buy"}
        refused, _ = it.fake.requests[1].answers
        assert refused.startswith("Tool look not found")
        assert [call.status for call in it.calls] == [ToolCallStatus.ERROR, ToolCallStatus.OK]
        assert town.starts() == {"shop": 1}

        it.engine.models.use_profile("nobody")
        assert "There is no profile nobody. Profiles in your settings: buying" in said(it)
        it.engine.models.use_profile("")
        await stand(it, shop=READY, bank=READY, lib=READY)
        assert town.starts() == {"shop": 1, "bank": 1, "lib": 1}
        await it.ask("all")
        assert {*it.fake.requests[-1].declared} == {"look", "buy", "send", *READING}

        it.engine.models.use_profile("banking")
        await stand(it, shop=OFF, bank=READY, lib=OFF)
        assert town.starts() == {"shop": 1, "bank": 1, "lib": 1}
        await it.ask("bank")
        assert {*it.fake.requests[-1].declared} == {"send"}
        it.engine.servers.set_enabled(bank.id, enabled=True)
        lib = next(one.id for one in it.store.state.servers if one.id == "lib")
        it.engine.servers.set_enabled(lib, enabled=True)
        await stand(it, lib=READY)
        assert not (Path.home() / ".gemini" / "disabled-servers.json").exists()


async def test_each_tab_has_its_profile_and_what_any_of_them_has_runs(town: Town) -> None:
    read = ("read_mcp_resource", {"server": "lib", "uri": "memo://today"})
    script: list[Step] = [DONE, [Call([("buy", {}), read])], DONE, DONE]
    async with town.deck(script, "reading", allows_all=True) as it:
        await stand(it, shop=READY, bank=OFF, lib=READY)
        conversations = it.engine.conversations
        first = conversations.current.key
        conversations.open()
        assert it.store.state.options.profile == "reading", "that of the tab it is opened from"
        it.engine.models.use_profile("buying")
        await it.ask("in the second")
        assert ({*it.fake.requests[-1].declared}, town.starts()) == ({"buy"}, {"shop": 1, "lib": 1})

        await it.ask("what is @lib:memo://today ?")
        [*_, notice, _] = entries(it.store.state)
        assert isinstance(notice, ChatNotice)
        assert notice.text == "The server lib is not in the profile buying."
        assert len(it.fake.requests) == 1

        conversations.select(first)
        assert it.store.state.options.profile == "reading"
        await it.ask("in the first")
        assert {*it.fake.requests[-1].declared} == {"look", "buy", *READING}
        assert not any("not found" in one for one in it.fake.requests[-1].answers)

        conversations.close(first)
        await stand(it, shop=READY, lib=OFF)
        await it.ask("alone")
        assert ({*it.fake.requests[-1].declared}, town.starts()) == ({"buy"}, {"shop": 1, "lib": 1})


async def test_a_call_of_a_tool_that_another_tab_may_call_is_answered(town: Town) -> None:
    script: list[Step] = [[Call([("send", {}), ("buy", {})])], DONE]
    async with town.deck(script, "banking", allows_all=True) as it:
        await stand(it, bank=READY)
        it.engine.conversations.open()
        it.engine.models.use_profile("buying")
        await stand(it, bank=READY, shop=READY)
        await it.ask("go")
        refused, _ = it.fake.requests[-1].answers
        assert refused.startswith("Tool send not found")
        assert not (it.engine.servers.usage(it.calls[0].server)).calls


async def test_a_profile_belongs_to_the_tab_and_not_to_the_session(town: Town) -> None:
    async with town.deck([DONE], "banking") as it:
        await stand(it, bank=READY)
        await it.ask("remember this")
    async with town.deck([], "buying", resume="latest") as it:
        await eventually(lambda: entries(it.store.state))
        assert it.store.state.options.profile == "buying"
        await stand(it, shop=READY, bank=OFF, lib=OFF)
    assert town.starts() == {"bank": 1, "shop": 1}, "nothing was started in passing"


async def test_a_changed_profile_counts_at_once_and_one_that_is_gone_stays_as_it_was(
    town: Town,
) -> None:
    async with town.deck([], "buying", follow_settings=True) as it:
        await stand(it, shop=READY, bank=OFF)
        write_settings(town.settings(buying={"servers": ["shop", "bank"]}))
        await stand(it, shop=READY, bank=READY)
        without = town.settings(lent={})
        del without["gemdeck"]["profiles"]["buying"]
        write_settings(without)
        await eventually(lambda: "lent" in it.store.state.profiles)
        assert (it.status("shop"), it.status("bank"), it.status("lib")) == (READY, READY, OFF)
        it.engine.models.use_profile("reading")
        await stand(it, bank=OFF, lib=READY)
        assert not any("next start" in one.text for one in it.store.state.notices)


async def test_a_folder_has_no_profiles_and_a_name_that_cannot_be_shown_is_none(
    town: Town, tmp_path: Path
) -> None:
    folder = tmp_path / "clone"
    (folder / ".gemini").mkdir(parents=True)
    theirs = {"gemdeck": {"profiles": {"buying": {}, "theirs": {"servers": ["bank"]}}}}
    (folder / ".gemini" / "settings.json").write_text(json.dumps(theirs))
    async with town.deck([], "buying", folder=folder, trusted_folders=(folder,)) as it:
        await stand(it, shop=READY, bank=OFF)
        assert set(it.store.state.profiles) == {"", *PROFILES}
        it.engine.models.use_profile("theirs")
        assert "There is no profile theirs." in said(it)
        it.engine.models.use_profile("\x1b[31mred\n\u202e")
        assert said(it).startswith("There is no profile red")
        assert it.store.state.options.profile == "buying"
    hostile = ("\x1b[31mred", "two\nlines", "\u202eleft", "", " ", "zero\u200bwidth", "x" * 41)
    for name in (*hostile, "-p"):
        loaded: dict[str, Any] = {
            "mcpServers": {},
            "gemdeck": {"profiles": {name: {}, "plain": {}}},
        }
        async with town.deck([], "", settings=loaded, ready=True) as it:
            assert set(it.store.state.profiles) == {""}
            assert any("profiles" in one.text for one in it.store.state.notices)
            assert not any("\x1b" in one.text for one in it.store.state.notices)
