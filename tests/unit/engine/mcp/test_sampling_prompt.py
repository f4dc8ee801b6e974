"""Prompts of servers: what is shown of them, and what the model gets."""

from typing import Any

import mcp_types as types
import pytest

from tests.fakes.gemini_rules import check_request
from tests.support.rows import row
from tui.engine.chats.history import wire_contents
from tui.engine.mcp.callbacks import sampling
from tui.engine.mcp.catalog.offered_tool import FunctionCall

PIXEL = "iVBORw0KGgo="
LONG_USE = {"type": "tool_use", "id": "c", "name": "t", "input": {"k": "x" * sampling.MAX_PROMPT}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def message(role: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(content) if len(content) != 1 else content[0]}


def tool(name: str, **schema: object) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", **schema}}


def prompt_of(*messages: dict[str, Any], **more: object) -> sampling.SamplingPrompt:
    raw = {"messages": list(messages), "maxTokens": 10, **more}
    return sampling.read_prompt(types.CreateMessageRequestParams.model_validate(raw))


def test_roles_alternate_and_the_user_speaks_first_and_last() -> None:
    said = [("assistant", "Hello."), ("user", "a"), ("user", "b"), ("assistant", "So")]
    prompt = prompt_of(*(message(role, text(words)) for role, words in said))
    contents = wire_contents(prompt.request.messages)
    assert [content["role"] for content in contents] == ["user", "model", "user", "model", "user"]
    assert contents[2]["parts"] == [{"text": "a"}, {"text": "b"}]
    check_request({"contents": contents}, {}, needs_signatures=False)


def test_the_parts_of_a_message_are_shown_under_one_another() -> None:
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    prompt = prompt_of(message("user", text("What is"), image), message("user", text("this?")))
    first, second = prompt.messages
    assert first.text == "What is\n[image: image/png] 9 bytes"
    assert second.text == "this?"
    [content] = wire_contents(prompt.request.messages)
    note = "[Server provided image with mime-type: image/png]"
    assert [part.get("text", part) for part in content["parts"]] == [
        *("What is", note, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}, "this?")
    ]


def test_what_the_user_cannot_see_the_model_is_not_told() -> None:
    hidden = "x\U000e0041\x1b[2Jy"
    prompt = prompt_of(message("user", text(hidden)), systemPrompt=hidden)
    shown = prompt.messages[0].text
    assert "\U000e0041" not in shown
    assert wire_contents(prompt.request.messages)[0]["parts"] == [{"text": shown}]
    assert prompt.request.system == shown


def test_calls_and_their_results_keep_their_names() -> None:
    use = {"type": "tool_use", "id": "c1", "name": "look up!", "input": {"word": "x"}}
    found = {"type": "tool_result", "toolUseId": "c1", "content": [text("a word")]}
    failed = {**found, "isError": True, "content": [], "structuredContent": {"why": "no"}}
    prompt = prompt_of(
        message("user", text("look")),
        message("assistant", text("I look."), use),
        message("user", found),
        tools=[tool("look up!"), tool("other")],
    )
    contents = wire_contents(prompt.request.messages)
    own = {"id": "c1", "name": "look_up_"}
    assert contents[1]["parts"][1] == {"functionCall": own | {"args": {"word": "x"}}}
    [given] = contents[2]["parts"]
    assert given == {"functionResponse": own | {"response": {"output": "a word"}}}
    assert prompt.messages[1].text == 'I look.\n[call of look up!] {"word": "x"}'
    assert prompt.messages[2].text == "[result of look_up_] a word"
    assert prompt.own_call(FunctionCall("look_up_", {"word": "y"})).name == "look up!"
    assert prompt.own_call(FunctionCall("missing", {"word": "y"})).name == "missing"
    broken = prompt_of(message("assistant", use), message("user", failed))
    part = wire_contents(broken.request.messages)[2]["parts"][0]["functionResponse"]
    assert part["response"] == {"error": '{"why": "no"}'}


def test_hidden_text_in_calls_is_shown_to_the_model_and_in_schemas_left_out() -> None:
    use = {"type": "tool_use", "id": "c\u200b1", "name": "t", "input": {"k\u202e": ["\U000e0041"]}}
    found = {"type": "tool_result", "toolUseId": "c\u200b1", "content": [text("found")]}
    prompt = prompt_of(
        message("user", text("go")),
        message("assistant", use),
        message("user", found),
        tools=[tool("t", properties={"k\u202e": {"enum": ["v\u200b"]}})],
    )
    request = prompt.request
    contents = wire_contents(request.messages)
    [called] = contents[1]["parts"]
    args = {"k⟨U+202E⟩": ["⟨U+E0041⟩"]}
    assert called == {"functionCall": {"id": "c⟨U+200B⟩1", "name": "t", "args": args}}
    assert contents[2]["parts"][0]["functionResponse"]["id"] == "c⟨U+200B⟩1"
    [declared] = request.declarations
    assert declared["parametersJsonSchema"]["properties"] == {}


def test_tools_are_declared_unless_none_may_be_called() -> None:
    words = "x" * 10_000
    tools = [{**tool("a", properties={"n": {"const": 1}}), "description": f"Do\x07 it {words}"}]
    prompt = prompt_of(message("user", text("x")), tools=tools)
    assert prompt.request.declarations[0]["description"] == f"Do␇ it {words}"
    assert words in prompt.declarations[0], "and is shown whole"
    assert not prompt.request.must_call
    none = prompt_of(message("user", text("x")), tools=tools, toolChoice={"mode": "none"})
    assert none.request.declarations == ()
    assert none.tools == ("a",)
    must = prompt_of(message("user", text("x")), tools=tools, toolChoice={"mode": "required"})
    assert must.request.must_call


def test_tokens_and_hints_are_bounded() -> None:
    hints = [{"name": f"m{n}\x07"} for n in range(50)]
    many = prompt_of(message("user", text("x")), maxTokens=10**9, modelPreferences={"hints": hints})
    assert many.request.max_tokens == sampling.MAX_TOKENS
    assert len(many.hints) == 10
    assert many.hints[0] == "m0␇"
    assert prompt_of(message("user", text("x"))).request.max_tokens == 10


def test_what_is_no_prompt_is_refused() -> None:
    rows: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
        ([], {}),
        ([message("user", text("x"))] * (sampling.MAX_MESSAGES + 1), {}),
        ([message("user", *[text("x")] * 300)], {}),
        ([message("user")], {}),
        ([message("user", text("x" * (sampling.MAX_PROMPT + 1)))], {}),
        ([message("assistant", LONG_USE)], {}),
        ([message("user", text("x"))], {"maxTokens": 0}),
        (
            [message("user", text("x"))],
            {"tools": [tool(str(n)) for n in range(sampling.MAX_TOOLS + 1)]},
        ),
        ([message("user", text("x"))], {"tools": [tool("a"), tool("a")]}),
        ([message("user", text("x"))], {"tools": [tool("a") | {"inputSchema": {"type": "array"}}]}),
    ]
    for messages, more in rows:
        with row(messages), pytest.raises(sampling.UnusablePromptError):
            prompt_of(*messages, **more)
