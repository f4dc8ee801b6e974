"""Calls the user back to a question: a notification where the terminal shows one, else the bell.

Textual knows of the focus from the terminal's own reports. A terminal that sends none counts as
looked at, so nothing rings there.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from textual.app import App

QUIET_SECONDS: Final = 10.0
"""Seconds after a ring in which nothing rings."""

_WORDS: Final = "gemdeck: a question waits for you"
"""gemdeck's own words alone: no name from outside can end the sequence that carries them."""

_OSC_9: Final = f"\x1b]9;{_WORDS}\x1b\\"
_OSC_99: Final = f"\x1b]99;;{_WORDS}\x1b\\"

_BY_PROGRAM: Final = {"iTerm.app": _OSC_9, "WezTerm": _OSC_9, "ghostty": _OSC_9}
_BY_TERM: Final = {"xterm-kitty": _OSC_99, "xterm-ghostty": _OSC_9}


def notification(environment: Mapping[str, str]) -> str:
    """Return what the terminal shows as a notification, or nothing where only the bell is known."""
    by_program = _BY_PROGRAM.get(environment.get("TERM_PROGRAM", ""))
    return by_program or _BY_TERM.get(environment.get("TERM", ""), "")


class Bell:
    """Rings at most once in `QUIET_SECONDS`, and only while the user looks elsewhere.

    Args:
        app: The running app.
        clock: Gives seconds that never run backwards.
    """

    def __init__(self, app: App[Any], clock: Callable[[], float]) -> None:
        self._app = app
        self._clock = clock
        self._quiet_until = clock()
        self._sequence = notification(os.environ)

    def ring(self) -> None:
        """Ring, unless the user looks or it rang a moment ago."""
        if self._app.app_focus or self._clock() < self._quiet_until:
            return
        self._quiet_until = self._clock() + QUIET_SECONDS
        driver = self._app._driver
        if self._sequence and driver is not None and not self._app.is_headless:
            driver.write(self._sequence)
        else:
            self._app.bell()
