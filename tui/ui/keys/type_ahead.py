"""What is typed while something opens, and typed into it once it stands."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from textual import events
from textual.app import App
from textual.message_pump import MessagePump


class TypeAhead:
    """Keeps keys and pastes for what is not on the screen yet.

    Args:
        app: The running app, which gets all that is typed.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._kept: deque[events.Key | events.Paste] = deque()
        self._holds = True  # until the first frame, which has nothing to type into

    def keeps(self, event: events.Event) -> bool:
        """Keep an event if it was typed and cannot be typed yet; return whether it is so."""
        if not self._holds or not isinstance(event, events.Key | events.Paste):
            return False
        if event.is_forwarded:
            return False  # it was typed before, and comes back from a widget
        self._kept.append(event)
        return True

    def begin(self) -> None:
        """Type what came before the first frame.

        Until the terminal was ours it turned Enter into a line feed; the last one sends.
        """
        if self._kept and isinstance(last := self._kept[-1], events.Key) and last.key == "ctrl+j":
            self._kept[-1] = events.Key("enter", "\r")
        self._app.call_later(self._type)

    def hold_for(self, change: Callable[[], Awaitable[None]]) -> None:
        """Change what is on the screen between what was typed before this and what is typed next.

        What was typed may still be on its way through the queues of the widget with the focus and
        those around it, in each of which it can come to stand twice.
        """
        self._holds = True
        focused = self._app.focused
        around = [self._app] if focused is None else focused.ancestors_with_self
        queues = iter([queue for queue in around for _ in range(2)])
        self._app.call_later(self._pass_on, queues, change)

    async def _pass_on(
        self, queues: Iterator[MessagePump], change: Callable[[], Awaitable[None]]
    ) -> None:
        """Go through the queues, each behind what is in it; then make the change."""
        for queue in queues:
            if queue.call_later(self._pass_on, queues, change):
                return
        try:
            await change()
        finally:
            await self._type()

    async def _type(self) -> None:
        self._holds = False
        while self._kept and not self._holds:
            await self._app.on_event(self._kept.popleft())
