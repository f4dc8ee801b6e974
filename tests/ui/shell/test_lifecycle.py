"""From the first frame to the last word: start, theme, quit, crash, and what leaves the app."""

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from rich.segment import Segment
from rich.traceback import Traceback
from textual.color import Color
from textual.events import MouseDown, MouseMove
from textual.theme import Theme
from textual.widgets import Static

from tests.fakes.commands import RecordingCommands
from tests.support.waiting import eventually
from tests.ui.harness import WIDE, running, screen_lines, until
from tests.ui.shell import decks
from tui.store.store import Store
from tui.ui import crash, themes
from tui.ui.app import ControlCharacterFilter, GemdeckApp
from tui.ui.commands.palette import DeckPalette
from tui.ui.dialogs.help import HelpIndex, HelpScreen, HelpSection
from tui.ui.dialogs.list_dialog import ChoiceDialog
from tui.ui.driver import DeckDriver
from tui.ui.main import MainScreen
from tui.ui.panes.browser import ToolsPane
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.terminal.background import BackgroundReported
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.transcript import Transcript
from tui.ui.widgets.text.plain import block, count, fit

SECRET = "AIza-this-must-not-be-seen"

MAX_WIDGETS: Final = 16
MAX_RULES: Final = 90
"""A minimal app with a header, a field and a footer has 57."""


async def test_the_first_frame_shows_the_deck_with_few_widgets_and_styles_and_is_told_once() -> (
    None
):
    counts: list[tuple[int, int]] = []
    lines: list[str] = []

    def look() -> None:
        counts.append((len(app.deck.walk_children()), len(app.stylesheet.rules)))
        lines.extend(screen_lines(app))

    app = GemdeckApp(Store(), RecordingCommands(), preferences=UiPreferences(), on_first_paint=look)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.deck.query(ToolsPane))
        assert app.deck.query(Transcript)
        assert app.deck.query(ServersTree)
        await pilot.press("f2", "f3", "f6")
        assert (app.title, app.sub_title) == ("gemdeck", "")
    [(widgets, rules)] = counts
    assert widgets <= MAX_WIDGETS
    assert rules <= MAX_RULES
    text = "\n".join(lines)
    for words in (
        *("gemdeck", "Servers", "Reading the settings", "What would you like to do?"),
        "message   /",
    ):
        assert words in text, words


async def test_ctrl_q_quits_at_once_from_everywhere_whatever_the_theme() -> None:
    for name, expected, keys in [
        ("gemdeck-light", "gemdeck-light", ["f2", "enter"]),
        ("nord", "nord", ["ctrl+p"]),
        ("no-such-theme", themes.DEFAULT, ["f3", "slash"]),
    ]:
        saved: list[str] = []
        preferences = UiPreferences(name, saved.append)
        async with running(decks.full_store(), preferences=preferences) as deck:
            assert deck.app.theme == expected
            assert saved == [], "the theme at the start is not remembered"
            deck.app.deck.choose_theme("gemdeck-dark")
            assert saved == ["gemdeck-dark"]
            await deck.press(*keys, "ctrl+q")
            assert deck.app.return_code == 0


@pytest.mark.parametrize(
    ("chosen", "after"),
    [("", "gemdeck-light"), ("auto", "gemdeck-light"), ("nord", "nord")],
)
async def test_only_a_theme_that_nobody_chose_follows_the_terminal(chosen: str, after: str) -> None:
    saved: list[str] = []
    preferences = UiPreferences(chosen, saved.append)
    async with running(decks.full_store(), preferences=preferences) as deck:
        deck.app.post_message(BackgroundReported(is_dark=False))
        await deck.until(lambda: deck.app.theme == after)
        await deck.typed("/theme gemdeck-16")
        await deck.until(lambda: saved == ["gemdeck-16"])
        deck.app.post_message(BackgroundReported(is_dark=False))  # late
        await deck.settle()
        assert deck.app.theme == "gemdeck-16"
        await deck.typed("/theme auto")
        await deck.until(lambda: saved[1:] == ["auto"])
        deck.app.post_message(BackgroundReported(is_dark=True))
        await deck.until(lambda: deck.app.theme == "gemdeck-dark")


async def run_and_fail(crash_dir: Path, fail: Callable[[GemdeckApp], object]) -> None:
    """Let the app fail and wait for its end; raises the same."""
    async with running(decks.full_store(), crash_dir=crash_dir) as deck:
        fail(deck.app)
        await eventually(lambda: deck.app.return_code is not None)
        assert deck.app.return_code == 1


def fail_with_a_secret() -> None:
    key = SECRET
    raise ValueError(f"broken with {len(key)} letters")


class DrawnError(Exception):
    """An error that draws itself, as Textual's own do."""

    def __rich__(self) -> str:
        return SECRET


def fail_drawn() -> None:
    raise DrawnError


async def test_D15_a_crash_names_a_report_without_the_values_of_variables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crashes = tmp_path / "crashes"
    with pytest.raises(ValueError, match="broken"):
        await run_and_fail(crashes, lambda app: app.deck.call_next(fail_with_a_secret))
    report, written = read_report(crashes)
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert stat.S_IMODE(crashes.stat().st_mode) == 0o700
    assert written.endswith("builtins.ValueError\n")
    assert "broken with 26 letters" not in written
    assert "in fail_with_a_secret" in written
    printed = everything_of(capsys).replace("\n", "")
    assert report.name in printed
    assert "ValueError" in printed
    assert SECRET not in written + printed


async def test_an_error_that_draws_itself_is_reported_the_same_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DrawnError):
        await run_and_fail(tmp_path / "crashes", lambda app: app.deck.call_next(fail_drawn))
    printed = everything_of(capsys)
    assert "DrawnError" in printed
    assert SECRET not in printed + read_report(tmp_path / "crashes")[1]


def everything_of(capsys: pytest.CaptureFixture[str]) -> str:
    return "".join(capsys.readouterr())


def read_report(directory: Path) -> tuple[Path, str]:
    """Give the one report there is, and what it says."""
    (report,) = directory.iterdir()
    return report, report.read_text()


def test_the_newest_reports_are_kept_and_nothing_else_is_removed(tmp_path: Path) -> None:
    (tmp_path / "gemdeck.log").write_text("")
    reports = [crash.write_report(ValueError("x"), tmp_path) for _ in range(crash.MAX_REPORTS + 5)]
    assert sorted(tmp_path.glob("crash-*")) == reports[5:]
    assert (tmp_path / "gemdeck.log").exists()


def test_a_report_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    error = ValueError("x")
    assert crash.write_report(error, blocked) is None
    assert "No report could be written." in crash.summarize(error, None)


def test_a_report_holds_no_control_characters_and_has_an_end() -> None:
    kind = type("\x1b]52;c;aGk=\x07" + "x" * 1_000_000, (Exception,), {})
    text = crash.describe(kind())
    assert "\x1b" not in text
    assert len(text) < crash.MAX_REPORT + 200


def test_a_report_names_causes_and_members_of_groups_but_no_message() -> None:
    caught: BaseException
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ExceptionGroup(SECRET, [OSError(SECRET), TypeError(SECRET)]) from error
    except ExceptionGroup as group:
        caught = group
    caught.__context__ = caught  # a circle must not keep it busy
    text = crash.describe(caught)
    for name in ("ExceptionGroup", "KeyError", "OSError", "TypeError"):
        assert text.count(f"builtins.{name}\n") == 1
    assert "test_a_report_names_causes" in text
    assert SECRET not in text


def test_no_control_character_reaches_the_terminal() -> None:
    filtered = ControlCharacterFilter().apply(
        [Segment("a\x1b[2Jb\x9b\x07\x7f"), Segment("plain")], Color(0, 0, 0)
    )
    assert [segment.text for segment in filtered] == ["a�[2Jb���", "plain"]


async def test_the_filter_stands_behind_every_widget() -> None:
    async with running(decks.full_store()) as deck:
        await deck.app.deck.mount(Static("one\x1b]0;two\x9c", markup=False))
        await deck.settle()
        assert not any(c in deck.text.replace("\n", "") for c in "\x1b\x9c\x07")


def test_cells_are_counted_not_letters_numbers_are_short_and_blocks_bounded() -> None:
    fitted = fit("abc", 5), fit("abcdef", 4), fit("漢字漢字", 5), fit("abc", 0)
    assert fitted == ("abc  ", "abc…", "漢字…", "")
    assert [count(n) for n in (0, 950, 12_400, 1_000_000)] == ["0", "950", "12.4k", "1M"]
    assert block("a" + "\n" * 5_000 + "b") == "a\n\n\nb"
    assert block("\n".join(map(str, range(1_000)))).endswith("… 600 more lines")


class ThreadError(Exception):
    """What goes wrong in a thread."""


async def test_an_error_of_the_input_thread_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_driver: DeckDriver) -> None:
        raise ThreadError

    monkeypatch.setattr(DeckDriver, "run_input_thread", fail)
    with pytest.raises(ThreadError):
        await run_and_fail(tmp_path, lambda app: DeckDriver(app)._run_input_thread())
    written = read_report(tmp_path)[1]
    assert "ThreadError" in written
    assert ", in fail" in written


async def test_a_drawn_traceback_is_reported_by_its_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        raise ThreadError
    except ThreadError:
        drawn = Traceback()
    await run_and_fail(tmp_path, lambda app: app.call_later(app.panic, drawn))
    assert "ThreadError" in read_report(tmp_path)[1]
    assert "ThreadError" in everything_of(capsys)


LEAST_CONTRAST = 4.5
"""The contrast that WCAG asks of text."""

BACKGROUNDS = (
    *("background", "surface", "block-cursor-background", "block-cursor-blurred-background"),
)


def contrast(one: Color, other: Color) -> float:
    def luminance(color: Color) -> float:
        parts = [
            p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in color.normalized
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [themes.DARK, themes.LIGHT], ids=lambda theme: theme.name)
@pytest.mark.parametrize(
    "ink", ["foreground", "text-muted", "success", "warning", "error", "accent"]
)
def test_every_text_is_legible_on_every_background(theme: Theme, ink: str) -> None:
    colors = {**theme.to_color_system().generate(), **theme.variables}
    for background in BACKGROUNDS:
        on = Color.parse(colors[background])
        assert contrast(Color.parse(colors[ink]), on) >= LEAST_CONTRAST, background


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"TERM": "xterm"}, "gemdeck-16"),
        ({"TERM": "linux"}, "gemdeck-16"),
        ({"TERM": "xterm-256color"}, "nord"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "nord"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "gemdeck-16"),
    ],
)
def test_a_terminal_with_16_colors_gets_its_theme_by_itself(
    environment: dict[str, str], theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLORTERM", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert themes.fitting("nord") == theme


async def test_without_colors_the_selection_is_reversed_and_fields_are_underlined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    preferences = UiPreferences(theme=themes.SIXTEEN.name)
    async with running(decks.full_store(), preferences=preferences) as deck:
        await deck.press("f3", "down")
        drawn = [
            segment for strip in deck.app.screen._compositor.render_strips() for segment in strip
        ]
        styles = [segment.style for segment in drawn if segment.style is not None]
        for style in styles:
            assert style.color is None or style.color.is_default
            assert style.bgcolor is None or style.bgcolor.is_default
        assert any(s.style and s.style.reverse and "commit" in s.text for s in drawn)
        assert any(s.style and s.style.underline and "filter tools" in s.text for s in drawn)


async def test_keys_that_come_at_once_choose_and_close_once() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f1")
        manual = await deck.come(HelpScreen)
        await deck.press("slash")
        index = await deck.come(HelpIndex)
        chosen: list[str] = []
        index._use = chosen.append
        await index.action_choose()
        await index.action_choose()
        index.action_close()
        await deck.until(lambda: chosen and not index.is_attached)
        assert not index.listed.check_action("filter", ())
        assert deck.app.screen is manual
        await deck.press("escape")
        assert deck.on_top(MainScreen)
        await manual.go(*chosen)
        assert deck.on_top(MainScreen)


async def test_a_click_on_what_has_just_been_removed_does_nothing() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f1")
        manual = await deck.come(HelpScreen)
        text, _ = manual.get_widget_at(30, 10)
        text.remove()
        for _ in range(100):
            if text.is_attached:
                await asyncio.sleep(0)
        assert manual.get_widget_at(30, 10)[0] is text, "it is drawn still"
        for kind in (MouseDown, MouseMove):
            await deck.app.on_event(kind(None, 30, 10, 0, 0, 1, False, False, False, 30, 10))


async def test_a_dialog_is_told_of_a_new_size_while_it_opens_and_closes() -> None:
    async with running(decks.full_store()) as deck:
        dialog = ChoiceDialog("Choices", (), print, "")
        opened = deck.app.push_screen(dialog)
        dialog.show_keys()
        await opened
        dialog.on_resize()
        await deck.press("escape")
        dialog.show_keys()
        assert deck.on_top(MainScreen)


async def test_dialogs_below_others_may_change() -> None:
    async with running(decks.full_store()) as deck:
        for key, kind in (("ctrl+p", DeckPalette), ("f1", HelpScreen), ("ctrl+p", DeckPalette)):
            await deck.press(key)
            await deck.come(kind)
        before = deck.text
        _, lowest, middle, top = deck.app.screen_stack
        lowest.refresh()
        middle.query_one(HelpSection).refresh()
        await deck.until(lambda: top._dirty_regions)
        assert deck.text == before


async def test_dialogs_open_over_each_other_without_an_end() -> None:
    async with running(decks.full_store()) as deck:
        for _ in range(30):
            await deck.press("ctrl+p")
            await deck.press("f1")
            await deck.come(HelpScreen)
        assert len(deck.app.screen_stack) > 60
        for screen in deck.app.screen_stack:
            screen.refresh()
        assert "Help" in deck.text
