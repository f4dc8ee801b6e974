"""The rules on tools: their list, and how a tool and the folder stand wherever they are shown."""

import re
from dataclasses import replace

import pytest

from tests.support.stalls import LoopWatch
from tests.ui.harness import NARROW, WIDE, Running, running
from tests.ui.shell import decks
from tests.ui.shell.test_servers import go_to, row_of
from tui.model.catalog import Catalog
from tui.model.chat import BackendKind, ModelView, Usage
from tui.model.consent import UNASKED_GRANT, Effect, GrantId, GrantView, ToolStanding
from tui.model.events import CatalogChanged, FolderTrustChanged, GrantsChanged, NoticeRaised
from tui.model.servers import Failure, ServerStatus
from tui.model.trust import FolderTrust
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.commands.palette import palette_actions
from tui.ui.dialogs.grants import GrantsScreen
from tui.ui.dialogs.list_dialog import DetailsScreen
from tui.ui.panes.browser import ToolsPane
from tui.ui.questions import arming
from tui.ui.widgets.header import UNASKED, header_content

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
    screen = await deck.come(GrantsScreen)
    await deck.settle()
    return screen


async def test_a_rule_is_revoked_with_the_second_press_soon_and_on_the_same_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(store_with(SAVED, SESSION, SETTING)) as deck:
        await open_grants(deck)
        await deck.press("d")
        assert "Press d again to revoke: allow git branch_list" in deck.text
        await deck.press("down", "d")
        assert "deny everything printEnv" in deck.text
        assert deck.commands.acts == []
        await deck.press("d")
        assert deck.commands.acts == [("access.policy.revoke", (SESSION.id,))]
        await deck.happen(GrantsChanged((SAVED, SETTING)))
        with monkeypatch.context() as late:
            late.setattr(arming, "REPEAT_SECONDS", 0.0)
            await deck.press("home", "d", "d")
        assert len(deck.commands.calls) == 1
        await deck.press("delete", "delete")
        assert deck.commands.calls[1:] == [("access.policy.revoke", (SAVED.id,))]
        [told] = deck.commands.said
        assert isinstance(told, NoticeRaised)
        assert told.notice.text == f"gemdeck grants revoke {SAVED.id}", "no command knows the other"
        await deck.press("end", "d", "d")
        assert len(deck.commands.calls) == 2
        assert "This grant comes from ~/.gemini/settings.json: change it there." in deck.text


async def test_the_list_of_rules_says_what_holds_and_saves_one_of_the_session() -> None:
    async with running(store_with(SAVED, SESSION, SETTING)) as deck:
        # A rule of the session is saved for the folder with the second press.
        await open_grants(deck)
        await deck.press("s")
        assert "this one is already saved" in deck.text
        await deck.press("down", "s")
        assert "Press s again to save for this folder: printEnv" in deck.text
        assert deck.commands.acts == []
        await deck.press("s")
        assert deck.commands.acts == [("access.policy.save", (SESSION.id,))]
        # The list says what holds for what and when it was used at every size.
        await deck.afresh()
        await open_grants(deck)
        row = next(line for line in deck.lines if "branch_list" in line)
        columns = ("allow", "git.branch_list", "saved for this folder", "you, when asked")
        places = [row.index(word) for word in (*columns, "used 2026-01-02")]
        assert places == sorted(places)
        session = next(line for line in deck.lines if "printEnv" in line)
        assert session.index("this session") == row.index("saved for")
        for words in ("3 grants", "~/shop", "trusted", "never used", "created      2026-01-01"):
            assert words in deck.text
        await deck.resize(*NARROW)
        row = next(line for line in deck.lines if "branch_list" in line)
        assert "saved for this folder" in row
        for fact in ("source       you, when asked", "last used    2026-01-02 00:00"):
            assert fact in deck.text
        await deck.resize(40, 10)
        assert "branch_list" in deck.text


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
            assert "No grants yet: every tool asks before it runs." in deck.text
            assert "alwaysAllow" in deck.text
        await deck.press("d", "d", "enter")
        assert deck.commands.acts == []


async def test_the_folder_is_reviewed_and_forgotten_from_here() -> None:
    async with running(store_with(trust=FolderTrust.CHANGED)) as deck:
        await open_grants(deck)
        assert "~/shop" in deck.text
        assert "changed since trusted" in deck.text
        await deck.press("f")
        assert deck.commands.acts == [("review_folder", ())]
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
        assert deck.commands.acts == [], "what is typed is no action"
        loop_watch.assert_smooth(0.5)


LIST, COMMIT = decks.GIT_TOOLS[:2]
CHANGED = "it has changed; the model does not see it until you accept that"


async def test_a_tool_says_what_happens_when_it_is_called_and_anew_with_each_rule() -> None:
    words = {"branch_list": "Asked: nothing allows it yet.", "commit": "Refused by a rule."}
    async with running(decks.full_store()) as deck:
        deck.commands.answers["tool_standing"] = lambda _, tool: ToolStanding(
            Effect.ASK, words[tool]
        )
        await deck.press("f3", "down")
        assert "approval  Refused by a rule." in deck.text
        await deck.press("up")
        assert "approval  Asked: nothing" in deck.text
        words["branch_list"] = "Allowed: you said always."
        await deck.happen(GrantsChanged((SAVED,)))
        assert "approval  Allowed: you" in deck.text
        await deck.press("g")
        assert deck.on_top(GrantsScreen)
        await deck.press("escape")
        assert deck.one(ToolsPane).has_focus_within


async def test_a_changed_tool_is_marked_with_a_word_and_v_reviews_it() -> None:
    store = decks.full_store()
    changed = replace(COMMIT, changed=True, problem=CHANGED)
    store.dispatch(CatalogChanged(decks.GIT, Catalog(tools=(LIST, changed))))
    async with running(store, (140, 36)) as deck:
        await deck.press("f3", "v")
        pane = deck.one(ToolsPane)
        assert "Schema" in str(pane.details.content)
        assert "changed" in next(line for line in deck.lines if " commit " in line)
        await deck.press("v", "down")
        current = pane.entries.current
        assert current is not None
        assert current[1].name == "commit"
        details = str(pane.details.content)
        assert f"◌ withheld: {CHANGED}" in details
        assert details.count("changed") == 1, "it is said once"
        assert "v review" in deck.text
        await deck.press("v")
        assert deck.asked("access.review.review") == [(decks.GIT,)]
        actions = {action.row.label: action for action in palette_actions(deck.app.deck)}
        actions["Review changed tools: git"].item()
        assert deck.asked("access.review.review") == [(decks.GIT,)] * 2
        assert "Schema" not in str(pane.details.content)


def header(trust: FolderTrust, width: int = 120) -> str:
    statuses = *[ServerStatus.READY] * 3, ServerStatus.FAILED
    state = decks.headed(
        ModelView("gemini-3.8-flash", BackendKind.GEMINI),
        Usage(context=12_400, context_limit=1_000_000),
        servers=tuple(decks.server(decks.GIT, status) for status in statuses),
        folder_trust=trust,
    )
    return header_content(state, width).plain


def test_the_header_says_what_was_said_of_the_folder() -> None:
    for trust in FolderTrust:
        unsaid = trust in {FolderTrust.UNKNOWN, FolderTrust.NOTHING_TO_TRUST}
        assert ("~/shop  " if unsaid else f"~/shop ({trust.value})") in header(trust)


@pytest.mark.parametrize("trust", [FolderTrust.UNTRUSTED, FolderTrust.CHANGED])
def test_a_narrow_header_keeps_the_warning_longer_than_the_path(trust: FolderTrust) -> None:
    for width in range(72, 121):
        text = header(trust, width)
        assert trust.value in text
        assert text.startswith("gemdeck")
        assert "   3 ready · 1 failed   12.4k" in text
        assert text.endswith(" tokens")
        assert len(text) == width


def test_a_narrow_header_cuts_the_start_of_the_path() -> None:
    state = decks.headed(
        ModelView("gemini-3.8-flash", BackendKind.DEMO),
        workspace="~/work/clients/north/shop-backend",
        servers=(decks.server(decks.GIT, ServerStatus.READY),) * 2,
        folder_trust=FolderTrust.TRUSTED,
    )
    assert "~/work/clients/north/shop-backend (trusted)" in header_content(state, 110).plain
    for width, trust in ((72, ""), (80, r" \(trusted\)"), (90, r" \(trusted\)")):
        text = header_content(state, width).plain
        assert re.search(rf"   …\S*end{trust}  ", text)
        assert len(text) == width
    assert "end" not in header_content(state, 60).plain


def test_the_warning_has_a_tone_of_its_own() -> None:
    for trust, warned in [(FolderTrust.UNTRUSTED, True), (FolderTrust.TRUSTED, False)]:
        state = decks.headed(ModelView("m", BackendKind.DEMO), folder_trust=trust)
        view = header_content(state, 99)
        spans = [span for span in view.spans if trust.value in view.plain[span.start : span.end]]
        assert spans
        assert ("$text-warning" in {str(span.style) for span in spans}) is warned


async def test_the_header_follows_the_folder_and_a_server_names_the_key_that_reviews_it() -> None:
    async with running(decks.full_store(), WIDE) as deck:
        assert "~/shop (trusted)" in deck.lines[0]
        await deck.happen(FolderTrustChanged(FolderTrust.CHANGED))
        assert "~/shop (changed since trusted)" in deck.lines[0]
        await go_to(deck, decks.TEAM)
        assert "Press t to review" in row_of(deck, "Press t")
        assert "s review" in deck.text


async def test_the_reason_of_an_untrusted_server_comes_from_its_state() -> None:
    store = decks.new_store()
    view = decks.server(decks.TEAM, ServerStatus.UNTRUSTED, failure=Failure("Changed.", "t looks"))
    decks.configure(store, view)
    async with running(store) as deck:
        assert "t looks" in deck.text
        assert "t shows what" not in deck.text


YOLO = GrantView(UNASKED_GRANT, Effect.ALLOW, "*", "*", "this session", "--yolo", revocable=False)


def test_the_header_says_only_where_it_is_so_that_tools_run_unasked_at_every_width() -> None:
    state = AppState(workspace="~/a/folder/with/a/long/name", grants=(YOLO,))
    for width in (80, 110, 200):
        assert UNASKED in header_content(state, width).plain
    other = replace(YOLO, id=type(YOLO.id)("another"))
    assert UNASKED not in header_content(AppState(grants=(other,)), 200).plain
