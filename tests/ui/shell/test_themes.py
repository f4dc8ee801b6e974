"""gemdeck's themes: legible, and without colors where the terminal has none."""

import pytest
from textual.color import Color
from textual.theme import Theme

from tests.ui.harness import running
from tests.ui.shell import decks
from tui.ui import themes
from tui.ui.themes import UiPreferences

LEAST_CONTRAST = 4.5
"""The contrast that WCAG asks of text."""

BACKGROUNDS = (
    "background",
    "surface",
    "block-cursor-background",
    "block-cursor-blurred-background",
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
        await deck.settle()
        drawn = [
            segment for strip in deck.app.screen._compositor.render_strips() for segment in strip
        ]
        styles = [segment.style for segment in drawn if segment.style is not None]
        for style in styles:
            assert style.color is None or style.color.is_default
            assert style.bgcolor is None or style.bgcolor.is_default
        assert any(s.style and s.style.reverse and "commit" in s.text for s in drawn)
        assert any(s.style and s.style.underline and "filter tools" in s.text for s in drawn)
