"""The kinds of question, and the keys of their answers; imported when the first one is asked."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from tui.model import requests
from tui.model.requests import PendingRequest
from tui.ui.keymap import Key, Place
from tui.ui.questions.address import AddressQuestion, LinkScreen
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.form import FormQuestion
from tui.ui.questions.question import Question
from tui.ui.questions.sampling import ResultQuestion, ReviewQuestion, SamplingQuestion
from tui.ui.questions.sign_in import SignInQuestion
from tui.ui.questions.trust import SkillQuestion, ToolChangeQuestion, TrustQuestion

QUESTIONS: Final[Mapping[type[PendingRequest], type[Question[Any]]]] = {
    requests.ConfirmationRequest: ConfirmationQuestion,
    requests.TrustRequest: TrustQuestion,
    requests.ToolChangeRequest: ToolChangeQuestion,
    requests.SkillRequest: SkillQuestion,
    requests.FormRequest: FormQuestion,
    requests.UrlRequest: AddressQuestion,
    requests.SignInRequest: SignInQuestion,
    requests.SamplingRequest: SamplingQuestion,
    requests.ResultReview: ResultQuestion,
    requests.SamplingReview: ReviewQuestion,
}
"""What asks about each kind of request."""


def answer_keys() -> Iterator[Key]:
    """Give the keys of the answers to all questions; those of one question begin with its name."""
    kinds: tuple[type[Question[Any]], ...] = (*QUESTIONS.values(), LinkScreen)
    for kind in kinds:
        for answer in chain(*kind.ROWS):
            words = f"{answer.words[0].upper()}{answer.words[1:]}"
            what = f"{kind.PREFIX}.{answer.name}", answer.keys, "none", "", words
            yield Key(Place.QUESTION, *what, answer.priority)
