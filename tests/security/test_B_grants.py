"""What a permission covers: one tool of one server as it was shown, and nothing beside it."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.definitions import define_server
from tests.unit.engine.chats.support import make_policy, make_tool, rule
from tui.engine.approval import grants as g
from tui.engine.approval.grants import Grant, GrantNote, GrantSet
from tui.engine.approval.policy import DenyingPatterns
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.argument_rules import canonical_value
from tui.engine.mcp.catalog.offered_tool import OfferedTool
from tui.model.catalog import ToolId
from tui.model.consent import Condition, ConditionKind, Effect, GrantScope
from tui.model.servers import Origin, ServerId, Transport
from tui.model.settings import ToolPattern

NOTE = GrantNote("notes", "go")
WORDS = st.text(st.sampled_from("ab._*/ "), min_size=1, max_size=4)
TUPLES = st.tuples(WORDS, WORDS, WORDS)


def offered(identity: tuple[str, str, str]) -> OfferedTool:
    fingerprint, tool, definition_hash = identity
    return make_tool(tool, "s", fingerprint=fingerprint, definition_hash=definition_hash)


def definition(name: str, origin: Origin = Origin.USER, *, trust: bool = False) -> ServerDefinition:
    return define_server(ServerId(name), origin, Transport.STDIO, trust=trust)


def judged(
    tool: OfferedTool,
    allow: list[ToolPattern] | None = None,
    deny: list[ToolPattern] | None = None,
    origin: Origin = Origin.USER,
) -> Effect:
    policy = make_policy()
    policy.configure(allow or (), deny or (), [definition(tool.server, origin)])
    return policy.judge(tool, {}).effect


@given(st.lists(TUPLES, max_size=6), TUPLES)
def test_B01_different_tools_never_share_a_grant(
    granted: list[tuple[str, str, str]], asked: tuple[str, str, str]
) -> None:
    policy = make_policy()
    for identity in granted:
        policy.allow([offered(identity)], GrantScope.SESSION, "always this tool")
    allowed = policy.judge(offered(asked), {}).effect is Effect.ALLOW
    assert allowed == (asked in granted)


def test_B02_a_grant_is_about_a_definition_and_a_server_not_about_their_names() -> None:
    policy = make_policy()
    policy.allow([make_tool("go")], GrantScope.SESSION, "always this tool")
    assert policy.judge(make_tool("go")).effect is Effect.ALLOW
    assert policy.judge(make_tool("go", definition_hash="other")).effect is Effect.ASK
    assert policy.judge(make_tool("go", fingerprint="another program")).effect is Effect.ASK
    renamed = make_tool("go", "renamed", fingerprint="what notes is")
    assert policy.judge(renamed).effect is Effect.ALLOW, "the same server under another name"
    policy.allow([make_tool("c", "a.b")], GrantScope.SESSION, "always this tool")
    assert policy.judge(make_tool("b.c", "a")).effect is Effect.ASK, "dots join nothing"


def test_B02_nothing_lasting_is_granted_to_what_cannot_be_recognised() -> None:
    policy = make_policy()
    policy.allow([make_tool("go", fingerprint="")], GrantScope.EVERYWHERE, "always this tool")
    assert policy.judge(make_tool("go", fingerprint="")).effect is Effect.ASK
    assert policy.views() == ()


LOOK_ALIKES = {
    "read_file": (
        *("read_fiIe", "READ_FILE", "re\u0430d_file", "read\u200b_file"),
        "\uff52\uff45\uff41\uff44\uff3f\uff46\uff49\uff4c\uff45",
    ),
    "read_*": ("R\u0415AD_all",),
    "*": ("anything at all \u202e",),
    "delete_*": ("delete\u00adsoft_x", "delete sp", " delete_sp", "\u3164delete_x"),
    "delete⟨U+00AD⟩x": ("delete\u00adx",),
}
"""Names for patterns that deny."""


@pytest.mark.parametrize(
    ("pattern", "name"),
    [(pattern, name) for pattern in LOOK_ALIKES for name in LOOK_ALIKES[pattern]],
)
def test_B04_a_rule_that_denies_catches_what_looks_like_its_name(pattern: str, name: str) -> None:
    assert any(DenyingPatterns([rule("files", pattern)]).find("FILES", name))
    assert judged(make_tool(name, "files"), deny=[rule("files", pattern)]) is Effect.DENY
    assert judged(make_tool(name, "FILES"), allow=[rule("files", pattern)]) is Effect.ASK
    assert not any(DenyingPatterns([rule("other", pattern)]).find("FILES", name))


def test_B04_a_rule_that_denies_catches_the_name_that_the_model_has() -> None:
    offered = replace(make_tool("push", "files"), id=ToolId("files__push"))
    assert judged(offered, deny=[rule("*", "files__*")]) is Effect.DENY
    assert judged(offered, deny=[rule("*", "other__*")]) is Effect.ASK


@pytest.mark.parametrize(
    "name", ["", "a" * 129, "a b", "re\u0430d", "read\n", "a/b", "⟨U+202E⟩", "read\u200b"]
)
def test_B04_a_rule_that_allows_takes_no_name_that_tools_may_not_have(name: str) -> None:
    assert judged(make_tool(name, "files"), allow=[rule("*", "*")]) is Effect.ASK


MATCHING = (
    *("notes/go go", "notes/g* go", "n*s/*o go", "*/* go", "notes/read_*_only read_all_only"),
    *("notes/*go*go* go_and_go", "notes/a*b*c a_c_b_c"),
)
"""A server's name, a pattern and a tool of that server."""

OTHERS = (
    *("notes/g go", "notes/o go", "note/* go", "Notes/go go", "notes.go/* go", "notes/notes.go go"),
    *("notes/[g]o go", "notes/g.* go", "notes/go*go go", "notes/read_*_only read_everything"),
    *("notes/*_only read_all", "notes/*go*go* go_and_stay", "notes/a*b*c*d a_c_b_d"),
    *("notes/a*c a_b", "notes/a*bc*bc a_bc", "notes/aXb*bXa aXbXa"),
)


@pytest.mark.parametrize("words", [*MATCHING, *OTHERS])
def test_B05_a_pattern_matches_whole_names_only_and_every_piece_of_it_counts(words: str) -> None:
    pattern, name = words.split()
    expected = Effect.ALLOW if words in MATCHING else Effect.ASK
    assert judged(make_tool(name), allow=[rule(*pattern.split("/"))]) is expected


@pytest.mark.parametrize(
    ("trusted", "allowed", "denied", "granted", "yolo"), product([True, False], repeat=5)
)
def test_B05_denying_wins_over_every_permission(
    *, trusted: bool, allowed: bool, denied: bool, granted: bool, yolo: bool
) -> None:
    policy = make_policy(allows_all=yolo)
    rules = [rule("notes", "go")]
    tool = make_tool("go", trusted=trusted)
    server = replace(definition("notes"), trust=trusted)
    policy.configure(rules if allowed else [], rules if denied else [], [server])
    if granted:
        policy.allow([tool], GrantScope.SESSION, "always this tool")
    effect = policy.judge(tool, {}).effect
    any_permission = trusted or allowed or granted or yolo
    assert effect is (Effect.DENY if denied else Effect.ALLOW if any_permission else Effect.ASK)


def test_B05_a_project_cannot_name_its_server_into_a_permission() -> None:
    rules = [rule("*", "*")]
    assert judged(make_tool("go"), allow=rules, origin=Origin.PROJECT) is Effect.ASK
    assert judged(make_tool("go"), deny=rules, origin=Origin.PROJECT) is Effect.DENY


def conditional(name: str, value: object, effect: Effect = Effect.ALLOW) -> Grant:
    condition = Condition(name, ConditionKind.IS, canonical_value(value))
    tool = make_tool("go")
    identity = (tool.fingerprint, tool.name, tool.definition_hash)
    return Grant(effect, *identity, GrantScope.SESSION, "", (condition,))


@pytest.mark.parametrize(
    "value",
    [
        *("git status; rm -rf ~", "git status && id", "git status\n", " git status", "GIT STATUS"),
        *("git statuses", "git", "", None, ["git status"], {"command": "git status"}, True),
    ],
)
def test_B12_a_condition_takes_the_one_value_and_no_other(value: object) -> None:
    grants = GrantSet()
    grants.put(conditional("text", "git status"), NOTE)
    tool = make_tool("go")
    assert grants.find(tool, {"text": "git status"}, "") != []
    assert grants.find(tool, {"text": "git status", "more": 1}, "") == []
    assert grants.find(tool, {"text": value}, "") == []
    assert grants.find(tool, {}, "") == []
    assert grants.find(tool, None, "") == []
    grants.put(conditional("n", 1), NOTE)
    assert grants.find(tool, {"n": 1}, "") != []
    for other in (True, "1", [1], 1.5, 1.0):
        assert grants.find(tool, {"n": other}, "") == []


def test_B12_paths_are_compared_after_links_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "safe").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "safe")
    grants = GrantSet()
    grants.put(conditional("path", str(tmp_path / "safe")), NOTE)
    tool = make_tool("go")
    for way in ("safe", "link", "secret/../safe", "safe/"):
        assert grants.find(tool, {"path": f"{tmp_path}/{way}"}, "") != []
    for way in ("safe/../secret", "secret", "safe/more", "safes"):
        assert grants.find(tool, {"path": f"{tmp_path}/{way}"}, "") == []
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    assert grants.find(tool, {"path": str(tmp_path / "link")}, "") == []


CONDITIONS = st.one_of(
    st.builds(Condition, WORDS, st.just(ConditionKind.IS), st.integers().map(canonical_value)),
    st.builds(Condition, WORDS, st.sampled_from([*ConditionKind][1:3]), WORDS),
    st.builds(Condition, WORDS, st.just(ConditionKind.ANY)),
)
GRANTS = st.builds(
    Grant,
    st.sampled_from(Effect),
    WORDS,
    WORDS | st.none() | st.just("\ud800"),
    WORDS | st.just(""),
    st.sampled_from([GrantScope.FOLDER, GrantScope.EVERYWHERE]),
    st.sampled_from(["", "/work"]),
    st.lists(CONDITIONS, max_size=2).map(tuple),
)


@given(st.lists(GRANTS, unique=True, max_size=5))
def test_B01_what_is_saved_is_what_is_read(grants: list[Grant]) -> None:
    valid = {grant: GrantNote("s", "t", "w", 1.0, None) for grant in grants if grant.is_valid}
    text = json.dumps(g.write_all(valid))
    assert g.read_all(json.loads(text)) == valid
    assert len({grant.id for grant in valid}) == len(valid)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("effect", "permit"), ("server", ""), ("tool", None), ("tool", 5), ("tool", "not JSON")),
        *(("definition", ""), ("scope", "SESSION"), ("scope", "FOLDER"), ("folder", "/work")),
        *(("arguments", [["text"]]), ("arguments", "text"), ("arguments", [["text", "is", 5]])),
        *(("arguments", [["a", "is", "{"]]), ("arguments", [["a", "any", "b"]])),
        *(("arguments", [["a", "starts", ""]]), ("arguments", [["a", "like", "b"]])),
        *(("arguments", [["a", "folder", "x" * 501]]), ("arguments", [["a", "any", ""]] * 31)),
        *(("arguments", [["a", '{"b": 1, "b": 2}']]), ("arguments", [["a", "is", "1", "2"]])),
    ],
)
def test_B05_a_record_that_says_less_than_it_must_allows_nothing(field: str, value: object) -> None:
    words = {"effect": "allow", "server": "f", "tool": '"go"', "definition": "h", "folder": ""}
    entry = {**words, "scope": "EVERYWHERE", "arguments": []}
    assert len(g.read_all([entry])) == 1
    assert g.read_all([{**entry, field: value}]) == {}


def test_B02_a_grant_for_a_folder_holds_in_no_other(tmp_path: Path) -> None:
    tool = make_tool("go")
    grant = Grant.allowing(tool, GrantScope.FOLDER, str(tmp_path))
    assert grant.covers(tool, {}, str(tmp_path))
    assert not grant.covers(tool, {}, f"{tmp_path}2")
    assert not grant.covers(tool, {}, str(tmp_path / "child"))
    assert not grant.covers(tool, {}, "")


def test_B01_a_grant_has_a_short_name_of_its_own_and_one_that_says_too_little_is_not_kept() -> None:
    known, one = GrantSet(), Grant.allowing(make_tool("go"), GrantScope.EVERYWHERE)
    known.put(one, NOTE)
    for bad in (
        replace(one, fingerprint=""),
        replace(one, definition_hash=""),
        replace(one, folder="/w"),
        replace(one, scope=GrantScope.FOLDER),
        replace(one, conditions=(Condition("a", ConditionKind.STARTS),)),
    ):
        known.put(bad, NOTE)
        assert bad.id != one.id
    assert [*known] == [one]
    assert len(one.id) == 32
    assert known.named(one.id) == one
