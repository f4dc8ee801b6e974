"""Consent from the patterns of the command line, where nobody can be asked."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.support.definitions import define_server
from tests.unit.engine.chats.support import make_inquiry, make_policy, make_tool
from tui.engine.approval.gate import Gate
from tui.engine.approval.grants import Grant, GrantBook, GrantNote
from tui.engine.approval.inquiry import Denial
from tui.engine.approval.policy import Policy
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk
from tui.engine.mcp.catalog.permit import Permit
from tui.model.consent import Effect, GrantScope
from tui.model.servers import Origin, ServerId, Transport

Pair = tuple[str, str]


def configured(*servers: str, trust: bool = False) -> list[ServerDefinition]:
    ids = map(ServerId, dict.fromkeys(servers))
    return [define_server(one, Origin.USER, Transport.STDIO, trust=trust) for one in ids]


def headless(
    patterns: Sequence[str], policy: Policy | None = None, servers: Sequence[str] = ("notes",)
) -> Gate:
    desk = Desk(lambda _: None, attended=False)
    if policy is None:
        policy = make_policy()
        policy.configure((), (), configured(*servers))
    return Gate(desk, lambda _: None, policy, patterns)


async def allows(patterns: list[str], pair: Pair, *servers: str) -> bool:
    """Tell whether a tool may run, beside these other servers, none of which is up."""
    server, name = pair
    gate = headless(patterns, servers=(server, *servers))
    outcome = await gate.decide(make_inquiry(make_tool(name, server)))
    assert isinstance(outcome, Permit) or outcome.note
    return isinstance(outcome, Permit)


async def test_a_pattern_means_one_tool_or_one_server() -> None:
    for patterns in (["git.status"], ["git.*"], ["git"], ["other", "git.status"]):
        assert await allows(patterns, ("git", "status")), patterns
    for word in ("", "*", "*.status", "git.st*", "git.status2", "GIT.status", "status", "git."):
        assert not await allows([word], ("git", "status")), word
    assert not await allows([], ("git", "status"))


async def test_names_may_hold_dots_and_a_word_with_two_meanings_allows_neither() -> None:
    for word, pair, other in (
        *(("a.b.c", ("a.b", "c"), "a"), ("a.b.c", ("a", "b.c"), "a.b"), ("a.b", ("a.b", "c"), "a")),
        *(("a.b", ("a", "b"), "a.b"), ("a.*", ("a", "x"), "a.*")),
    ):
        assert await allows([word], pair), word
        assert not await allows([word], pair, other), word
    assert await allows(["a.b.c", "a.b.*"], ("a.b", "c"), "a"), "a clear word counts beside it"


async def test_a_server_that_is_not_configured_cannot_be_named_and_a_trusted_one_need_not() -> None:
    gate = headless(["git"], servers=())
    assert isinstance(await gate.decide(make_inquiry(make_tool("x", "git"))), Denial)
    tool, policy = make_tool("go", trusted=True), make_policy()
    policy.configure((), (), configured(tool.server, trust=True))
    assert isinstance(await headless([], policy).decide(make_inquiry(tool)), Permit)


NAME = st.text(st.sampled_from("ab."), min_size=1, max_size=4)


@given(st.lists(st.tuples(NAME, NAME), min_size=2, max_size=4, unique=True))
async def test_naming_one_tool_never_allows_another(pairs: list[Pair]) -> None:
    named, *others = pairs
    pattern = ".".join(named)
    for other in others:
        if other[0] != pattern and f"{other[0]}.*" != pattern:
            assert not await allows([pattern], other, *(server for server, _ in pairs))


async def test_a_rule_that_asks_is_a_no_where_nobody_can_be_asked() -> None:
    tool = make_tool("go", trusted=True)
    book = GrantBook()
    asking = Grant(Effect.ASK, tool.fingerprint, tool.name, "", GrantScope.SESSION, "", ())
    book.add({asking: GrantNote("notes", "go")})
    policy = make_policy(book)
    policy.configure((), (), configured("notes"))
    gate = headless(["notes.go"], policy)
    assert isinstance(await gate.decide(make_inquiry(tool)), Denial)
