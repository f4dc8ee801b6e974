"""Prompts and resources as they are shown and sent to the model."""

import mcp_types as types
import pytest

from tui.engine.mcp.catalog import results
from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart
from tui.engine.mcp.catalog.results import MAX_PROMPT_TEXT, convert_prompt, convert_resource
from tui.engine.mcp.errors import ServerCallError
from tui.model.servers import ServerId
from tui.text import MAX_TEXT


def test_a_prompt_of_one_speaker_needs_no_labels() -> None:
    content = types.ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png")
    said = types.TextContent(type="text", text="Look\x1b[2J at")
    messages = [
        types.PromptMessage(role="user", content=said),
        types.PromptMessage(role="user", content=content),
    ]
    rendered = convert_prompt(types.GetPromptResult(messages=messages))
    assert rendered.shown == "Look at\n[image: image/png] 9 bytes"
    assert rendered.parts == (
        TextPart("Look at"),
        TextPart("[Prompt provided image with mime-type: image/png]"),
        MediaPart("image/png", "iVBORw0KGgo="),
    )


def test_an_empty_prompt_is_refused_and_a_long_one_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ServerCallError, match="rendered the prompt as empty"):
        convert_prompt(types.GetPromptResult(messages=[]))
    long = types.TextContent(type="text", text="x" * (MAX_PROMPT_TEXT * 2))
    message = types.PromptMessage(role="user", content=long)
    [part] = convert_prompt(types.GetPromptResult(messages=[message])).parts
    assert isinstance(part, TextPart)
    assert len(part.text) < MAX_PROMPT_TEXT * 1.01
    monkeypatch.setattr(results, "MAX_MESSAGES", 2)
    few = types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=types.TextContent(text="y"))] * 5
    )
    assert len(convert_prompt(few).parts) == 2


def test_a_resource_is_shown_within_bounds() -> None:
    text = types.TextResourceContents(uri="memo://x", text="ä" * (MAX_TEXT + 5), mime_type="a/b")
    blob = types.BlobResourceContents(uri="memo://x", blob="not base64!", mime_type="image/png")
    result = types.ReadResourceResult(contents=[text, blob])
    reading = convert_resource(ServerId("s"), "memo://x", result)
    assert len(reading.content.text) == MAX_TEXT
    assert reading.content.omitted == 5
    assert reading.content.mime_type == "a/b"
    assert reading.content.blobs == ("[image/png, 8 bytes]",)
    assert "not valid base64" in str(reading.parts[2])
    nothing = convert_resource(ServerId("s"), "x", types.ReadResourceResult(contents=[]))
    assert nothing.content.text == ""
