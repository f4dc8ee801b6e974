"""The app outlives its terminal for as long as it needs to end in good order."""

import io
from typing import Final

from tui.ui.driver import VanishingOutput

GONE: Final = OSError(5, "Input/output error")


class GoneTerminal(io.StringIO):
    def write(self, _text: str) -> int:
        raise GONE

    def flush(self) -> None:
        raise GONE

    def fileno(self) -> int:
        return 2


def test_what_a_terminal_takes_is_passed_on() -> None:
    terminal = io.StringIO()
    output = VanishingOutput(terminal)
    assert output.write("frame") == 5
    output.flush()
    assert terminal.getvalue() == "frame"


def test_a_terminal_that_is_gone_stops_nobody() -> None:
    output = VanishingOutput(GoneTerminal())
    assert output.write("frame") == 5
    output.flush()
    assert output.fileno() == 2
