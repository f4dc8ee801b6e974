"""What a stdio server is started with: a small environment and a program that exists."""

import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tui.engine.servers.failures import ServerError
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.settings.programs import file_state, find_program, search_path

_POSIX_NAMES: Final = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"})
_WINDOWS_NAMES: Final = frozenset(
    {
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    }
)
_LOCALE_PREFIX: Final = "LC_"
_SHELL_FUNCTION_PREFIX: Final = "()"


def server_environment(
    extra: Mapping[str, str], base: Mapping[str, str], avoid: Iterable[Path] = ()
) -> dict[str, str]:
    """Build the environment of a server.

    Nothing is inherited but what a program needs to find its home, its language and other
    programs. In particular no key of the model reaches a server unless its entry names it.

    Args:
        extra: What the server's definition names; it wins.
        base: The environment to inherit from; of its ``PATH`` relative entries are left out.
        avoid: Folders that are left out of that ``PATH`` as well, such as the opened one.
    """
    names = _WINDOWS_NAMES if sys.platform == "win32" else _POSIX_NAMES
    inherited = {
        name: value
        for name, value in base.items()
        if (name in names or name.startswith(_LOCALE_PREFIX))
        and not value.startswith(_SHELL_FUNCTION_PREFIX)
    }
    path = search_path(inherited.pop("PATH", ""), avoid)
    if path:  # an empty one would mean the working folder
        inherited["PATH"] = path
    return inherited | dict(extra)


def resolve_folder(folder: Path | None) -> Path:
    """Give the working folder of a server.

    Raises:
        ServerError: If it does not exist.
    """
    resolved = folder if folder is not None else Path.cwd()
    if not resolved.is_dir():
        raise ServerError(
            f"its working folder does not exist: {resolved}",
            "Correct `cwd` in the settings.",
            permanent=True,
        )
    return resolved


def resolve_program(
    command: str, environment: Mapping[str, str], folder: Path, avoid: Iterable[Path] = ()
) -> str:
    """Find the program of a server, as its own environment and folder would.

    Args:
        command: A name to be looked up, or a path.
        environment: The environment the server gets; its ``PATH`` counts, except for relative
            entries.
        folder: The folder that a relative path starts from.
        avoid: Folders in which no name is looked up, such as the opened one.

    Returns:
        The path of an executable file.

    Raises:
        ServerError: If there is none, or it cannot be executed.
    """
    if Path(command).name != command:
        return _check_path(folder / command, command)
    found = find_program(command, environment, folder, avoid)
    if found is None:
        raise ServerError(
            f"command not found: {command}",
            "Install it, or give its full path as `command` in the settings.",
            permanent=True,
        )
    return found


def own_program(
    definition: ServerDefinition,
    environment: Mapping[str, str],
    folder: Path,
    avoid: Iterable[Path] = (),
) -> str:
    """Give the program of one of the user's servers: the file that its fingerprint covers.

    What was granted to that program must not come to hold for another one that has turned up
    under its name. Other arguments and errors are those of `resolve_program`.

    Raises:
        ServerError: If there is another program of its name by now.
    """
    if definition.program and shutil.which(definition.program):
        return definition.program
    found = resolve_program(definition.command, environment, folder, avoid)
    if definition.program:
        reason = f"its program is not where it was: {definition.program}; now there is {found}"
        raise ServerError(reason, "Restart gemdeck if that is right.", permanent=True)
    return found


def shown_program(definition: ServerDefinition) -> str:
    """Give the program of a project's server: the very file that the user was shown.

    Raises:
        ServerError: If there was none, or it or a file of the folder that its command line
            names is another one by now.
    """
    advice = f"Review the folder again; {definition.source} says what is started."
    if not definition.program:
        raise ServerError(f"command not found: {definition.command}", advice, permanent=True)
    if definition.pinned is not None and file_state(definition.program) != definition.pinned:
        reason = f"its program has changed since it was shown: {definition.program}"
        raise ServerError(reason, advice, permanent=True)
    for file in definition.files:
        if file_state(file.path) != file.state:
            reason = f"a file that it runs has changed since it was shown: {file.path}"
            raise ServerError(reason, advice, permanent=True)
    return definition.program


def _check_path(path: Path, command: str) -> str:
    if path.is_dir():
        raise ServerError(
            f"its command is a folder: {command}", "Name the program in it.", permanent=True
        )
    found = shutil.which(str(path))
    if found is not None:
        return found
    if path.exists():
        raise ServerError(
            f"its command is not executable: {command}", "Make it executable.", permanent=True
        )
    raise ServerError(
        f"command not found: {command}", "Correct `command` in the settings.", permanent=True
    )
