"""Attacks that worked elsewhere, from end to end: real files, real processes, a real engine."""

import json

import anyio

from tests.security.opened import Place, opened, place
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import eventually
from tui.model.servers import ServerStatus
from tui.model.trust import FolderTrust, TrustAnswer, TrustSubject

__all__ = ["place"]


async def test_A01_A03_trustfall_a_clone_runs_nothing_before_the_yes(place: Place) -> None:
    place.user({"mcpServers": {"mine": place.canary("mine")}})
    place.project({"mcpServers": {"lint": place.canary("settings")}})
    place.project({"mcpServers": {"docs": place.canary("shared")}}, ".mcp.json")
    async with opened(place) as deck:
        question = await deck.question()
        assert question.subject is TrustSubject.FOLDER
        assert question.place == "~/clone"
        shown = {str(server.server): server for server in question.servers}
        assert shown["lint"].args[-1] == "settings"
        assert shown["docs"].source == "~/clone/.mcp.json"
        await deck.reach("mine", ServerStatus.READY)
        assert place.words() == ["mine"]
        assert deck.statuses()["lint"] is ServerStatus.UNTRUSTED
        assert deck.trust() is FolderTrust.UNTRUSTED
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("lint", ServerStatus.READY)
        await deck.reach("docs", ServerStatus.READY)
        assert deck.trust() is FolderTrust.TRUSTED
        assert sorted(place.words()) == ["mine", "settings", "shared"]


async def test_A09_mcpoison_an_edit_of_what_was_trusted_asks_again(place: Place) -> None:
    safe = {"mcpServers": {"build": place.canary("safe"), "other": place.canary("other")}}
    place.project(safe)
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("build", ServerStatus.READY)
        await deck.reach("other", ServerStatus.READY)
        evil = json.loads(json.dumps(safe))
        evil["mcpServers"]["build"]["args"][-1] = "evil"
        place.project(evil)
        question = await deck.question()
        assert deck.trust() is FolderTrust.CHANGED
        signs = {(line.sign, line.text) for line in question.difference}
        assert {("-", "argument safe"), ("+", "argument evil")} <= signs
        assert [server.change for server in question.servers] == ["changed", ""]
        await deck.reach("build", ServerStatus.UNTRUSTED)
        assert deck.statuses()["other"] is ServerStatus.READY
        await deck.answer(TrustAnswer.NOT_NOW)
        assert "evil" not in place.words()
        place.project(safe)
        await deck.reach("build", ServerStatus.READY)
        assert deck.trust() is FolderTrust.TRUSTED
        assert deck.questions() == []
    assert "evil" not in place.words()
    place.project(evil)
    async with opened(place) as deck:
        question = await deck.question()
        assert question.difference
        await deck.reach("other", ServerStatus.READY)
        assert deck.statuses()["build"] is ServerStatus.UNTRUSTED
    assert "evil" not in place.words()
    assert place.words().count("other") == 2


async def test_A11_curxecute_own_settings_edited_meanwhile_start_nothing(place: Place) -> None:
    place.user({"mcpServers": {"git": place.canary("known"), "old": place.canary("old")}})
    async with opened(place) as deck:
        await deck.reach("git", ServerStatus.READY)
        assert deck.questions() == []
        place.user(
            {
                "mcpServers": {
                    "git": place.canary("evil"),
                    "more": place.canary("more"),
                    "old": place.canary("old", trust=True),
                },
                "gemdeck": {"alwaysAllow": [{"server": "*"}]},
            }
        )
        question = await deck.question()
        assert question.subject is TrustSubject.SETTINGS
        changes = {server.server: server.change for server in question.servers}
        assert changes == {"git": "changed", "more": "new", "old": "changed"}
        assert question.rules == ("The tools of old would run without asking.",)
        assert set(deck.statuses().values()) == {ServerStatus.UNTRUSTED}
        await deck.answer(TrustAnswer.NOT_NOW)
        place.user({"mcpServers": {"git": place.canary("evil"), "mine": place.canary("mine")}})
        question = await deck.question()
        assert {server.server for server in question.servers} == {"git", "mine"}
        assert sorted(place.words()) == ["known", "old"]
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("mine", ServerStatus.READY)
        await deck.reach("git", ServerStatus.READY)
        assert sorted(place.words()) == ["evil", "known", "mine", "old"]


async def test_A11_a_new_server_that_was_put_off_is_asked_about_on_review(place: Place) -> None:
    async with opened(place) as deck:
        place.user({"mcpServers": {"new": place.canary("new")}})
        await deck.answer(TrustAnswer.NOT_NOW)
        await deck.reach("new", ServerStatus.UNTRUSTED)
        assert deck.questions() == []
        deck.engine.review_folder()
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("new", ServerStatus.READY)
        place.user({})
        await eventually(lambda: not deck.statuses())
        with anyio.fail_after(PATIENCE):
            place.user({"mcpServers": {"new": place.canary("new")}})
            await deck.reach("new", ServerStatus.READY)
        assert place.words() == ["new", "new"]
