"""Prompts and resources as they are shown and sent to the model."""

import mcp_types as types
import pytest

from tui.engine.mcp.catalog import results
from tui.engine.mcp.catalog.offered_tool import MediaPart, PromptMessage, TextPart
from tui.engine.mcp.catalog.results import MAX_PROMPT_TEXT, convert_prompt, convert_resource
from tui.engine.mcp.errors import ServerCallError
from tui.model.runs import RenderedMessage
from tui.model.servers import ServerId
from tui.text import MAX_TEXT


def test_a_prompt_of_one_speaker_needs_no_labels() -> None:
    content = types.ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png")
    image = types.PromptMessage(role="user", content=content)
    messages = [said("user", "Look\x1b[2J at"), image]
    rendered = convert_prompt(types.GetPromptResult(messages=messages))
    assert rendered.shown == "Look at\n[image: image/png] 9 bytes"
    assert rendered.parts == (
        TextPart("Look\x1b[2J at"),
        TextPart("[Prompt provided image with mime-type: image/png]"),
        MediaPart("image/png", "iVBORw0KGgo="),
    )
    looked_at = "Look at", rendered.parts[1].text, "[image/png, 9 bytes]"
    assert rendered.messages == (RenderedMessage("user", looked_at),)


def test_what_is_looked_at_is_all_that_the_model_gets_with_its_roles() -> None:
    messages = [said("assistant", "a"), said("assistant", "b")]
    rendered = convert_prompt(types.GetPromptResult(messages=messages))
    assert rendered.messages == (
        RenderedMessage("user", ("[The conversation so far.]",)),
        RenderedMessage("assistant", ("a", "b")),
        RenderedMessage("user", ("[Go on.]",)),
    )


def said(role: types.Role, words: str) -> types.PromptMessage:
    return types.PromptMessage(role=role, content=types.TextContent(type="text", text=words))


def test_the_messages_of_a_prompt_keep_their_roles_as_turns() -> None:
    messages = [said("user", "a"), said("user", "b"), said("assistant", "c"), said("user", "d")]
    rendered = convert_prompt(types.GetPromptResult(messages=messages))
    first = PromptMessage("user", (TextPart("a"), TextPart("b")))
    assert rendered.before == (first, PromptMessage("model", (TextPart("c"),)))
    assert rendered.parts == (TextPart("d"),)
    shown = ["[user]", "a", "[user]", "b", "[assistant]", "c", "[user]", "d"]
    assert rendered.shown.splitlines() == shown


def test_the_user_has_the_first_and_the_last_word_of_a_prompt() -> None:
    messages = [said("assistant", "Hello."), said("user", ""), said("assistant", "Well?")]
    rendered = convert_prompt(types.GetPromptResult(messages=messages))
    assert [turn.role for turn in rendered.before] == ["user", "model"]
    assert rendered.before[1].parts == (TextPart("Hello."), TextPart("Well?"))
    assert rendered.parts == (TextPart("[Go on.]"),)


def test_hidden_commands_of_a_prompt_and_a_resource_are_spelled_out_and_counted() -> None:
    rendered = convert_prompt(types.GetPromptResult(messages=[said("user", "a\u202eb\x00")]))
    note = "[1 invisible character in this text: spelled out as ⟨U+…⟩.]"
    assert rendered.parts == (TextPart("a⟨U+202E⟩b\x00"), TextPart(note))
    assert rendered.shown.endswith(note)
    text = types.TextResourceContents(uri="m://x", text="a\r\n\x00\u202e")
    reading = convert_resource(ServerId("s"), "m://x", types.ReadResourceResult(contents=[text]))
    assert reading.parts[1:-1] == (TextPart("a\r\n\x00⟨U+202E⟩"), TextPart(note))
    assert reading.remark == note


def test_an_empty_resource_is_called_empty() -> None:
    text = types.TextResourceContents(uri="m://x", text="")
    for contents in ([], [text]):
        result = types.ReadResourceResult(contents=contents)
        reading = convert_resource(ServerId("s"), "m://x", result)
        assert reading.parts[1:-1] == (TextPart(results.EMPTY),)


def test_a_resource_of_several_contents_names_each() -> None:
    texts = [types.TextResourceContents(uri=f"m://x/{n}", text=str(n)) for n in range(102)]
    result = types.ReadResourceResult(contents=texts)
    reading = convert_resource(ServerId("s"), "m://x", result)
    assert reading.parts[1:3] == (TextPart("[Resource m://x/0]"), TextPart("0"))
    assert reading.remark == "[2 more contents are left out.]"


def test_an_empty_prompt_is_refused_and_a_long_one_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServerCallError, match="returned an empty prompt"):
        convert_prompt(types.GetPromptResult(messages=[]))
    long = said("user", "x" * (MAX_PROMPT_TEXT * 2))
    [part] = convert_prompt(types.GetPromptResult(messages=[long])).parts
    assert isinstance(part, TextPart)
    assert len(part.text) < MAX_PROMPT_TEXT * 1.01
    monkeypatch.setattr(results, "MAX_MESSAGES", 2)
    assert len(convert_prompt(types.GetPromptResult(messages=[said("user", "y")] * 5)).parts) == 3


def test_a_resource_is_shown_within_bounds_and_read_whole() -> None:
    text = types.TextResourceContents(uri="memo://x", text="ä" * (MAX_TEXT + 5), mime_type="a/b")
    blob = types.BlobResourceContents(uri="memo://x", blob="not base64!", mime_type="image/png")
    result = types.ReadResourceResult(contents=[text, blob])
    reading = convert_resource(ServerId("s"), "memo://x", result)
    assert len(reading.content.text) == MAX_TEXT
    assert reading.content.omitted == 5
    assert TextPart(text.text) in reading.parts
    assert reading.problem.startswith("it is too large")
    assert reading.content.mime_type == "a/b"
    assert reading.content.blobs == ("[image/png, 8 bytes]",)
    assert "not valid base64" in str(reading.parts[-2])
    nothing = convert_resource(ServerId("s"), "x", types.ReadResourceResult(contents=[]))
    assert nothing.content.text == ""
