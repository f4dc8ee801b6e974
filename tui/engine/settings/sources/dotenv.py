"""Files of variables: the user's, an extension's, and that of an opened folder."""

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dotenv import dotenv_values

from tui.engine.definitions.definition import SettingsProblem
from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.settings.sources.source import FOLDER_NAME, shown_path
from tui.text import sanitize_line

FILE_NAME: Final = ".env"

MAX_FILE: Final = 64 * 1024
"""Largest file that is read, in bytes."""

MAX_VARIABLES: Final = 1_000
"""Variables that one file may set."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def dotenv_files(folder: Path) -> tuple[Path, ...]:
    """List where the file may be; the first that exists counts. Folders above are not looked at."""
    return (folder / FOLDER_NAME / FILE_NAME, folder / FILE_NAME)


def user_variables(home: Path) -> Path:
    """Return the user's own file, as gemini-cli has it."""
    return home / FOLDER_NAME / FILE_NAME


def read_dotenv(folder: Path, home: Path, problems: list[SettingsProblem]) -> Mapping[str, str]:
    """Read the variables of a folder's ``.env``: nothing is expanded, and nothing of it is set.

    There are none where there is no file that can be used, with a problem where there is one.
    """
    for path in dotenv_files(folder):
        if leads_out(path, folder, home, problems):
            return _NONE
        if (found := read_variables(path, home, problems)) is not None:
            return found
    return _NONE


def read_variables(
    path: Path, home: Path, problems: list[SettingsProblem]
) -> Mapping[str, str] | None:
    """Read one file of variables; None where there is none. One that is unfit sets nothing."""
    try:
        return parse_dotenv(read_regular(path, MAX_FILE).decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        reason = "not UTF-8 text"
    except (OSError, ValueError, UnfitFileError) as error:
        reason = sanitize_line(getattr(error, "strerror", None) or str(error))
    problems.append(SettingsProblem(shown_path(path, home), 0, "", f"{reason}; it was not used"))
    return _NONE


def leads_out(path: Path, folder: Path, home: Path, problems: list[SettingsProblem]) -> bool:
    """Return whether a folder's file links outside the folder; if so, add a problem.

    Otherwise a folder could have the user's own files read and sent on. Blocks.
    """
    real, place = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if place in real.parents:
        return False
    if path.exists():
        message = "links to a file outside the folder; it was not read"
        problems.append(SettingsProblem(shown_path(path, home), 0, "", message))
    return True


def parse_dotenv(text: str) -> Mapping[str, str]:
    """Return the variables that a text sets; invalid lines are ignored."""
    found = dotenv_values(stream=io.StringIO(text), interpolate=False)
    kept = {
        name: value
        for name, value in found.items()
        if value is not None and _NAME.fullmatch(name) and "\0" not in value
    }
    return MappingProxyType(dict(list(kept.items())[:MAX_VARIABLES]))
