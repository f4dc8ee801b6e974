"""Consent from the patterns of the command line, where nobody can be asked."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine.chat.support import make_inquiry, make_policy, make_tool, rule
from tui.engine.consent.grant_store import GrantBook
from tui.engine.consent.grants import Grant, GrantNote
from tui.engine.consent.policy import Policy
from tui.engine.consent.tool_approval import ToolApproval
from tui.engine.consent.tool_patterns import unmatched
from tui.engine.desk import Desk
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.model.consent import Effect, GrantScope
from tui.model.servers import Origin, Transport

Pair = tuple[str, str]


def headless(patterns: Sequence[str], policy: Policy | None = None) -> ToolApproval:
    desk = Desk(lambda _: None, attended=False)
    return ToolApproval(desk, lambda _: None, policy or make_policy(), patterns)


async def allows(patterns: list[str], pair: Pair, *others: Pair) -> bool:
    tool, *rest = (make_tool(name, server) for server, name in (pair, *others))
    consent = headless(patterns)
    answer = await consent.confirm(make_inquiry(tool, *rest))
    assert bool(answer.note) is not answer.allows
    return answer.allows


@pytest.mark.parametrize(
    ("patterns", "allowed"),
    [
        (["git.status"], True),
        (["git.*"], True),
        (["git"], True),
        (["other", "git.status"], True),
        ([], False),
        ([""], False),
        (["*"], False),
        (["*.status"], False),
        (["git.st*"], False),
        (["git.statu"], False),
        (["git.status2"], False),
        (["GIT.status"], False),
        (["status"], False),
        (["git."], False),
        ([".*"], False),
    ],
)
async def test_a_pattern_means_one_tool_or_one_server(
    patterns: list[str], *, allowed: bool
) -> None:
    assert await allows(patterns, ("git", "status"), ("git", "log")) is allowed


async def test_names_may_hold_dots() -> None:
    assert await allows(["a.b.c"], ("a.b", "c"))
    assert await allows(["a.b.c"], ("a", "b.c"))
    assert await allows(["a.b"], ("a.b", "c"))


async def test_a_pattern_with_two_meanings_allows_neither() -> None:
    assert not await allows(["a.b.c"], ("a.b", "c"), ("a", "b.c"))
    assert not await allows(["a.b.c"], ("a", "b.c"), ("a.b", "c"))
    assert not await allows(["a.b"], ("a", "b"), ("a.b", "c"))
    assert not await allows(["a.*"], ("a", "x"), ("a", "*"))


async def test_a_clear_pattern_still_counts_beside_an_unclear_one() -> None:
    assert await allows(["a.b.c", "a.b.*"], ("a.b", "c"), ("a", "b.c"))


async def test_a_trusted_server_needs_no_pattern() -> None:
    tool, policy = make_tool("go", trusted=True), make_policy()
    origin, transport = Origin.USER, Transport.STDIO
    policy.configure((), (), [ServerDefinition(tool.server, origin, transport, trust=True)])
    assert (await headless([], policy).confirm(make_inquiry(tool))).allows


async def test_a_rule_that_denies_wins_over_the_list_and_over_yolo() -> None:
    tool = make_tool("go", trusted=True)
    for allows_all in (False, True):
        policy = make_policy(allows_all=allows_all)
        policy.configure((), [rule("notes", "g*")], ())
        answer = await headless(["notes.go"], policy).confirm(make_inquiry(tool))
        assert not answer.allows
        assert "forbids" in answer.note


async def test_yolo_allows_what_no_rule_denies() -> None:
    consent = headless([], make_policy(allows_all=True))
    assert (await consent.confirm(make_inquiry(make_tool("go")))).allows


def test_names_that_mean_nothing_or_two_things_are_told() -> None:
    offered = [make_tool("c", "a.b"), make_tool("b.c", "a"), make_tool("status", "git")]
    patterns = ["git.statu", "a.b.c", "git", "git.status", "a.b"]
    assert unmatched(patterns, offered) == ("git.statu", "a.b.c")


NAME = st.text(st.sampled_from("ab."), min_size=1, max_size=4)


@given(st.lists(st.tuples(NAME, NAME), min_size=2, max_size=4, unique=True))
async def test_naming_one_tool_never_allows_another(pairs: list[Pair]) -> None:
    named, *others = pairs
    pattern = ".".join(named)
    for index, other in enumerate(others):
        rest = [named, *others[:index], *others[index + 1 :]]
        if other[0] != pattern:
            assert not await allows([pattern], other, *rest)


async def test_a_rule_that_asks_is_a_no_where_nobody_can_be_asked() -> None:
    tool = make_tool("go", trusted=True)
    book = GrantBook()
    asking = Grant(Effect.ASK, tool.fingerprint, tool.name, "", GrantScope.SESSION, "", ())
    book.add({asking: GrantNote("notes", "go")})
    answer = await headless(["notes.go"], make_policy(book)).confirm(make_inquiry(tool))
    assert not answer.allows
