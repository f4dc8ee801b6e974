"""Answers of chat completions services however they number, repeat, wrap and cut them."""

import json
from typing import Any

import pytest

from tests.support.rows import row
from tests.unit.engine.chats.completion_answers import (
    BEGUN,
    DONE,
    END,
    PNG,
    call,
    event,
    parts,
    piece,
    whole,
)

ODD_CALLS: dict[str, tuple[list[str], list[Any]]] = {
    "no id": ([call('{"a": 1}', index=0)], [{"a": 1}]),
    "no index": ([call("", id="x"), piece(function={"arguments": "{}"})], [{}]),
    "two without index": ([call('{"a": 1}', id="x"), call("{}", id="y")], [{"a": 1}, {}]),
    "two without anything": ([call('{"a": 1}'), call("{}")], [{"a": 1}, {}]),
    "one index for two": ([call("{}", index=0, id="x"), call("{}", index=0, id="y")], [{}, {}]),
    "id and name again": (
        [call("", index=0, id="x"), call('{"a"', index=0, id="x"), call(": 1}", index=0, id="x")],
        [{"a": 1}],
    ),
    "an object": ([call({"a": 1}, index=0, id="x")], [{"a": 1}]),
    "nothing": ([call("", index=0, id="x")], [{}]),
    "null": ([call("null", index=0, id="x")], [{}]),
    "interleaved": (
        [
            call("{", index=0),
            call("{", index=1),
            *(piece(index=i, function={"arguments": "}"}) for i in (0, 1)),
        ],
        [{}, {}],
    ),
    "the arguments of the second under a number of their own": (
        [
            *(call("", index=0, id="x"), piece(index=0, function={"arguments": '{"a": 1}'})),
            *(call("", index=0, id="y"), piece(index=1, function={"arguments": '{"a": 2}'})),
        ],
        [{"a": 1}, {"a": 2}],
    ),
    "an id of its own for each piece": (
        [call("", index=0, id="x"), piece(index=0, id="y", function={"arguments": "{}"})],
        [{}],
    ),
    "by turns, without index": (
        [
            *(call("", id=key) for key in "xy"),
            *(piece(id=key, function={"arguments": json.dumps({"a": key})}) for key in "xy"),
        ],
        [{"a": "x"}, {"a": "y"}],
    ),
    "one id for two": ([call("{}", index=index, id="x") for index in (0, 1)], [{}, {}]),
    "one id for calls of two tools": (
        [
            call("{}", id="x"),
            piece(id="x", function={"name": "other", "arguments": ""}),
            piece(id="x", function={"arguments": '{"a": 1}'}),
        ],
        [{}, {"a": 1}],
    ),
    "the name in mid-call": (
        [piece(id="x", function={"arguments": '{"a"'}), call(": 1}", id="x")],
        [{"a": 1}],
    ),
    "{} first": (
        [call("{}", index=0), piece(index=0, function={"arguments": '{"a": 1}'})],
        [{"a": 1}],
    ),
    "all of it again": ([call('{"a": 1}', index=0, id="x")] * 2, [{"a": 1}]),
    "JSON in JSON": ([call(json.dumps('{"a": 1}'), index=0)], [{"a": 1}]),
    "cut after {}": ([call("{}", index=0), piece(index=0, function={"arguments": '{"a'})], []),
    "an object of one": (
        [event({"tool_calls": {"function": {"name": "add", "arguments": {"a": 1}}}})],
        [{"a": 1}],
    ),
    "as they were before tools": (
        [
            event({"function_call": {"name": "add", "arguments": '{"a"'}}),
            event({"function_call": {"arguments": ": 1}"}}),
        ],
        [{"a": 1}],
    ),
    "no JSON": ([call("{", index=0, id="x")], []),
    "a list": ([call("[]", index=0, id="x")], []),
    "no name": ([piece(index=0, id="x", function={"arguments": "{}"})], []),
}


@pytest.mark.parametrize("case", ODD_CALLS)
async def test_calls_however_they_arrive(case: str) -> None:
    events, expected = ODD_CALLS[case]
    chunks = await whole("".join([*events, END]))
    calls = [part["functionCall"]["args"] for part in parts(chunks)]
    assert calls == expected
    assert chunks[-1].finish_reason == ("STOP" if expected else "MALFORMED_FUNCTION_CALL")


def body(content: object) -> str:
    message = {"role": "assistant", "content": content}
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})


ODD_BODIES: dict[str, tuple[str, str, str]] = {
    "no [DONE]": (BEGUN + END, "a", "STOP"),
    "no finish reason": (BEGUN + DONE, "a", "STOP"),
    "neither": (BEGUN, "a", ""),
    "nothing": ("", "", ""),
    "several choices": (BEGUN + event({"content": "b"}, index=1) + END, "a", "STOP"),
    "an index as a text": (event({"content": "a"}, index="0") + END, "a", "STOP"),
    "a text without a delta": ('data: {"choices": [{"text": "a"}]}\n\n' + END, "a", "STOP"),
    "no choices": ('data: {"choices": []}\n\n' + BEGUN + END, "a", "STOP"),
    "no list of them": ('data: {"choices": null}\n\n' + BEGUN + END, "a", "STOP"),
    "a null delta": ('data: {"choices": [{"delta": null}]}\n\n' + BEGUN + END, "a", "STOP"),
    "comments": (": PROCESSING\n\n" + BEGUN + ":\n\nevent: ping\ndata: {}\n\n" + END, "a", "STOP"),
    "pings": ("event: ping\ndata: now\n\n" + BEGUN + END, "a", "STOP"),
    "no space": (BEGUN.replace("data: ", "data:") + END, "a", "STOP"),
    "after the end": (BEGUN + DONE + event({"content": "b"}), "a", "STOP"),
    "a refusal": (event({"refusal": "no"}) + END, "no", "STOP"),
    "parts": (event({"content": [{"type": "text", "text": "a"}, "b"]}) + END, "ab", "STOP"),
    "all so far beside each piece, cut": (
        event({"content": "a"}, message={"content": "a"}),
        "a",
        "",
    ),
    "all again at the end": (
        BEGUN + event({}, message={"content": "a"}, finish_reason="stop"),
        *("a", "STOP"),
    ),
    "in one piece": (body("a"), "a", "STOP"),
    "in one piece beside none": (
        body("a").replace('"message"', '"delta": null, "message"'),
        "a",
        "STOP",
    ),
    "in one piece, pretty": (body("a").replace("{", "{\n"), "a", "STOP"),
    "length": (BEGUN + event({}, finish_reason="length"), "a", "MAX_TOKENS"),
    "filter": (BEGUN + event({}, finish_reason="content_filter"), "a", "SAFETY"),
    "sensitive": (BEGUN + event({}, finish_reason="sensitive"), "a", "SAFETY"),
    "the end's token": (BEGUN + event({}, finish_reason="eos_token"), "a", "STOP"),
    "complete": (BEGUN + event({}, finish_reason="COMPLETE"), "a", "STOP"),
    "of its own": (BEGUN + event({}, finish_reason="odd"), "a", "ODD"),
    "half a pair": (event({"content": "\ud83d"}) + END, "\ufffd", "STOP"),
}


@pytest.mark.parametrize("case", ODD_BODIES)
async def test_answers_however_they_are_sent(case: str) -> None:
    text, expected, reason = ODD_BODIES[case]
    kind = "application/json" if text.startswith("{") else "text/event-stream; charset=utf-8"
    chunks = await whole(text, kind)
    assert "".join(one["text"] for one in parts(chunks)) == expected
    assert (chunks[-1].finish_reason if chunks else "") == reason


@pytest.mark.parametrize(
    ("text", "thoughts", "said"),
    [
        ("<think>\nhm </ so</think>\n\nyes", "\nhm </ so", "yes"),
        ("\n<thinking>hm</thinking>yes <think>no</think>", "hm", "yes <think>no</think>"),
        ("[THINK]hm[/THINK] yes\n", "hm", "yes\n"),
        ("<|channel>thought\nhm<channel|>yes", "\nhm", "yes"),
        (
            "<|channel|>analysis<|message|>hm<|end|><|channel|>final<|message|>yes",
            *("hm<|end|>", "yes"),
        ),
        ("<think>hm", "hm", ""),
        ("<think></think>yes", "", "yes"),
        ("\n<thin", "", "\n<thin"),
        ("  <b>yes</b>", "", "  <b>yes</b>"),
        ("a <think>b</think>", "", "a <think>b</think>"),
    ],
)
async def test_thoughts_in_tags_are_thoughts_however_they_are_cut(
    text: str, thoughts: str, said: str
) -> None:
    for size in (1, 3, 7, len(text)):
        pieces = (text[at : at + size] for at in range(0, len(text), size))
        chunks = await whole("".join(event({"content": one}) for one in pieces) + END)
        found = [(one["text"], bool(one.get("thought"))) for one in parts(chunks)]
        with row(size):
            assert "".join(one for one, is_thought in found if is_thought) == thoughts
            assert "".join(one for one, is_thought in found if not is_thought) == said
        chunks = await whole("".join(event({"content": one}) for one in text) + END, thoughts=False)
        assert "".join(one["text"] for one in parts(chunks)) == said


async def test_pictures_in_answers_are_kept() -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    inside = {"type": "image_url", "image_url": {"url": url}}
    for delta in ({"images": [inside]}, {"content": [inside]}, {"images": [{"image_url": url}]}):
        assert parts(await whole(event(delta) + END)) == [PNG]
    elsewhere = {"image_url": {"url": "https://pictures.example/1"}}
    (part,) = parts(await whole(event({"images": [elsewhere]}) + END))
    assert part["text"].strip() == "https://pictures.example/1"


async def test_a_stream_that_is_cut_at_any_byte_is_never_a_whole_answer() -> None:
    events = [event({"content": "äö"}), call('{"a": 1}', index=0, id="x"), END]
    data = "".join(events).encode()
    for cut in range(0, len(data) - len("\n"), 3):
        chunks = await whole(data[:cut].decode(errors="ignore"))
        with row(cut):
            assert not chunks or chunks[-1].finish_reason in {"", "MALFORMED_FUNCTION_CALL"}
            assert all(one.get("text", "äö") in {"", "äö"} for one in parts(chunks))


async def test_ten_thousand_pieces_are_one_answer() -> None:
    pieces = [event({"content": "a"})] * 5_000 + [
        piece(index=0, function={"arguments": " "})
    ] * 5_000
    chunks = await whole(
        "".join([call("{", index=0), *pieces, piece(index=0, function={"arguments": "}"}), END])
    )
    assert "".join(one.get("text", "") for one in parts(chunks)) == "a" * 5_000
    assert parts(chunks)[-1]["functionCall"]["args"] == {}
