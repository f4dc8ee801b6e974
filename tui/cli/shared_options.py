"""The options that the screen, -p and all commands that start servers have."""

from pathlib import Path

import click

from tui.cli.output import say
from tui.text import sanitize_line


def _trace(context: click.Context, _parameter: click.Parameter, file: Path | None) -> None:
    """Refuse a file that is no trace; say where it is if that was asked for.

    Before a command or after it, it is the same option: its value is the root's.
    """
    if file is None:
        return
    from tui.engine.mcp.wire.trace import begin_trace  # noqa: PLC0415 - no other start needs it

    file = file.absolute()
    try:
        begin_trace(file)
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be used: {error.strerror}.") from error
    given = context.find_root().params
    given["trace"] = file
    if given.get("debug"):
        say(f"trace file: {sanitize_line(str(file))}")


trace_option = click.option(
    "--trace",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_trace,
    expose_value=False,
    help="Record the messages to and from servers in FILE, as JSON lines.",
)

trust_option = click.option(
    "--trust-folder",
    "trusted_folders",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Trust this folder for this run only; DIR is its real path.",
)


def _known_profile(context: click.Context, _parameter: object, name: str | None) -> str | None:
    """Refuse a name that no profile has, unless the settings cannot be read; that is said later."""
    if name is None or context.resilient_parsing:  # it completes, and reads nothing of the folder
        return None
    from tui.cli.settings import load  # noqa: PLC0415 - no other start reads them twice

    settings = load()
    known = settings.gemdeck.profiles
    if name not in known and not any(problem.fatal for problem in settings.problems):
        words = f"there is no profile {name}; your settings have: {', '.join(known) or 'none'}."
        raise click.BadParameter(sanitize_line(words))
    return name


profile_option = click.option(
    "--profile",
    metavar="NAME",
    callback=_known_profile,
    help="Use only the servers and tools of this profile (from your settings).",
)

own_option = click.option(
    "--own", is_flag=True, help="Start separate servers, even where an open gemdeck runs them."
)
