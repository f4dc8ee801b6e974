"""``gemdeck help``: the manual in the terminal."""

import re
import shutil
import sys
from collections.abc import Iterator
from textwrap import indent
from typing import Final

import click

from tui.cli.output import table, write_out
from tui.manual import TOPICS, page
from tui.model.input.typed import nearest
from tui.text import sanitize_line

_COMMENT: Final = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"^```\w*\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_TABLE: Final = re.compile(r"(^\|.*\n)+", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_HEAD: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)
_BOLD: Final = re.compile(rf"{_HEAD.pattern}|\*\*(.+?)\*\*", re.MULTILINE)


def _topics(_context: object, _parameter: object, begun: str) -> list[str]:
    return [topic for topic in TOPICS if topic.startswith(begun)]


@click.command("help", epilog="Example: gemdeck help servers")
@click.argument("words", metavar="[TOPIC]", nargs=-1, shell_complete=_topics)
def read_manual(words: tuple[str, ...]) -> None:
    """Print a page of the manual, or search all pages; without TOPIC, list them."""
    wanted = sanitize_line(" ".join(words)).casefold()
    texts = {topic: _COMMENT.sub("", page(topic)) for topic in TOPICS}
    if text := texts.get(wanted):
        click.echo_via_pager(_plain(text) if sys.stdout.isatty() else text)
        return
    found = {topic: _heads(text, wanted) for topic, text in texts.items()}
    if not any(found.values()):
        near = nearest(wanted, TOPICS)
        missing = f"Nothing in the manual matches {wanted}." + f" Did you mean {near}?" * bool(near)
        raise click.UsageError(f"{missing} Pages: {', '.join(TOPICS)}.")
    write_out(table([(topic, " · ".join(heads)) for topic, heads in found.items() if heads]))


def _heads(text: str, wanted: str) -> list[str]:
    """List the heads of a page under which words stand; without words, its title and first line."""
    title, first, *sections = _HEAD.split(text)[1:]
    if not wanted:
        return [title, " ".join(first.split("\n\n")[1].split("\n"))]
    parts = zip([title, *sections[::2]], [first, *sections[1::2]], strict=True)
    return [head for head, rest in parts if wanted in f"{head}\n{rest}".casefold()]


def _plain(text: str) -> str:
    """Write Markdown for reading: heads bold, tables in columns, code indented, links as words."""
    text = _CODE.sub(lambda code: indent(code[1], "    "), _LINK.sub(r"\1", text))
    text = _TABLE.sub(lambda rows: "".join(_columns(rows[0])), text)
    return _BOLD.sub(lambda found: click.style(found[found.lastindex or 0], bold=True), text)


def _columns(rows: str) -> Iterator[str]:
    """Write a table, what comes after its first column beside it."""
    cells = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        for row in rows.splitlines()[2:]
    ]
    width = shutil.get_terminal_size().columns
    first = min(max(len(row[0]) for row in cells), width // 3)
    for name, *more in cells:
        beside = " · ".join(filter(None, more))
        yield click.wrap_text(beside, width, f"{name:<{first}}  ", " " * (first + 2)) + "\n"
