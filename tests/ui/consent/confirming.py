"""An app in which a tool wants to run, with a clock that a test moves by hand."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from textual import events
from textual.pilot import Pilot
from textual.screen import Screen

from tests.ui.chat.app import ChatApp
from tests.ui.chat.support import Clock, request, until
from tests.ui.requests.samples import COLOURS
from tui.model import events as e
from tui.model.arguments import canonical_json
from tui.model.consent import Decision, RequestId
from tui.model.requests import ConfirmationRequest, FieldKind, FormField
from tui.ui.screens.confirmation import ConfirmationScreen
from tui.ui.screens.edit_arguments import EditArgumentsScreen
from tui.ui.widgets.composer import WRITING_SECONDS
from tui.ui.widgets.json_area import JsonArea

S = TypeVar("S", bound=Screen[Any])

VALUES = {"amount": 3, "branch": "main", "colour": "g"}

FIELDS = (
    FormField("branch", FieldKind.TEXT, "Branch", "Where it goes.", required=True),
    FormField("amount", FieldKind.INTEGER, "Amount", minimum=1, maximum=50),
    FormField("colour", FieldKind.CHOICE, "Colour", options=COLOURS),
)


def asked(
    values: Mapping[str, Any] = VALUES,
    fields: tuple[FormField, ...] = FIELDS,
    *,
    problem: str = "",
    notes: tuple[str, ...] = (),
    title: str = "",
    may_last: bool = True,
) -> ConfirmationRequest:
    """Make a question about a call with these arguments."""
    return replace(
        request(arguments=canonical_json(values)),
        fields=fields,
        problem=problem,
        notes=notes,
        title=title,
        may_last=may_last,
    )


@dataclass
class Confirming:
    """The app, and the hands on it."""

    app: ChatApp
    pilot: Pilot[None]
    clock: Clock

    @property
    def modal(self) -> ConfirmationScreen:
        return self._top(ConfirmationScreen)

    @property
    def editor(self) -> EditArgumentsScreen:
        return self._top(EditArgumentsScreen)

    @property
    def decisions(self) -> list[Decision]:
        made = [arguments for name, arguments in self.app.commands.calls if name == "decide"]
        return [decision for _, decision in made if isinstance(decision, Decision)]

    @property
    def hint(self) -> str:
        return str(self.modal.view.hint.render())

    @property
    def text(self) -> str:
        """The screen as text."""
        return "\n".join(s.text for s in self.app.screen._compositor.render_strips())

    async def ask(self, request: ConfirmationRequest) -> None:
        """Raise a question and wait until it has been drawn."""
        self.app.store.dispatch(e.RequestRaised(request))
        await self.until(lambda: isinstance(self.app.screen, ConfirmationScreen))
        await self.until(lambda: self.modal.request == request)
        await self.until(lambda: not self.modal._gate.waits_for_drawing)

    async def settle(self, request: str = "r0") -> None:
        self.app.store.dispatch(e.RequestSettled(RequestId(request)))
        await self.pilot.pause(0.1)

    async def arm(self) -> None:
        await self.until(lambda: not self.modal._gate.waits_for_drawing)
        self.clock.advance(WRITING_SECONDS + 0.01)
        await self.until(lambda: self.modal.armed)

    async def press(self, *keys: str) -> None:
        """Press keys, each as slowly as an answer wants it."""
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()
            self.clock.advance(0.6)

    async def edit(self) -> None:
        """Arm the question and open the editor."""
        await self.arm()
        await self.pilot.press("e")
        await self.until(lambda: isinstance(self.app.screen, EditArgumentsScreen))
        await self.until(lambda: self.app.focused is not None)

    async def edit_as_json(self, text: str | None = None) -> JsonArea:
        """Open the editor as JSON, and put a text in."""
        await self.edit()
        if self.editor._shows_form:
            await self.pilot.press("ctrl+t")
            await self.until(lambda: isinstance(self.app.focused, JsonArea))
        area = self.editor.area
        if text is not None:
            area.select_all()
            self.app.post_message(events.Paste(text))
            await self.pilot.pause()
        return area

    async def finish(self) -> None:
        """Go back to the question and arm it."""
        await self.pilot.press("ctrl+s")
        await self.until(lambda: isinstance(self.app.screen, ConfirmationScreen))
        await self.arm()

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(self.pilot, condition)

    def sent(self) -> object:
        """The one decision's arguments, as an object."""
        (decision,) = self.decisions
        assert decision.arguments is not None
        return json.loads(decision.arguments)

    def _top(self, kind: type[S]) -> S:
        screen = self.app.screen
        assert isinstance(screen, kind)
        return screen


@asynccontextmanager
async def confirming(
    request: ConfirmationRequest | None = None, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Confirming]:
    """Run an app in which a question has been raised and drawn."""
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test(size=size) as pilot:
        hands = Confirming(app, pilot, clock)
        await hands.ask(request or asked())
        yield hands
