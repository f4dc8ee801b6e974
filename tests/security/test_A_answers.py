"""The question about a folder and what each answer comes to; attacks that worked elsewhere."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from tests.cli.running import run
from tests.conftest import World
from tests.fakes.gemini import KEY
from tests.security.listener import listening
from tests.security.opened import Place, opened, place
from tests.support.definitions import define_server
from tests.unit.engine.mcp.support import eventually
from tui.engine.mcp.transports.stdio.launch import server_environment
from tui.engine.plan import Answers, plan
from tui.engine.reload import Reading
from tui.engine.settings.loader import LoadedSettings, inheritance_of
from tui.engine.trust.opened_folder import OpenedFolder
from tui.model.requests import TrustRequest
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.model.settings import GemdeckSettings
from tui.model.trust import FolderTrust, TrustAnswer, TrustSubject

__all__ = ["place"]

T, S = FolderTrust, ServerStatus


async def test_A03_not_now_holds_for_this_run_and_asks_again_in_the_next(place: Place) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}})
    for _ in range(2):
        async with opened(place) as deck:
            await deck.answer(TrustAnswer.NOT_NOW)
            place.user({"mcpServers": {}})
            deck.engine.servers.start(deck.server("it").id)
            deck.engine.servers.restart_all()
            deck.engine.servers.set_enabled(deck.server("it").id, enabled=True)
            assert deck.trust() is T.UNTRUSTED
            assert deck.statuses() == {"it": S.UNTRUSTED}
            failure = deck.server("it").failure
            assert failure is not None
            assert "Review this folder" in failure.advice
            assert deck.questions() == []
    assert place.songs() == []


async def test_an_answer_is_not_asked_for_again_while_another_file_is_half_written(
    place: Place,
) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}})
    async with opened(place, follow=False) as deck:
        place.user('{"mcpServers": ')
        await deck.answer(TrustAnswer.TRUST)
        await eventually(lambda: deck.state.notices)  # read after the answer was written
        deck.engine.choice.use_demo()
        await deck.reach("notes", S.READY)  # a question would have been raised by now
        assert deck.questions() == []


async def test_an_answer_that_cannot_be_saved_is_told_and_counts_in_this_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **_named: object) -> None:
        raise ZeroDivisionError("a bug")

    place.project({"mcpServers": {"it": place.canary("it")}})
    async with opened(place) as deck:
        with monkeypatch.context() as patched:
            patched.setattr(OpenedFolder, "trust", broken)
            await deck.answer(TrustAnswer.TRUST)
            await eventually(lambda: deck.state.notices)
            [notice] = deck.state.notices
            assert notice.text == "Your answer could not be saved (ZeroDivisionError)."
            await deck.reach("it", S.READY)
    async with opened(place) as deck:
        await deck.question()


async def test_never_and_forgetting_hold_until_the_user_reviews_the_folder(place: Place) -> None:
    place.user({"mcpServers": {"mine": place.canary("mine")}})
    place.project({"mcpServers": {"it": place.canary("it")}})
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.NEVER)
        await eventually(lambda: deck.trust() is T.NEVER)
        await deck.reach("mine", S.READY)
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        assert deck.trust() is T.NEVER
        assert deck.questions() == []
        assert place.words() == ["mine", "mine"]
        deck.engine.review_folder()
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("it", S.READY)
        deck.engine.review_folder()
        await deck.answer(TrustAnswer.NEVER)
        await eventually(lambda: deck.statuses() == {"mine": S.READY})
        deck.engine.review_folder()
        await deck.trust_until("it", S.READY)
        deck.engine.forget_folder()
        await deck.reach("it", S.UNTRUSTED)
        await eventually(lambda: deck.trust() is T.UNTRUSTED)
        await deck.reach("mine", S.READY)
    async with opened(place) as deck:
        assert (await deck.question()).subject is TrustSubject.FOLDER


async def test_an_answer_counts_in_every_open_deck_of_the_folder(place: Place) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}})
    async with opened(place) as first, opened(place) as second:
        await asyncio.gather(first.question(), second.question())
        await first.answer(TrustAnswer.TRUST)
        for deck in (first, second):
            await deck.reach("it", S.READY)
            await eventually(lambda: not deck.questions())  # noqa: B023 - called at once
        second.engine.forget_folder()
        for deck in (second, first):
            await deck.reach("it", S.UNTRUSTED)
    assert place.words() == ["it", "it"]


def added(questions: Sequence[TrustRequest]) -> list[str]:
    """Give what questions say was added since the folder was trusted."""
    return [line.text for one in questions for line in one.difference if line.sign == "+"]


async def test_A22_an_answer_counts_only_for_what_was_shown(place: Place) -> None:
    place.project({"mcpServers": {"it": place.canary("shown")}})
    async with opened(place, follow=False) as deck:
        question = await deck.question()
        place.project({"mcpServers": {"it": place.canary("swapped")}})
        deck.engine.desk.answer(question.id, TrustAnswer.TRUST)
        await eventually(lambda: question not in deck.questions())
        await eventually(lambda: added(deck.questions()) == ["argument swapped"])
        assert question.id not in [one.id for one in deck.questions()]
        deck.engine.desk.answer(question.id, TrustAnswer.TRUST)
        assert deck.statuses() == {"it": S.UNTRUSTED}
        place.project({"mcpServers": {"it": place.canary("shown")}})
        await deck.answer(TrustAnswer.NOT_NOW)
    assert place.songs() == []


async def test_A22_a_question_that_is_outdated_while_it_stands_is_put_anew(place: Place) -> None:
    place.project({"mcpServers": {"it": place.canary("one")}})
    async with opened(place) as deck:
        first = await deck.question()
        place.project({"mcpServers": {"it": place.canary("two")}})
        await eventually(lambda: [q.id for q in deck.questions()] not in ([first.id], []))
        deck.engine.desk.answer(first.id, TrustAnswer.TRUST)
        assert len(deck.questions()) == 1
        place.project({})
        await eventually(lambda: not deck.questions() and not deck.statuses())
        assert deck.trust() is T.NOTHING_TO_TRUST
    assert place.songs() == []


async def headless(place: Place, *arguments: str) -> str:
    """Run ``gemdeck -p`` in the folder with the demo; give what it says on standard error."""
    result = await run("-p", "hello", "--demo", *arguments, cwd=place.folder)
    assert result.code == 0
    return result.stderr


async def test_A08_without_a_screen_a_folder_counts_with_a_yes_to_this_or_where_it_is_named(
    place: Place,
) -> None:
    place.project({"mcpServers": {"lint": place.canary("lint")}})
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("lint", S.READY)
    assert place.words() == ["lint"]
    assert await headless(place) == ""  # a yes to exactly this counts
    assert place.words() == ["lint", "lint"]
    place.project({"mcpServers": {"lint": place.canary("lint"), "new": place.canary("new")}})
    said = await headless(place)
    assert "has changed since you trusted it, so these have no effect: lint, new" in said
    assert place.words() == ["lint", "lint"]
    place.folder.rename(place.home / "gone")
    place.project({"mcpServers": {"lint": place.canary("lint")}})
    link = place.home / "link"
    link.symlink_to(place.folder)
    for arguments in (["--yolo"], ["--trust-folder", str(link), "--trust-folder", "."]):
        said = await headless(place, *arguments)
        assert "have no effect" in said
        assert "lint" in said
        assert f"add --trust-folder {place.folder}" in said
    assert place.words() == ["lint", "lint"]
    said = await headless(
        place, "--trust-folder", "/elsewhere", "--trust-folder", str(place.folder)
    )
    assert "/elsewhere is not this folder" in said
    assert "have no effect" not in said
    assert place.words() == ["lint", "lint", "lint"]
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.NEVER)
        await eventually(lambda: deck.trust() is T.NEVER)
    said = await headless(place, "--trust-folder", str(place.folder), "--yolo")
    assert "You chose never to trust" in said
    assert place.words() == ["lint", "lint", "lint"]


async def test_I10_every_word_on_a_folder_is_recorded(place: Place, world: World) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}})
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("it", S.READY)
        deck.engine.forget_folder()
        await deck.reach("it", S.UNTRUSTED)
        user = place.user({"mcpServers": {"new": place.canary("new")}})
        await deck.answer(TrustAnswer.NOT_NOW)
    async with opened(place, place.folder) as deck:
        await deck.reach("it", S.READY)
    lines = (world.state / "audit.jsonl").read_text("ascii").splitlines()
    found = [json.loads(line) for line in lines]
    assert [(r["event"], r["place"], r["decision"], r["source"]) for r in found] == [
        ("trust", str(place.folder), "trust", "you"),
        ("trust", str(place.folder), "forget", "you"),
        ("trust", f"~/{user.relative_to(place.home)}", "not now", "you"),
        ("trust", str(place.folder), "trusted", "--trust-folder"),
    ]
    assert found[0]["content"] == found[1]["content"] == found[3]["content"] != ""
    assert len(found[2]["content"]) == 64


async def test_I05_a_folder_that_is_not_trusted_says_nothing_about_what_is_masked(
    place: Place,
) -> None:
    crowd = {f"TOKEN_{number}": f"value-{number}" for number in range(3_000)}
    place.project({"mcpServers": {"it": place.canary("it", env={"X_TOKEN": "denied", **crowd})}})
    async with opened(place) as deck:
        await deck.question()
        redactor = deck.redactor
        assert redactor.redact("it was denied") == "it was denied"
        assert KEY not in redactor.redact(f"key {KEY}")


async def test_A01_A03_A06_trustfall_a_clone_runs_and_contacts_nothing_before_the_yes(
    place: Place,
) -> None:
    place.user({"mcpServers": {"mine": place.canary("mine")}})
    place.project({"mcpServers": {"docs": place.canary("shared")}}, ".mcp.json")
    async with listening() as listener:
        servers = {"lint": place.canary("settings"), "net": {"url": f"{listener.url}/mcp"}}
        place.project({"mcpServers": servers, "gemdeck": {"baseUrl": listener.url}})
        place.project(f"GOOGLE_GEMINI_BASE_URL={listener.url}\nHTTP_PROXY={listener.url}\n", ".env")
        async with opened(place) as deck:
            question = await deck.question()
            assert (question.subject, question.place) == (TrustSubject.FOLDER, "~/clone")
            shown = {str(server.server): server for server in question.servers}
            assert shown["lint"].args[-1] == "settings"
            assert shown["docs"].source == "~/clone/.mcp.json"
            await deck.reach("mine", S.READY)
            assert (place.words(), listener.requests) == (["mine"], [])
            withheld = dict.fromkeys(("lint", "docs", "net"), S.UNTRUSTED)
            assert deck.statuses() == {"mine": S.READY, **withheld}
            assert deck.trust() is T.UNTRUSTED
            assert (await deck.answer(TrustAnswer.TRUST_WITH_CHILDREN)).may_include_children
            await deck.reach("lint", S.READY)
            await deck.reach("docs", S.READY)
            await eventually(lambda: listener.requests)
            assert deck.trust() is T.TRUSTED
            await eventually(lambda: len(place.words()) == 4)  # it starts again, in the folder
            assert sorted(place.words()) == ["mine", "mine", "settings", "shared"]
    below = Place(place.home, place.folder / "packages" / "a", place.songs_file)
    below.project({"mcpServers": {"below": place.canary("below")}})
    async with opened(below) as deck:
        await deck.reach("below", S.READY)
        assert deck.questions() == []


async def test_A09_mcpoison_an_edit_of_what_was_trusted_asks_again(place: Place) -> None:
    safe = {"mcpServers": {"build": place.canary("safe"), "other": place.canary("other")}}
    place.project(safe)
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("build", S.READY)
        await deck.reach("other", S.READY)
        evil = json.loads(json.dumps(safe))
        evil["mcpServers"]["build"]["args"][-1] = "evil"
        place.project(evil)
        question = await deck.question()
        assert deck.trust() is T.CHANGED
        signs = {(line.sign, line.text) for line in question.difference}
        assert {("-", "argument safe"), ("+", "argument evil")} <= signs
        assert [server.change for server in question.servers] == ["changed", ""]
        await deck.reach("build", S.UNTRUSTED)
        assert deck.statuses()["other"] is S.READY
        await deck.answer(TrustAnswer.NOT_NOW)
        assert "evil" not in place.words()
        place.project(safe)
        await deck.reach("build", S.READY)
        assert deck.trust() is T.TRUSTED
        assert deck.questions() == []
    assert "evil" not in place.words()
    place.project(evil)
    async with opened(place) as deck:
        question = await deck.question()
        assert question.difference
        await deck.reach("other", S.READY)
        assert deck.statuses()["build"] is S.UNTRUSTED
    assert "evil" not in place.words()
    assert place.words().count("other") == 2


async def test_A11_curxecute_own_settings_edited_meanwhile_start_nothing(place: Place) -> None:
    place.user({"mcpServers": {"git": place.canary("known"), "old": place.canary("old")}})
    async with opened(place) as deck:
        await deck.reach("git", S.READY)
        await deck.reach("old", S.READY)
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
        assert set(deck.statuses().values()) == {S.UNTRUSTED}
        await deck.answer(TrustAnswer.NOT_NOW)
        place.user({"mcpServers": {"git": place.canary("evil"), "mine": place.canary("mine")}})
        question = await deck.question()
        assert {server.server for server in question.servers} == {"git", "mine"}
        assert sorted(place.words()) == ["known", "old"]
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("mine", S.READY)
        await deck.reach("git", S.READY)
        assert sorted(place.words()) == ["evil", "known", "mine", "old"]
        known = {"git": place.canary("evil"), "mine": place.canary("mine")}
        place.user({})
        await eventually(lambda: not deck.statuses())
        place.user({"mcpServers": known})
        await deck.reach("mine", S.READY)
        assert deck.questions() == [], "what was allowed once comes back unasked"


# The user's own settings, edited by somebody else's hand: a no lasts, a loosening waits.


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


@pytest.mark.parametrize("answer", [TrustAnswer.NOT_NOW, TrustAnswer.NEVER])
@pytest.mark.parametrize("way", ["command", "import", "form"])
async def test_A11_only_what_the_user_adds_is_refused_no_longer(
    place: Place, answer: TrustAnswer, way: str
) -> None:
    entry, rest = place.canary("new"), {"mine": place.canary("mine")}
    looser = {"looser": {**entry, "trust": True}}  # by another hand, beside the user's own
    place.user({"mcpServers": rest})
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        place.user({"mcpServers": {**rest, "new": entry}})
        await deck.answer(answer)
    shown = (await run("mcp", "show", "new")).stdout
    assert "you refused it" in shown
    assert "review it in gemdeck (F2, then t), or add it: gemdeck mcp add -s user" in shown
    assert "trust show" not in shown
    await run("mcp", "disable", "new.tool", code=0)
    assert '"excludeTools"' in (place.home / ".gemini" / "settings.json").read_text()
    async with opened(place) as deck:
        await deck.reach("new", S.UNTRUSTED)
    there = {"new": entry} if way == "command" else {}
    place.user({"mcpServers": {**rest, **looser, **there}})
    if way == "command":
        words = ("mcp", "add", "-s", "user", "new", entry["command"], *entry["args"])
        assert "Now ready" in (await run(*words, code=0)).stdout
    elif way == "import":
        (place.home / ".claude.json").write_text(json.dumps({"mcpServers": {"new": entry}}))
        await run("import", "claude-code", "new", code=0)
    else:
        async with opened(place) as deck:
            await asyncio.to_thread(deck.engine.imports.edits.add, "user", "new", entry)
            await deck.reach("new", S.READY)
    async with opened(place) as deck:
        await deck.reach("new", S.READY)
        await deck.reach("looser", S.UNTRUSTED)
    await run("mcp", "remove", "-s", "user", "new", code=0)
    place.user({"mcpServers": {**rest, "new": entry}})
    async with opened(place) as deck:
        await deck.reach("mine", S.READY)
        assert deck.statuses()["new"] is S.UNTRUSTED, "another hand wrote it again"


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
