"""What servers run of the guarded folders: where they start, and the opened folder."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from tui.engine.settings.servers.command_files import CommandFiles, command_files
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.engine.settings.servers.folder_files import (
    FolderFile,
    FolderFiles,
    file_head,
    file_state,
)
from tui.engine.settings.servers.known_programs import loading_variables
from tui.engine.settings.servers.programs import guarded_folders, projects_above
from tui.engine.settings.sources.locations import extensions_folder
from tui.model.frozen import dataclass
from tui.model.servers import Origin

_PATH: Final = "PATH"
_DEVELOPED: Final = "its code, because you develop it (gemdeck.developedServers)"
_DATABASE: Final = b"SQLite format 3\0"
_DATABASES: Final = frozenset({".db", ".sqlite", ".sqlite3"})


@dataclass(frozen=True, slots=True)
class _Guard:
    """Looks at the files of guarded folders.

    Attributes:
        files: Those that a command names or leads to.
        programs: Those that it finds by a name: programs in the home are the user's own.
        has_programs: Whether there are folders for these.
    """

    files: FolderFiles
    programs: FolderFiles
    has_programs: bool


class ServerCode:
    """Finds what servers run of the guarded folders. Blocks on the file system.

    Args:
        environ: The environment that servers inherit from.
        folder: The opened folder.
        home: The user's home.
        reads: Whether to hash what files contain.
    """

    def __init__(
        self, environ: Mapping[str, str], folder: Path, home: Path, *, reads: bool = True
    ) -> None:
        self._environ = environ
        self._folder = folder
        self._home = home
        self._files = FolderFiles(reads=reads)
        self._guards: dict[Path, _Guard] = {}

    def find(self, server: ServerDefinition, program: str) -> CommandFiles:
        """Find what a server runs.

        Args:
            server: The server with all its references filled in.
            program: The file that its command means, if one was found.
        """
        if not server.command:
            return CommandFiles()
        start = server.cwd if server.cwd is not None else self._folder
        is_projects = server.origin is Origin.PROJECT
        guard = self._guard(self._folder if starts_installed(server, start, self._home) else start)
        env = loading_variables(
            server.inheritance.of(self._environ, is_small=is_projects), server.env
        )
        if not is_projects and not guard.has_programs:
            env.pop(_PATH, None)
        found = command_files((server.command, *server.args), program, env, start, guard.files)
        is_own = not is_projects and Path(server.command).name == server.command
        among = guard.programs if is_own else guard.files
        named = among.look(Path(program)) if program else None
        if named is not None:
            others = (file for file in found.files if file.path != named.path)
            loaded = f"what {Path(program).name} loads"
            found = CommandFiles((named, *others), (*found.unwatched, loaded))
        return _as_developed(found) if server.developed else _without_databases(found, server)

    def _guard(self, start: Path) -> "_Guard":
        """Return what looks at files of a folder, of the opened one and of their projects."""
        if start not in self._guards:
            folders = (self._folder, start)
            programs = guarded_folders(folders, self._home)
            projects = (above for one in folders for above in projects_above(one))
            around = guarded_folders(projects, self._home)
            self._guards[start] = _Guard(
                self._files.within((*folders, *around)),
                self._files.within(programs),
                bool(programs),
            )
        return self._guards[start]


def starts_installed(server: ServerDefinition, start: Path, home: Path) -> bool:
    """Return whether a server starts among the extensions, which the user installed. Blocks."""
    installed = os.path.realpath(extensions_folder(home))
    return bool(server.extension) and Path(os.path.realpath(start)).is_relative_to(installed)


def changed_code(
    server: ServerDefinition, environ: Mapping[str, str], folder: Path, home: Path
) -> Iterator[str]:
    """Return the files that a server would run and that are not as its fingerprint covers them.

    A package that was too much to watch then is no new one.

    Blocks on the file system.

    Args:
        server: The server as it is to start; without a fingerprint nothing is known of it.
        environ: The environment that it inherits from.
        folder: The opened folder.
        home: The user's home.
    """
    if server.origin is Origin.DEMO or server.developed or not server.fingerprint:
        return  # the bundled servers are gemdeck's own code, wherever that lies
    yield from changed_files(server.files)
    known = {file.path for file in server.files}
    now = ServerCode(environ, folder, home, reads=False).find(server, server.program)
    yield from (one.path for one in now.files if one.path not in known)


def _as_developed(found: CommandFiles) -> CommandFiles:
    """Leave out the content of files; where they lie still counts."""
    files = tuple(FolderFile(file.path, None, "") for file in found.files)
    return CommandFiles(files, (*([_DEVELOPED] if files else []), *found.unwatched))


def _without_databases(found: CommandFiles, server: ServerDefinition) -> CommandFiles:
    """Leave out the content of databases that a user's server is told to use: it changes them."""
    if server.origin is Origin.PROJECT:
        return found
    names = [file.path for file in found.files if file.state is not None and _is_database(file)]
    files = (replace(f, state=None, content="") if f.path in names else f for f in found.files)
    notes = (f"the database {Path(name).name}" for name in names)
    return CommandFiles(tuple(files), (*found.unwatched, *notes))


def _is_database(file: FolderFile) -> bool:
    path = Path(file.path)
    return path.suffix in _DATABASES and file_head(str(path), len(_DATABASE)) == _DATABASE


def changed_files(known: Sequence[FolderFile]) -> Iterator[str]:
    """Return the paths of files that are not as they were, or are new in a package. Blocks."""
    files = FolderFiles(reads=False)
    for one in known:
        if one.members:
            folder = Path(one.path)
            package = files.package(folder).file
            now = {member.path: member.state for member in package.members} if package else {}
            before = {member.path: member.state for member in one.members}
            both = sorted(now.keys() | before.keys())
            yield from (path for path in both if now.get(path) != before.get(path))
        elif one.state is not None and file_state(one.path) != one.state:
            yield one.path
