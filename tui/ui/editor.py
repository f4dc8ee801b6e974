"""Runs the user's editor in the terminal, in place of the deck."""

import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from textual.app import App, SuspendNotSupported

FALLBACKS: Final = ("nano", "vim", "vi")
"""Editors to try where neither VISUAL nor EDITOR names one."""

_TAKE_A_LINE: Final = frozenset({"nano", "vi", "vim", "nvim", "emacs", "micro", "joe", "kak"})


def editor_command(path: Path, line: int) -> list[str]:
    """Return the command that opens a file, at a line where the editor is known to take one.

    Raises:
        ValueError: If there is no editor, or EDITOR cannot be read.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    command = shlex.split(named) or [name for name in FALLBACKS if shutil.which(name)][:1]
    if not command:
        raise ValueError("EDITOR names no program, and there is no nano or vi.")
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

    Raises:
        ValueError: If there is no editor that can be run here.
    """
    command = editor_command(path, line)
    try:
        with app.suspend(), app.batch_update():
            await asyncio.to_thread(subprocess.run, command, check=False)
    except OSError as error:
        raise ValueError(f"{command[0]} cannot be run: {error.strerror}.") from error
    except SuspendNotSupported as error:
        raise ValueError("An editor cannot be opened in this terminal.") from error
    app.refresh()
