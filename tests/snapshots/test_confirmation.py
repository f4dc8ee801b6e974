"""What the question about a tool looks like, and the steps towards an answer."""

import json
from dataclasses import replace

import pytest

from tests.snapshots.decks import HISTORIES, NARROW, WIDE, Album, deck, press
from tests.support.samples import confirmation
from tests.ui.consent.samples import SCHEMA, VALUES, rewriting, several, writing
from tests.ui.requests.samples import result, review, sampling
from tui.model import events as e
from tui.model.input.arguments import canonical_json
from tui.model.requests import ConfirmationRequest, PendingRequest
from tui.ui.app import GemdeckApp

QUESTION = replace(
    confirmation(),
    title="Add a note",
    description="Adds a note to the list. " * 6,
    arguments=canonical_json({**VALUES, "text": "buy milk", "tags": ["home", "shop"]}),
    claims=("changes data", "reaches the network"),
    notes=("This turn has read data from search.",),
)

STEPS: dict[str, tuple[str, ...]] = {
    "question": (),
    "word": ("w", "n", "o"),
    "form": ("escape", "e"),
    "json": ("ctrl+t",),
    "wrong-json": ("x",),
    "scope": ("backspace", "escape", "m", "t"),
}
"""The keys from one picture to the next."""

CASES: dict[str, tuple[ConfirmationRequest, tuple[str, ...]]] = {
    "not-lasting": (replace(QUESTION, not_lasting="nothing identifies it"), ()),
    "client": (replace(QUESTION, caller="claude-code in ~/shop"), ()),
    "edited": (QUESTION, ("e", "4", "ctrl+s")),
    "problem": (replace(QUESTION, problem="amount: 9 is more than 5"), ("e",)),
    "change": (rewriting(), ()),
    "rule": (writing(), ("end", "v", "left", "up", "right", "right")),
}

BOTH = ("change", "rule")
"""Those that are laid out otherwise where there is less room."""

OTHERS: dict[str, tuple[PendingRequest, ...]] = {
    "calls": several(),
    "result": (result(),),
    "result-with-picture": (result("A chart.", "image/png, 640x480, 12 kB"),),
    "sampling": (sampling(),),
    "sampling-review": (review(),),
}
"""Other questions, and several at once, in the state in which they open."""


def asking(*requests: PendingRequest) -> GemdeckApp:
    return deck((*HISTORIES["asking"][:-1], *map(e.RequestRaised, requests)), SCHEMA)


async def test_the_question(album: Album) -> None:
    async with album.of(asking(QUESTION), WIDE) as pilot:
        for name, keys in STEPS.items():
            await press(pilot, *keys)
            await album.take(pilot, name)


async def test_the_narrow_question(album: Album) -> None:
    async with album.of(asking(replace(QUESTION, read_only=1)), NARROW) as pilot:
        await album.take(pilot, "question")
        await press(pilot, "e")
        await album.take(pilot, "form")
        await press(pilot, "escape", "m", "t")
        await album.take(pilot, "scope")


@pytest.mark.parametrize("name", CASES)
async def test_another_question(album: Album, name: str) -> None:
    request, keys = CASES[name]
    await album.take_all(asking(request), name, *keys, wide=name not in BOTH)


@pytest.mark.parametrize("name", OTHERS)
async def test_other_questions(album: Album, name: str) -> None:
    wide = name in {"result-with-picture", "sampling-review"}
    await album.take_all(asking(*OTHERS[name]), name, wide=wide)


def test_the_samples_are_what_a_server_could_be_asked() -> None:
    assert json.loads(QUESTION.arguments)["branch"] == VALUES["branch"]
