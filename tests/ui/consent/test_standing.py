"""How a tool and the folder stand: in the tools pane, the details, the header and the tree."""

import re
from dataclasses import replace

import pytest

from tests.ui.consent.test_grants import SAVED
from tests.ui.harness import NARROW, WIDE, Running, running
from tests.ui.shell import decks
from tests.ui.shell.test_servers import go_to, row_of
from tui.model.catalog import Catalog
from tui.model.chat import BackendKind, Usage
from tui.model.consent import UNASKED_GRANT, Effect, GrantView, ToolStanding
from tui.model.events import CatalogChanged, FolderTrustChanged, GrantsChanged, ToolExplained
from tui.model.servers import Failure, ServerStatus
from tui.model.trust import FolderTrust
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.dialogs.details import ToolDetailsScreen
from tui.ui.dialogs.grants import GrantsScreen
from tui.ui.panes.browser import ToolsPane
from tui.ui.widgets.header import UNASKED, HeaderView, header_content, header_view

ASKED = ToolStanding(decks.GIT, "branch_list", Effect.ASK, "Asked: nothing allows it yet.")
LIST, COMMIT = decks.GIT_TOOLS[:2]
CHANGED = "it has changed; the model does not see it until you accept that"


def store_with_a_changed_tool() -> Store:
    store = decks.full_store()
    changed = replace(COMMIT, changed=True, problem=CHANGED)
    store.dispatch(CatalogChanged(decks.GIT, Catalog(tools=(LIST, changed))))
    return store


def explained(deck: Running) -> list[tuple[object, ...]]:
    return [arguments for name, arguments in deck.commands.calls if name == "explain_tool"]


async def test_a_tool_is_explained_once_the_user_looks_and_anew_with_each_rule() -> None:
    async with running(decks.full_store()) as deck:
        assert deck.commands.calls == []
        await deck.press("f3")
        assert explained(deck) == [(decks.GIT, "branch_list")]
        await deck.press("down", "up")
        assert explained(deck)[1:] == [(decks.GIT, "commit"), (decks.GIT, "branch_list")]
        for other in (replace(ASKED, tool="commit"), replace(ASKED, server=decks.EVERYTHING)):
            await deck.happen(ToolExplained(other))
            assert "nothing allows it yet" not in deck.text
        await deck.happen(ToolExplained(ASKED))
        assert "when called  Asked: nothing" in deck.text
        await deck.happen(GrantsChanged((SAVED,)))
        assert explained(deck)[3:] == [(decks.GIT, "branch_list")]
        allowed = replace(ASKED, effect=Effect.ALLOW, words="Allowed: you said always.")
        await deck.happen(ToolExplained(allowed))
        assert "when called  Allowed: you" in deck.text
        await deck.press("g")
        assert deck.on_top(GrantsScreen)
        await deck.press("escape")
        assert deck.one(ToolsPane).has_focus_within


async def test_enter_shows_the_tool_with_its_standing() -> None:
    async with running(decks.full_store(), NARROW) as deck:
        await deck.press("f3", "enter")
        assert deck.on_top(ToolDetailsScreen)
        assert explained(deck)[-1] == (decks.GIT, "branch_list")
        await deck.happen(
            ToolExplained(replace(ASKED, effect=Effect.DENY, words="Refused by a rule."))
        )
        assert "when called  Refused by a rule." in deck.text
        asked = len(explained(deck))
        await deck.happen(GrantsChanged((SAVED,)))
        assert len(explained(deck)) > asked
        await deck.happen(CatalogChanged(decks.GIT, Catalog()))
        assert "The server no longer has this tool." in deck.text


async def test_a_changed_tool_is_marked_with_a_word_and_v_reviews_it() -> None:
    async with running(store_with_a_changed_tool(), (140, 36)) as deck:
        await deck.press("f3", "v")
        pane = deck.one(ToolsPane)
        assert "Schema" in str(pane.details.content)
        assert "changed" in next(line for line in deck.lines if " commit " in line)
        await deck.press("v", "down")
        current = pane.entries.current
        assert current is not None
        assert current[1].name == "commit"
        await deck.happen(ToolExplained(ToolStanding(decks.GIT, "commit", Effect.DENY, CHANGED)))
        details = str(pane.details.content)
        assert f"◌ withheld: {CHANGED}" in details
        assert details.count("changed") == 1, "it is said once"
        assert "v review" in deck.text
        await deck.press("v")
        assert deck.commands.calls[-1] == ("access.review.review", (decks.GIT,))
        assert "Schema" not in str(pane.details.content)


PALETTE: dict[str, tuple[str, tuple[object, ...]]] = {
    "review this": ("review_folder", ()),
    "forget this": ("forget_folder", ()),
    "review changed": ("access.review.review", (decks.GIT,)),
}


async def test_the_palette_reviews_and_forgets_and_opens_the_rules() -> None:
    async with running(store_with_a_changed_tool()) as deck:
        for words, call in PALETTE.items():
            await pick(deck, words, words)
            assert deck.commands.calls[-1] == call
        await pick(deck, "grants", "what may run")
        await deck.until(lambda: deck.on_top(GrantsScreen))


async def pick(deck: Running, typed: str, shown: str) -> None:
    """Choose a command of the palette."""
    await deck.press("ctrl+p", *("space" if letter == " " else letter for letter in typed))
    await deck.until(lambda: shown in deck.text.lower())
    await deck.press("enter")
    await deck.pilot.pause()


def header(trust: FolderTrust, width: int = 120) -> str:
    view = HeaderView(
        model="gemini-3.8-flash",
        workspace="~/shop",
        trust=trust,
        backend=BackendKind.GEMINI,
        servers=((ServerStatus.READY, 3), (ServerStatus.FAILED, 1)),
        usage=Usage(context=12_400, context_limit=1_000_000),
    )
    return header_content(view, width).plain


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
    view = HeaderView(
        model="gemini-3.8-flash",
        workspace="~/work/clients/north/shop-backend",
        trust=FolderTrust.TRUSTED,
        backend=BackendKind.DEMO,
        servers=((ServerStatus.READY, 2),),
        usage=Usage(prompt=900),
    )
    assert "~/work/clients/north/shop-backend (trusted)" in header_content(view, 110).plain
    for width, trust in ((72, ""), (80, r" \(trusted\)"), (90, r" \(trusted\)")):
        text = header_content(view, width).plain
        assert re.search(rf"   …\S*end{trust}  ", text)
        assert len(text) == width
    assert "end" not in header_content(view, 60).plain


def test_the_warning_has_a_tone_of_its_own() -> None:
    for trust, warned in [(FolderTrust.UNTRUSTED, True), (FolderTrust.TRUSTED, False)]:
        view = header_content(HeaderView("m", "~/s", trust, BackendKind.DEMO, Usage()), 99)
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


def test_the_header_says_that_tools_run_unasked_at_every_width() -> None:
    state = AppState(workspace="~/a/folder/with/a/long/name", grants=(YOLO,))
    for width in (80, 110, 200):
        assert UNASKED in header_content(header_view(state), width).plain


def test_the_header_says_nothing_where_tools_are_asked_about() -> None:
    other = replace(YOLO, id=type(YOLO.id)("another"))
    view = header_view(AppState(grants=(other,)))
    assert UNASKED not in header_content(view, 200).plain
