"""What the question about a tool looks like, and the steps towards an answer."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.fakes.commands import RecordingCommands
from tests.snapshots.decks import HISTORIES, SHORT_ARMING, SIZES, pressing, wait_until_armed
from tests.support.samples import confirmation
from tests.ui.consent.samples import FIELDS, VALUES, rewriting, several
from tests.ui.requests.samples import result, review, sampling
from tui.model import events as e
from tui.model.input.arguments import canonical_json
from tui.model.requests import ConfirmationRequest, PendingRequest
from tui.store.reducer import reduce
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.themes import UiPreferences

SnapCompare = Callable[..., bool]

QUESTION = replace(
    confirmation(),
    title="Add a note",
    description="Adds a note to the list. " * 6,
    arguments=canonical_json({**VALUES, "text": "buy milk", "tags": ["home", "shop"]}),
    claims=("changes data", "reaches the network"),
    fields=FIELDS,
    notes=("This turn has read data from search.",),
)

CASES: dict[str, tuple[ConfirmationRequest, tuple[str, ...]]] = {
    "question": (QUESTION, ()),
    "scope": (QUESTION, ("m", "t")),
    "not-lasting": (replace(QUESTION, may_last=False), ()),
    "form": (QUESTION, ("e",)),
    "json": (QUESTION, ("e", "ctrl+t")),
    "wrong-json": (QUESTION, ("e", "ctrl+t", "x")),
    "edited": (QUESTION, ("e", "4", "ctrl+s")),
    "problem": (replace(QUESTION, problem="amount: 9 is more than 5"), ("e",)),
    "word": (QUESTION, ("w", "n", "o")),
    "change": (rewriting(), ()),
}

OTHERS: dict[str, tuple[PendingRequest, ...]] = {
    "calls": several(),
    "result": (result(),),
    "result-with-picture": (result("A chart.", "image/png, 640x480, 12 kB"),),
    "sampling": (sampling(),),
    "sampling-review": (review(),),
}
"""Other questions, and several at once, in the state in which they open."""


def deck(*requests: PendingRequest) -> GemdeckApp:
    state = AppState(workspace="~/shop")
    for event in (*HISTORIES["asking"][:-1], *map(e.RequestRaised, requests)):
        state = reduce(state, event)
    return GemdeckApp(Store(state), RecordingCommands(), preferences=UiPreferences())


def answering(*keys: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Press keys with the pause that an answer wants."""

    async def run(pilot: Pilot[Any]) -> None:
        await pressing()(pilot)
        for key in keys:
            await wait_until_armed(pilot)
            await pilot.pause(2 * SHORT_ARMING)
            await pilot.press(key)
        await pressing()(pilot)

    return run


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", CASES)
def test_the_question(snap_compare: SnapCompare, name: str, size: tuple[int, int]) -> None:
    request, keys = CASES[name]
    assert snap_compare(deck(request), terminal_size=size, run_before=answering(*keys))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", OTHERS)
def test_other_questions(snap_compare: SnapCompare, name: str, size: tuple[int, int]) -> None:
    assert snap_compare(deck(*OTHERS[name]), terminal_size=size, run_before=answering())


def test_the_samples_are_what_a_server_could_be_asked() -> None:
    assert json.loads(QUESTION.arguments)["branch"] == VALUES["branch"]
