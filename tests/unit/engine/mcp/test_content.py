import base64
import json
import struct
from collections.abc import Callable
from typing import Any

import mcp_types as types
import pytest

from tests.support.pictures import picture
from tests.support.rows import row
from tui.engine.logs.redaction import Redactor, mask_of
from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart, ToolResult
from tui.engine.mcp.catalog.results import NO_MESSAGE, NOTHING, convert_result, image_size
from tui.engine.mcp.session.sdk_patches import MAX_BLOCKS, read_call_result

DATA = base64.b64encode(b"\x9f" * 1_500).decode()


def convert(*blocks: object, **more: object) -> ToolResult:
    """Convert a result as it comes from the wire."""
    return convert_raw({"content": list(blocks), **more})


def convert_raw(raw: dict[str, Any], *faults: str) -> ToolResult:
    return convert_result(read_call_result(raw), faults)


def texts(result: ToolResult) -> list[str]:
    return [part.text for part in result.parts if isinstance(part, TextPart)]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_a_text_is_text_whatever_it_looks_like() -> None:
    for words in ("5", "null", "[1, 2]", '{"a": 1}', "plain"):
        assert convert(text(words)) == ToolResult((TextPart(words),), words)


def test_media_come_with_a_note_before_them() -> None:
    for kind in ("image", "audio"):
        result = convert({"type": kind, "data": DATA, "mimeType": f"{kind}/x; q=1"})
        note = TextPart(f"[Tool provided {kind} with mime-type: {kind}/x]")
        assert result.parts == (note, MediaPart(f"{kind}/x", DATA))
        assert result.display == f"[{kind}: {kind}/x] 2 kB"


STARTS: dict[str, bytes] = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x10\0\0\0WEBP",
    "image/avif": b"\0\0\0\x20ftypavif",
    "audio/wav": b"RIFF\x10\0\0\0WAVE",
    "audio/mpeg": b"ID3\x04",
    "audio/ogg": b"OggS",
    "application/pdf": b"%PDF-1.7",
}


@pytest.mark.parametrize("kind", STARTS)
def test_media_are_what_their_first_bytes_say(kind: str) -> None:
    whole = STARTS[kind] + b"\xfb\xef\xbe" * 40 + b"end"
    usual = base64.b64encode(whole).decode()
    urls = base64.urlsafe_b64encode(whole).decode()
    part = MediaPart(kind, usual)
    wrapped = f"\n{usual[:76]}\r\n {usual[76:]}"
    heads = ("data:image/x;base64,", "data:;base64,", "DATA:,", "data:image/svg+xml;a=b;base64,")
    ways = [usual, urls, usual.rstrip("="), urls.rstrip("="), wrapped, *(h + usual for h in heads)]
    for data in ways:
        for claimed in ({"mimeType": "image/bmp"}, {"mimeType": ""}, {"mimeType": "no kind"}, {}):
            assert convert({"type": "image", "data": data, **claimed}).parts[-1] == part, data
    resource = {"uri": "a://1", "blob": urls, "mimeType": "text/plain"}
    assert convert({"type": "resource", "resource": resource}).parts[-1] == part


def test_media_of_no_known_beginning_are_what_is_claimed() -> None:
    for block, kind in [
        ({"mimeType": "image/x"}, "image/x"),
        ({"data": f"data:image/y;base64,{DATA}"}, "image/y"),
        ({"data": f"data:image/y;base64,{DATA}", "mimeType": "image/z"}, "image/z"),
        ({}, "application/octet-stream"),
    ]:
        assert convert({"type": "image", "data": DATA, **block}).parts[-1] == MediaPart(kind, DATA)
    for data in ("a b!", "data:image/png", "data:image/png;base64", "=", "A", "äöü", "data:,"):
        said = texts(convert({"type": "image", "data": data, "mimeType": "image/png"}))[-1]
        assert said in {"[The data is left out: it is not valid base64.]", "[There is no data.]"}


def test_a_picture_in_words_is_text() -> None:
    drawn = '<svg xmlns="http://www.w3.org/2000/svg"><text>a\U000e0041\x1b[2J</text></svg>'
    data = base64.b64encode(drawn.encode()).decode()
    for block in (
        {"type": "image", "data": data, "mimeType": "image/svg+xml; charset=utf-8"},
        {"type": "image", "data": f"data:image/svg+xml;base64,{data}"},
        {
            "type": "resource",
            "resource": {"uri": "a://1", "blob": data, "mimeType": "image/svg+xml"},
        },
    ):
        result = convert(block)
        assert not any(isinstance(part, MediaPart) for part in result.parts)
        said = "".join(texts(result))
        assert "<text>a" in said
        assert "\U000e0041" not in said, "hidden text is spelled out, as in any text"
        assert "\x1b" not in result.display


def test_content_of_another_shape_is_read() -> None:
    said = ToolResult((TextPart("a"),), "a")
    contents: list[Any] = ["a", text("a"), [text("a")]]
    for content in contents:
        assert convert_raw({"content": content}) == said
    nameless = {"type": "resource", "resource": {"text": "inside"}}
    for odd in (nameless, [nameless]):
        assert texts(convert_raw({"content": odd}))[-1] == "inside"
    for number in (5, True, 1.5):
        assert convert_raw({"content": number}).is_error


def blob(data: str | bytes, kind: str = "", **more: object) -> dict[str, Any]:
    """Write a resource in a result whose content is data."""
    encoded = base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()
    given = {"uri": "a://1", "mimeType": kind or None, "blob": encoded, **more}
    return {"type": "resource", "resource": given}


def picture_of(data: str | bytes, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": blob(data)["resource"]["blob"], "mimeType": kind}


TEXTS: list[Any] = [
    *(blob("a needle", f"text/{kind}") for kind in ("plain", "markdown", "csv; charset=utf-8")),
    *(blob('{"a": "needle"}', f"application/{kind}") for kind in ("json", "yaml", "x.api+json")),
    blob("a needle, of no kind"),
    blob("a needle, beside a text that is null", "text/plain", text=None),
    blob("a needle, caf\xe9".encode("latin-1"), "text/plain"),
    picture_of("<html>a needle, of an error</html>"),
    picture_of('<?xml version="1.0"?><svg><text>a needle</text></svg>'),
    {"type": "image", "data": "<svg><text>a needle</text></svg>", "mimeType": "image/svg+xml"},
    {"type": "image", "data": "data:image/svg+xml;utf8,<svg>a needle</svg>"},
    {"type": "image", "data": "data:image/svg+xml,%3Csvg%3Ea needle%3C/svg%3E"},
    {"type": "image", "url": "https://x.test/needle.png", "mimeType": "image/png"},
    {"type": "text", "text": {"a": "needle"}},
    {"type": "json", "json": {"a": "needle"}},
    {"type": "resource", "uri": "a://1", "text": "needle"},
    {"type": "resource", "resource": {"uri": "a://needle"}},
    {"type": "resource_link", "uri": "a://needle"},
    *("a needle", ["a needle"], [text("a needle")], {"a": "needle"}, ["x", {"needle": None}]),
]


@pytest.mark.parametrize("block", TEXTS)
def test_what_a_block_says_is_text_whatever_its_form(block: object) -> None:
    result = convert(block, text("after"))
    assert "needle" in "".join(texts(result)[:-1])
    assert texts(result)[-1] == "after"
    assert "needle" in result.display
    assert not any(isinstance(part, MediaPart) for part in result.parts)


def test_what_is_said_in_place_of_content_is_content() -> None:
    hidden = {"_meta": {"b": 1}, "taskId": '"b"', "nextCursor": '"b"', "requestState": '"b"'}
    for raw in ({"toolResult": {"a": "needle"}}, {"a": "needle", **hidden}):
        said = texts(convert_raw(raw))
        assert len(said) == 1
        assert "needle" in said[0]
        assert '"b"' not in said[0]
    for nothing in ({}, {"_meta": {}, "isError": False}, {"content": None, "a": 1}):
        assert texts(convert_raw(nothing)) == [NOTHING]


def test_a_long_block_of_an_unknown_kind_is_left_out_with_a_word() -> None:
    long = {"type": "video", "data": "x" * 20_000}
    assert texts(convert(long)) == ["[An unreadable content block of type “video” was omitted.]"]


def test_D21_a_mask_in_data_keeps_it_out() -> None:
    mask = mask_of("API_TOKEN")
    for data in (f"{DATA[:40]}{mask}{DATA[40:]}", mask, f"data:image/png;base64,{mask}{DATA}"):
        for kind in ("image", "audio"):
            result = convert({"type": kind, "data": data, "mimeType": "image/svg+xml"})
            assert texts(result)[-1].startswith("[The data is left out: it contains a secret")
            assert mask not in texts(result)[-1]
            assert not any(isinstance(part, MediaPart) for part in result.parts)


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", range(3))
def test_D21_a_secret_in_data_is_masked_however_it_is_written(
    encode: Callable[[bytes], bytes], before: int
) -> None:
    redactor, secret = Redactor(), "s3cr3t-fixture-\xfb\xff\xbf?>~ä/+9%"
    redactor.register(secret, mask=mask_of("API_TOKEN"))
    drawn = encode(b"<svg>"[: 3 + before] + secret.encode() + b"</svg>").decode()
    for data in (drawn, drawn.rstrip("="), f"data:image/svg+xml;base64,{drawn}"):
        block = {"type": "image", "data": data, "mimeType": "image/svg+xml"}
        message = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"content": [block]})
        line = json.dumps(message.model_dump()).encode()
        masked, _ = redactor.redact_message(message.model_dump(), line)
        result = convert_raw(masked["result"])
        assert "s3cr3t" not in repr(result)
        assert "contains a secret" in texts(result)[-1]


def test_a_picture_is_for_the_screen() -> None:
    made = picture()
    block = {"type": "image", "data": made.data, "mimeType": "image/png"}
    result = convert(block)
    assert result.pictures == (made,)
    assert made.data not in repr(result.pictures)
    assert isinstance(part := result.parts[-1], MediaPart)
    assert result.pictures[0].data is part.data
    assert convert({**block, "data": DATA}).pictures == ()


def test_embedded_resources_keep_their_uri() -> None:
    result = convert(
        {"type": "resource", "resource": {"uri": "a://1", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "a://2", "blob": DATA, "mimeType": "image/png"}},
        {"type": "resource", "resource": {"uri": "a://3", "blob": DATA}},
        {"type": "resource", "resource": {"uri": "a://4", "text": "x", "mimeType": "text/html"}},
    )
    first = ["[Resource a://1]", "inside", "[Resource a://2: image/png]"]
    none = "application/octet-stream"
    last = [f"[Resource a://3: {none}]", "[Resource a://4: text/html]", "x"]
    assert texts(result) == first + last
    assert result.parts[3::2][:2] == (MediaPart("image/png", DATA), MediaPart(none, DATA))
    assert result.display.splitlines()[:3] == [*first[:2], f"{first[2]} 2 kB"]


def test_a_link_is_described_and_never_followed() -> None:
    more = {"description": "What\nit is.", "mimeType": "text/csv"}
    result = convert(
        {"type": "resource_link", "uri": "http://127.0.0.1:9/x", "name": "n", "title": "T"},
        {"type": "resource_link", "uri": "a://2", "name": "n", **more},
    )
    links = ("T at http://127.0.0.1:9/x", "n at a://2 (text/csv): What\nit is.")
    assert texts(result) == [f"Resource Link: {link}" for link in links]
    assert result.display == "\n".join(texts(result))


def test_unknown_blocks_are_named_and_the_others_stay() -> None:
    result = convert({"type": "ho\x1b[mlo"}, text("a"), 5, {"type": "image"}, {"data": 1})
    assert texts(result) == [
        '[An unreadable content block of type “holo”, as received: {"type": "ho\\u001b[mlo"}.]',
        "a",
        "[An unreadable content block, as received: 5.]",
        '[An unreadable content block of type “image”, as received: {"type": "image"}.]',
        '[An unreadable content block, as received: {"data": 1}.]',
    ]
    assert result.display.splitlines() == texts(result)


def test_blocks_beyond_the_limit_are_counted() -> None:
    raw = {"content": [text("x")] * (MAX_BLOCKS + 3), "structuredContent": {"a": 1}}
    said = texts(convert_raw(raw, "a: wrong"))
    rest = ["[3 more content blocks are left out.]", "[Structured content]", '{\n  "a": 1\n}']
    assert said[MAX_BLOCKS:-1] == rest
    assert said[-1] == "[Warning: a: wrong]"


def test_a_block_is_not_lost_over_its_annotations() -> None:
    for annotations in ({"priority": 5}, {"audience": ["assistant"]}, 7, {"a": [1]}):
        assert convert({**text("a"), "annotations": annotations}).display == "a"


def test_an_empty_result_is_one_and_what_cannot_be_read_says_so() -> None:
    blank = text("")
    contents: tuple[object, ...] = ([], None, [blank], [blank, blank])
    empty: list[dict[str, Any]] = [{}, {"structuredContent": None}]
    for raw in (*empty, *({"content": nothing} for nothing in contents)):
        assert convert_raw(raw) == ToolResult((TextPart(NOTHING),), NOTHING), raw
    assert convert_raw({"structuredContent": {}}).display == "{}"
    words = "[The tool's response cannot be read.]"
    odd = convert_raw({"content": 5})
    assert odd == ToolResult((TextPart(words),), words, is_error=True)


def test_an_error_is_an_error_with_or_without_words() -> None:
    for written, fails in (("true", True), ("false", False), ("False", False), (None, False)):
        assert convert_raw({"content": [], "isError": written}).is_error is fails, written
    assert convert(text("no such file"), isError=True) == ToolResult(
        (TextPart("no such file"),), "no such file", is_error=True
    )
    assert convert(isError=True) == ToolResult((TextPart(NO_MESSAGE),), NO_MESSAGE, is_error=True)


def test_structured_content_alone_is_the_result() -> None:
    alone = convert(structuredContent={"a": [1, float("nan")]})
    assert [json.loads(part) for part in texts(alone)] == [{"a": [1, "nan"]}]
    assert convert(structuredContent={"result": []}).display == '{\n  "result": []\n}'
    assert convert(structuredContent=[1, 2]).display == "[\n  1,\n  2\n]"


def test_structured_content_that_the_text_carries_comes_once() -> None:
    for structured, said in [
        ({"a": 1, "b": [2.0]}, ['{"b": [2], "a": 1.0}']),
        ({"a": 1}, ["Found one:", '{"a": 1}']),
        ({"result": "5"}, ["5"]),
        ({"result": 5}, ["5"]),
        ({"result": ["a", "b"]}, ["a", "b"]),
        ([1, 2], ["[1,2]"]),
        ({"content": "a\nb"}, ["a\nb"]),
        ({"entities": [{"a": 1.0}]}, ['[\n {"a": 1}\n]']),
        ({"rows": [1]}, ["1 row", "[1]"]),
        ({"content": "a\nb"}, ["a", "b"]),
        ({"a": [1, 2]}, ['{"a": [1,', "2]}"]),
        ({}, ["t"]),
    ]:
        with row(structured):
            result = convert(*map(text, said), structuredContent=structured)
            assert texts(result) == said
            assert result.display == "\n".join(said)


def test_structured_content_that_the_text_lacks_is_added() -> None:
    for structured, said in [
        ({"a": 1}, ["t"]),
        ({"a": True}, ['{"a": 1}']),
        ({"result": 5, "unit": "m"}, ["5"]),
        ({"rows": [1, 2]}, ["1 row", "[1]"]),
        ({"min": 5, "max": 5}, ["5"]),
        ({"a": "tt"}, ["t"]),
    ]:
        with row(structured):
            result = convert(*map(text, said), structuredContent=structured)
            assert texts(result)[:-1] == [*said, "[Structured content]"]
            assert json.loads(texts(result)[-1]) == structured
            assert result.display.endswith(texts(result)[-1])


def test_of_structured_content_only_what_the_text_lacks_is_added() -> None:
    words = "all of a long file\n" * 10
    rows = [{"name": "Ada"}, {"name": "Bo"}]
    result = convert(text(words), structuredContent={"content": words, "size": 190})
    assert texts(result)[:-1] == [words, "[Structured content]"]
    assert json.loads(texts(result)[-1]) == {"content": "[as in the text above]", "size": 190}
    listed = convert(text(json.dumps(rows)), structuredContent={"rows": rows, "next": "b"})
    assert json.loads(texts(listed)[-1]) == {"rows": "[as in the text above]", "next": "b"}


def test_D13_data_that_the_model_would_refuse_are_left_out_with_a_word() -> None:
    none = "application/octet-stream"
    for data, kind, given in [
        ("no base64!", "image/png", TextPart("[The data is left out: it is not valid base64.]")),
        ("A" * 12_000_004, "image/png", TextPart("[The data is left out: 9000 kB is too large.]")),
        ("", "image/png", TextPart("[There is no data.]")),
        (DATA[:76] + "\n" + DATA[76:], "image/png", MediaPart("image/png", DATA)),
        (DATA, "image/png\r\nX: y", MediaPart(none, DATA)),
    ]:
        assert convert({"type": "image", "data": data, "mimeType": kind}).parts[1] == given


def test_D12_the_display_is_limited_to_a_megabyte() -> None:
    assert len(convert(text("x" * 3_000_000)).display) == 1_000_000


def test_C04_hidden_commands_are_spelled_out_and_counted() -> None:
    result = convert(text("a\x1b]52;c;x\x07\U000e0041\x00b"), text("\u202ec\u2066"))
    note = "[12 invisible characters in this text: spelled out as ⟨U+…⟩.]"
    said = "a⟨U+001B⟩]52;c;x⟨U+0007⟩⟨U+E0041⟩\x00b"
    assert texts(result) == [said, "⟨U+202E⟩c⟨U+2066⟩", note]
    assert result.display.splitlines() == ["a⟨U+E0041⟩␀b", "⟨U+202E⟩c⟨U+2066⟩", note]


def test_data_reaches_the_model_as_it_is() -> None:
    words = "\ufeffa\r\nb\u2028\ue000\x1b[31m\x00e\u0301"
    result = convert(text(words))
    assert result.parts == (TextPart(words),)
    assert result.display != words


PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480)
SIZE = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, 480, 640)
JPEG = b"\xff\xd8\xff\xe0" + struct.pack(">H14x", 16) + SIZE
WEBP = b"RIFF\0\0\0\0WEBP"
BITS = (640 - 1) | (480 - 1) << 14


@pytest.mark.parametrize(
    "data",
    [
        PNG,
        b"GIF89a" + struct.pack("<HH", 640, 480),
        JPEG,
        WEBP + b"VP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"),
        WEBP + b"VP8L" + bytes(4) + b"\x2f" + BITS.to_bytes(4, "little"),
        WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 640, 480),
    ],
    ids=["png", "gif", "jpeg", "webp", "lossless-webp", "lossy-webp"],
)
def test_the_size_stands_in_the_first_bytes(data: bytes) -> None:
    assert image_size(base64.b64encode(data + bytes(100)).decode()) == (640, 480)


@pytest.mark.parametrize(
    "data",
    [b"", b"text", PNG[:20], PNG[:16] + bytes(8), JPEG[:8], b"\xff\xd8" + bytes(60_000)],
    ids=["nothing", "text", "short", "no-size", "no-frame", "zeros"],
)
def test_an_image_that_cannot_be_read_has_no_size(data: bytes) -> None:
    assert image_size(base64.b64encode(data).decode()) is None
    assert image_size("iVBOR") is image_size("é") is None, "neither is base64"
