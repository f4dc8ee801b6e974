"""Arguments of a call as lines to review: a table of the short ones, then texts line by line.

Every character is there. What cannot be seen is drawn as a JSON escape in a colour of its own, and
so are blanks that deceive; many blank lines in a row are one line that counts them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from tui.model.bounded_json import JsonError
from tui.model.frozen import Frozen
from tui.model.input.arguments import read_arguments, reveal, reveal_character
from tui.model.requests import FileChange, TextEdit
from tui.text import clip, counted, sanitize
from tui.ui.widgets.text.difference import SIGN_STYLES, marked
from tui.ui.widgets.text.folded_text import Fold, FoldedText, fold_beside
from tui.ui.widgets.text.plain import one_line

MAX_COLOURED: Final = 20_000
"""Characters of a text in which escapes get a colour; longer ones are shown plain, as complete."""

_DECEIVING: Final = re.compile(r"(?<=[^ \n]) {4,}|^ {41,}|\t|(?:·|[^\S \n\r\t])+", re.MULTILINE)
"""Blanks in a run, wide indents, tabs, dots as drawn for blanks, and U+00A0 and its like."""

_HIDDEN: Final = re.compile(rf"{_DECEIVING.pattern}|[^\n -~]", re.MULTILINE)
"""What may have to be drawn in another way where a text has characters that cannot be seen."""

MAX_REVIEWED: Final = 60_000
"""Characters of arguments that are laid out like this; longer ones are shown as JSON."""

MAX_SHORT: Final = 200
"""Characters of a value that stands in the table, before all longer ones."""

MAX_LINES: Final = 5_000
"""Lines of all arguments that are laid out; more are shown as JSON."""

MAX_BLANK_LINES: Final = 3
"""Blank lines in a row that are drawn; more are counted."""

MIN_COLUMN: Final = 8
"""Cells that the column of names may have at any width."""

GAP: Final = 2
"""Cells between names or numbers and the text."""

MUTED: Final = "$text-muted"
MARKED: Final = "$text-warning"

_TAB: Final = "→   "
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$-]*")
_LOOKS_LIKE_JSON: Final = re.compile(r"[\[{\"]|-?\d|(?:true|false|null)\Z")


class ArgumentLine(Frozen):
    """One line, which may take several rows.

    Attributes:
        label: The name of an argument, or the number and sign of a line of a text.
        text: What stands beside it.
        label_style: The style of the label.
        is_name: Whether the label is a name, which is told in full where it does not fit.
        sign: The sign of a line of a difference, which is drawn on its ground.
    """

    label: str
    text: Content
    label_style: str = MUTED
    is_name: bool = False
    sign: str = ""


def argument_lines(
    values: Mapping[str, object], change: FileChange | None = None
) -> list[ArgumentLine]:
    """Lay out arguments, the name of a file that changes and short ones first.

    Args:
        values: The arguments.
        change: What they change in the file that one of them names.
    """
    if not values:
        return [ArgumentLine("", Content.styled("no arguments", MUTED))]
    table: list[ArgumentLine] = []
    long: list[ArgumentLine] = []
    blocks: list[ArgumentLine] = []
    edits = {edit.name: edit for edit in change.edits} if change is not None else {}
    for name, value in _leaves("", values, edits):
        if isinstance(value, TextEdit):
            blocks += _edited(value)
            continue
        is_compared = change is not None and change.content == name
        if isinstance(value, str) and ("\n" in value or is_compared):
            signs = change.lines if change is not None and is_compared else ()
            blocks += _block(name, value, signs)
        elif isinstance(value, str) or len(_compact(value)) <= MAX_SHORT:
            written = _value(value)
            if change is not None and change.path == name:
                written = Content.assemble(written, (f"   {change.summary}", MARKED))
                table.insert(0, ArgumentLine(_shown(name), written, is_name=True))
                continue
            line = ArgumentLine(_shown(name), written, is_name=True)
            (table if len(written) <= MAX_SHORT else long).append(line)
        else:
            blocks += _block(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    return table + long + blocks


def _leaves(
    name: str, value: object, edits: Mapping[str, TextEdit]
) -> Iterator[tuple[str, object]]:
    """Yield what is shown each by itself, with the path to it: whatever holds no text of lines."""
    edit = edits.get(name)
    edit = edit if edit and _is_of(edit, value) else None
    is_above = any(one.startswith(f"{name}[") for one in edits)
    if isinstance(value, Mapping) and value and (not name or edit or _holds_lines(value)):
        if edit:
            yield name, edit
        for key, item in value.items():
            if edit and key in edit.texts:
                continue
            plain = _IDENTIFIER.fullmatch(key) is not None
            inner = f"[{json.dumps(key, ensure_ascii=False)}]"
            path = (f"{name}.{key}" if name else key) if plain else name + inner
            yield from _leaves(path, item, edits)
    elif isinstance(value, list) and (is_above or _holds_lines(value)):
        for index, item in enumerate(value):
            yield from _leaves(f"{name}[{index}]", item, edits)
    else:
        yield name, value


def _is_of(edit: TextEdit, value: object) -> bool:
    """Tell whether the lines of an edit are all of the texts that would be sent."""
    texts = [value.get(name) for name in edit.texts] if isinstance(value, Mapping) else []
    kept = [[text for sign, text in edit.lines if sign != other] for other in "+-"]
    return ["\n".join(lines) for lines in kept] == texts


def _holds_lines(value: object) -> bool:
    match value:
        case str():
            return "\n" in value
        case Mapping():
            return any(map(_holds_lines, value.values()))
        case list():
            return any(map(_holds_lines, value))
        case _:
            return False


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _value(value: object) -> Content:
    """Write a value in one line; a text only in quotes where it could be taken for another."""
    if not isinstance(value, str):
        style = "$text-warning" if isinstance(value, int | float) else "$text-primary"
        return drawn(_compact(value)).stylize_before(style)
    is_plain = value and value == value.strip() and not _LOOKS_LIKE_JSON.match(value)
    return drawn(value if is_plain else _compact(value))


def _block(name: str, text: str, signs: Sequence[tuple[str, str]] = ()) -> Iterator[ArgumentLine]:
    """Number the lines of a text, or compare them with those of the file."""
    lines = drawn(text.removesuffix("\n")).split("\n", allow_blank=True)
    words = counted(len(lines), "line")
    if sum(sign != "-" for sign, _ in signs) != len(lines):
        signs = ()
    if not text.endswith("\n"):
        words += ", no line break at the end"
    yield ArgumentLine(_shown(name), Content.styled(words, MUTED), is_name=True)
    of_text = iter(lines)
    # what did not change is shown, too: a tool may do something else with it than write that file
    texts = [(sign, drawn(gone) if sign == "-" else next(of_text)) for sign, gone in signs]
    plain = (ArgumentLine(str(number), line) for number, line in enumerate(lines, 1))
    yield from _without_blanks(_compared(texts) if signs else plain)


def _edited(edit: TextEdit) -> Iterator[ArgumentLine]:
    """Show a text that replaces another as the difference between both, line by line."""
    name = edit.name or " → ".join(edit.texts)
    yield ArgumentLine(_shown(name), Content.styled(edit.place, MUTED), is_name=True)
    texts = [(sign, drawn(text)) for sign, text in edit.lines]
    yield from _without_blanks(_compared(texts, edit.first))


def _without_blanks(numbered: Iterable[ArgumentLine]) -> Iterator[ArgumentLine]:
    """Count blank lines where there are many in a row."""
    blank_or_sign = lambda line: (not line.text.plain.strip(" ·→"), line.sign)  # noqa: E731
    for (is_blank, _), group in groupby(numbered, blank_or_sign):
        run = list(group)
        if is_blank and len(run) > MAX_BLANK_LINES:
            words = f"{counted(len(run), 'blank line')}, {run[0].label.strip()} to "
            words += run[-1].label.strip()
            yield ArgumentLine("", Content.styled(words, MARKED))
        else:
            yield from run


def _compared(texts: Iterable[tuple[str, Content]], first: int = 1) -> Iterator[ArgumentLine]:
    """Number the lines of a difference from the first one; 0 for no numbers."""
    old = new = first - 1
    for sign, text in marked(texts):
        old, new = old + (sign != "+"), new + (sign != "-")
        label = f"{(old if sign == '-' else new) if first else ''} {sign}"
        yield ArgumentLine(label, text, SIGN_STYLES.get(sign, MUTED), sign=sign)


def _shown(name: str) -> str:
    return reveal(name).replace("\t", "\\t").replace("\n", "\\n")


def drawn(text: str) -> Content:
    """Draw every character of a text.

    Blanks in a run are drawn as dots, so that text cannot be pushed out of sight, and tabs as
    arrows. What cannot be seen, a dot of the text itself, and a blank that is not the common one
    are written as JSON escapes, so that nothing looks like something else.
    """
    if "\t" in text:
        text = text.replace("→", "\\u2192")
    pattern = _DECEIVING if sanitize(text) == text else _HIDDEN
    if len(text) > MAX_COLOURED:
        return Content(pattern.sub(_visible, text))
    parts: list[str | tuple[str, str]] = []
    end = 0
    for found in pattern.finditer(text):
        anew = _visible(found)
        style = MUTED if anew == _TAB else MARKED if anew != found[0] else ""
        parts += [text[end : found.start()], (anew, style)]
        end = found.end()
    return Content.assemble(*parts, text[end:])


def _visible(found: re.Match[str]) -> str:
    """Draw a run of blanks as dots, a tab as an arrow, and other characters as their escapes."""
    text = found[0]
    if text[0] == " ":
        return "·" * len(text)
    if text == "\t":
        return _TAB
    is_other = len(text) == 1 and text != "·" and not text.isspace()
    return reveal_character(text) if is_other else json.dumps(text)[1:-1]


def both_ends(name: str, width: int) -> str:
    """Fit a name into `width` cells by leaving out its middle: names may differ at either end."""
    name = clip(one_line(name), limit=200)
    if cell_len(name) <= width:
        return name
    head = width // 2
    tail = set_cell_size(name[::-1], width - head - 1)[::-1]
    return f"{set_cell_size(name, head)}…{tail}"


class ArgumentsText(FoldedText):
    """Show arguments in full, folded, as lines beside names and numbers or as one text."""

    _source: Sequence[ArgumentLine] = ()

    def show_arguments(
        self, arguments: str, change: FileChange | None, *, as_json: bool = False
    ) -> None:
        """Show arguments to be read, or as JSON if that is asked for or they are too long.

        Args:
            arguments: The arguments as canonical JSON.
            change: How they differ from a file.
            as_json: Whether JSON is asked for.
        """
        lines = arguments.count("\n") + arguments.count("\\n")
        if not as_json and len(arguments) <= MAX_REVIEWED and lines <= MAX_LINES:
            with suppress(JsonError):
                self.show_lines(argument_lines(read_arguments(arguments), change))
                return
        self.show(drawn(arguments))

    def show_lines(self, lines: Sequence[ArgumentLine]) -> None:
        """Show arguments that are laid out, from their first line."""
        self._source = lines
        super().show("")

    def show(self, text: str | Content) -> None:
        """Show arguments as one text."""
        self._source = ()
        super().show(text)

    def _make_fold(self, width: int) -> Fold:
        if not self._source:
            return super()._make_fold(width)
        names = [cell_len(line.label) for line in self._source if line.is_name]
        numbers = [cell_len(line.label) for line in self._source if not line.is_name]
        column = min(max(names, default=0) + GAP, max(MIN_COLUMN, width // 4))
        sources: list[ArgumentLine] = []
        for line in self._source:
            if line.is_name and cell_len(line.label) > column - GAP:
                label = both_ends(line.label, column - GAP)
                name = Content.assemble(("named ", MUTED), (line.label, "bold"))
                sources.append(ArgumentLine(label, name, is_name=True))
                line = replace(line, label="")  # noqa: PLW2901 - the value below its name
            sources.append(line)
        beside = max(numbers, default=0) + GAP
        labels = []
        for line in sources:
            pad = " " * ((column if line.is_name else beside) - GAP - cell_len(line.label))
            label = f"{line.label}{pad}" if line.is_name else f"{pad}{line.label}"
            labels.append(Content.styled(label + " " * GAP, line.label_style))
        texts = [line.text for line in sources]
        return fold_beside(labels, texts, [line.sign for line in sources], width)
