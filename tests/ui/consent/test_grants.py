"""The list of the rules on tools: what it shows, and how rules are taken back."""

from dataclasses import replace

import pytest

from tests.support.stalls import LoopWatch
from tests.ui.harness import NARROW, WIDE, Running, running
from tests.ui.shell import decks
from tests.ui.shell.test_servers import go_to
from tui.model.consent import Effect, GrantId, GrantView
from tui.model.events import FolderTrustChanged, GrantsChanged
from tui.model.trust import FolderTrust
from tui.store.store import Store
from tui.ui.dialogs.details import DetailsScreen
from tui.ui.dialogs.grants import GrantsScreen
from tui.ui.questions import arming

SAVED = GrantView(
    GrantId("g1"),
    Effect.ALLOW,
    "git",
    "branch_list",
    "saved for this folder",
    "you, when asked",
    granted_at=decks.EPOCH,
    used_at=decks.EPOCH + 86_400,
)
SESSION = GrantView(
    GrantId("g2"), Effect.DENY, "everything", "printEnv", "this session", "you, when asked"
)
SETTING = GrantView(
    GrantId("g3"),
    Effect.ALLOW,
    "everything",
    "*",
    "everywhere",
    "~/.gemini/settings.json",
    revocable=False,
)


def store_with(*grants: GrantView, trust: FolderTrust = FolderTrust.TRUSTED) -> Store:
    store = decks.full_store()
    store.dispatch(GrantsChanged(grants))
    store.dispatch(FolderTrustChanged(trust))
    return store


async def open_grants(deck: Running) -> GrantsScreen:
    await go_to(deck, decks.GIT)
    await deck.press("g")
    screen = deck.app.screen
    assert isinstance(screen, GrantsScreen)
    await deck.settle()
    return screen


async def test_the_list_says_what_holds_for_what_since_when_at_every_size() -> None:
    async with running(store_with(SAVED, SESSION, SETTING)) as deck:
        await open_grants(deck)
        row = next(line for line in deck.lines if "branch_list" in line)
        columns = ("allow", "git", "branch_list", "saved for this folder", "you, when asked")
        places = [row.index(word) for word in (*columns, "2026-01-01", "2026-01-02")]
        assert places == sorted(places)
        heading = next(line for line in deck.lines if "last used" in line)
        assert heading.index("scope") == row.index("saved for")
        assert heading.index("last used") == row.index("2026-01-02")
        for words in ("3 rules", "~/shop", "trusted"):
            assert words in deck.text
        await deck.resize(*NARROW)
        row = next(line for line in deck.lines if "branch_list" in line)
        assert "saved for this folder" in row
        assert "2026" not in row, "the rest stands below"
        for fact in ("source       you, when asked", "last used    2026-01-02 00:00"):
            assert fact in deck.text
        await deck.resize(40, 10)
        assert "branch_list" in deck.text
        await deck.resize(*WIDE)
        assert "you, when asked" in next(line for line in deck.lines if "branch_list" in line)


async def test_a_rule_is_revoked_with_the_second_press_soon_and_on_the_same_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(store_with(SAVED, SESSION, SETTING)) as deck:
        await open_grants(deck)
        await deck.press("d")
        assert "Press d again to revoke: allow git branch_list" in deck.text
        await deck.press("down", "d")
        assert "deny everything printEnv" in deck.text
        assert deck.commands.calls == []
        await deck.press("d")
        assert deck.commands.calls == [("access.policy.revoke", (SESSION.id,))]
        await deck.happen(GrantsChanged((SAVED, SETTING)))
        with monkeypatch.context() as late:
            late.setattr(arming, "REPEAT_SECONDS", 0.0)
            await deck.press("home", "d", "d")
        assert len(deck.commands.calls) == 1
        await deck.press("delete", "delete")
        assert deck.commands.calls[1:] == [("access.policy.revoke", (SAVED.id,))]
        await deck.press("end", "d", "d")
        assert len(deck.commands.calls) == 2
        assert "This rule comes from ~/.gemini/settings.json: change it there." in deck.text


async def test_enter_shows_all_of_a_rule_and_every_word_of_others_is_literal() -> None:
    text = "[@click=app.quit]x[/]\n[bold]"
    scope = "a folder with a long name " * 8
    hostile = replace(SAVED, server=text, tool=text, scope=scope, origin=text, granted_at=1e300)
    async with running(store_with(hostile), NARROW) as deck:
        screen = await open_grants(deck)
        before = screen.query_one(".grants").region
        assert "[@click=app.quit]x[/]"[:14] in deck.text
        await deck.press("enter")
        assert deck.on_top(DetailsScreen)
        assert deck.text.count("a folder with a long name") >= 3
        assert "[@click=app.quit]x[/] [bold]" in deck.text
        await deck.press("escape")
        assert deck.on_top(GrantsScreen)
        assert deck.app.return_code is None
        await deck.press("escape", "enter", "escape")
        screen = await open_grants(deck)
        assert screen.query_one(".grants").region == before, "it looks the same after a dialog"


async def test_an_empty_list_says_what_to_do() -> None:
    async with running(store_with()) as deck:
        await open_grants(deck)
        for size in (WIDE, NARROW):
            await deck.resize(*size)
            assert "No rules yet: every tool asks before it runs." in deck.text
            assert "alwaysAllow" in deck.text
        await deck.press("d", "d", "enter")
        assert deck.commands.calls == []


async def test_the_folder_is_reviewed_and_forgotten_from_here() -> None:
    async with running(store_with(trust=FolderTrust.CHANGED)) as deck:
        await open_grants(deck)
        assert "~/shop" in deck.text
        assert "changed since trusted" in deck.text
        await deck.press("f")
        assert deck.commands.calls == [("review_folder", ())]
        await deck.press("F")
        assert "Press F again to forget this folder" in deck.text
        assert len(deck.commands.calls) == 1
        await deck.press("F")
        assert deck.commands.calls[1:] == [("forget_folder", ())]
        await deck.happen(FolderTrustChanged(FolderTrust.NOTHING_TO_TRUST))
        await deck.press("F", "F")
        assert deck.commands.calls[2:] == [("forget_folder", ())], "as a place to start in"


async def test_a_thousand_rules_stay_quick_and_typing_narrows_them(loop_watch: LoopWatch) -> None:
    grants = tuple(replace(SAVED, id=GrantId(f"g{n}"), tool=f"tool_{n:04}") for n in range(1_000))
    async with running(store_with(*grants, SESSION)) as deck:
        loop_watch.clear()
        screen = await open_grants(deck)
        await deck.press("end", "up")
        assert "tool_0999" in deck.text
        await deck.press("slash", *"deny", "enter")
        assert [entry.item for entry in screen.listed.shown] == [SESSION]
        assert deck.commands.calls == [], "what is typed is no action"
        loop_watch.assert_smooth(0.5)
