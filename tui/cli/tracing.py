"""The option ``--trace``, which the screen, -p and all commands that start servers have."""

from pathlib import Path

import click

from tui.cli.output import say
from tui.text import sanitize_line


def _trace(context: click.Context, _parameter: click.Parameter, file: Path | None) -> Path | None:
    """Refuse a file that is no trace; say where it is if that was asked for."""
    if file is None:
        return None
    from tui.engine.files.atomic import UnfitFileError  # noqa: PLC0415 - no other start needs it
    from tui.engine.mcp.wire.trace import read_trace  # noqa: PLC0415 - ditto

    file = file.absolute()
    try:
        read_trace(file)
        file.touch(0o600)
    except UnfitFileError as error:
        raise click.BadParameter(f"{file} is there already, and is {error}.") from error
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {error.strerror}.") from error
    if context.find_root().params.get("debug"):
        say(f"the trace is {sanitize_line(str(file))}")
    return file


trace_option = click.option(
    "--trace",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_trace,
    help="Write what is said with servers to this file, as lines of JSON.",
)
