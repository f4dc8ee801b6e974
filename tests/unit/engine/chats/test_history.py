"""The wire form of a conversation."""

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.gemini_rules import check_request
from tui.engine.chats.backends.backend import WirePart
from tui.engine.chats.history import (
    MAX_RESPONSE_MEDIA,
    RESPONSE_ALLOWANCE,
    FunctionResponse,
    History,
    StepParts,
)
from tui.engine.mcp.catalog.offered_tool import FunctionCall, MediaPart, TextPart


def parts_of(*parts: WirePart) -> list[object]:
    gathered = StepParts()
    for part in parts:
        gathered.add(part)
    return list(gathered.parts)


def test_only_unsigned_text_is_joined() -> None:
    signed = {"text": "c", "thoughtSignature": "s"}
    given_parts = ({"text": "a"}, {"text": "b"}, signed, {"text": "d"}, {"text": ""})
    assert parts_of(*given_parts) == [{"text": "ab"}, signed, {"text": "d"}]


def test_thoughts_are_left_out_and_empty_signed_parts_are_kept() -> None:
    signed = {"text": "", "thoughtSignature": "s"}
    assert parts_of({"text": "hm", "thought": True}, signed) == [signed]


def test_integral_floats_stay_as_the_model_wrote_them() -> None:
    part = {"functionCall": {"name": "go", "args": {"n": 1.0}}}
    assert parts_of(part) == [part]


def test_changing_the_arguments_of_a_call_does_not_change_the_history() -> None:
    gathered = StepParts()
    gathered.add({"functionCall": {"name": "go", "args": {"list": [1]}}})
    gathered.calls[0].arguments["list"].append(2)
    assert gathered.calls[0].arguments == {"list": [1]}


def test_media_beyond_the_limit_are_named_instead() -> None:
    history = History()
    history.add_user([TextPart("x")])
    large = MediaPart("image/png", "A" * (MAX_RESPONSE_MEDIA + 4))
    answer = FunctionResponse((TextPart("a picture"), large))
    history.add_responses([(FunctionCall("go", {}), answer)], inline_media=True)
    (part,) = history.contents[-1]["parts"]
    assert part["functionResponse"] == {
        "name": "go",
        "response": {"output": "a picture\n[The image/png is left out: it is too large.]"},
    }


def test_stripping_signatures_leaves_no_empty_content() -> None:
    history = History()
    history.add_user([TextPart("x")])
    history.add_model([{"text": "", "thoughtSignature": "s"}])
    history.add_user([TextPart("y")])
    history.strip_signatures()
    assert all(content["parts"] for content in history.contents)


NAMES = st.sampled_from(["a", "b"])
STEP = st.lists(
    st.one_of(
        st.builds(lambda text: {"text": text}, st.text(max_size=3)),
        st.builds(lambda text: {"text": text, "thought": True}, st.text(max_size=3)),
        st.builds(lambda name: {"functionCall": {"name": name, "args": {}}}, NAMES),
        st.just({"inlineData": {"mimeType": "image/png", "data": "AA=="}}),
    ),
    max_size=5,
)


@given(st.lists(STEP, min_size=1, max_size=4), st.booleans(), st.text(max_size=3))
def test_any_turn_leaves_a_history_that_the_next_message_can_follow(
    steps: list[list[dict[str, object]]], is_broken: bool, result: str
) -> None:
    history = History()
    history.add_user([TextPart("first")])
    for number, step in enumerate(steps):
        gathered = StepParts()
        for part in step:
            gathered.add(part)
        is_last = number == len(steps) - 1
        if not gathered.parts or (is_last and is_broken) or not (gathered.calls or is_last):
            history.close_turn("It ended here.", gathered.parts)
            break
        history.add_model(gathered.parts)
        if not gathered.calls:
            break
        media = MediaPart("audio/wav", "AA==")
        answers = [(call, FunctionResponse((TextPart(result), media))) for call in gathered.calls]
        history.add_responses(answers, inline_media=True)
        if is_last:
            history.close_turn("It ended here.")
    history.add_user([TextPart("next")])
    check_request({"contents": history.contents}, {}, needs_signatures=False)


def test_a_response_keeps_to_the_limit_whoever_made_it() -> None:
    history = History(max_result_size=1_000)
    answer = FunctionResponse((TextPart("a" * 50_000), TextPart("z" * 50_000)))
    history.add_responses([(FunctionCall("go", {}), answer)], inline_media=True)
    (part,) = history.contents[-1]["parts"]
    output = part["functionResponse"]["response"]["output"]
    assert output[0] + output[-1] == "az"
    assert 1_000 <= len(output) <= 1_000 + RESPONSE_ALLOWANCE + 100
