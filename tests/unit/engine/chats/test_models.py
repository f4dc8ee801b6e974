"""What names of models tell."""

import pytest

from tui.engine.chats.backends.backend import ModelError
from tui.engine.chats.backends.gemini import (
    context_limit,
    generation,
    signs_calls,
    takes_media_in_responses,
    thinks,
)
from tui.engine.chats.step import Finish, judge_finish


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gemini-3.8-flash", (3, 8)),
        ("models/gemini-2.5-pro", (2, 5)),
        ("gemini-4-argon", (4, 0)),
        ("gemini-flash-latest", (3, 0)),
        ("gemma-4-31b-it", (0, 0)),
        ("demo", (0, 0)),
    ],
)
def test_the_generation_is_read_off_the_name(model: str, expected: tuple[int, int]) -> None:
    assert generation(model) == expected


def test_what_depends_on_the_generation() -> None:
    assert [thinks(m) for m in ("gemini-2.0-flash", "gemini-2.5-pro")] == [False, True]
    assert [signs_calls(m) for m in ("gemini-2.5-pro", "gemini-3-flash")] == [False, True]
    assert [takes_media_in_responses(m) for m in ("gemini-2.5-pro", "gemini-4")] == [False, True]
    assert [context_limit(m) for m in ("gemini-2.5-pro", "gemma-3", "x")] == [1_048_576, 131_072, 0]


def judge(reason: str, *, message: str = "", content: bool = True) -> Finish:
    return judge_finish(
        finish_reason=reason,
        finish_message=message,
        block_reason="",
        any_chunk=True,
        any_content=content,
    )


def test_the_services_words_on_an_unknown_end_are_shown_sanitised() -> None:
    with pytest.raises(ModelError, match=r"stopped \(NEW\): the moon is full\.") as caught:
        judge("NEW", message="the moon \x1b[31mis full")
    assert "\x1b" not in str(caught.value)


def test_an_unexpected_call_without_the_call_is_like_a_malformed_one() -> None:
    assert judge("UNEXPECTED_TOOL_CALL", content=False) is Finish.MALFORMED_CALL
    assert judge("UNEXPECTED_TOOL_CALL") is Finish.DONE
