"""The tables of the manual, made from the code.

``python3 -m tests.support.manual_tables`` renews them.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Final, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

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

SENTENCE: Final = re.compile(r"(?<=\.) (?=[A-Z`])")
ID_WIDTH: Final = 32
"""Cells of the column of ids."""


def _list(entries: Iterable[tuple[str, str]]) -> str:
    """Write what has long names as a list, in lines that no terminal wraps."""
    return "".join(f"{_entry(name, words)}\n" for name, words in entries)


def _entry(name: str, words: str) -> str:
    return fill(f"- {name}: {words}", 80, subsequent_indent="  ", break_on_hyphens=False)


def key_name(key: str) -> str:
    """Write one of Textual's names of keys as the manual does: ``Ctrl+P``, ``PageUp``."""
    parts = (_KEY_NAMES.get(part, part) for part in key.split("+"))
    return key if len(key) == 1 else "+".join(map(_capital, parts))


def _named(keys: str) -> Iterator[str]:
    return (key_name(key.strip()) for key in keys.split(","))


def _keys_of(keys: str) -> str:
    return " ".join(f"`{key}`" for key in _named(keys))


def keys() -> str:
    """Return the ids of all actions with their keys, by the places where they work."""
    shown = [key for key in (*KEYS, *answer_keys()) if key.description]
    places = (
        "\n".join(
            [place.value, *(f"  {key.id:<{ID_WIDTH}}{', '.join(_named(key.keys))}" for key in here)]
        )
        for place in Place
        if (here := [key for key in shown if key.place is place])
    )
    return "```\n" + "\n\n".join(places) + "\n```\n"


def answers() -> str:
    """List the answers to the question about a call."""
    every = (one for row in ANSWERS for one in row)
    return _list((_keys_of(one.keys) + ", twice" * one.twice, _capital(one.words)) for one in every)


def _capital(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def commands() -> str:
    """List the commands, those of a group in one entry."""
    return _list(_commands(main, "gemdeck"))


def _commands(group: click.Group, start: str) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        does = " ".join((command.help or "").partition("\n\n")[0].split())
        if isinstance(command, click.Group):
            members = (command.get_command(click.Context(command), one) for one in command.commands)
            each = (f"`{_usage_of(one)}`" for one in members if one is not None)
            yield f"`{start} {name}`", f"{does} {', '.join(each)}"
        else:
            yield f"`{start} {_usage_of(command)}`", does


def _usage_of(command: click.Command) -> str:
    taken = (one for one in command.params if isinstance(one, click.Argument))
    metavars = (one.make_metavar(click.Context(command)) for one in taken)
    # click 8.2 has a choice that may be left out in brackets twice
    usage = (words.replace("[[", "[").replace("]]", "]") for words in metavars)
    return " ".join((str(command.name), *usage))


def options() -> str:
    """List the options of ``gemdeck`` itself."""
    return _list(
        (f"`{', '.join(one.opts)}{_metavar(one)}`", str(one.help))
        for one in main.params
        if isinstance(one, click.Option)
    )


def _metavar(option: click.Option) -> str:
    flag = option.is_flag or option.count
    return "" if flag else f" {option.make_metavar(click.Context(main))}"


def typed() -> str:
    """Name the commands of the screen, then the parts of those that have any."""
    plain = ", ".join(_typed(one) for one in OWN_COMMANDS.values() if not one.parts)
    parted = _list(
        (_typed(one), ", ".join(f"`{_usage(part)}`" for part in one.parts))
        for one in OWN_COMMANDS.values()
        if one.parts
    )
    return f"{fill(plain, 80, break_on_hyphens=False)}\n\n{parted}"


def _typed(one: OwnCommand) -> str:
    return f"`/{_usage(one)}`" + f" (`/{one.alias}`)" * bool(one.alias)


def _usage(one: OwnCommand) -> str:
    return one.name if one.takes is Takes.NOTHING else f"{one.name} {one.takes}"


def exit_codes() -> str:
    """List the exit codes."""
    [body] = ast.parse(inspect.getsource(ExitCode)).body
    assert isinstance(body, ast.ClassDef)
    words = (one.value.value for one in body.body[1:] if isinstance(one, ast.Expr))  # type: ignore[attr-defined]
    return _list((f"`{code:d}`", means) for code, means in zip(ExitCode, words, strict=True))


def settings() -> str:
    """List all keys of the settings files with their defaults; those in one follow it."""
    return _list(_settings())


def _settings() -> Iterator[tuple[str, str]]:
    for name, (section, _) in SECTIONS.items():
        described = descriptions(section)
        start = f"{name}.*." if section is ServerSettings else f"{name}."
        for key, field in _keys(section):
            words, parts = SENTENCE.split(described[key], maxsplit=1)[0], [*_parts(field)]
            yield _named_key(start + key, field), " ".join((words, ", ".join(parts))).rstrip()


def _keys(section: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    return ((field.alias or name, field) for name, field in section.model_fields.items())


def _parts(field: FieldInfo, start: str = "") -> Iterator[str]:
    """Name the keys of the section that a key holds, or holds under names of the user's."""
    below = f"{start}*." if get_origin(field.annotation) is dict else start
    for part in (field.annotation, *get_args(field.annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            for key, inner in _keys(part):
                yield _named_key(below + key, inner)
                yield from _parts(inner, f"{below}{key}.")


def _named_key(key: str, field: FieldInfo) -> str:
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    written = _written(default)
    return f"`{key}: {written}`" if written else f"`{key}`"


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
