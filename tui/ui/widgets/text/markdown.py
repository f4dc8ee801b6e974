"""Parse the model's Markdown into blocks. HTML and images stay text, but for ``<br>``.

Models write more than the standard has: formulas, stars and underscores in names and sums, and bold
words beside the punctuation of Chinese, Japanese and Korean.

Bare addresses are found by our own search: linkify-it is quadratic in text such as ``a://a://``
(CVE-2026-48801).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from types import FunctionType
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import table
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.token import Token
from textual.content import Content, Span
from textual.highlight import HighlightTheme, highlight

from tui.model.frozen import Frozen
from tui.text import sanitize
from tui.ui.widgets.text.blocks import (
    Block,
    CodeBlock,
    IndentBlock,
    LineBlock,
    ListBlock,
    TableBlock,
    TextBlock,
    styled,
)
from tui.ui.widgets.text.formula import FORMULA, drawn_formula
from tui.ui.widgets.text.links import link_style, linked, target_beside
from tui.ui.widgets.text.plain import SIGN

MAX_BRACKETS: Final = 1_500
"""Opening brackets in a text; with more it stays plain, as the parser is quadratic in them."""

MAX_HIGHLIGHTED: Final = 8_000
"""Characters of a code block that is highlighted (about 5 ms per thousand)."""

_INLINE_STYLES: Final = {"strong": ".md-strong", "em": ".md-em", "s": ".md-strike"}

_HEADINGS: Final = {"h1": ".md-h1", "h2": ".md-h2"}


class Parsed(Frozen):
    """A parsed text: its top-level blocks, and the lines, from 0, on which they start."""

    blocks: list[Block]
    first_lines: Sequence[int] = (0,)


def parse_markdown(text: str, *, names_targets: bool = True) -> Parsed:
    """Parse Markdown into blocks. Any text is accepted.

    Args:
        text: At most `tui.ui.widgets.chat.entries.MAX_MARKDOWN` characters; sanitized.
        names_targets: Whether the target of a link stands beside its text.
    """
    if text.count("[") > MAX_BRACKETS:
        return Parsed([TextBlock(Content(text))])
    tokens = _PARSER.parse(text)
    first_lines = [token.map[0] for token in tokens if token.level == 0 and token.map]
    return Parsed(_Builder(tokens, names_targets=names_targets).blocks(), first_lines)


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 60})
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.core.ruler.before("text_join", "hidden", _keep_hidden)
    # their rule for tables with our way to split a row, and nothing of theirs changed
    cells = {**table.__globals__, "escapedSplit": _cells}
    parser.block.ruler.at("table", FunctionType(table.__code__, cells), {"alt": ["paragraph"]})
    # a list of sources is text: as definitions of links it would not be drawn
    unused = ["html_block", "html_inline", "reference"]
    return parser.enable(["table", "strikethrough"]).disable(unused)


def _cells(row: str) -> list[str]:
    """Split a row of a table, but not within code: more cells than the head has are not drawn."""
    return escapedSplit(_CODE.sub(lambda code: re.sub(r"\\?\|", r"\|", code[0]), row))


_DUNDER: Final = re.compile(r"(?<!\w)__[a-z0-9]+(?:_[a-z0-9]+)*__(?!\w)")
_CJK: Final = re.compile("[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]")
_CODE: Final = re.compile(r"(?<![`\\])`[^`]+`")
_BREAK: Final = re.compile(r"[ ]*<br[ ]*/?>[ ]*", re.IGNORECASE)


def _formula(state: StateInline, silent: bool) -> bool:
    """Draw a formula."""
    found = FORMULA.match(state.src, state.pos, state.posMax)
    drawn = drawn_formula(found[found.lastindex or 0]) if found is not None else ""
    if found is None or not drawn:
        return False
    state.pending += "" if silent else drawn
    state.pos = found.end()
    return True


def _emphasis(state: StateInline, silent: bool) -> bool:
    """Do as the parser's rule, but for names of Python, products, patterns of files, and CJK."""
    start, marker = state.pos, state.src[state.pos]
    if marker == "_" and not silent and (name := _DUNDER.match(state.src, start)) is not None:
        state.pending, state.pos = state.pending + name[0], name.end()
        return True
    if not emphasis.tokenize(state, silent):
        return False
    if marker == "_":
        return True
    before, after = state.src[start - 1 : start] or " ", state.src[state.pos : state.pos + 1] or " "
    is_within = (before + after).isascii() and before.isalnum() and after.isalnum()
    for one in state.delimiters[start - state.pos :]:
        one.open |= bool(_CJK.match(before)) and not after.isspace()
        one.close |= bool(_CJK.match(after)) and not before.isspace()
        one.open &= not is_within and after not in "/."
        one.close &= not is_within and before != "/"
    return True


def _keep_hidden(state: StateCore) -> None:
    """Leave names of characters such as ``&rlm;`` as they were written where those are hidden."""
    for token in state.tokens:
        for child in token.children or ():
            if child.info == "entity" and sanitize(child.content) != child.content:
                child.content = child.markup


_PARSER: Final = _make_parser()

_FENCED: Final = re.compile(
    r"^([ \t>]*)(?:[-*+][ ]+|\d+[.)][ ]+)?(`{3,}|~{3,})[^`\n]*\n(.*?)(?:^[ \t>]*\2[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""A block of code between fences, found in time that grows with the text alone."""


class _Builder:
    """Builds nested blocks from the flat list of tokens, each of which it takes once."""

    def __init__(self, tokens: Sequence[Token], *, names_targets: bool) -> None:
        self._tokens = iter(tokens)
        self._names_targets = names_targets

    def blocks(self, lists: int = 0) -> list[Block]:
        """Build what is in the open element, which stands in so many lists."""
        return [self._block(token, lists) for token in self._inside()]

    def _inside(self) -> Iterator[Token]:
        """Take tokens up to the end of the open element; what they open is to be taken between."""
        return takewhile(lambda token: token.nesting >= 0, self._tokens)

    def _block(self, token: Token, lists: int) -> Block:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                items = [self.blocks(lists + 1) for _ in self._inside()]
                number = int(token.attrs.get("start", 1)) if token.tag == "ol" else None
                return ListBlock(items, number, lists)
            case "blockquote_open":
                bar = styled("▎ ", ".md-quote").stylize(SIGN)
                return IndentBlock(bar, bar, self.blocks(lists))
            case "heading_open":
                return TextBlock(self._text().stylize_before(_HEADINGS.get(token.tag, ".md-h3")))
            case "table_open":
                return self._table()
            case "fence" | "code_block":
                return code_block(token.content, token.info, labelled=True)
            case "hr":
                return LineBlock(lambda width: styled("─" * width, ".md-rule"), spaced=True)
            case "paragraph_open":
                return TextBlock(self._text())
            case _:
                return TextBlock(Content(token.content))

    def _table(self) -> TableBlock:
        rows = [
            [(cell.attrGet("style") == "text-align:right", self._text()) for cell in self._inside()]
            for _ in self._inside()
            for _ in self._inside()
        ]
        head, *others = [[text for _, text in row] for row in rows]
        return TableBlock(head, others, [is_right for is_right, _ in rows[0]])

    def _text(self) -> Content:
        """Take the text of the open element."""
        parts = (inline_content(one, names_targets=self._names_targets) for one in self._inside())
        return Content().join(parts)


class _Theme(HighlightTheme):
    """Textual's colors, without lines below functions, which would look like links."""

    STYLES = {  # noqa: RUF012 - as Textual declares it
        token: style.removesuffix(" underline") for token, style in HighlightTheme.STYLES.items()
    }


def code_block(code: str, language: str = "", *, labelled: bool = False) -> CodeBlock:
    """Return a block of code, highlighted if its language is given and it is short enough."""
    code = code.rstrip("\n")
    words = language.split(maxsplit=1)
    name = (words[0] if words else "code") if labelled else ""
    if words and len(code) <= MAX_HIGHLIGHTED:
        return CodeBlock(highlight(code, language=words[0], theme=_Theme), name)
    return CodeBlock(Content(code), name)


def code_in(text: str, *, whole: bool) -> list[str]:
    """Return the blocks of code in a text, in their order.

    Args:
        text: The text.
        whole: Whether it is short enough to be parsed; in others only fenced blocks are found.
    """
    if not whole or text.count("[") > MAX_BRACKETS:
        found = _FENCED.finditer(text)
        return [
            re.sub(f"^[ \t>]{{,{len(one[1])}}}", "", one[3], flags=re.MULTILINE).rstrip("\n")
            for one in found
        ]
    tokens = _PARSER.parse(text)
    return [t.content.rstrip("\n") for t in tokens if t.type in {"fence", "code_block"}]


def inline_content(token: Token, *, names_targets: bool = True) -> Content:
    """Convert an inline token to styled text.

    Where the text of a link is not its target, the target stands beside it if `names_targets`.
    """
    parts: list[str] = []
    spans: list[Span] = []
    opened: list[tuple[int, int, str, str]] = []
    position = 0

    def add(text: str, style: str = "") -> None:
        nonlocal position
        parts.append(text)
        if style and text:
            spans.append(Span(position, position + len(text), style))
        position += len(text)

    def close() -> None:
        start, first, style, href = opened.pop()
        if start == position:
            return
        spans.append(Span(start, position, style))
        if href:
            if names_targets:
                add(target_beside("".join(parts[first:]), href), ".md-quote")
            spans.append(Span(start, position, link_style(href)))

    def open_(style: str, href: str = "") -> None:
        opened.append((position, len(parts), style, href))

    for child in token.children or ():
        match child.type:
            case "softbreak" | "hardbreak":
                add(" " if child.type == "softbreak" else "\n")
            case "code_inline":
                add(child.content, ".md-code")
            case "link_open":
                open_(".md-link", str(child.attrGet("href") or ""))
            case "image":
                open_(".md-link", str(child.attrGet("src") or ""))
                add(f"[image: {child.content or 'without a description'}]")
                close()
            case _ if child.nesting == 1:
                open_(_INLINE_STYLES.get(child.tag, ""))
            case _ if child.nesting == -1:
                close()
            case _:
                add(_BREAK.sub("\n", child.content))
    return linked(Content("".join(parts), spans=spans))
