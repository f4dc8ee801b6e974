"""What the terminal is told by name: which terminals show progress in their tabs."""

import pytest

from tui.ui.attention import shows_progress

GHOSTTY = {"TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.2.0"}


@pytest.mark.parametrize(
    ("environ", "shows"),
    [
        ({}, False),
        (GHOSTTY, True),
        (GHOSTTY | {"TERM_PROGRAM_VERSION": "1.1.3"}, False),
        (GHOSTTY | {"TMUX": "/tmp/tmux,1,0"}, False),
        (GHOSTTY | {"STY": "1.pts"}, False),
        ({"TERM_PROGRAM": "ghostty"}, False),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.6.10"}, True),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.6.5"}, False),
        ({"TERM_PROGRAM": "WezTerm", "TERM_PROGRAM_VERSION": "20240203-110809-5046fc22"}, False),
        ({"TERM_PROGRAM": "WezTerm", "TERM_PROGRAM_VERSION": "20251201-1-a"}, True),
        ({"TERM_PROGRAM": "Apple_Terminal", "TERM_PROGRAM_VERSION": "455"}, False),
        ({"TERM": "xterm-kitty"}, False),
        ({"VTE_VERSION": "8002"}, True),
        ({"VTE_VERSION": "7600"}, False),
        ({"VTE_VERSION": "9" * 5_000}, False),
        ({"WT_SESSION": "a-b-c"}, True),
        ({"ConEmuPID": "1234"}, True),
        ({"TERM": "linux"}, False),
    ],
)
def test_only_terminals_that_show_progress_are_told_of_it(
    environ: dict[str, str], shows: bool
) -> None:
    assert shows_progress(environ) is shows
