"""From the first frame to the last word: start, theme, quit, crash, and what leaves the app."""

import stat
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.color import Color
from textual.widgets import Static

from tests.ui.harness import run_and_fail, running, screen_lines
from tests.ui.shell import decks
from tui.ui import crash, themes
from tui.ui.app import ControlCharacterFilter, GemdeckApp
from tui.ui.themes import UiPreferences
from tui.ui.widgets.text.plain import block, count, fit

SECRET = "AIza-this-must-not-be-seen"


async def test_the_first_paint_is_told_once_and_after_the_frame() -> None:
    told: list[str] = []

    def on_first_paint() -> None:
        told.append("\n".join(screen_lines(app)))

    commands = decks.new_commands()
    app = GemdeckApp(
        decks.full_store(), commands, preferences=UiPreferences(), on_first_paint=on_first_paint
    )
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        await pilot.press("f2", "f3", "f6")
        await pilot.pause()
        assert (app.title, app.sub_title) == ("gemdeck", "")
    assert len(told) == 1
    assert "gemdeck" in told[0]
    assert "Servers" in told[0]


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
        await run_and_fail(decks.full_store(), crashes, fail_with_a_secret)
    report, written = read_report(crashes)
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert stat.S_IMODE(crashes.stat().st_mode) == 0o700
    assert written.endswith("builtins.ValueError\n")
    assert "broken with 26 letters" not in written
    assert "in fail_with_a_secret" in written
    shown = capsys.readouterr()
    printed = (shown.out + shown.err).replace("\n", "")
    assert report.name in printed
    assert "ValueError" in printed
    assert SECRET not in written + printed


async def test_an_error_that_draws_itself_is_reported_the_same_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DrawnError):
        await run_and_fail(decks.full_store(), tmp_path / "crashes", fail_drawn)
    shown = capsys.readouterr()
    assert "DrawnError" in shown.out + shown.err
    assert SECRET not in shown.out + shown.err + read_report(tmp_path / "crashes")[1]


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


def test_cells_are_counted_not_letters() -> None:
    assert fit("abc", 5) == "abc  "
    assert fit("abcdef", 4) == "abc…"
    assert fit("漢字漢字", 5) == "漢字…"
    assert fit("abc", 0) == ""


def test_numbers_are_short() -> None:
    assert [count(n) for n in (0, 950, 12_400, 1_000_000)] == ["0", "950", "12.4k", "1M"]


def test_a_block_is_bounded() -> None:
    assert block("a" + "\n" * 5_000 + "b") == "a\n\n\nb"
    assert block("\n".join(map(str, range(1_000)))).endswith("… 600 more lines")
