"""The tables of the manual, made from the code.

``python3 -m tests.support.manual_tables`` renews them.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, get_args, get_origin

import click
from pydantic import BaseModel

import tui.manual
from tui.cli.main import main
from tui.cli.output import ExitCode
from tui.engine.settings.origins import SECTIONS, descriptions
from tui.model.input.own_commands import OWN_COMMANDS, OwnCommand, Takes
from tui.model.settings import ServerSettings
from tui.ui.keymap import KEYS, Place
from tui.ui.questions.confirmation import ANSWERS
from tui.ui.questions.kinds import answer_keys

README: Final = Path(__file__).parents[2] / "README.md"
PAGES: Final = {
    topic: Path(tui.manual.__file__).parent / "help" / f"{topic}.md" for topic in tui.manual.TOPICS
}
BLOCK: Final = re.compile(r"(<!-- ([\w-]+): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)

_KEY_NAMES: Final = {
    **{"escape": "Esc", "pagedown": "PageDown", "pageup": "PageUp"},
    **{"full_stop": ".", "slash": "/", "question_mark": "?", "plus": "+"},
}

Rows = Iterable[tuple[str, ...]]


def _table(heads: str, rows: Rows) -> str:
    """Write a table; ``heads`` has the heads of its columns with bars between them."""
    head = f"| {heads} |\n|{'---|' * (heads.count('|') + 1)}\n"
    return head + "".join(f"| {' | '.join(cells)} |\n".replace("|  |", "| |") for cells in rows)


def key_name(key: str) -> str:
    """Write one of Textual's names of keys as the manual does: ``Ctrl+P``, ``PageUp``."""
    parts = (_KEY_NAMES.get(part, part) for part in key.split("+"))
    return key if len(key) == 1 else "+".join(map(_capital, parts))


def _named(keys: str) -> str:
    return " ".join(f"`{key_name(key.strip())}`" for key in keys.split(","))


def keys() -> str:
    """Return the tables of the keys, one for each place."""
    shown = [key for key in (*KEYS, *answer_keys()) if key.description]
    tables = []
    for place in Place:
        here = (key for key in shown if key.place is place)
        rows = ((_named(key.keys), key.description, f"`{key.id}`") for key in here)
        tables.append(f"### {place.value}\n\n{_table('key | does | id', rows)}")
    return "\n".join(tables)


def answers() -> str:
    """Return the table of the answers to the question about a call."""
    every = (one for row in ANSWERS for one in row)
    rows = ((_named(one.keys) + ", twice" * one.twice, _capital(one.words)) for one in every)
    return _table("key | answer", rows)


def _capital(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def commands() -> str:
    """Return the table of the commands, with their groups' members in place of the groups."""
    return _table("command | does", _commands(main, "gemdeck"))


def _commands(group: click.Group, start: str) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        words = f"{start} {name}"
        if isinstance(command, click.Group):
            yield from _commands(command, words)
        else:
            taken = (one for one in command.params if isinstance(one, click.Argument))
            metavars = (one.make_metavar(click.Context(command)) for one in taken)
            # click 8.2 has a choice that may be left out in brackets twice
            usage = (words.replace("[[", "[").replace("]]", "]") for words in metavars)
            does = " ".join((command.help or "").partition("\n\n")[0].split())
            yield f"`{' '.join((words, *usage))}`".replace("|", "\\|"), does


def options() -> str:
    """Return the table of the options of ``gemdeck`` itself."""
    rows = (
        (f"`{', '.join(one.opts)}{_metavar(one)}`".replace("|", "\\|"), str(one.help))
        for one in main.params
        if isinstance(one, click.Option)
    )
    return _table("option | does", rows)


def _metavar(option: click.Option) -> str:
    flag = option.is_flag or option.count
    return "" if flag else f" {option.make_metavar(click.Context(main))}"


def typed() -> str:
    """Return the table of the commands of the screen."""
    return _table("command | does", (row for one in OWN_COMMANDS.values() for row in _typed(one)))


def _typed(one: OwnCommand, start: str = "/") -> Iterator[tuple[str, str]]:
    name = f"{start}{one.name}"
    takes = "" if one.takes is Takes.NOTHING else f" {one.takes}"
    also = f" (or `{one.alias}`)" if one.alias else ""
    yield f"`{name}{takes}`{also}", _capital(one.does)
    for part in one.parts:
        yield from _typed(part, f"{name} ")


def exit_codes() -> str:
    """Return the table of the exit codes."""
    [body] = ast.parse(inspect.getsource(ExitCode)).body
    assert isinstance(body, ast.ClassDef)
    words = (one.value.value for one in body.body[1:] if isinstance(one, ast.Expr))  # type: ignore[attr-defined]
    rows = ((str(int(code)), means) for code, means in zip(ExitCode, words, strict=True))
    return _table("code | means", rows)


def settings() -> str:
    """Return the table of all keys of the settings files."""
    found = settings_reference()
    rows = ((f"`{key}`", default and f"`{default}`", words) for key, default, words in found)
    return _table("key | default | what it does", rows)


def settings_reference() -> Iterator[tuple[str, str, str]]:
    """Give each key with its default and what it does."""
    for name, (section, _) in SECTIONS.items():
        yield from _keys(f"{name}.*." if section is ServerSettings else f"{name}.", section)


def _keys(start: str, section: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """Give the keys of a section, and those of the sections in it."""
    described = descriptions(section)
    for name, field in section.model_fields.items():
        key = f"{start}{field.alias or name}"
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        below = f"{key}.*." if get_origin(field.annotation) is dict else f"{key}."
        yield key, _written(default), described[field.alias or name]
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _keys(below, part)


def _written(default: object) -> str:
    match default:
        case None | "" | () | {} | BaseModel():
            return ""
        case bool():
            return "true" if default else "false"
    return f"{default:g}" if isinstance(default, float) else str(default)


TABLES: Final[Mapping[str, str]] = {
    "answers": answers(),
    "commands": commands(),
    "exit-codes": exit_codes(),
    "keys": keys(),
    "options": options(),
    "settings": settings(),
    "typed": typed(),
}
"""The tables by the names of their places."""


def renewed(text: str) -> str:
    """Return a page with its tables as they should be."""
    return BLOCK.sub(lambda found: f"{found[1]}{TABLES[found[2]]}{found[3]}", text)


if __name__ == "__main__":
    for page in PAGES.values():
        page.write_text(renewed(page.read_text("utf-8")), "utf-8")
