"""Small facts of the model: prices, hosts, answers, names, statuses."""

import time

import pytest
from pydantic import ValidationError

from tests.support.rows import row
from tui.model import events as e
from tui.model.chat import EntryId, TurnEnd, TurnId, TurnOutcome, Usage, UserMessage
from tui.model.consent import Choice, Decision
from tui.model.input.addresses import is_loopback
from tui.model.input.fuzzy import best
from tui.model.models import PricesSet
from tui.model.requests import Reply, ReplyAction
from tui.model.servers import TRANSITIONS, ServerStatus
from tui.model.settings import PriceSettings
from tui.model.trust import TrustAnswer
from tui.store.reducer import reduce
from tui.store.selectors import entries
from tui.store.state import AppState

MODELS = {
    "gemini-3*": {"input": 1, "output": 10},
    "gemini-3.8-flash": {"input": 2, "cached": 0.5, "output": 20},
    "gemini-3.8*": {"input": 3, "output": 30},
}
PRICES = PriceSettings.model_validate({"currency": "EUR", "models": MODELS})
MILLION = Usage(prompt=1_000_000, cached=400_000, output=300_000, thoughts=200_000)


def test_a_cost_is_that_of_the_whole_name_or_else_of_its_longest_beginning() -> None:
    costs = {
        "3.8-flash": 0.6 * 2 + 0.4 * 0.5 + 0.5 * 20,
        "3.8-pro": 3 + 0.5 * 30,
        "3-pro": 1 + 0.5 * 10,
    }
    for model, cost in costs.items():
        assert PRICES.cost(f"gemini-{model}", MILLION) == pytest.approx(cost)
    assert PRICES.cost("gemini-2.5-pro", MILLION) is None
    assert PriceSettings().cost("gemini-3.8-flash", MILLION) is None
    assert PriceSettings().cost("gemini-3.8-flash", MILLION, 0.5) == 0.5
    assert PRICES.cost("gemini-2.5-pro", MILLION, 0.5) is None  # a list's prices are no euros
    assert PRICES.cost("gemini-3-pro", MILLION, 0.5) == pytest.approx(costs["3-pro"])


def test_a_cost_in_words() -> None:
    for cost, words in [
        *((None, ""), (0.0, ""), (0.00001, "<0.0001 EUR"), (0.01234, "0.0123 EUR")),
        *((12.345, "12.35 EUR"), (1234.5, "1,234.50 EUR")),
    ]:
        assert PRICES.words(cost) == words


def test_what_is_no_price_is_refused() -> None:
    for models in [
        *({"x": {"input": -1, "output": 1}}, {"x": {"input": 1}}),
        *({"x": {"input": "much", "output": 1}}, {"x": {"input": 1, "output": float("nan")}}),
        *({"a b": {"input": 1, "output": 1}}, {"a*b": {"input": 1, "output": 1}}),
        {"": {"input": 1, "output": 1}},
    ]:
        with row(models), pytest.raises(ValidationError):
            PriceSettings.model_validate({"models": models})


def spent(*requests: tuple[str, Usage], before: AppState = AppState()) -> AppState:  # noqa: B008
    """Run a turn with these requests."""
    state = reduce(before, PricesSet(PRICES))
    turn = TurnId("1")
    events: list[e.Event] = [
        e.TurnStarted(turn, UserMessage(EntryId("u"), "hi"), 1.0),
        *(e.UsageReported(usage, model) for model, usage in requests),
        e.TurnFinished(turn, TurnOutcome.COMPLETED, "", 1.0),
    ]
    for event in events:
        state = reduce(state, event)
    return state


def cost_of_turn(state: AppState) -> str:
    end = entries(state)[-1]
    assert isinstance(end, TurnEnd)
    return end.cost


def test_a_turn_and_its_conversation_show_what_they_cost() -> None:
    state = spent(("gemini-3-pro", MILLION), ("gemini-3-pro", Usage(prompt=1_000_000)))
    assert (cost_of_turn(state), state.cost) == ("7.00 EUR", "7.00 EUR")
    again = spent(("compressed", Usage(context=5)), before=state)
    found = (cost_of_turn(again), again.cost)
    assert found == ("", "7.00 EUR"), "what has no tokens costs nothing"
    state = spent(("gemini-3-pro", MILLION), ("mystery", MILLION))
    assert (cost_of_turn(state), state.cost) == ("", "")


def test_which_hosts_are_this_machine() -> None:
    here = ("localhost", "localhost.", "app.localhost", "app.localhost.", "127.9.9.9", "::1")
    elsewhere = ("", "example.com", "localhost.example.com", "notlocalhost", "2130706433", "::2")
    assert [host for host in (*here, *elsewhere) if is_loopback(host)] == [*here]


def test_what_is_no_yes_allows_nothing() -> None:
    asked = (*TrustAnswer, *ReplyAction, *Choice)
    assert [answer for answer in asked if answer.allows] == [
        *(TrustAnswer.TRUST, TrustAnswer.TRUST_WITH_CHILDREN, TrustAnswer.TRUST_BARE),
        ReplyAction.ACCEPT,
        *(one for one in Choice if one not in {Choice.DENY, Choice.DENY_REST_OF_TURN}),
    ]
    assert all(Reply(action).allows is action.allows for action in ReplyAction)
    assert all(Decision(choice).allows is choice.allows for choice in Choice)


PATHS = ["src/app/main.py", "src/app/", "docs/mapping.md", "README.md", "tests/test_main.py"]


def test_beginnings_come_first_then_parts_then_letters() -> None:
    for typed, found in [
        ("main", ["src/app/main.py", "tests/test_main.py", "docs/mapping.md"]),
        ("src", ["src/app/", "src/app/main.py"]),
        *(("app", ["src/app/", "docs/mapping.md", "src/app/main.py"]), ("rdm", ["README.md"])),
        *(("samp", ["src/app/main.py"]), ("zzz", [])),
    ]:
        assert best(typed, PATHS, 5) == found


def test_names_of_nothing_but_near_misses_cost_their_length() -> None:
    names = ["ab" * 2_000 for _ in range(1_000)]
    began = time.process_time()
    assert best("ab" * 20 + "c", names, 5) == []
    assert time.process_time() - began < 5


ALLOWED = """
untrusted     -> stopped, disabled
disabled      -> stopped
asleep        -> starting, stopped, disabled
stopped       -> starting, disabled
starting      -> ready, needs sign-in, retrying, failed, stopping, stopped, asleep
needs sign-in -> starting, stopped, stopping, disabled
ready         -> stopping, retrying, failed, needs sign-in
retrying      -> starting, stopped, failed, disabled
failed        -> starting, stopped, disabled
stopping      -> stopped, failed, asleep
"""


def allowed_pairs() -> set[tuple[str, str]]:
    lines = (line.split("->") for line in ALLOWED.strip().splitlines())
    return {(before.strip(), after.strip()) for before, row in lines for after in row.split(",")}


def test_servers_go_from_status_to_status_as_the_table_says() -> None:
    pairs = {(before.value, after.value) for before, row in TRANSITIONS.items() for after in row}
    assert (pairs, set(TRANSITIONS)) == (allowed_pairs(), set(ServerStatus))
