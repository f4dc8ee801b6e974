"""The ``gemdeck`` command: the screen by default, one turn without it with ``-p``."""

import functools
import gc
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from click.core import ParameterSource

from tui import __version__
from tui.cli.output import ExitCode, output_problem, say
from tui.cli.shared_options import profile_option, trace_option, trust_option
from tui.engine.definitions.programs import shield_path
from tui.engine.files.paths import LOG_NAME, log_dir, state_dir
from tui.engine.options import LATEST, EngineOptions
from tui.model.settings_rules import MAX_PRICE, MAX_WAIT, check_model_name
from tui.stopping import release
from tui.text import sanitize_line

EPILOG = """\b
Example: gemdeck -p "how many open branches?" --allowed-tools git.git_branch -o json
The manual: gemdeck help. Exit codes: gemdeck help commands
"""

_ASKING: Final = "To send a message: -p TEXT prints the answer, -i TEXT opens the screen."

_COMMANDS: Final[Mapping[str, str]] = {
    "mcp": "tui.cli.servers.mcp:mcp",
    "import": "tui.cli.importing:import_servers",
    "doctor": "tui.cli.doctor:doctor",
    "settings": "tui.cli.settings:settings",
    "key": "tui.cli.key:key",
    "secret": "tui.cli.secret:secret",
    "trust": "tui.cli.trust:trust",
    "grants": "tui.cli.grants:grants",
    "sessions": "tui.cli.sessions:sessions",
    "completion": "tui.cli.command:completion",
    "help": "tui.cli.reading:read_manual",
}
"""Where each command is; it is loaded when it is used."""


def _checked_model(_context: object, _parameter: object, name: str | None) -> str | None:
    """Refuse an invalid model name."""
    if name is None:
        return None
    try:
        return check_model_name(name.strip())
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _one(_context: object, _parameter: object, given: tuple[str, ...]) -> str | None:
    """Refuse all but one text: of two, the first would be lost."""
    if len(given) > 1:
        raise click.BadParameter("only one text can be sent; put all of it in one.")
    return given[0] if given else None


_message: Final = functools.partial(click.option, metavar="TEXT", multiple=True, callback=_one)


def _words(_context: object, _parameter: object, given: Iterable[str]) -> tuple[str, ...]:
    """Split lists with commas."""
    return tuple(word.strip() for one in given for word in one.split(",") if word.strip())


def _folders(context: object, parameter: object, given: Iterable[str]) -> tuple[Path, ...]:
    """Return the real paths of folders."""
    folders = tuple(Path(word).resolve() for word in _words(context, parameter, given))
    for folder in folders:
        if not folder.is_dir():
            raise click.BadParameter(f"there is no folder {sanitize_line(str(folder))}.")
    return folders


@contextmanager
def _needing(what: str, advice: str) -> Iterator[None]:
    """Exit with an error message if a folder cannot be used."""
    try:
        yield
    except OSError as error:
        place = sanitize_line(str(error.filename or ""))
        _give_up(f"{': '.join(filter(None, (what, place, error.strerror)))}. {advice}")


def _give_up(reason: str, code: ExitCode = ExitCode.ERROR) -> NoReturn:
    say(reason)
    sys.exit(code)


def _unknown(context: click.Context, name: str, otherwise: str) -> click.UsageError:
    """Say of an unknown command or option what serves for it, if it is one of gemini-cli's."""
    from tui.engine.settings.prohibitions import key_table  # noqa: PLC0415 - for an error alone

    serving = key_table()["command_line"].get(name)
    return click.UsageError(f"gemdeck has no {name}: {serving}." if serving else otherwise, context)


class _Group(click.Group):
    """Does nothing where nothing could be read of it, and loads a command when it is used."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(context, args)
        except click.NoSuchOption as error:
            raise _unknown(context, error.option_name, error.format_message()) from error

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:  # noqa: ANN401 - ditto
        if args[0] not in _COMMANDS and not context.resilient_parsing:
            words = f"There is no command {sanitize_line(args[0], 60)}. {_ASKING}"
            raise _unknown(context, args[0], words)
        return super().resolve_command(context, args)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, function = _COMMANDS[name].partition(":")
        command: click.Command = getattr(import_module(module), function)
        return command

    def main(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the library's
        if problem := output_problem():
            _give_up(f"{problem}, so nothing was run.")
        shield_path()
        if any(name.endswith("_COMPLETE") for name in os.environ):
            from tui.cli.command import offer_plain_words  # noqa: PLC0415 - for a shell alone

            offer_plain_words()
        return super().main(*arguments, **options)


def _refuse_options(context: click.Context) -> None:
    """Refuse options before a command, since they would have no effect."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in {"debug", "trace"}:  # of what commands do, too
            continue
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            words = f"{parameter.opts[-1]} has no effect before {context.invoked_subcommand}."
            raise click.UsageError(words)


def _is_fed() -> bool:
    """Return whether standard input is a pipe, a socket or a file: ``git diff | gemdeck``."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode if sys.stdin is not None else 0
    except (OSError, ValueError):  # it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _refuse_yolo() -> None:
    """End with a sentence where the settings forbid ``--yolo``."""
    from tui.cli.settings import load  # noqa: PLC0415 - no other start reads them twice

    if place := load().no_yolo:
        _give_up(f"--yolo is forbidden by {place}", ExitCode.BAD_SETTINGS)


def _prepare_terminal() -> None:
    """Prepare for the screen; exit with an error message if there is no terminal."""
    streams = sys.stdin, sys.stdout, sys.stderr
    has_input, has_output, has_canvas = (one is not None and one.isatty() for one in streams)
    if has_input and has_output and not has_canvas:  # on which Textual draws
        click.echo("gemdeck draws on stderr; start it without redirecting stderr.")
        sys.exit(ExitCode.NO_INPUT)
    if not (has_input and has_output):
        click.echo("gemdeck needs a terminal; use -p TEXT to run without one.", err=True)
        sys.exit(ExitCode.NO_INPUT)
    # Textual reads it on import: the milliseconds after which an escape byte counts as the key Esc.
    # Its default of 100 makes Esc feel slow.
    os.environ.setdefault("ESCDELAY", "40")


@click.group(
    cls=_Group,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
)
@_message("-p", "--prompt", help="Send one message without a screen and print the answer.")
@_message("-i", "--prompt-interactive", help="Open the screen and send this message.")
@click.option(
    "-o",
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    help="Output format of -p: text, unless output.format in your settings is json; stream-json "
    "prints one object per line as things happen.",
)
@click.option(
    "--allowed-tools",
    metavar="SERVER.TOOL,…",
    multiple=True,
    callback=_words,
    help="Tools that -p may run; SERVER alone allows all its tools. All others are denied.",
)
@click.option(
    "--allowed-mcp-server-names",
    "allowed_servers",
    metavar="SERVER,…",
    multiple=True,
    callback=_words,
    help="Start only these servers; -p may run all their tools.",
)
@trust_option
@click.option(
    "--include-directories",
    "more_folders",
    metavar="DIR,…",
    multiple=True,
    callback=_folders,
    help="Additional folders for servers to work in.",
)
@click.option(
    "--approval-mode",
    type=click.Choice(["default", "yolo"]),
    help="default: tools that you have allowed run without asking; yolo: all do, except those that "
    "a rule denies.",
)
@click.option(
    "--yolo",
    is_flag=True,
    help="Run all tools without asking, except those that a rule denies. Dangerous.",
)
@click.option(
    "--wait",
    "server_patience",
    metavar="SECONDS",
    type=click.FloatRange(0, MAX_WAIT),
    help="Longest time that -p waits for servers to start; 30 unless the settings override it.",
)
@click.option(
    "--max-turns",
    "max_steps",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    help="Maximum number of requests to the model per turn.",
)
@click.option(
    "--max-cost",
    metavar="AMOUNT",
    type=click.FloatRange(0, MAX_PRICE, min_open=True),
    help="Maximum cost of all model requests of this run, in the currency of gemdeck.prices.",
)
@click.option(
    "-r",
    "--resume",
    is_flag=False,
    flag_value=LATEST,
    metavar="[ID]",
    help="Resume the latest session of this folder, or the one whose ID starts or ends with ID.",
)
@click.option("--save", is_flag=True, help="Save the turn of -p as a session for --resume.")
@click.option("--private", is_flag=True, help="Do not save this conversation to disk.")
@click.option("-m", "--model", metavar="NAME", callback=_checked_model, help="The model to use.")
@profile_option
@click.option("--demo", is_flag=True, help="Use the offline demo model and the demo server.")
@trace_option
@click.option(
    "--debug",
    is_flag=True,
    is_eager=True,
    help="Log handshakes and server output, and print the path of the log.",
)
@click.version_option(__version__, prog_name="gemdeck", help="Print the version.")
@click.pass_context
def main(  # noqa: PLR0913 - one for each option that is not the engine's
    context: click.Context,
    /,
    prompt: str | None,
    prompt_interactive: str | None,
    output_format: str | None,
    *,
    approval_mode: str | None,
    yolo: bool,
    allowed_tools: tuple[str, ...],
    allowed_servers: tuple[str, ...],
    debug: bool,
    **given: Any,  # noqa: ANN401 - fields of `EngineOptions`
) -> None:
    """Chat with Gemini and use the tools of your MCP servers in the terminal.

    Reads mcpServers from .gemini/settings.json in your home and in this folder, and from a few
    other files that `gemdeck help settings` lists. Without a Gemini key, the screen opens an
    offline demo, and -p exits with code 41 unless --demo is given.
    """
    if prompt is None and prompt_interactive is None and _is_fed():
        prompt = ""
    with _needing("cannot open the current folder", "Change to another folder (cd)."):
        folder = Path.cwd()
    with _needing("cannot use the state folder", "Set GEMDECK_HOME to a writable folder."):
        state_dir()
        log_dir()
    if debug:
        say(f"log file: {sanitize_line(str(log_dir() / LOG_NAME))}")
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        if release():
            sys.exit(ExitCode.CANCELLED)
        return
    if prompt is not None and prompt_interactive is not None:
        raise click.UsageError("-p runs without a screen and -i with one; use one of them.")
    if given["resume"] == "":  # such as an unset variable of a script
        raise click.UsageError("--resume: an ID must not be empty.")
    if yolo and approval_mode == "default":
        raise click.UsageError("--yolo and --approval-mode default cannot be combined.")
    if given["save"] and given["private"]:
        raise click.UsageError("--save and --private cannot be combined.")
    options = EngineOptions(
        folder,
        allowed_tools=(*allowed_tools, *allowed_servers),
        allows_all=yolo or approval_mode == "yolo",
        names_mode=yolo or approval_mode is not None,
        only_servers=frozenset(allowed_servers) or None,
        **given,
    )
    gc.disable()  # what is imported lives as long as the process: looking for garbage only delays
    # each branch imports what it needs: a headless run must not load Textual
    if prompt is not None:
        from tui.cli.headless import run_headless  # noqa: PLC0415

        gc.freeze()
        gc.enable()
        sys.exit(run_headless(options, prompt, output=output_format, debug=debug))
    if options.allows_all:
        _refuse_yolo()
    _prepare_terminal()
    from tui.compose import SIGNAL_EXIT_BASE, run_deck  # noqa: PLC0415

    if number := release():
        sys.exit(SIGNAL_EXIT_BASE + number)
    sys.exit(run_deck(options, first_message=prompt_interactive or "", debug=debug))
