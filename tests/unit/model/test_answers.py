"""Which answers let something happen."""

from enum import StrEnum

import pytest

from tui.model.consent import Choice, Decision
from tui.model.requests import Reply, ReplyAction
from tui.model.trust import ToolChangeAnswer, TrustAnswer


@pytest.mark.parametrize(
    ("kind", "allowing"),
    [
        (
            TrustAnswer,
            {TrustAnswer.TRUST, TrustAnswer.TRUST_WITH_CHILDREN, TrustAnswer.START_OUTSIDE},
        ),
        (ToolChangeAnswer, {ToolChangeAnswer.ACCEPT}),
        (ReplyAction, {ReplyAction.ACCEPT}),
        (Choice, set(Choice) - {Choice.DENY, Choice.DENY_REST_OF_TURN}),
    ],
)
def test_what_is_no_yes_allows_nothing(
    kind: type[TrustAnswer | ToolChangeAnswer | ReplyAction | Choice], allowing: set[StrEnum]
) -> None:
    assert {answer for answer in kind if answer.allows} == allowing


@pytest.mark.parametrize("action", ReplyAction)
def test_a_reply_allows_what_its_action_allows(action: ReplyAction) -> None:
    assert Reply(action).allows is action.allows


@pytest.mark.parametrize("choice", Choice)
def test_a_decision_allows_what_its_choice_allows(choice: Choice) -> None:
    assert Decision(choice).allows is choice.allows
