"""Parse the model's Markdown into blocks. HTML and images stay text.

Bare addresses are found by our own search: linkify-it is quadratic in text such as ``a://a://``
(CVE-2026-48801).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from textual.content import Content, Span
from textual.highlight import HighlightTheme, highlight

from tui.ui.widgets.text.blocks import (
    Block,
    CodeBlock,
    IndentBlock,
    ListBlock,
    RuleBlock,
    TableBlock,
    TextBlock,
    styled,
)
from tui.ui.widgets.text.links import link_style, linked, target_beside

MAX_BRACKETS: Final = 1_500
"""Opening brackets in a text; with more it stays plain, as the parser is quadratic in them."""

MAX_HIGHLIGHTED: Final = 8_000
"""Characters of a code block that is highlighted (about 5 ms per thousand)."""

_INLINE_STYLES: Final = {"strong": ".md-strong", "em": ".md-em", "s": ".md-strike"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed text.

    Attributes:
        blocks: Its top-level blocks.
        first_lines: The lines, from 0, on which they start.
        last_item_line: The first line of the last item, if the last block is a list of several
            items; else None.
    """

    blocks: list[Block]
    first_lines: Sequence[int] = (0,)
    last_item_line: int | None = None


@dataclass(slots=True)
class _Frame:
    """An open element and its content so far."""

    token: Token | None = None
    content: Content = field(default_factory=lambda: Content(""))
    blocks: list[Block] = field(default_factory=list)
    items: list[list[Block]] = field(default_factory=list)
    cells: list[Content] = field(default_factory=list)
    rights: list[bool] = field(default_factory=list)
    rows: list[list[Content]] = field(default_factory=list)


def parse_markdown(text: str, *, names_targets: bool = True) -> Parsed:
    """Parse Markdown into blocks. Any text is accepted.

    Args:
        text: At most `tui.ui.widgets.chat.entries.MAX_MARKDOWN` characters; sanitized.
        names_targets: Whether the target of a link stands beside its text.
    """
    if text.count("[") > MAX_BRACKETS:
        return Parsed([TextBlock(Content(text))])
    tokens = _PARSER.parse(text)
    return Parsed(_Builder(names_targets=names_targets).build(tokens), *_lines(tokens))


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 20})
    return parser.enable(["table", "strikethrough"]).disable(["html_block", "html_inline"])


_PARSER: Final = _make_parser()


def _lines(tokens: Sequence[Token]) -> tuple[Sequence[int], int | None]:
    """Return the first lines of the top-level blocks, and of the last item of a list at the end."""
    first_lines, items = list[int](), list[int]()
    for token in tokens:
        if token.map is None:
            continue
        if token.level == 0:
            first_lines.append(token.map[0])
            items = []
        elif token.level == 1 and token.type == "list_item_open":
            items.append(token.map[0])
    return first_lines, items[-1] if len(items) > 1 else None


class _Builder:
    """Build nested blocks from the flat list of tokens."""

    def __init__(self, *, names_targets: bool) -> None:
        self._names_targets = names_targets
        self._stack = [_Frame()]
        self._list_depth = 0

    def build(self, tokens: Sequence[Token]) -> list[Block]:
        for token in tokens:
            frame = self._stack[-1]
            match token.type:
                case "inline":
                    frame.content = inline_content(token, names_targets=self._names_targets)
                case "fence" | "code_block":
                    frame.blocks.append(code_block(token.content, token.info, labelled=True))
                case "hr":
                    frame.blocks.append(RuleBlock())
                case _ if token.nesting == 1:
                    self._stack.append(_Frame(token))
                    self._list_depth += token.tag in {"ul", "ol"}
                case _ if token.nesting == -1:
                    self._close(token.tag, self._stack.pop())
                case _:
                    frame.blocks.append(TextBlock(Content(token.content)))
        return self._stack[0].blocks

    def _close(self, tag: str, frame: _Frame) -> None:
        """Add a closed element to its parent."""
        parent = self._stack[-1]
        match tag:
            case "ul" | "ol":
                self._list_depth -= 1
                number = _first_number(frame.token) if tag == "ol" else None
                parent.blocks.append(ListBlock(frame.items, number, self._list_depth))
            case "li":
                parent.items.append(frame.blocks)
            case "blockquote":
                bar = styled("▎ ", ".md-quote")
                parent.blocks.append(IndentBlock(bar, bar, frame.blocks))
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                style = f".md-{tag}" if tag in {"h1", "h2"} else ".md-h3"
                parent.blocks.append(TextBlock(frame.content.stylize_before(style)))
            case "th" | "td":
                parent.cells.append(frame.content)
                parent.rights.append(_is_right(frame.token))
            case "tr":
                parent.rows.append(frame.cells)
                parent.rights = frame.rights
            case "thead" | "tbody":
                parent.rows.extend(frame.rows)
                parent.rights = frame.rights
            case "table":
                head, *rows = frame.rows or [[]]
                parent.blocks.append(TableBlock(head, rows, frame.rights))
            case _:
                parent.blocks.append(TextBlock(frame.content))


def _first_number(token: Token | None) -> int:
    start = token.attrGet("start") if token is not None else None
    return start if isinstance(start, int) else 1


def _is_right(token: Token | None) -> bool:
    return token is not None and token.attrGet("style") == "text-align:right"


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


def code_in(text: str) -> list[str]:
    """Return the blocks of code in a text, in their order."""
    tokens = _PARSER.parse(text) if text.count("[") <= MAX_BRACKETS else []
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
                add(child.content)
    return linked(Content("".join(parts), spans=spans))
