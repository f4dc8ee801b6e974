"""What servers run of the guarded folders: where they start, and the opened folder."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from tui.engine.definitions.command_files import named_files
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.folder_code import code_folders, starts_installed
from tui.engine.definitions.folder_files import (
    FolderFile,
    FolderFiles,
    changed_files,
    file_head,
)
from tui.engine.definitions.known_programs import variables_of
from tui.engine.definitions.programs import guarded_folders, projects_above
from tui.model.servers import Origin

_DATABASE: Final = b"SQLite format 3\0"
_DATABASES: Final = frozenset({".db", ".sqlite", ".sqlite3"})


class ServerCode:
    """Finds the files of the guarded folders that consent to servers binds. Blocks.

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
        self._guards: dict[Path, tuple[FolderFiles, FolderFiles]] = {}

    def find(self, server: ServerDefinition, program: str) -> tuple[FolderFile, ...]:
        """Find the program, where it lies there, and what the entry names.

        Args:
            server: The server with all its references filled in.
            program: The file that its command means, if one was found.
        """
        start = server.cwd if server.cwd is not None else self._folder
        is_projects = server.origin is Origin.PROJECT
        known = replace(server, program=program)
        if not server.command or not (
            is_projects or code_folders(known, self._folder, self._home, self._environ)
        ):
            return ()  # what waits for no yes has none that a file could bind
        is_own = starts_installed(server, start, self._home)
        guarded, programs = self._guard(self._folder if is_own else start)
        env = variables_of(server, self._environ)
        words = (server.command, *server.args)
        found = named_files(words, program, env, start, guarded)
        by_name = not is_projects and Path(server.command).name == server.command
        named = (programs if by_name else guarded).look(program) if program else None
        if named is not None:
            found = (named, *(file for file in found if file.path != named.path))
        only_path = (server.developed or (not is_projects and _is_database(f)) for f in found)
        return tuple(
            FolderFile(file.path, None, "") if is_path else file
            for file, is_path in zip(found, only_path, strict=True)
        )

    def _guard(self, start: Path) -> tuple[FolderFiles, FolderFiles]:
        """Return what looks at files of the guarded folders, and at programs found by a name.

        Programs in the home are the user's own.
        """
        if start not in self._guards:
            folders = (self._folder, start)
            projects = (above for one in folders for above in projects_above(one))
            around = guarded_folders(projects, self._home)
            self._guards[start] = (
                self._files.within((*folders, *around)),
                self._files.within(guarded_folders(folders, self._home)),
            )
        return self._guards[start]


def changed_code(
    server: ServerDefinition, environ: Mapping[str, str], folder: Path, home: Path
) -> Iterator[str]:
    """Return the files that a server's entry names and that are not as its fingerprint covers them.

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
    yield from (one.path for one in now if one.path not in known)


def _is_database(file: FolderFile) -> bool:
    """Return whether a file is a database, which a server that is told to use it changes."""
    path = Path(file.path)
    return path.suffix in _DATABASES and file_head(str(path), len(_DATABASE)) == _DATABASE
