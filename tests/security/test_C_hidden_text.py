"""Text that only a model reads reaches it on no way without being spelled out, and is said."""

from collections.abc import Callable
from pathlib import Path

import mcp_types as types
import pytest

from tui.engine.chats.own_tools import text_result
from tui.engine.chats.turn import MessageContent
from tui.engine.mcp.catalog.offer import RawOffer, read_offer
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.engine.mcp.catalog.results import convert_prompt, convert_resource, convert_result
from tui.engine.mcp.session.sdk_patches import read_call_result
from tui.engine.settings.sources.context_places import read_context
from tui.engine.workspace import PathReader, Workspace, WorkspacePath
from tui.model.servers import ServerId
from tui.text import INVISIBLE
from tui.ui.widgets.text.blocks import stack
from tui.ui.widgets.text.markdown import parse_markdown

SECRET = "rm -rf ~"
HIDDEN = {
    "tags": "".join(chr(0xE0000 + ord(c)) for c in SECRET),
    "tags of a flag": "\U0001f3f4" + "".join(chr(0xE0000 + ord(c)) for c in "rmrf") + "\U000e007f",
    "selectors": "😀" + "".join(chr(0xE0100 + ord(c) - 16) for c in SECRET),
    "selectors of both blocks": "x" + "".join(f"{chr(0xFE00 + ord(c) % 16)}" for c in SECRET),
    "selectors on ideographs": "".join(f"漢{chr(0xE0100 + ord(c) - 16)}" for c in "ignore"),
    "zero width": "".join("\u200b\u200c"[bit == "1"] for c in SECRET for bit in f"{ord(c):08b}"),
    "joiners in words": "a" + "".join("\u200d\u2060"[ord(c) % 2] + "a" for c in SECRET),
    "operators": "f\u2061x\u2062\u2063\u2064",
    "fillers": "a\u3164\u115f\u1160\uffa0\u2800\u2800b",
    "five bits on each ideograph": "".join(f"漢{chr(0xE0100 + ord(c) % 32)}" for c in SECRET),
    "strings of a terminal": f"a\x1b_{SECRET}\x1b\\b\x1b]0;{SECRET}\x07c\x9d{SECRET}\x9cd",
    "letters of sequences": "".join(f"\x9b{c}" for c in "ignore"),
    "order": "a\u202eb\u2066c\u200ed\u061ce",
}
Way = Callable[[str, Path], str]


def _texts(*parts: object) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def _result(**raw: object) -> str:
    return _texts(*convert_result(read_call_result(raw)).parts)


def _prompt(words: str) -> str:
    said = types.PromptMessage(role="user", content=types.TextContent(type="text", text=words))
    return _texts(*convert_prompt(types.GetPromptResult(messages=[said])).parts)


def _resource(words: str) -> str:
    text = types.TextResourceContents(uri=f"m://{words}", text=words)
    result = types.ReadResourceResult(contents=[text])
    return _texts(*convert_resource(ServerId("s"), "m://x", result).parts)


def _context(words: str, folder: Path) -> str:
    (folder / "GEMINI.md").write_text(words, encoding="utf-8")
    [read] = read_context([folder / "GEMINI.md"], folder)
    return read.text


def _mention(words: str, folder: Path) -> str:
    (folder / "a.txt").write_text(words, encoding="utf-8")
    path = WorkspacePath(folder / "a.txt", "a.txt", folder)
    reading = PathReader(Workspace(lambda: (folder,))).read(path)
    assert "invisible character" in reading.shown, "the user sees it, too"
    return _texts(*reading.parts)


SAID: dict[str, Way] = {
    "result": lambda words, _: _result(content=[{"type": "text", "text": words}]),
    "error": lambda words, _: _result(content=[{"type": "text", "text": words}], isError=True),
    "structured": lambda words, _: _result(content=[], structuredContent={words: [words]}),
    "resource in a result": lambda words, _: _result(
        content=[{"type": "resource", "resource": {"uri": "m://x", "text": words}}]
    ),
    "link in a result": lambda words, _: _result(
        content=[{"type": "resource_link", "uri": "m://x", "name": "n", "description": words}]
    ),
    "prompt": lambda words, _: _prompt(words),
    "resource": lambda words, _: _resource(words),
    "own tool": lambda words, _: _texts(*text_result(words).parts),
    "pasted": lambda words, _: _texts(*MessageContent.of_text(words).parts),
    "context file": _context,
    "mention": _mention,
}


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("way", SAID)
def test_C16_hidden_text_is_spelled_out_and_said_on_every_way_to_the_model(
    way: str, hidden: str, tmp_path: Path
) -> None:
    got = SAID[way](f"before {HIDDEN[hidden]} after", tmp_path)
    assert INVISIBLE.isdisjoint(got)
    assert "⟨U+" in got
    assert " in this text: spelled out as ⟨U+…⟩.]" in got


@pytest.mark.parametrize(
    "around",
    ["a{}b", "[a{}b](http://x)", "![a{}b](x)", "# a{}b", "|a{}b|\n|-|", "**a{}b**"],
)
def test_C16_names_of_characters_put_none_on_the_screen_that_is_hidden(around: str) -> None:
    codes = [ord(one) for one in sorted(INVISIBLE)[::40]] + [0x202E, 0x9B, 0x1B]
    named = [*(f"&#{code};" for code in codes), "&#x202E;", "&rlm;", "&zwj;", "&NoBreak;", "&shy;"]
    for one in named:
        lines = stack(parse_markdown(around.format(one)).blocks, 80)
        text = "".join(line.plain for line in lines)
        assert INVISIBLE.isdisjoint(text), one
        assert text.isprintable(), one


@pytest.mark.parametrize("hidden", HIDDEN)
def test_C16_what_a_server_says_of_its_tools_hides_nothing(hidden: str) -> None:
    words = f"before {HIDDEN[hidden]} after"
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": words}}}
    described = {"name": "a", "description": words, "inputSchema": schema}
    [one, other] = read_offer(RawOffer(tools=[described, {**described, "name": f"b{words}"}])).tools
    assert INVISIBLE.isdisjoint(f"{one.description}{one.parameters}")
    assert other.view.problem, "a name that hides something is none"
