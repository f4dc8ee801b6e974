"""The ``gemdeck`` command: the screen by default, one turn without it with ``-p``."""

import gc
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tui import __version__
from tui.cli.exit_codes import ExitCode
from tui.cli.output import output_problem, say
from tui.engine.files.paths import LOG_NAME, log_dir, state_dir
from tui.engine.options import EngineOptions
from tui.model.settings_rules import MAX_WAIT, check_model_name
from tui.text import sanitize_line

ESCAPE_DELAY = "40"
"""Milliseconds after which an escape byte counts as the Esc key."""

EPILOG = """\b
Exit codes: 0 done, 1 the turn failed, 2 wrong usage, 41 no key, 42 no prompt,
52 unusable settings, 53 too many tool calls, 130 cancelled.
"""


def _checked_model(
    _context: click.Context, _parameter: click.Parameter, name: str | None
) -> str | None:
    """Refuse an invalid model name."""
    if name is None:
        return None
    try:
        return check_model_name(name.strip())
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _check_state_folder() -> None:
    """Exit with an error message if the state folder cannot be used."""
    try:
        state_dir()
        log_dir()
    except OSError as error:
        place = sanitize_line(str(error.filename or ""))
        reason = f"the state folder cannot be used: {place}: {error.strerror}."
        say(f"{reason} Set GEMDECK_HOME to a writable folder.")
        sys.exit(ExitCode.ERROR)


class _Group(click.Group):
    """Does nothing where nothing could be read of it, and loads a command when it is used."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return ["mcp"]

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name != "mcp":
            return None
        from tui.cli.mcp import mcp  # noqa: PLC0415

        return mcp

    def main(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the library's
        if problem := output_problem():
            say(f"{problem}, so nothing was run.")
            sys.exit(ExitCode.ERROR)
        return super().main(*arguments, **options)


def _refuse_options(context: click.Context) -> None:
    """Refuse options before a command, since they would have no effect."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            words = f"{parameter.opts[-1]} has no effect before {context.invoked_subcommand}."
            raise click.UsageError(words)


def _opened_folder() -> Path:
    """Return the working folder; exit with an error message if it is gone."""
    try:
        return Path.cwd()
    except OSError as error:
        reason = f"the folder you are in cannot be opened: {error.strerror}."
        say(f"{reason} Change to another one (cd).")
        sys.exit(ExitCode.ERROR)


def _prepare_terminal() -> None:
    """Prepare for the screen; exit with an error message if there is no terminal."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        click.echo("gemdeck needs a terminal; use -p TEXT to run without one.", err=True)
        sys.exit(ExitCode.NO_INPUT)
    # Textual reads it on import. Its default of 100 ms makes Esc feel slow.
    os.environ.setdefault("ESCDELAY", ESCAPE_DELAY)


@click.group(
    cls=_Group,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
)
@click.option(
    "-p", "--prompt", metavar="TEXT", help="Run one turn without a screen and print the answer."
)
@click.option(
    "-o",
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format of -p.",
)
@click.option(
    "--allowed-tools",
    metavar="SERVER.TOOL,…",
    default="",
    help="Tools that -p may run; SERVER alone allows all its tools. Others are denied.",
)
@click.option(
    "--trust-folder",
    "trusted_folders",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Apply the settings of this folder in this run; DIR is its real path.",
)
@click.option(
    "--yolo",
    is_flag=True,
    help="Run all tools without asking, except those a rule denies. Dangerous.",
)
@click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(0, MAX_WAIT),
    help="Most seconds that -p waits for starting servers; 30 unless the settings say otherwise.",
)
@click.option("-m", "--model", metavar="NAME", callback=_checked_model, help="The model to use.")
@click.option("--demo", is_flag=True, help="Use the offline demo model and the bundled servers.")
@click.option("--debug", is_flag=True, help="Log handshakes and servers' output, and say where.")
@click.version_option(__version__, prog_name="gemdeck")
@click.pass_context
def main(  # noqa: PLR0913 - one for each option
    context: click.Context,
    prompt: str | None,
    output_format: str,
    allowed_tools: str,
    model: str | None,
    trusted_folders: tuple[Path, ...],
    wait: float | None,
    *,
    yolo: bool,
    demo: bool,
    debug: bool,
) -> None:
    """Chat with Gemini and the tools of your MCP servers, in the terminal.

    Reads mcpServers from .gemini/settings.json in your home and in this folder, and from a few
    other files that the README lists. Without a Gemini key the screen starts in an offline
    demo; -p ends with 41 unless --demo is given.
    """
    folder = _opened_folder()
    _check_state_folder()
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    options = EngineOptions(
        folder,
        demo=demo,
        model=model,
        server_patience=wait,
        trusted_folders=trusted_folders,
        allows_all=yolo,
    )
    if debug:
        say(f"the log is {sanitize_line(str(log_dir() / LOG_NAME))}")
    gc.disable()  # what is imported lives as long as the process: looking for garbage only delays
    # each branch imports what it needs: a headless run must not load Textual
    if prompt is not None:
        from tui.cli.headless import run_headless  # noqa: PLC0415

        gc.enable()
        allowed = tuple(name.strip() for name in allowed_tools.split(",") if name.strip())
        options = replace(options, allowed_tools=allowed)
        as_json = output_format == "json"
        sys.exit(run_headless(options, prompt, as_json=as_json, debug=debug))
    _prepare_terminal()
    from tui.compose import run_deck  # noqa: PLC0415

    sys.exit(run_deck(options, debug=debug))
