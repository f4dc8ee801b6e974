"""Consent from patterns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine.chat.support import make_tool
from tui.engine.consent.headless import HeadlessConsent
from tui.model.chat import EntryId
from tui.model.consent import Choice

Pair = tuple[str, str]


async def allows(patterns: list[str], pair: Pair, *others: Pair) -> bool:
    tool, *rest = (make_tool(name, server) for server, name in (pair, *others))
    consent = HeadlessConsent(patterns)
    decision = await consent.confirm(EntryId("e"), tool, "{}", [tool, *rest])
    assert bool(decision.note) == (decision.choice is Choice.DENY)
    return decision.choice is Choice.ONCE


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
    tool = make_tool("go", trusted=True)
    decision = await HeadlessConsent([]).confirm(EntryId("e"), tool, "{}", [tool])
    assert decision.choice is Choice.ONCE


NAME = st.text(st.sampled_from("ab."), min_size=1, max_size=4)


@given(st.lists(st.tuples(NAME, NAME), min_size=2, max_size=4, unique=True))
async def test_naming_one_tool_never_allows_another(pairs: list[Pair]) -> None:
    named, *others = pairs
    pattern = ".".join(named)
    for index, other in enumerate(others):
        rest = [named, *others[:index], *others[index + 1 :]]
        if other[0] != pattern:
            assert not await allows([pattern], other, *rest)
