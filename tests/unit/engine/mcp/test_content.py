import base64
import json

import pytest
from mcp_types import CallToolResult

from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart, ToolResult
from tui.engine.mcp.catalog.results import NO_MESSAGE, UNREADABLE, convert_result
from tui.engine.mcp.session.sdk_patches import repair_result
from tui.model.settings_rules import DEFAULT_RESULT_SIZE

DATA = base64.b64encode(b"x" * 1_500).decode()


def convert(*blocks: object, **more: object) -> ToolResult:
    """Convert a result as it comes from the wire."""
    raw = repair_result({"content": list(blocks), **more})
    return convert_result(CallToolResult.model_validate(raw, by_name=False), DEFAULT_RESULT_SIZE)


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize("words", ["5", "true", "null", "[]", "[1, 2]", '{"a": 1}', "plain"])
def test_a_text_is_text_whatever_it_looks_like(words: str) -> None:
    assert convert(text(words)) == ToolResult((TextPart(words),), words)


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_media_come_with_a_note_before_them(kind: str) -> None:
    result = convert({"type": kind, "data": DATA, "mimeType": f"{kind}/x; q=1"})
    assert result.parts == (
        TextPart(f"[Tool provided {kind} with mime-type: {kind}/x]"),
        MediaPart(f"{kind}/x", DATA),
    )
    assert result.display == f"[{kind}: {kind}/x] 2 kB"


def test_embedded_resources_are_their_text_or_their_data() -> None:
    result = convert(
        {"type": "resource", "resource": {"uri": "a://1", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "a://2", "blob": DATA, "mimeType": "image/png"}},
        {"type": "resource", "resource": {"uri": "a://3", "blob": DATA}},
    )
    assert result.parts == (
        TextPart("inside"),
        TextPart("[Embedded resource: image/png]"),
        MediaPart("image/png", DATA),
        TextPart("[Embedded resource: application/octet-stream]"),
        MediaPart("application/octet-stream", DATA),
    )


def test_a_link_is_named_and_never_followed() -> None:
    result = convert(
        {"type": "resource_link", "uri": "http://127.0.0.1:9/x", "name": "n", "title": "T"},
        {"type": "resource_link", "uri": "a://2", "name": "n"},
    )
    assert [part.text for part in result.parts if isinstance(part, TextPart)] == [
        "Resource Link: T at http://127.0.0.1:9/x",
        "Resource Link: n at a://2",
    ]


def test_unknown_blocks_are_left_out_and_the_others_stay() -> None:
    assert convert({"type": "hologram"}, text("a"), 5, {"type": "image"}).parts == (TextPart("a"),)


@pytest.mark.parametrize("content", [[], [{"type": "hologram"}], None, "text"])
def test_no_content_says_that_it_could_not_be_read(content: object) -> None:
    raw = repair_result({"content": content})
    result = convert_result(CallToolResult.model_validate(raw, by_name=False), DEFAULT_RESULT_SIZE)
    assert result.parts == (TextPart(UNREADABLE),)
    assert result.display == UNREADABLE


def test_an_error_is_an_error_with_or_without_words() -> None:
    assert convert(text("no such file"), isError=True) == ToolResult(
        (TextPart("no such file"),), "no such file", is_error=True
    )
    assert convert(isError=True) == ToolResult((TextPart(NO_MESSAGE),), NO_MESSAGE, is_error=True)


def test_structured_content_counts_where_there_is_no_text() -> None:
    alone = convert(structuredContent={"a": [1, float("nan")]})
    assert isinstance(alone.parts[0], TextPart)
    assert json.loads(alone.parts[0].text) == {"a": [1, "nan"]}
    assert convert(text("t"), structuredContent={"a": 1}).parts == (TextPart("t"),)


def test_D13_data_that_the_model_would_refuse_are_left_out_with_a_word() -> None:
    bad = convert({"type": "image", "data": "no base64!", "mimeType": "image/png"})
    assert bad.parts[1] == TextPart("[The data is left out: it is not valid base64.]")
    big = convert({"type": "image", "data": "A" * 12_000_004, "mimeType": "image/png"})
    assert big.parts[1] == TextPart("[The data is left out: 9000 kB is too much.]")


def test_a_media_type_that_is_none_is_not_passed_on() -> None:
    result = convert({"type": "image", "data": DATA, "mimeType": "image/png\r\nX: y"})
    assert result.parts[1] == MediaPart("application/octet-stream", DATA)


def test_a_long_text_is_cut_for_the_model_and_kept_for_the_screen() -> None:
    words = "a" * 100_000 + "b" * 100_000
    result = convert(text(words))
    [part] = result.parts
    assert isinstance(part, TextPart)
    assert len(part.text) < 51_000
    assert part.text.startswith("a" * 25_000)
    assert part.text.endswith("b" * 25_000)
    assert "[150000 characters omitted]" in part.text
    assert result.display == words


def test_many_long_texts_share_the_limit() -> None:
    result = convert(*(text("x" * 10_000) for _ in range(150)))
    assert len(result.parts) == 101
    assert result.parts[-1] == TextPart("[50 more blocks are left out.]")
    assert sum(len(part.text) for part in result.parts if isinstance(part, TextPart)) < 60_000


def test_D12_the_display_is_limited_to_a_megabyte() -> None:
    assert len(convert(text("x" * 3_000_000)).display) == 1_000_000


def test_C04_what_is_hidden_from_the_user_is_hidden_from_the_model() -> None:
    result = convert(text("a\x1b]52;c;x\x07\U000e0041\x00b"))
    assert result.parts == (TextPart(result.display),)
    assert result.display == "a⟨U+E0041⟩␀b"


def test_of_a_long_result_the_model_gets_as_much_as_the_settings_say() -> None:
    raw = {"content": [text("a" * 3_000 + "z" * 3_000)]}
    [part] = convert_result(CallToolResult.model_validate(raw, by_name=False), 1_000).parts
    assert isinstance(part, TextPart)
    assert part.text.startswith("a" * 500)
    assert part.text.endswith("z" * 500)
    assert len(part.text) < 1_200
