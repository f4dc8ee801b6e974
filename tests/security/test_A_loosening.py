"""The user's own settings, edited by somebody else's hand: a no lasts, a loosening waits."""

import json

import pytest

from tests.security.opened import Place, opened, place
from tests.support.definitions import define_server
from tests.unit.engine.mcp.support import eventually
from tui.engine.mcp.transports.stdio.launch import server_environment
from tui.engine.plan import Answers, plan
from tui.engine.reload import Reading
from tui.engine.settings.loader import LoadedSettings, inheritance_of
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.model.settings import GemdeckSettings
from tui.model.trust import TrustAnswer, TrustSubject

__all__ = ["place"]

S = ServerStatus


@pytest.mark.parametrize("answer", [TrustAnswer.NOT_NOW, TrustAnswer.NEVER])
async def test_A11_a_refused_new_server_does_not_run_after_a_restart(
    place: Place, answer: TrustAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = {"mine": place.canary("mine")}
    place.user({"mcpServers": servers})
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        place.user({"mcpServers": {**servers, "new": place.canary("new", env={"A": "${CHANGES}"})}})
        await deck.answer(answer)
        await deck.reach("new", S.UNTRUSTED)
    monkeypatch.setenv("CHANGES", "with each session")
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        assert deck.statuses()["new"] is S.UNTRUSTED
        failure = deck.server("new").failure
        assert failure is not None
        assert "you refused it" in failure.reason
        assert "Review this folder" in failure.advice
        if answer is TrustAnswer.NEVER:
            assert deck.questions() == []
            deck.engine.review_folder()
        asked = TrustSubject.SETTINGS
        await eventually(lambda: asked in {one.subject for one in deck.questions()})
        [question] = [one for one in deck.questions() if one.subject is asked]
        deck.engine.desk.answer(question.id, TrustAnswer.TRUST)
        await deck.reach("new", S.READY)
    async with opened(place) as deck:
        await deck.reach("new", S.READY)
        assert deck.questions() == []
    assert place.words().count("new") == 2


async def test_A11_what_was_asked_about_and_not_answered_waits_after_a_restart(
    place: Place,
) -> None:
    place.user({"mcpServers": {"mine": place.canary("mine")}})
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        place.user({"mcpServers": {"mine": place.canary("mine"), "new": place.canary("new")}})
        await deck.question()
    async with opened(place) as deck:
        failure = deck.server("new").failure
        assert failure is not None
        assert "appeared in your settings while gemdeck was running" in failure.reason
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("new", S.READY)
    async with opened(place) as deck:
        await deck.reach("new", S.READY)
        assert deck.questions() == []
    assert place.words().count("new") == 2


async def test_A11_a_refused_permission_does_not_count_after_a_restart(place: Place) -> None:
    place.user({"mcpServers": {"mine": place.canary("mine")}})
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        place.user({"mcpServers": {"mine": place.canary("mine", trust=True)}})
        await deck.answer(TrustAnswer.NEVER)
    async with opened(place) as deck:
        await deck.reach("mine", S.UNTRUSTED)
        place.user({"mcpServers": {"mine": place.canary("mine")}})
        await eventually(lambda: deck.questions() or deck.statuses().get("mine") is S.READY)


def test_A11_servers_inherit_no_more_than_when_gemdeck_started() -> None:
    answers = Answers()
    passed: list[set[str]] = []
    environ = {"A_TOKEN": "a", "B_TOKEN": "b", "OPEN": "o", "SHUT": "s"}
    for allow, block in (("A_TOKEN", "SHUT"), ("B_TOKEN", ""), ("A_TOKEN", "OPEN")):
        settings = GemdeckSettings(environment_allow=(allow,), environment_block=(block,))
        server = define_server(
            ServerId("s"), Origin.USER, Transport.STDIO, inheritance=inheritance_of(settings)
        )
        found = Reading(LoadedSettings(settings, (server,), ()))
        answers = answers.reading(found)
        [now] = plan(found, answers).definitions
        passed.append(set(server_environment(now, environ)))
    assert passed == [{"A_TOKEN", "OPEN"}, {"OPEN"}, {"A_TOKEN"}]


async def test_A11_a_server_that_was_excluded_does_not_start_unasked(place: Place) -> None:
    servers = {"mine": place.canary("mine"), "off": place.canary("off")}
    place.user({"mcpServers": servers, "mcp": {"excluded": ["off"]}})
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        assert deck.statuses()["off"] is S.DISABLED
        place.user(json.dumps({"mcpServers": servers}))
        await deck.answer(TrustAnswer.NOT_NOW)
        assert deck.statuses()["off"] is S.UNTRUSTED
    assert place.words() == ["mine"]


async def test_A11_a_tool_that_was_held_back_waits_for_a_yes_and_holding_one_back_needs_none(
    place: Place,
) -> None:
    place.user({"mcpServers": {"mine": place.canary("mine", excludeTools=["rm", "mv"])}})
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        more = place.canary("mine", excludeTools=["rm", "mv", "cp"])
        place.user({"mcpServers": {"mine": more, "next": place.canary("next")}})
        question = await deck.answer(TrustAnswer.NOT_NOW)
        assert [shown.server for shown in question.servers] == ["next"]
        await deck.reach("mine", S.READY)
        sung = place.words()
        place.user({"mcpServers": {"mine": place.canary("mine", excludeTools=["mv"])}})
        await deck.answer(TrustAnswer.NOT_NOW)
        assert deck.statuses() == {"mine": S.UNTRUSTED}
    assert place.words() == sung
