"""What all commands share: answers as text or as JSON, errors, exit codes, and completion."""

import asyncio
import functools
import inspect
import json
import re
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click import shell_completion as shells

from tui.cli.output import ExitCode, prepare_output, say, write_out
from tui.engine.files.paths import shown_path
from tui.model.frozen import Frozen
from tui.model.input.typed import nearest
from tui.text import AdvisedError, sanitize_line

T = TypeVar("T")

_PLAIN: Final = re.compile(r"-{0,2}\w[\w.-]*", re.ASCII)
"""A word that no shell reads as anything but itself."""


class CommandOutput(Frozen):
    """What a command gives.

    Attributes:
        value: As JSON.
        text: As text; bytes are written as they are.
        code: The exit code.
    """

    value: dict[str, Any]
    text: str | bytes
    code: ExitCode = ExitCode.OK


class CommandError(AdvisedError):
    """A command cannot do what it was asked.

    Args:
        text: For the user, one line.
        code: The exit code.
    """

    def __init__(self, text: str, code: ExitCode = ExitCode.ERROR) -> None:
        super().__init__(sanitize_line(text))
        self.code = code


def no_such(kind: str, name: str, known: Iterable[str]) -> CommandError:
    """Say that there is nothing of this name, and what has a similar one."""
    near = nearest(name, known)
    hint = f" Did you mean {near}?" if near else ""
    return CommandError(f"There is no {kind} {name}.{hint}", ExitCode.NOT_FOUND)


def check_known(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse the first name that nothing has."""
    for name in names:
        if name not in known:
            raise no_such(kind, name, known)


def checked_ids(_context: object, _parameter: object, ids: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse an empty ID, such as an unset variable of a script: every ID begins with it."""
    if not all(ids):
        raise click.BadParameter("an ID must not be empty.")
    return ids


def shown(path: Path) -> str:
    """Write a path as shown."""
    return shown_path(path, Path.home())


def prints(command: Callable[..., Coroutine[Any, Any, CommandOutput]]) -> Callable[..., None]:
    """Make a command of a coroutine: what it gives is printed, and the process ends.

    One that takes `as_json` is told whether it is printed as JSON.
    """
    asks = "as_json" in inspect.signature(command).parameters

    @functools.wraps(command)
    def run(*, as_json: bool = False, **given: Any) -> None:  # noqa: ANN401 - its options
        told = {"as_json": as_json} if asks else {}
        _finish(command(**given, **told), as_json=as_json)

    return run


def prints_json(command: Callable[..., Coroutine[Any, Any, CommandOutput]]) -> Callable[..., None]:
    """Make a command of a coroutine, with the option to print what it gives as JSON."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(prints(command))


def _finish(command: Coroutine[Any, Any, CommandOutput], *, as_json: bool) -> None:
    """Carry out a command, print its answer, and end the process with its exit code."""
    if warning := prepare_output():
        say(warning)
    try:
        answer = asyncio.run(_interruptible(command))
    except AdvisedError as error:
        words = sanitize_line(f"{error} {error.advice}".strip())
        say(words)
        code = error.code if isinstance(error, CommandError) else ExitCode.ERROR
        answer = CommandOutput({"error": {**error.reply, "message": words}}, "", code)
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(ExitCode.CANCELLED)
    # in ASCII, JSON cannot control a terminal
    text = json.dumps(answer.value, ensure_ascii=True, indent=2) if as_json else answer.text
    if text and not write_out(text):
        sys.exit(ExitCode.ERROR)
    sys.exit(answer.code)


async def _interruptible(command: Coroutine[Any, Any, T]) -> T:
    """Run a command; a signal that ends the process closes its servers first."""
    task = asyncio.ensure_future(command)
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await task


class _PlainWords(shells.ShellComplete):
    """Offers only what needs no quotes: bash puts it into the command line as it is.

    Of a path the shell gets what was typed, which must not add a line to the answer.
    """

    def get_completions(self, args: list[str], word: str) -> "list[shells.CompletionItem[str]]":
        found = super().get_completions(args, word)
        plain, path = _PLAIN.fullmatch, str.isprintable
        return [one for one in found if (plain if one.type == "plain" else path)(one.value)]


@functools.cache
def offer_plain_words() -> None:
    """Let every shell be offered plain words alone, with whatever script it asks."""
    names = ("bash", "zsh", "fish", "powershell")
    for shell in filter(None, map(shells.get_completion_class, names)):
        shells.add_completion_class(type(shell.__name__, (_PlainWords, shell), {}))


@click.command(epilog="Example: gemdeck completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@prints
async def completion(shell: str) -> CommandOutput:
    """Print a script that completes gemdeck's commands and options in your shell.

    \b
    bash: gemdeck completion bash >> ~/.bashrc
    zsh:  gemdeck completion zsh >> ~/.zshrc
    fish: gemdeck completion fish > ~/.config/fish/completions/gemdeck.fish
    """  # noqa: D301 - the library reads this backspace
    found = shells.get_completion_class(shell)
    assert found is not None  # noqa: S101 - the library knows these shells
    script = found(click.Command("gemdeck"), {}, "gemdeck", "_GEMDECK_COMPLETE")
    return CommandOutput({}, script.source_template % script.source_vars())
