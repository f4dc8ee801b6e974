"""Rules on arguments: what they allow and deny, attacked; and tools that are said to only read."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.security.decks import Play, Turncoat, called, calling, tool
from tests.support.definitions import define_server
from tests.unit.engine.chats.support import make_policy, make_tool, rule
from tests.unit.engine.mcp.support import eventually
from tui.engine.approval.grants import Grant, GrantBook, GrantNote, read_all, write_all
from tui.engine.approval.policy import Policy
from tui.engine.mcp.catalog.argument_rules import ArgumentRule
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.catalog.permit import Permit
from tui.model.consent import (
    Choice,
    Condition,
    ConditionKind,
    Decision,
    Effect,
    GrantScope,
    conditions_words,
    exact_text,
)
from tui.model.requests import ConfirmationRequest
from tui.model.servers import Origin, ServerId, Transport
from tui.model.settings import GemdeckSettings, ToolPattern

IS, FOLDER, STARTS, ANY = ConditionKind


def limit(
    place: Path | str = "", start: str = "", **arguments: Mapping[str, object]
) -> ArgumentRule:
    """Make what a rule of the settings wants of arguments."""
    pattern = ToolPattern.model_validate({"arguments": arguments})
    return ArgumentRule(pattern.conditions, start or str(place), str(place))


@pytest.fixture
def shop_folder(tmp_path: Path) -> Path:
    """A folder ``docs`` beside a secret one, with links into, out of and around them."""
    place = tmp_path.resolve()
    for name in ("docs/deep", "docs-of-others", "secret"):
        (place / name).mkdir(parents=True)
    (place / "docs/out").symlink_to(place / "secret")
    (place / "docs/deep/up").symlink_to(place / "docs")
    (place / "docs/loop").symlink_to(place / "docs/loop")
    (place / "in").symlink_to(place / "docs")
    return place


INSIDE: Final = ("{}/docs", "{}/docs/", "{}/docs/a", "{}/docs/new/a", "{}/in/a", "{}/docs/./a")
INSIDE_TOO: Final = ("docs/a", "./docs", "{}/docs/deep/up/a", "{}/secret/../docs/a", "{}//docs//a")
OUTSIDE: Final = (
    *("{}/docs/../secret/a", "{}/docs/a/../../secret", "{}/docs-of-others/a", "{}/docsa", "{}"),
    *("/", "{}/docs/out", "{}/docs/out/a", "{}/docs/out/../a", "docs/../secret", "..", "", "."),
    *("~/docs/a", "~root/docs", "file://{}/docs/a", "file:{}/docs/a", "FILE://{}/docs/a"),
    *("x://docs", "{}/docs/a\0", "{}/docs/a\0/../../../secret", "{}/docs/a\n", " {}/docs/a"),
    *("{}/docs/a ", "{}\\docs\\a", "{}/docs/..\\..\\secret", "{}/docs/$HOME", "{}/docs/\ud800"),
    *("{}/DOCS/a", "{}/\uff44\uff4f\uff43\uff53/a", "{}/docs\u200b/a", "{}/docs/" + "a/" * 2_100),
    *("/etc/passwd", "{}/docs/%2e%2e/secret", "{}/docs/..%2fsecret", "{}/docs/%252e%252e/secret"),
    *("{}/docs/\uff0e\uff0e/secret", "{}/docs/\u2024\u2024/secret", "{}/docs/..\uff0fsecret"),
)


@pytest.mark.parametrize("path", [*INSIDE, *INSIDE_TOO, *OUTSIDE])
def test_B17_a_folder_is_what_lies_in_it_and_nothing_that_may_be_read_as_that(
    shop_folder: Path, path: str
) -> None:
    docs = limit(shop_folder, path={"folder": f"{shop_folder}/docs"})
    path = path.replace("{}", str(shop_folder))
    assert docs.allows({"path": path}) == (
        path.replace(str(shop_folder), "{}") in INSIDE + INSIDE_TOO
    )
    elsewhere = replace(docs, start="")  # on another machine, or nobody knows
    assert not elsewhere.allows({"path": path})


def test_B12_B17_a_link_that_is_bent_after_the_rule_was_made_leads_nowhere(
    shop_folder: Path,
) -> None:
    docs, secret = shop_folder / "docs", shop_folder / "secret"
    of_folder = limit(shop_folder, path={"folder": str(docs)})
    exactly = limit(shop_folder, path={"is": str(docs / "a")})
    call = {"path": str(docs / "a")}
    assert of_folder.allows(call)
    assert exactly.allows(call)
    (docs / "a").symlink_to(secret / "a")
    assert not of_folder.allows(call)
    assert not exactly.allows(call)
    (docs / "a").unlink()
    docs.rename(shop_folder / "old")
    docs.symlink_to(secret)
    assert not of_folder.allows(call), "the folder itself leads outside now"
    root = limit(shop_folder, path={"folder": "/"})
    assert root.allows(call)


VALUES: Final[tuple[object, ...]] = (
    *(1, 1.0, "1", True, "true", None, "", "1.0", [1], ["1"], {"a": 1}, {"a": "1"}, []),
)


@pytest.mark.parametrize("value", VALUES)
def test_B12_B18_exactly_is_of_the_same_type_and_value(value: object) -> None:
    exactly = limit(x={"is": value})
    for other in VALUES:
        is_same = other == value and type(other) is type(value)
        assert exactly.allows({"x": other}) == is_same, other
    nested = limit(x={"is": {"b": [1, {"c": value}], "a": 2}})
    assert nested.allows({"x": {"a": 2, "b": [1, {"c": value}]}})
    for one in ({"a": 2.0, "b": [1, {"c": value}]}, {"a": 2, "b": [1, {"c": value, "d": 0}]}):
        assert not nested.allows({"x": one})


@pytest.mark.parametrize("value", [1, True, None, ["/w/docs"], {"path": "/w/docs"}, [], ["select"]])
def test_B18_neither_a_folder_nor_a_beginning_is_met_by_what_is_no_text(value: object) -> None:
    assert not limit("/w", x={"folder": "/"}).allows({"x": value})
    assert not limit("/w", x={"starts": "select"}).allows({"x": value})


def test_B19_a_rule_that_allows_names_all_that_a_call_has() -> None:
    both = limit(text={"is": "a"}, note={"any": True})
    assert both.allows({"text": "a", "note": {"any": "thing"}})
    assert both.allows({"text": "a"}), "what may be anything may be left out"
    for call in ({}, {"note": 1}, {"text": "a", "force": True}, {"text": "a", "Note": 1}):
        assert not both.allows(call)
    assert not limit(text={"is": None}).allows({}), "null is a value"


@pytest.mark.parametrize(
    "text",
    [
        *("SELECT 1", " select 1", "\u200bselect 1", "select", "select\u00a01", "se\u0301lect 1"),
        *("\uff53elect 1", "select\t1", "", "a; select 1"),
    ],
)
def test_B20_a_beginning_is_of_these_very_characters(text: str) -> None:
    assert limit(q={"starts": "select "}).allows({"q": "select 1"})
    assert not limit(q={"starts": "select "}).allows({"q": text})


def test_B20_a_beginning_leads_out_of_no_folder_and_composed_letters_differ() -> None:
    under = limit(q={"starts": "/docs/"})
    assert under.allows({"q": "/docs/a..b"})
    known = ("/docs/../etc", "/docs/..", "/docs/%2e%2e/etc", "/docs/a/..\\etc", "/docs/..?x")
    dropped = ("/docs/.\t./etc", "/docs/\n../etc", "/docs/.%0a./etc", "/docs/..\0/etc")
    twice = ("/docs/%252e%252e/etc", "/docs/..;x/etc", "/docs/\uff0e\uff0e/etc")
    for text in known + dropped + twice:
        assert not under.allows({"q": text})
    assert limit(q={"starts": "\u00e9"}).allows({"q": "\u00e9t\u00e9"})
    assert not limit(q={"starts": "\u00e9"}).allows({"q": "e\u0301t\u00e9"})
    assert limit(q={"starts": "ls\n"}).allows({"q": "ls\n-l"})
    assert not limit(q={"starts": "ls\n"}).allows({"q": "ls\r\n"})


DENIED_PATHS: Final = (
    *("{}/secret", "{}/secret/a", "{}/docs/../secret/a", "{}/docs/out/a", "docs/out", "secret/a"),
    *("{}/SECRET/a", "{}/\uff53ecret/a", "{}/se\u200bcret/a", "{}/s\u0435cret"),
    *("file://{}/secret/a", "file://localhost{}/secret/a", "{}/%73ecret", " {}/secret"),
    *("{}\\secret\\a", "{}/secret\0.txt", "{}/secret/\ud800", "{}//secret//", "./docs/../secret"),
    *("{}/docs/.\t./secret/a", "{}/%2573ecret/a", "$SHOP/secret/a", "${SHOP}/secret", "~/secret/a"),
    *("~me/secret", "~me/docs/../secret", "$SHOP/docs/../secret"),
)


@pytest.mark.parametrize("path", DENIED_PATHS)
def test_B21_a_denied_folder_is_reached_by_no_other_way(
    shop_folder: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SHOP", "HOME"):
        monkeypatch.setenv(name, str(shop_folder))
    secret = limit(shop_folder, path={"folder": f"{shop_folder}/secret"})
    path = path.replace("{}", str(shop_folder)).replace("~me", f"~{shop_folder.name}")
    for value in (path, [path], {"a": {"b": [1, path]}}, {path: "text"}):
        assert secret.denies({"path": value, "more": 1})
        assert secret.denies({"PATH": value})
    assert replace(secret, start="").denies({"path": path})
    assert not secret.denies({"path": f"{shop_folder}/docs/a"})
    assert not secret.denies({})
    around = f"{shop_folder}/docs/out/../hidden"  # a server may drop the dots before it looks
    hidden = shop_folder / "docs/hidden"
    hidden.unlink(missing_ok=True)
    hidden.symlink_to(shop_folder / "secret")
    assert secret.denies({"path": around})
    link = limit(shop_folder, path={"folder": f"{shop_folder}/docs/out"})
    assert link.denies({"path": f"{shop_folder}/secret/a"}), "resolved as well"


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        *(({"is": 1}, one) for one in (1, 1.0, "1", [1], {"a": [1.0]})),
        *(({"is": "rm"}, one) for one in ("RM", "r\u200bm", "\uff52\uff4d", " rm ", ["rm"])),
        *(({"is": "\u00e9"}, one) for one in ("e\u0301", "\u00c9", "E\u0301")),
        ({"is": {"a": 1, "b": 2}}, {"b": 2, "a": 1}),
        ({"starts": "drop"}, ["x"] * 101),
        ({"starts": "drop"}, ["x/" * 500] * 3),
        ({"starts": "/etc"}, "/x/../" * 1_000 + "etc/passwd"),
        ({"is": "/etc/passwd"}, "x/../" * 1_000 + "../etc/passwd"),
        ({"folder": "/etc"}, "x/" * 1_500),
        *(({"starts": "drop "}, x) for x in ("DROP table", "drop\ttable", "\u200b\u00a0drop t")),
        *(({"starts": "/etc"}, one) for one in ("/tmp/../etc/passwd", "//etc/passwd")),
        *(({"any": True}, one) for one in (None, "", 0, False)),
        *(({"is": True}, one) for one in (True, "true", "TRUE")),
        ({"is": "/etc/passwd"}, "/etc/../etc//passwd"),
    ],
)
def test_B21_what_is_denied_is_denied_in_each_spelling(
    wanted: Mapping[str, object], value: object
) -> None:
    assert limit("/w", x=wanted).denies({"x": value})
    assert limit("/w", x=wanted).denies({"y": 0, "X": value})
    assert not limit("/w", x=wanted).denies({"y": value})
    assert not limit("/w", x=wanted, z={"any": True}).denies({"x": value}), "all have to match"


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(JSON, JSON)
def test_B21_what_a_rule_allows_the_same_rule_would_deny(value: object, other: object) -> None:
    """Denying is never narrower than allowing, and neither ever fails."""
    text = exact_text(value)
    conditions = [Condition("x", ANY), Condition("x", FOLDER, "/w"), Condition("x", IS, text)]
    for condition in (
        *conditions,
        *([Condition("x", STARTS, value)] if isinstance(value, str) else []),
    ):
        made = ArgumentRule((condition,), "/w", "/w")
        for one in (value, other):
            assert not made.allows({"x": one}) or made.denies({"x": one})


def pattern(**arguments: object) -> dict[str, object]:
    return {"server": "notes", "tool": "go", "arguments": arguments}


BAD: Final[tuple[object, ...]] = (
    *({}, [], None, "x"),
    *({"x": {}}, {"x": 1}, {"x": {"like": "a"}}, {"x": {"is": 1, "any": True}}),
    *({"x": {"any": False}}, {"x": {"any": 1}}, {"x": {"starts": ""}}, {"x": {"starts": 1}}),
    *({"x": {"folder": ""}}, {"x": {"folder": ["a"]}}, {"x": {"is": "a" * 600}}),
    *({"a" * 600: {"any": True}}, {f"a{number}": {"any": True} for number in range(31)}),
)


@pytest.mark.parametrize("arguments", BAD[:2] + BAD[3:])
def test_B22_a_rule_that_cannot_be_read_allows_nothing(arguments: object) -> None:
    with pytest.raises(ValueError, match=r"arguments|dictionary|least 1|at most"):
        GemdeckSettings.model_validate({"alwaysAllow": [{"tool": "go", "arguments": arguments}]})


def judged(
    arguments: Mapping[str, Any] | None,
    allow: Iterable[object] = (),
    deny: Iterable[object] = (),
    origin: Origin = Origin.USER,
) -> Effect:
    policy = made_policy(allow, deny, origin)
    return policy.judge(make_tool("go"), arguments).effect


def made_policy(
    allow: Iterable[object] = (), deny: Iterable[object] = (), origin: Origin = Origin.USER
) -> Policy:
    settings = GemdeckSettings.model_validate({"alwaysAllow": [*allow], "alwaysDeny": [*deny]})
    policy = make_policy()
    server = define_server(ServerId("notes"), origin, Transport.STDIO, fingerprint="what notes is")
    policy.configure(settings.always_allow, settings.always_deny, [server])
    return policy


def test_B22_the_rules_of_the_settings_are_about_calls_and_a_projects_never_allow() -> None:
    rules = [pattern(text={"starts": "a"}), pattern(text={"is": "b"})]
    for text, effect in (("ab", Effect.ALLOW), ("b", Effect.ALLOW), ("c", Effect.ASK)):
        assert judged({"text": text}, rules) is effect
    assert judged(None, rules) is Effect.ASK, "the tool by itself is asked about"
    assert judged({"text": "ab"}, rules, origin=Origin.PROJECT) is Effect.ASK
    assert judged({"text": "ab", "more": 1}, rules) is Effect.ASK
    assert judged({"text": "ab", "more": 1}, [{}], rules) is Effect.DENY
    assert judged({"text": "c"}, [{}], rules) is Effect.ALLOW
    assert judged({"path": "docs/a"}, [pattern(path={"folder": "docs"})]) is Effect.ALLOW
    hides = made_policy(deny=rules).hidden
    server = define_server(ServerId("notes"), Origin.USER, Transport.STDIO)
    assert hides(server, [("go", "h")]) == {}, "some calls of it may run"


def test_B22_an_unknown_key_of_a_rule_that_allows_is_no_wider_rule() -> None:
    with pytest.raises(ValueError, match="not permitted"):
        GemdeckSettings.model_validate({"alwaysAllow": [{"tool": "go", "argument": {}}]})


HOSTILE: Final = (
    *("path is anything, and content", "a b", "", "a\nb", "\u202egpj", "a\u200bb", "\x1b[31mred"),
    *('say "x"', "where", "[bold]"),
)


@pytest.mark.parametrize("name", HOSTILE)
def test_B23_the_words_of_a_rule_hide_nothing_and_look_like_no_others(name: str) -> None:
    for condition in (Condition(name, STARTS, name or "x"), Condition(name, IS, exact_text(name))):
        words = condition.words
        assert words.isprintable()
        assert "\u202e" not in words
        assert "\u200b" not in words
        start, _ = json.JSONDecoder().raw_decode(words) if words[0] == '"' else (name, 0)
        assert start == name
    spread = conditions_words((Condition("a", IS, '"x, and b is anything"'), Condition("b", ANY)))
    assert spread == 'a is "x, and b is anything", and b is anything or missing'


def test_B23_what_cannot_be_shown_whole_or_kept_makes_no_rule() -> None:
    for condition in (
        *(Condition("a", IS, exact_text("x" * 500)), Condition("a" * 501, ANY)),
        *(Condition("\ud800", ANY), Condition("a", STARTS, "\udc80"), Condition("a", STARTS, "")),
        *(Condition("a", FOLDER, "x" * 501), Condition("a", IS, "[" * 400)),
        *(Condition("a", ANY, "x"), Condition("a", IS, '{"b": 1, "b": 2}')),
    ):
        assert not condition.is_valid
        grant = replace(
            Grant.allowing(make_tool("go"), GrantScope.EVERYWHERE), conditions=(condition,)
        )
        assert not grant.is_valid


def test_B22_what_is_saved_is_read_and_an_older_gemdeck_takes_it_for_no_rule() -> None:
    conditions = (Condition("a", IS, "1"), Condition("b", FOLDER, "/w"), Condition("c", ANY))
    grant = Grant.allowing(make_tool("go"), GrantScope.EVERYWHERE, "", conditions)
    [entry] = json.loads(json.dumps(write_all({grant: GrantNote("s", "go")})))
    assert read_all([entry]).keys() == {grant}
    assert not grant.covers(make_tool("go"), None, "/w"), "the tool by itself is not meant"
    assert all(len(one) == 3 for one in entry["arguments"]), "two texts were the form of before"


async def test_B17_always_with_these_spares_the_question_for_calls_like_that_one_alone(
    shop: Turncoat, play: Play, shop_folder: Path
) -> None:
    shop.offer(tool("look"))
    docs, secret = shop_folder / "docs", shop_folder / "secret"
    calls = [("look", {"path": str(one)}) for one in (docs / "a", docs / "b", secret / "c")]
    async with play(called(*calls), shop) as running:
        running.engine.send("go")
        asked = await running.pending(ConfirmationRequest)
        assert asked.paths == (("path", str(docs / "a"), str(docs)),)
        words = (Condition("path", FOLDER, asked.paths[0][2]),)
        running.engine.desk.answer(asked.id, Decision(Choice.ALWAYS_THESE, conditions=words))
        await running.idle()
        await running.ask("the same folder")
        [view] = [one for one in running.store.state.grants if one.where]
        assert view.where == conditions_words(words)
        running.engine.send("another folder")
        await eventually(lambda: len(running.raised(ConfirmationRequest)) == 2)
        await running.decide(Choice.DENY)
        await running.idle()
    assert [call["path"] for _, call in shop.calls] == [str(docs / "a"), str(docs / "b")]


async def test_B17_a_link_bent_between_the_answer_and_the_call_keeps_it_from_the_server(
    shop: Turncoat, play: Play, shop_folder: Path
) -> None:
    docs = limit(shop_folder, path={"folder": str(shop_folder / "docs")})
    call = {"path": str(shop_folder / "docs/a")}
    async with play([], shop) as running:
        servers = running.engine.servers
        [look] = [one for one in servers.offered_tools() if one.name == "look"]
        permit, late = (Permit(look, call, "", "a rule", docs) for _ in range(2))
        await servers.call_tool(permit, lambda _: None)
        (shop_folder / "docs/a").symlink_to(shop_folder / "secret")
        with pytest.raises(ToolCallError, match="leads outside"):
            await servers.call_tool(late, lambda _: None)
    assert shop.calls == [("look", call)]


async def test_B19_without_a_condition_always_with_these_is_once(
    shop: Turncoat, play: Play
) -> None:
    async with play(called(("look", {})), shop) as running:
        running.engine.send("go")
        asked = await running.pending(ConfirmationRequest)
        running.engine.desk.answer(asked.id, Decision(Choice.ALWAYS_THESE))
        await running.idle()
        assert running.store.state.grants == ()
    assert len(shop.calls) == 1


READS: Final[dict[str, Any]] = {"annotations": {"readOnlyHint": True}}


async def test_B24_what_is_said_to_only_read_runs_as_it_was_then_and_nothing_else(
    shop: Turncoat, play: Play
) -> None:
    both: dict[str, Any] = {"annotations": {"readOnlyHint": True, "destructiveHint": True}}
    shop.offer(tool("look", **READS), tool("list", **READS), tool("buy"), tool("wipe", **both))
    script = [step for name in ("look", "list", "buy", "wipe", "look") for step in calling(name)]
    async with play(script, shop) as running:
        asked = await running.answered("1", Choice.ALWAYS_READ_ONLY)
        assert asked.read_only == 2
        assert {one.tool for one in running.store.state.grants} == {"look", "list"}
        assert all("declared read-only" in g.origin for g in running.store.state.grants)
        await running.ask("2")
        for name in ("buy", "wipe"):
            request = await running.answered(name, Choice.DENY)
            assert request.read_only == 0
        shop.offer(tool("look", "Now it writes."), tool("list", **READS))
        await running.restart("shop")
        await running.accept_changes()
        await running.answered("5", Choice.DENY)
    assert [name for name, _ in shop.calls] == ["look", "list"]


def test_B24_rules_that_deny_or_ask_win_over_what_is_said_to_only_read() -> None:
    policy, go = make_policy(GrantBook()), make_tool("go")
    policy.allow([go], GrantScope.SESSION, Choice.ALWAYS_READ_ONLY.value)
    assert policy.judge(go, {}).effect is Effect.ALLOW
    policy.configure((), [rule("notes", "go")], ())
    assert policy.judge(go, {}).effect is Effect.DENY
