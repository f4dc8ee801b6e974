"""What the terminal is told: bell, title and progress, for who looks elsewhere, and the mouse."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from textual.app import App

from tui.model.chat import ConversationId, ToolCall, ToolCallStatus
from tui.model.consent import RequestId
from tui.store.state import AppState
from tui.text import clip
from tui.ui.bridge import StoreBridge

QUIET_SECONDS: Final = 10.0
"""Seconds after a ring for a question in which no other question rings."""

LONG_SECONDS: Final = 10.0
"""Seconds of work in a conversation whose end rings."""

_OSC_9: Final = "\x1b]9;{}\x1b\\"
_BY_PROGRAM: Final = {"iTerm.app": _OSC_9, "WezTerm": _OSC_9, "ghostty": _OSC_9}
_BY_TERM: Final = {"xterm-kitty": "\x1b]99;;{}\x1b\\", "xterm-ghostty": _OSC_9}

_PROGRESS_SINCE: Final = {
    **{"ghostty": [1, 2], "mintty": [3, 4, 2]},
    **{"iTerm.app": [3, 6, 6], "WezTerm": [20250209]},
}
"""Terminals whose tabs show progress, since this version: older ones take it for a notification."""

_VTE_SINCE: Final = 8_000
_ENDLESS, _WAITING = "3;0", "4;100"
"""States of OSC 9;4: at work for nobody knows how long; paused."""

Seen = tuple[str, frozenset[RequestId], frozenset[ConversationId], int | None, bool, bool, bool]


def notification(environment: Mapping[str, str], words: str) -> str:
    """Return what the terminal shows as a notification, or nothing where only the bell is known.

    The words must be gemdeck's own: a name from outside could end the sequence.
    """
    by_program = _BY_PROGRAM.get(environment.get("TERM_PROGRAM", ""))
    return (by_program or _BY_TERM.get(environment.get("TERM", ""), "")).format(words)


def shows_progress(environment: Mapping[str, str]) -> bool:
    """Tell whether the terminal is one whose tab shows progress (OSC 9;4)."""
    if environment.get("TMUX") or environment.get("STY"):
        return False
    version = [*map(int, re.findall(r"[0-9]{1,9}", environment.get("TERM_PROGRAM_VERSION", "")))]
    since = _PROGRESS_SINCE.get(environment.get("TERM_PROGRAM", ""))
    vte = environment.get("VTE_VERSION", "")
    is_vte = vte.isdecimal() and len(vte) < 9 and int(vte) >= _VTE_SINCE
    is_windows = bool(environment.get("WT_SESSION") or environment.get("ConEmuPID"))
    return is_windows or is_vte or (since is not None and version >= since)


def _percent(state: AppState) -> int | None:
    """Return how far the running call is that has the longest way to go, if one says so."""
    shares = (
        entry.progress.progress / entry.progress.total
        for one in state.conversations.values()
        for entry in one.transcript.live
        if isinstance(entry, ToolCall)
        and entry.status is ToolCallStatus.RUNNING
        and entry.progress is not None
        and entry.progress.total
    )
    least = min(shares, default=None)
    return None if least is None else int(min(least, 1.0) * 100)


def _seen(state: AppState) -> Seen:
    """Select the folder, questions, conversations at work, their progress, and the settings."""
    asked = frozenset(request.id for request in state.pending)
    busy = (key for key, one in state.conversations.items() if one.turn or one.queued)
    switches = state.bell, state.title, state.mouse
    return state.workspace, asked, frozenset(busy), _percent(state), *switches


class Attention:
    """Says in the terminal's title what goes on, and rings while the user looks elsewhere.

    Where the terminal's tab shows progress, it has that of the running call.

    It takes the mouse, or leaves it to the terminal.

    It rings for a new question, and when a conversation has worked long and is done.

    Args:
        app: The running app; its first screen stands.
        bridge: Provides the state.
        clock: Gives seconds that never run backwards.
    """

    def __init__(self, app: App[Any], bridge: StoreBridge, clock: Callable[[], float]) -> None:
        self._app = app
        self._clock = clock
        self._quiet_until = clock()
        self._announced: frozenset[RequestId] = frozenset()
        self._since: dict[ConversationId, float] = {}
        """When the conversations at work began."""
        bridge.watch(app.screen_stack[0], _seen, self._follow)

    def _follow(self, seen: Seen) -> None:
        folder, asked, busy, percent, rings, has_title, has_mouse = seen
        now = self._clock()
        done = [now - began for key, began in self._since.items() if key not in busy]
        self._since = {key: self._since.get(key, now) for key in busy}
        is_away = rings and not self._app.app_focus
        if is_away and asked - self._announced and now >= self._quiet_until:
            self._quiet_until = now + QUIET_SECONDS
            self._ring("gemdeck: a question is waiting for you")
        elif is_away and max(done, default=0.0) > LONG_SECONDS:
            self._ring("gemdeck: the turn is done")
        self._announced = asked
        driver: Any = self._app._driver
        if hasattr(driver, "set_title"):  # ours, which is none without a terminal
            driver.use_mouse(wanted=has_mouse)
            driver.set_title(_title(folder, bool(asked), bool(busy)) if has_title else "")
            known = _ENDLESS if percent is None else f"1;{percent}"
            progress = _WAITING if asked else known if busy else ""
            shows = has_title and shows_progress(os.environ)
            driver.set_progress(progress if shows else "")

    def _ring(self, words: str) -> None:
        driver, sequence = self._app._driver, notification(os.environ, words)
        if sequence and driver is not None and not self._app.is_headless:
            driver.write(sequence)
        else:
            self._app.bell()


def _title(folder: str, is_asking: bool, is_busy: bool) -> str:
    """Return the title; the folder is sanitized, as the header shows it."""
    name = clip(folder.rstrip("/").rpartition("/")[2] or folder, limit=60)
    if is_asking:
        return f"◆ {name} · waiting for you"
    return f"◐ {name} · running" if is_busy else f"{name} · gemdeck"
