"""What models cost: never a wrong number."""

from typing import Any

import pytest
from pydantic import ValidationError

from tui.model import events as e
from tui.model.chat import EntryId, TurnEnd, TurnId, TurnOutcome, Usage, UserMessage
from tui.model.models import PricesSet
from tui.model.settings import PriceSettings
from tui.store.reducer import reduce
from tui.store.selectors import entries
from tui.store.state import AppState

PRICES = PriceSettings.model_validate(
    {
        "currency": "EUR",
        "models": {
            "gemini-3*": {"input": 1, "output": 10},
            "gemini-3.8-flash": {"input": 2, "cached": 0.5, "output": 20},
            "gemini-3.8*": {"input": 3, "output": 30},
        },
    }
)
MILLION = Usage(prompt=1_000_000, cached=400_000, output=300_000, thoughts=200_000)


def test_a_cost_is_that_of_the_whole_name_or_else_of_its_longest_beginning() -> None:
    assert PRICES.cost("gemini-3.8-flash", MILLION) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.5 * 20)
    assert PRICES.cost("gemini-3.8-pro", MILLION) == pytest.approx(3 + 0.5 * 30)
    assert PRICES.cost("gemini-3-pro", MILLION) == pytest.approx(1 + 0.5 * 10)
    assert PRICES.cost("gemini-2.5-pro", MILLION) is None
    assert PriceSettings().cost("gemini-3.8-flash", MILLION) is None


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        *((None, ""), (0.0, ""), (0.00001, "<0.0001 EUR"), (0.01234, "0.0123 EUR")),
        *((12.345, "12.35 EUR"), (1234.5, "1,234.50 EUR")),
    ],
)
def test_a_cost_in_words(cost: float | None, words: str) -> None:
    assert PRICES.words(cost) == words


@pytest.mark.parametrize(
    "models",
    [
        *({"x": {"input": -1, "output": 1}}, {"x": {"input": 1}}),
        *({"x": {"input": "much", "output": 1}}, {"x": {"input": 1, "output": float("nan")}}),
        *({"a b": {"input": 1, "output": 1}}, {"a*b": {"input": 1, "output": 1}}),
        {"": {"input": 1, "output": 1}},
    ],
)
def test_what_is_no_price_is_refused(models: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PriceSettings.model_validate({"models": models})


def spent(*requests: tuple[str, Usage]) -> AppState:
    """Run a turn with these requests."""
    state = reduce(AppState(), PricesSet(PRICES))
    turn = TurnId("1")
    events: list[e.Event] = [
        e.TurnStarted(turn, UserMessage(EntryId("u"), "hi"), 1.0),
        *(e.UsageReported(usage, model) for model, usage in requests),
        e.TurnFinished(turn, TurnOutcome.COMPLETED, "", 1.0),
    ]
    for event in events:
        state = reduce(state, event)
    return state


def test_a_turn_and_its_conversation_show_what_they_cost() -> None:
    state = spent(("gemini-3-pro", MILLION), ("gemini-3-pro", Usage(prompt=1_000_000)))
    end = entries(state)[-1]
    assert isinstance(end, TurnEnd)
    assert (end.cost, state.cost) == ("7.00 EUR", "7.00 EUR")
    again = reduce(state, e.TurnStarted(TurnId("2"), UserMessage(EntryId("v"), "x"), 2.0))
    again = reduce(again, e.UsageReported(Usage(context=5), "compressed"))
    again = reduce(again, e.TurnFinished(TurnId("2"), TurnOutcome.COMPLETED, "", 1.0))
    assert again.cost == "7.00 EUR", "what has no tokens costs nothing"
    end = entries(again)[-1]
    assert isinstance(end, TurnEnd)
    assert end.cost == ""


def test_one_request_without_a_price_leaves_no_sum() -> None:
    state = spent(("gemini-3-pro", MILLION), ("mystery", MILLION))
    end = entries(state)[-1]
    assert isinstance(end, TurnEnd)
    assert (end.cost, state.cost) == ("", "")
