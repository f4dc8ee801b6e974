"""The README tells of settings and commands as they are."""

import re
import shlex
from collections.abc import Iterator
from typing import Final

import click
import pytest

from tests.support.readme_reference import README, renewed
from tui.cli.main import main

BLOCK: Final = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN: Final = re.compile(r"`(gemdeck [^`\n]*)`")


def commands() -> Iterator[str]:
    """Give every command line of the README, without comments."""
    text = README.read_text("utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    for line in [*lines, *SPAN.findall(BLOCK.sub("", text))]:
        words = line.partition(" #")[0].partition(" >")[0].strip()
        if words.startswith("gemdeck ") and "COMMAND" not in words:
            yield words


def test_the_settings_reference_is_current() -> None:
    text = README.read_text("utf-8")
    assert "| `gemdeck.model` |" in text
    assert renewed(text) == text, "run: python3 -m tests.support.readme_reference"


@pytest.mark.parametrize("line", sorted(set(commands())))
def test_a_command_of_the_readme_is_there_with_its_options(line: str) -> None:
    command: click.Command = main
    words = shlex.split(line.replace("…", "x"))[1:]
    while words and isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            assert words[0].startswith("-"), f"there is no command {words[0]}"
            break
        command, words = found, words[1:]
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    given = words[: words.index("--")] if "--" in words else words
    named = [word.partition("=")[0] for word in given if re.match(r"--?[a-z]", word)]
    assert set(named) <= options | {"--help", "--version", "-y"}, line
