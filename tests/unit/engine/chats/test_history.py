"""The wire form of a conversation, and what a long one keeps of results."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.gemini_rules import check_request
from tui.engine.chats import history as module
from tui.engine.chats.backends.backend import WirePart
from tui.engine.chats.history import MAX_RESPONSE_MEDIA, FunctionResponse, History, StepParts
from tui.engine.mcp.catalog.offered_tool import FunctionCall, MediaPart, TextPart


def parts_of(*parts: WirePart) -> list[object]:
    gathered = StepParts()
    for part in parts:
        gathered.add(part)
    return list(gathered.parts)


def test_only_unsigned_text_is_joined_and_thoughts_are_left_out() -> None:
    signed = {"text": "c", "thoughtSignature": "s"}
    given_parts = ({"text": "a"}, {"text": "b"}, signed, {"text": "d"}, {"text": ""})
    assert parts_of(*given_parts) == [{"text": "ab"}, signed, {"text": "d"}]
    empty = {"text": "", "thoughtSignature": "s"}
    assert parts_of({"text": "hm", "thought": True}, empty) == [empty]
    floats = {"functionCall": {"name": "go", "args": {"n": 1.0}}}
    assert parts_of(floats) == [floats]


def test_changing_the_arguments_of_a_call_does_not_change_the_history() -> None:
    gathered = StepParts()
    gathered.add({"functionCall": {"name": "go", "args": {"list": [1]}}})
    gathered.calls[0].arguments["list"].append(2)
    assert gathered.calls[0].arguments == {"list": [1]}


def test_media_beyond_the_limit_are_named_instead() -> None:
    history = begun()
    answer(history, TextPart("a picture"), MediaPart("image/png", "A" * (MAX_RESPONSE_MEDIA + 4)))
    output = "a picture\n[The image/png is left out: it is too large.]"
    assert [one["response"] for one in responses(history)] == [{"output": output}]


def test_stripping_signatures_leaves_no_empty_content() -> None:
    history = begun()
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
    history = begun()
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


CALL = FunctionCall("look", {}, "c")


def answer(history: History, *parts: TextPart | MediaPart, inline: bool = True) -> None:
    """Let the model call a tool that answers with these parts."""
    history.add_model([{"functionCall": {"id": "c", "name": "look", "args": {}}}])
    history.add_responses([(CALL, FunctionResponse(parts))], inline_media=inline)


def begun() -> History:
    history = History()
    history.add_user([TextPart("go")])
    return history


def responses(history: History) -> list[dict[str, Any]]:
    """Give the responses in a conversation, oldest first."""
    return [
        part["functionResponse"]
        for content in history.contents
        for part in content["parts"]
        if "functionResponse" in part
    ]


def test_of_too_many_results_the_old_ones_are_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TEXT_KEPT", 100_000)
    monkeypatch.setattr(module, "TEXT_LEFT", 50_000)
    history = begun()
    for number in range(10):
        answer(history, TextPart(str(number) * 10_000))
    assert [len(r["response"]["output"]) for r in responses(history)] == [10_000] * 10
    answer(history, TextPart("ten"))
    texts = [response["response"]["output"] for response in responses(history)]
    assert texts[0] == "0" * 2_000 + "\n… [clipped; 8,000 characters were dropped]"
    assert texts[5].startswith("5" * 2_000 + "\n… [clipped")
    assert [len(text) for text in texts[6:]] == [10_000] * 4 + [3]
    before = list(texts)
    answer(history, TextPart("eleven"))
    assert [r["response"]["output"] for r in responses(history)] == [*before, "eleven"]
    check_request({"contents": history.contents}, {}, needs_signatures=False)


@pytest.mark.parametrize("inline", [True, False])
def test_older_media_go_with_a_word(inline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MEDIA_KEPT", 25)
    history = History()
    history.add_user([TextPart("go"), MediaPart("application/pdf", "P" * 8)])
    for letter in "ABC":
        answer(history, TextPart(letter), MediaPart("image/png", letter * 10), inline=inline)
    sent = str(history.contents)
    kept = [one in sent for one in ("P" * 8, *(letter * 10 for letter in "ABC"))]
    assert kept == [False, False, True, True]
    words = [f"[The {kind} is no longer kept.]" for kind in ("application/pdf", "image/png")]
    assert [sent.count(one) for one in words] == [1, 1]
    assert responses(history)[0].get("parts") is None
    check_request({"contents": history.contents}, {}, needs_signatures=False)


def test_what_a_user_sends_counts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MEDIA_KEPT", 25)
    history = begun()
    answer(history, MediaPart("image/png", "A" * 20))
    history.close_turn("end")
    history.add_user([MediaPart("application/pdf", "P" * 20)])
    assert responses(history)[0]["response"] == {"output": "\n[The image/png is no longer kept.]"}
    pdf = {"inlineData": {"mimeType": "application/pdf", "data": "P" * 20}}
    assert history.contents[-1]["parts"] == [pdf]
