"""What a long conversation keeps of results: whole the newest, in part the older ones."""

from typing import Any

import pytest

from tests.fakes.gemini_rules import check_request
from tui.engine.chats import history as module
from tui.engine.chats.history import FunctionResponse, History
from tui.engine.mcp.catalog.offered_tool import FunctionCall, MediaPart, TextPart

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


def test_of_older_results_a_beginning_stays_once_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_a_conversation_of_many_large_results_stays_within_its_limit() -> None:
    history = begun()
    for _ in range(200):
        answer(history, TextPart("x" * 60_000))
    sizes = [len(response["response"]["output"]) for response in responses(history)]
    assert sum(sizes) <= module.MAX_TEXT_KEPT
    assert sizes[-1] == 60_000
    assert len(history.contents) == 401


@pytest.mark.parametrize("inline", [True, False])
def test_older_media_are_left_out_with_a_word(
    inline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_MEDIA_KEPT", 25)
    history = History()
    history.add_user([TextPart("go"), MediaPart("application/pdf", "P" * 8)])
    for letter in "ABC":
        answer(history, TextPart(letter), MediaPart("image/png", letter * 10), inline=inline)
    sent = str(history.contents)
    assert "A" * 10 not in sent
    assert "P" * 8 not in sent
    assert "[The application/pdf is no longer kept.]" in sent
    assert sent.count("[The image/png is no longer kept.]") == 1
    assert "B" * 10 in sent
    assert "C" * 10 in sent
    assert responses(history)[0].get("parts") is None
    check_request({"contents": history.contents}, {}, needs_signatures=False)


def test_what_a_user_sends_counts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MEDIA_KEPT", 25)
    history = begun()
    answer(history, MediaPart("image/png", "A" * 20))
    history.close_turn("end")
    history.add_user([MediaPart("application/pdf", "P" * 20)])
    assert responses(history)[0]["response"] == {"output": "\n[The image/png is no longer kept.]"}
    assert history.contents[-1]["parts"] == [
        {"inlineData": {"mimeType": "application/pdf", "data": "P" * 20}}
    ]
