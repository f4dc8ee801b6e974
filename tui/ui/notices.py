"""The engine's warnings, errors and answers as toasts; the activity pane has all notices.

Toasts wait while a question or dialog is open: they would cover it, or be gone before it closes.
An answer, such as where a file is, comes above the dialog that it was asked for in.
"""

import re
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from textual.widget import Widget

from tui.model.chat import Severity
from tui.store.selectors import pending_here
from tui.store.state import MAX_NOTICES, AppState
from tui.text import clip
from tui.ui.bridge import StoreBridge

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.model.events import Notice

MAX_TOASTS: Final = 3
"""Toasts shown for notices that arrive together; more notices become one toast."""

_FRAMES: Final = re.compile("[\u2500-\u259f]+")
"""Box drawing and block elements, of which questions are made."""

_TOAST: Final[dict[Severity, Literal["information", "warning", "error"]]] = {
    Severity.INFO: "information",
    Severity.WARNING: "warning",
    Severity.ERROR: "error",
}


def notices_view(state: AppState) -> "tuple[int, tuple[Notice, ...]]":
    """Select the number of all notices so far, and those that are kept."""
    return state.notice_count, state.notices


def _board_view(state: AppState) -> "tuple[bool, int, tuple[Notice, ...]]":
    """Select whether a question is open, and the notices."""
    return bool(pending_here(state)), *notices_view(state)


class Toasts:
    """Show each new notice once as a toast.

    Args:
        owner: The mounted widget that shows the toasts, for as long as it is mounted.
        bridge: Provides the notices.
    """

    def __init__(self, owner: Widget, bridge: StoreBridge) -> None:
        self._owner = owner
        self._is_asking = False
        self._count = 0
        self._held: deque[Notice] = deque(maxlen=MAX_NOTICES)
        bridge.watch(owner, _board_view, self._on_notices)

    def _on_notices(self, view: "tuple[bool, int, tuple[Notice, ...]]") -> None:
        self._is_asking, count, notices = view
        new = notices[max(0, len(notices) - (count - self._count)) :] if count else ()
        self._count = count
        self._held.extend(one for one in new if one.is_answer or one.severity is not Severity.INFO)
        self.show_held()

    def show_held(self) -> None:
        """Show the notices that waited, if nothing is open that they would cover."""
        if self._is_asking:
            return
        is_covered = self._owner.app.screen is not self._owner.screen
        self._toast([one for one in self._held if one.is_answer or not is_covered])
        waiting = [one for one in self._held if is_covered and not one.is_answer]
        self._held = deque(waiting, maxlen=MAX_NOTICES)

    def _toast(self, notices: "Sequence[Notice]") -> None:
        if len(notices) > MAX_TOASTS:
            has_error = any(notice.severity is Severity.ERROR for notice in notices)
            words = f"{len(notices)} new notices. Press F7 to see them."
            self._owner.notify(words, severity="error" if has_error else "warning", markup=False)
            return
        for notice in notices:
            text = " ".join(filter(None, (notice.text, notice.advice)))
            self._owner.notify(text, severity=_TOAST[notice.severity], markup=False)


def toast_words(text: str) -> str:
    """Write a text as one short paragraph: it may be a server's, and look like no question."""
    return clip(" ".join(_FRAMES.sub(" ", text).split()), limit=240)
