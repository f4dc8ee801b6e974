"""The policy: what it says and why, what it keeps across runs, what it lists and takes back."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.definitions import define_server
from tests.support.waiting import PATIENCE
from tests.unit.engine.chats.support import make_policy, make_tool, rule
from tui.engine.approval import grants as grants_module
from tui.engine.approval import policy as policy_module
from tui.engine.approval.grants import Grant, GrantBook, GrantNote, GrantSet, read_all, write_all
from tui.engine.approval.policy import Policy
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.files.atomic import locked, write_private
from tui.engine.files.state_file import StateFile
from tui.engine.settings.prohibitions import Permission, Restriction
from tui.model.consent import Condition, ConditionKind, Effect, GrantId, GrantScope
from tui.model.events import Event, GrantsChanged
from tui.model.servers import Origin, ServerId, Transport

NOVEMBER = 1_795_219_200.0
"""21 November 2026, 00:00 UTC, in seconds since the epoch."""


@asynccontextmanager
async def opened(
    path: Path,
    *,
    folder: str = "/work",
    events: list[Event] | None = None,
    clock: Callable[[], float] = lambda: NOVEMBER,
) -> AsyncIterator[Policy]:
    """Open a policy whose grants are in a file."""
    problems: list[str] = []
    file = StateFile(path, fails_closed=True, on_problem=problems.append)
    policy = Policy(GrantBook(file, clock), folder, (events if events is not None else []).append)
    await policy.open()
    yield policy
    await policy.aclose()
    assert problems == []


async def refreshed(policy: Policy, holds: Callable[[], bool]) -> None:
    """Look at the file, until the last own write is done and something holds."""
    with anyio.fail_after(PATIENCE):
        while not holds():
            await anyio.sleep(0.01)
            await policy.refresh()


def stdio(name: str, **more: Any) -> ServerDefinition:  # noqa: ANN401
    return define_server(ServerId(name), Origin.USER, Transport.STDIO, **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path / "grants.json"


def written(path: Path) -> bytes:
    """Read all that is written beside the grants, which are private."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return b"".join(one.read_bytes() for one in path.parent.rglob("*") if one.is_file())


def spoil(path: Path) -> None:
    """Put escape sequences into what a record shows."""
    content = json.loads(path.read_text(encoding="ascii"))
    content["grants"][0]["label"] = ["\x1b]0;x\x07", "\x1b[31m"]
    content["grants"][0]["words"] = "\x1b[1m"
    path.write_text(json.dumps(content), encoding="ascii")


async def test_saved_grants_hold_in_later_runs_and_those_of_a_session_do_not(path: Path) -> None:
    everywhere, here, now = map(make_tool, ("everywhere", "here", "fleeting"))
    async with opened(path) as policy:
        policy.allow([everywhere], GrantScope.EVERYWHERE, "always this tool")
        policy.allow([here], GrantScope.FOLDER, "always this tool")
        policy.allow([now], GrantScope.SESSION, "always this tool")
        assert policy.judge(now).effect is Effect.ALLOW
    assert b"everywhere" in written(path)
    assert b"fleeting" not in written(path)
    async with opened(path) as policy:
        effects = [policy.judge(tool).effect for tool in (everywhere, here, now)]
        assert effects == [Effect.ALLOW, Effect.ALLOW, Effect.ASK]
        policy.allow([now], GrantScope.SESSION, "always this tool")
        for rule in policy.views():
            policy.save(rule.id)  # only the one of the session changes
        scopes = {view.tool: view.scope for view in policy.views()}
        assert scopes.pop("everywhere") == "saved everywhere"
        assert scopes == dict.fromkeys(("here", "fleeting"), "saved for /work")
    async with opened(path) as policy:
        assert policy.judge(now).effect is Effect.ALLOW, "it was saved from the list"
    async with opened(path, folder="/elsewhere") as policy:
        effects = [policy.judge(tool).effect for tool in (everywhere, here)]
        assert effects == [Effect.ALLOW, Effect.ASK]


async def test_a_verdict_says_its_origin(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(policy_module.EFFECTS, Effect.ALLOW, "Runs: unasked")
    async with opened(path) as policy:
        policy.allow([make_tool("go")], GrantScope.FOLDER, "always this tool")
        verdict = policy.judge(make_tool("go"))
        asked = policy.judge(make_tool("other"))
    assert verdict.source.startswith("you chose always this tool, for this folder")
    assert verdict.words.endswith(", for this folder.")
    assert f"Runs: unasked: {verdict.source}." == verdict.words
    assert "no rule allows it" in asked.words


async def test_what_is_revoked_is_asked_about_again_also_in_later_runs(path: Path) -> None:
    events: list[Event] = []
    async with opened(path, events=events) as policy:
        policy.allow([make_tool("go")], GrantScope.EVERYWHERE, "always this tool")
        policy.revoke(GrantId("no such grant"))
        policy.revoke(policy.views()[0].id)
        assert policy.judge(make_tool("go")).effect is Effect.ASK
    lists = [event.grants for event in events if isinstance(event, GrantsChanged)]
    assert [len(grants) for grants in lists] == [1, 0]
    async with opened(path) as policy:
        assert policy.views() == ()


async def test_two_gemdecks_keep_each_others_grants_and_revocations(path: Path) -> None:
    async with opened(path) as first:
        first.allow([make_tool("gone")], GrantScope.EVERYWHERE, "always this tool")
    async with opened(path) as first, opened(path) as second:
        first.allow([make_tool("one")], GrantScope.EVERYWHERE, "always this tool")
        second.revoke(second.views()[0].id)
        second.allow([make_tool("two")], GrantScope.EVERYWHERE, "always this tool")
        first.used(first.judge(make_tool("gone")))
    async with opened(path) as later:
        assert sorted(view.tool for view in later.views()) == ["one", "two"]


async def test_what_another_gemdeck_revokes_or_saves_counts_here_at_once(path: Path) -> None:
    mine, theirs = make_tool("mine"), make_tool("theirs")
    told: list[Event] = []
    async with opened(path, events=told) as here:
        async with opened(path) as there:
            here.allow([mine], GrantScope.EVERYWHERE, "always this tool")
            here.allow([theirs], GrantScope.SESSION, "always this tool")
            there.allow([theirs], GrantScope.EVERYWHERE, "always this tool")
            await refreshed(there, lambda: there.judge(mine).effect is Effect.ALLOW)
            [saved] = [view for view in there.views() if view.tool == "mine"]
            there.revoke(saved.id)
        judged_again: list[None] = []
        here.on_denials = lambda: judged_again.append(None)
        assert here.judge(mine).effect is Effect.ALLOW
        before = here.state
        await refreshed(here, lambda: here.judge(mine).effect is Effect.ASK)
        assert judged_again == [None]
        assert here.state != before, "verdicts that were remembered do not hold any more"
        assert (told[-1], here.judge(theirs).effect) == (GrantsChanged(here.views()), Effect.ALLOW)
        assert {view.scope for view in here.views()} == {"this session", "saved everywhere"}


async def test_an_unwritten_grant_stays_given(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, old, new = StateFile.load, make_tool("old"), make_tool("new")
    loop = asyncio.get_running_loop()

    def give_one_meanwhile(file: StateFile) -> dict[str, object] | None:
        found = load(file)
        loop.call_soon_threadsafe(policy.allow, [new], GrantScope.EVERYWHERE, "")
        return found

    async with opened(path) as there:
        there.allow([old], GrantScope.EVERYWHERE, "")
    async with opened(path) as there, opened(path) as policy:
        there.revoke(there.views()[0].id)
        await there.aclose()
        with monkeypatch.context() as reading:
            reading.setattr(StateFile, "load", give_one_meanwhile)
            await policy.refresh()
        assert policy.judge(new).effect is Effect.ALLOW
        await refreshed(policy, lambda: policy.judge(old).effect is Effect.ASK)
        assert policy.judge(new).effect is Effect.ALLOW


async def test_a_grant_that_waits_outlasts_what_another_gemdeck_wrote(path: Path) -> None:
    mine, other = make_tool("mine"), make_tool("other")
    async with opened(path) as there:
        there.allow([other], GrantScope.EVERYWHERE, "")
    async with opened(path) as here:
        assert here.judge(other).effect is Effect.ALLOW
        with locked(path):
            here.allow([mine], GrantScope.EVERYWHERE, "")
            write_private(path, b'{"version": 1, "grants": []}')
            await here.refresh()
            assert here.judge(mine).effect is Effect.ALLOW
        await refreshed(here, lambda: here.judge(other).effect is Effect.ASK)
        assert here.judge(mine).effect is Effect.ALLOW
    async with opened(path) as later:
        assert later.judge(mine).effect is Effect.ALLOW


async def test_many_uses_are_kept_in_one_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as policy:
        policy.allow([make_tool("go")], GrantScope.EVERYWHERE, "always this tool")
    written: list[bytes] = []
    original = StateFile.update

    def update(self: StateFile, change: Callable[[dict[str, object]], dict[str, object]]) -> object:
        written.append(b"")
        return original(self, change)

    monkeypatch.setattr(StateFile, "update", update)
    events: list[Event] = []
    async with opened(path, events=events, clock=lambda: NOVEMBER + 60) as policy:
        for _ in range(1_000):
            policy.used(policy.judge(make_tool("go")))
        assert policy.views()[0].used_at == NOVEMBER + 60
    assert len(written) == 1
    lists = [event.grants for event in events if isinstance(event, GrantsChanged)]
    assert [grants[0].used_at for grants in lists if grants[0].used_at] == [NOVEMBER + 60]
    async with opened(path) as policy:
        [view] = policy.views()
        assert (view.granted_at, view.used_at) == (NOVEMBER, NOVEMBER + 60)


async def test_the_list_shows_all_rules_newest_first_and_which_can_be_revoked() -> None:
    now = iter((1.0, 2.0))
    policy = make_policy(GrantBook(clock=lambda: next(now)), allows_all=True)
    policy.allow([make_tool("old")], GrantScope.SESSION, "always this tool")
    policy.allow([make_tool("new")], GrantScope.FOLDER, "always this server")
    trusted = stdio("git", trust=True, source="~/.gemini/settings.json")
    policy.configure([rule("a", "b*")], [rule("*", "rm")], [trusted])
    rows = [(v.effect, v.server, v.tool, v.scope, v.origin, v.revocable) for v in policy.views()]
    settings = "settings"
    assert rows == [
        (Effect.ALLOW, "*", "*", "this session", "--yolo", False),
        (Effect.ALLOW, "notes", "new", "saved for /work", "you: always this server", True),
        (Effect.ALLOW, "notes", "old", "this session", "you: always this tool", True),
        (Effect.DENY, "*", "rm", settings, "settings: gemdeck.alwaysDeny", False),
        (Effect.ALLOW, "a", "b*", settings, "settings: gemdeck.alwaysAllow", False),
        (Effect.ALLOW, "git", "*", settings, "trust: true in ~/.gemini/settings.json", False),
    ]
    assert len({view.id for view in policy.views()}) == len(rows)


def test_trust_of_a_server_counts_only_in_a_folder_with_a_yes() -> None:
    tool = replace(make_tool("go"), trusted=True)
    own = stdio(tool.server, trust=True, source="it")
    policy = make_policy()
    policy.configure((), (), [replace(own, trust=False)])  # taken back since it was offered
    assert policy.judge(tool).effect is Effect.ASK
    policy.configure((), (), [own])
    assert policy.judge(tool).effect is Effect.ALLOW
    policy.configure((), (), [own], "counts elsewhere")
    assert policy.judge(tool).effect is Effect.ASK
    why = "its server has trust: true in it, which counts elsewhere"
    assert policy.judge(tool).words == f"Ask every time: {why}."
    assert policy.judge(make_tool("go")).words.endswith("no rule allows it.")
    [view] = policy.views()
    assert (view.effect, view.origin) == (Effect.ASK, "trust: true in it, which counts elsewhere")
    policy.configure([rule(tool.server, "go")], (), [own], "counts elsewhere")
    assert policy.judge(tool).effect is Effect.ALLOW


async def test_hostile_text_in_a_record_is_harmless_in_the_list(path: Path) -> None:
    evil = "go\x1b[2J\u202e"
    async with opened(path) as policy:
        policy.allow([make_tool(evil)], GrantScope.EVERYWHERE, "always this tool")
    spoil(path)
    async with opened(path) as policy:
        assert "\x1b" not in str(policy.views())
        assert "\x1b" not in policy.judge(make_tool(evil)).words
        assert policy.judge(make_tool(evil)).effect is Effect.ALLOW


def test_a_rule_that_asks_wins_over_permission_but_not_over_yolo() -> None:
    tool = make_tool("go", trusted=True)
    asking = Grant(Effect.ASK, tool.fingerprint, None, "", GrantScope.EVERYWHERE, "", ())
    trusted = stdio(tool.server, trust=True)
    for allows_all, effect in ((False, Effect.ASK), (True, Effect.ALLOW)):
        book = GrantBook()
        book.grants.put(asking, GrantNote("notes", ""))
        policy = make_policy(book, allows_all=allows_all)
        policy.configure([], [], [trusted])
        assert policy.judge(tool).effect is effect


def test_yolo_that_the_settings_switch_off_neither_allows_nor_is_shown() -> None:
    policy = make_policy(allows_all=True)
    policy.configure((), [Restriction(voids=(Permission.YOLO,))], ())
    assert (policy.judge(make_tool("go")).effect, policy.views()) == (Effect.ASK, ())


def test_many_permissions_push_no_prohibition_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants_module, "MAX_GRANTS", 3)
    grants = GrantSet()
    denied = Grant(Effect.DENY, "fp", None, "", GrantScope.EVERYWHERE, "", ())
    names = [f"t{number}" for number in range(5)]
    allowed = [Grant.allowing(make_tool(name), GrantScope.EVERYWHERE) for name in names]
    for grant in (denied, *allowed):
        grants.put(grant, GrantNote("s", "t"))
    assert list(grants) == [denied, *allowed[-2:]]
    kept = read_all(write_all({grant: GrantNote("s", "t") for grant in (denied, *allowed)}))
    assert kept.keys() == set(grants)


def test_a_tool_that_a_rule_on_arguments_allows_is_not_said_to_have_none() -> None:
    book = GrantBook()
    condition = (Condition("path", ConditionKind.ANY, ""),)
    rule = Grant.allowing(make_tool("go"), GrantScope.EVERYWHERE, conditions=condition)
    book.grants.put(rule, GrantNote("git", "go"))
    policy = make_policy(book)
    told = policy.judge(make_tool("go"))
    assert told.words == "Ask every time: except where a rule on arguments allows it."
    assert policy.judge(make_tool("go"), {"path": "x"}).effect is Effect.ALLOW
    assert policy.judge(make_tool("go"), {"other": "x"}).words.endswith("no rule allows it.")
    assert policy.judge(make_tool("stay")).words.endswith("no rule allows it.")


def test_a_denied_server_hides_all_its_tools_until_that_is_revoked() -> None:
    definition = stdio("git", fingerprint="what git is")
    book = GrantBook()
    rule = Grant(Effect.DENY, "what git is", None, "", GrantScope.SESSION, "", ())
    book.grants.put(rule, GrantNote("git", ""))
    condition = Condition("path", ConditionKind.IS, '"/etc"')
    some = replace(rule, fingerprint="another", conditions=(condition,))
    book.grants.put(some, GrantNote("other", ""))
    policy = make_policy(book)
    again: list[None] = []
    policy.on_denials = lambda: again.append(None)
    assert set(policy.hidden(definition, [("a", "h"), ("b", "h")])) == {"a", "b"}
    other = replace(definition, fingerprint="another")
    assert policy.hidden(other, [("a", "h")]) == {}, "some calls of it are allowed"
    policy.revoke(rule.id)
    assert (policy.hidden(definition, [("a", "h")]), again) == ({}, [None])
