"""The list of the rules on tools: what it shows, and how rules are taken back."""

from dataclasses import replace

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
from tui.ui.questions.arming import REPEAT_SECONDS

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


async def test_the_list_says_what_holds_for_what_since_when() -> None:
    async with running(store_with(SAVED, SESSION, SETTING)) as deck:
        await open_grants(deck)
        row = next(line for line in deck.lines if "branch_list" in line)
        columns = ("allow", "git", "branch_list", "saved for this folder", "you, when asked")
        places = [row.index(word) for word in (*columns, "2026-01-01", "2026-01-02")]
        assert places == sorted(places)
        heading = next(line for line in deck.lines if "last used" in line)
        assert heading.index("scope") == row.index("saved for")
        assert heading.index("last used") == row.index("2026-01-02")
        assert "3 rules" in deck.text
        assert "~/shop" in deck.text
        assert "trusted" in deck.text


async def test_a_narrow_screen_keeps_the_names_and_shows_the_rest_below() -> None:
    async with running(store_with(SAVED), NARROW) as deck:
        await open_grants(deck)
        row = next(line for line in deck.lines if "branch_list" in line)
        assert "saved for this folder" in row
        assert "2026" not in row
        for fact in ("source       you, when asked", "last used    2026-01-02 00:00"):
            assert fact in deck.text


async def test_a_rule_is_revoked_with_the_second_press() -> None:
    async with running(store_with(SAVED, SESSION)) as deck:
        await open_grants(deck)
        await deck.press("d")
        assert deck.commands.calls == []
        assert "Press d again to revoke: allow git branch_list" in deck.text
        await deck.press("d")
        assert deck.commands.calls == [("access.policy.revoke", (SAVED.id,))]
        deck.store.dispatch(GrantsChanged((SESSION,)))
        await deck.settle()
        await deck.press("delete", "delete")
        assert deck.commands.calls[1:] == [("access.policy.revoke", (SESSION.id,))]


async def test_the_second_press_counts_for_the_same_rule_and_not_for_long() -> None:
    async with running(store_with(SAVED, SESSION)) as deck:
        screen = await open_grants(deck)
        now = 0.0
        screen._second._clock = lambda: now
        await deck.press("d", "down", "d")
        assert "deny everything printEnv" in deck.text
        assert deck.commands.calls == []
        now = REPEAT_SECONDS + 1
        await deck.press("d")
        assert deck.commands.calls == []


async def test_a_rule_of_the_settings_says_which_file_to_edit() -> None:
    async with running(store_with(SETTING)) as deck:
        await open_grants(deck)
        await deck.press("d", "d")
        assert deck.commands.calls == []
        assert "This rule comes from ~/.gemini/settings.json: change it there." in deck.text


async def test_enter_shows_all_of_a_rule() -> None:
    scope = "a folder with a long name " * 8
    async with running(store_with(replace(SAVED, scope=scope)), NARROW) as deck:
        await open_grants(deck)
        await deck.press("enter")
        assert deck.on_top(DetailsScreen)
        assert deck.text.count("a folder with a long name") >= 3
        await deck.press("escape")
        assert deck.on_top(GrantsScreen)


async def test_typing_narrows_the_list_and_types_no_action() -> None:
    async with running(store_with(SAVED, SESSION, SETTING)) as deck:
        screen = await open_grants(deck)
        await deck.press("slash", *"deny", "enter")
        assert [entry.item for entry in screen.listed.shown] == [SESSION]
        assert deck.commands.calls == []


async def test_an_empty_list_says_what_to_do() -> None:
    for size in (WIDE, NARROW):
        async with running(store_with(), size) as deck:
            await open_grants(deck)
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


async def test_a_folder_that_brings_nothing_is_forgotten_as_a_place_to_start_in() -> None:
    async with running(store_with(trust=FolderTrust.NOTHING_TO_TRUST)) as deck:
        await open_grants(deck)
        await deck.press("F", "F")
        assert deck.commands.calls == [("forget_folder", ())]


async def test_a_thousand_rules_stay_quick(loop_watch: LoopWatch) -> None:
    grants = tuple(replace(SAVED, id=GrantId(f"g{n}"), tool=f"tool_{n:04}") for n in range(1_000))
    async with running(store_with(*grants)) as deck:
        loop_watch.clear()
        screen = await open_grants(deck)
        await deck.press("end")
        assert "tool_0999" in deck.text
        await deck.press("slash", *"0042")
        assert [entry.item.tool for entry in screen.listed.shown] == ["tool_0042"]
        loop_watch.assert_smooth(0.5)


async def test_names_and_scopes_of_others_are_literal() -> None:
    text = "[@click=app.quit]x[/]\n[bold]"
    hostile = replace(SAVED, server=text, tool=text, scope=text, origin=text, granted_at=1e300)
    async with running(store_with(hostile)) as deck:
        await open_grants(deck)
        assert "[@click=app.quit]x[/]"[:14] in deck.text
        await deck.press("enter")
        assert "[@click=app.quit]x[/] [bold]" in deck.text
        assert deck.app.return_code is None


async def test_the_list_fits_the_smallest_screen_and_grows_again() -> None:
    async with running(store_with(SAVED, SESSION), (40, 10)) as deck:
        await open_grants(deck)
        assert "branch_list" in deck.text
        await deck.pilot.resize_terminal(*WIDE)
        await deck.settle()
        assert "you, when asked" in next(line for line in deck.lines if "branch_list" in line)


async def test_it_looks_the_same_after_another_dialog() -> None:
    async with running(store_with(SAVED)) as deck:
        await open_grants(deck)
        before = deck.app.screen.query_one(".grants").region
        await deck.press("enter", "escape", "escape", "enter", "escape")
        screen = await open_grants(deck)
        assert screen.query_one(".grants").region == before
    async with running(store_with(SAVED)) as deck:
        await go_to(deck, decks.GIT)
        await deck.press("enter", "escape")
        screen = await open_grants(deck)
        assert screen.query_one(".grants").region == before
