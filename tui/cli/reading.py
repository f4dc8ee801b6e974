"""``gemdeck help``: the manual in the terminal."""

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from textwrap import indent
from typing import Final

import click

from tui.cli.output import say, table, write_out
from tui.manual import TOPICS, Part, parts_of
from tui.model.input.typed import nearest
from tui.text import sanitize_line

_CODE: Final = re.compile(r"^```\w*\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_TABLE: Final = re.compile(r"(^\|.*\n)+", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_BOLD: Final = re.compile(r"^#+ (.*)$|\*\*(.+?)\*\*", re.MULTILINE)


def _topics(_context: object, _parameter: object, begun: str) -> list[str]:
    return [topic for topic in TOPICS if topic.startswith(begun)]


@click.command("help", epilog="Example: gemdeck help servers")
@click.argument("words", metavar="[TOPIC]", nargs=-1, shell_complete=_topics)
def read_manual(words: tuple[str, ...]) -> None:
    """Print a page or section of the manual, or search all pages; without TOPIC, list them."""
    wanted = sanitize_line(" ".join(words)).casefold()
    every = [part for topic in TOPICS for part in parts_of(topic)]
    named = [part for part in every if wanted in _names(part)]
    having = [part for part in every if wanted in part.text.casefold()]
    if text := "\n".join(part.text for part in named or having[: len(having) == 1]):
        click.echo_via_pager(_plain(text) if sys.stdout.isatty() else text)
        return
    found = {topic: _heads(parts_of(topic), wanted) for topic in TOPICS}
    if not having:
        near = nearest(wanted, TOPICS)
        missing = f"Nothing in the manual matches {wanted}." + f" Did you mean {near}?" * bool(near)
        raise click.UsageError(f"{missing} Pages: {', '.join(TOPICS)}.")
    write_out(table([(topic, " · ".join(heads)) for topic, heads in found.items() if heads]))
    if wanted:
        say(f'To read a section: gemdeck help "{having[0].heading}"')


def _names(part: Part) -> Sequence[str]:
    """Name what prints a section: its page's name and title, its anchor and its heading."""
    return f"{part.at}#{part.title}#{part.heading}".casefold().split("#")


def _heads(parts: Sequence[Part], wanted: str) -> list[str]:
    """List the sections of a page that contain words; without words, its title and first line."""
    if not wanted:
        return [parts[0].title, " ".join(parts[0].text.split("\n\n")[1].split())]
    return [part.heading for part in parts if wanted in part.text.casefold()]


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
