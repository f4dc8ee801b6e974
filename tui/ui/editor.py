"""Runs the user's editor in the terminal, in place of the deck."""

import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from textual.app import App, SuspendNotSupported

FALLBACKS: Final = ("nano", "vim", "vi")
"""Editors to try where neither VISUAL nor EDITOR names one."""

_TAKE_A_LINE: Final = frozenset({"nano", "vi", "vim", "nvim", "emacs", "micro", "joe", "kak"})


def editor_command(path: Path, line: int, environ: Mapping[str, str]) -> list[str]:
    """Return the command that opens a file, at a line where the editor is known to take one.

    Args:
        path: The file.
        line: The line, from 1.
        environ: The variables that the editor gets.

    Raises:
        ValueError: If there is no editor, or EDITOR cannot be read.
    """
    named, places = environ.get("VISUAL") or environ.get("EDITOR") or "", environ.get("PATH")
    found = (name for name in FALLBACKS if shutil.which(name, path=places))
    command = shlex.split(named) or [*found][:1]
    if not command:
        raise ValueError("No editor found: set EDITOR, or install nano or vi.")
    place = [f"+{line}"] if Path(command[0]).name in _TAKE_A_LINE else []
    return [*command, *place, str(path)]


async def edit_text(app: App[Any], text: str) -> str:
    """Let the user edit a text in a file of its own, and return it as it was saved.

    Raises:
        ValueError: If there is no editor that can be run here, or what it saved is no text.
        OSError: If the file cannot be written or read.
    """
    with tempfile.TemporaryDirectory(prefix="gemdeck-") as folder:
        path = Path(folder, "message.md")
        await asyncio.to_thread(path.write_text, text, "utf-8")
        await edit(app, path, text.count("\n") + 1)
        return (await asyncio.to_thread(path.read_text, "utf-8")).removesuffix("\n")


async def edit(app: App[Any], path: Path, line: int) -> None:
    """Let the user edit a file; the servers go on meanwhile, the screen does not.

    The editor starts in the folder of the file, with nothing that names a place in the opened
    folder: some read their settings, and which programs they run, where they start.

    Raises:
        ValueError: If there is no editor that can be run here.
    """
    from tui.engine.definitions.outside import without_folder  # noqa: PLC0415 - on first use

    environ, _ = await asyncio.to_thread(without_folder, os.environ, Path.cwd(), Path.home())
    command, place = editor_command(path, line, environ), path.parent
    run = partial(subprocess.run, command, cwd=place, env={**environ, "PWD": str(place)})
    try:
        with app.suspend(), app.batch_update():
            await asyncio.to_thread(run, check=False)
            await asyncio.sleep(0.01)  # a Ctrl+C from before is the editor's, and comes first
    except OSError as error:
        raise ValueError(f"{command[0]} cannot be run: {error.strerror}.") from error
    except SuspendNotSupported as error:
        raise ValueError("An editor cannot be opened in this terminal.") from error
    app.refresh()
