"""Detect commands that would run code of the folder they start in.

Package runners and build tools take code and configuration from there, interpreters take modules
and relative scripts. In doubt the answer is yes: the user is then asked once for that folder.
"""

import copy
import hashlib
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import FolderFile, ServerDefinition
from tui.engine.definitions.known_programs import (
    BUILDS,
    CONTAINERS,
    MANIFESTS,
    NODES,
    RUNNERS,
    interpreters_in,
    is_loader_variable,
    pieces_of,
    program_names,
    variables_of,
)
from tui.engine.definitions.programs import guarded_folders, is_within, projects_above
from tui.engine.files.atomic import read_regular
from tui.model.bounded_json import JsonError, read_object
from tui.model.servers import Origin

FOLDER_NAME: Final = ".gemini"
"""gemini-cli's folder, in a home and in a project."""

MAX_HASHED: Final = 16 * 1024 * 1024
"""Largest file whose content is hashed, in bytes; of a larger one the state stands for it."""

_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

MAX_FILES: Final = 64
"""Files that are watched for one server."""

MAX_NAMES: Final = 200
"""Parts of an entry that are looked at as paths."""

MAX_PLACES: Final = 3
"""Folders in which these parts are looked for: the one it starts in, and those that it names."""

MAX_MANIFEST: Final = 256 * 1024
"""Largest ``package.json`` that is read, in bytes."""

_ENDINGS: Final = ("", ".js", ".cjs", ".mjs", ".ts")
"""What node tries the name of a script with, and what runs TypeScript."""

_FROM: Final = frozenset({"--from", "--spec", "--with"})
"""Flags by which the Python tool runners take a package of a folder; they obey no other one."""

_MODULE: Final = re.compile(r"(?:-\w*?m|--module=?)(.*)")

_QUIET_FLAGS: Final[Mapping[str, str]] = {
    "python": r"-[bBdEIOPqsSuvxR]+|-W[\w:]*|-X[a-oq-z]\w*(?:=\w+)?",
    "node": r"--(?:no|trace|max|stack)-[\w=-]+|--enable-source-maps|--expose[-_]gc"
    r"|--use-system-ca|--disable-warning=\w+|--dns-result-order=\w+",
    "java": r"-jar|-Xm[nsx]\d+\w?|-Xss\d+\w?|-XX:[+-](?!Read)\w+|-XX:\w+=\d+\w?|-server|-ea"
    r"|-D(?!java\.|jdk\.|sun\.)[\w.]+=[\w-]*|-D[\w.]+=(?:/|true|false|\d+)",
}
"""Per interpreter, flags that load no code. After any other one we do not know what runs."""

_OWN_FOLDER: Final = frozenset(
    {"python", "node", "ruby", "perl", "java"}
    | {"sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish", "csh", "tcsh"}
)
"""Interpreters that look for what a script loads beside it, not where they start."""

_ALIASES: Final = {"pythonw": "python", "pypy": "python", "nodejs": "node"}

_WRAPPERS: Final = frozenset(
    {"env", "sudo", "doas", "su", "runuser", "nice", "ionice", "nohup", "timeout", "gtimeout"}
    | {"stdbuf", "setsid", "time", "xargs", "script", "watch", "flock", "taskset", "chrt"}
    | {"chroot", "unshare", "nsenter", "bwrap", "firejail", "systemd-run", "dbus-run-session"}
    | {"xvfb-run", "caffeinate", "arch", "command", "exec", "prlimit", "setpriv", "capsh"}
    | {"strace", "ltrace", "valgrind", "proot", "fakeroot", "rlwrap", "unbuffer", "winpty"}
    | {"wine", "parallel", "entr", "watchexec", "ssh-agent", "setarch", "linux32", "linux64"}
    | {"coreutils", "toybox", "op", "doppler", "infisical"}
)
"""Programs that run another one, which their arguments name."""

_CODE_FLAGS: Final = frozenset(
    {"-m", "-c", "-e", "-r", "--require", "--import", "--loader", "--plugin-dir"}
)
_CODE_MARK: Final = re.compile(r"exec[\w-]*=|!")
"""What precedes a command within an argument, as in ``--checkpoint-action=exec=./x``."""

_OPTION_VARIABLES: Final[Mapping[str, str]] = {
    "NODE_OPTIONS": "node",
    "JAVA_TOOL_OPTIONS": "java",
    "JDK_JAVA_OPTIONS": "java",
    "_JAVA_OPTIONS": "java",
}
"""Variables that hold flags, and whose."""

_ADDRESS_VARIABLES: Final = frozenset(
    {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NODE_TLS_REJECT_UNAUTHORIZED"}
    | {"UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "DOCKER_HOST"}
)
"""Variables that change whom a program talks to, not what it loads from a folder."""

_BLANKS: Final = re.compile(r"\s")
_SEPARATORS: Final = re.compile(r"[\s=:,;]+")

_DATA_NAME: Final = re.compile(
    r"(?:.*_)?(?:MEMORY|DATA|DATABASE|DB|STORE|STORAGE|CACHE|LOG|STATE|HISTORY)(?:_(?:FILE|PATH))*"
)
"""A variable that says where a server keeps its own data."""

_DATA: Final = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".log", ".db", ".sqlite", ".sqlite3")

_DATABASE: Final = b"SQLite format 3\0"
_DATABASES: Final = frozenset({".db", ".sqlite", ".sqlite3"})


class FolderFiles:
    """Looks at files of the guarded folders, and hashes each once. Blocks on the file system."""

    def __init__(self) -> None:
        self._seen: dict[Path, FolderFile] = {}
        self._places: tuple[str, ...] = ()

    def within(self, folders: Sequence[Path]) -> "FolderFiles":
        """Return the same that looks into these folders only."""
        other = copy.copy(self)
        places = dict.fromkeys(place for one in folders for place in (one, _real(one)))
        other._places = tuple(str(place).rstrip(os.sep) for place in places)
        return other

    def look(self, named: str) -> FolderFile | None:
        """Look at a file; None where no regular file lies there, or outside the folders."""
        try:
            found = os.stat(named)  # noqa: PTH116  (a tenth of the time, for many names)
        except (OSError, ValueError):
            return None
        path = Path(named)
        if ".." in path.parts:  # leads where the system would follow it to
            path = _real(path)
        if not stat.S_ISREG(found.st_mode) or not self._contains(path):
            return None
        if path not in self._seen:
            self._seen[path] = FolderFile(str(path), _content(path, found))
        return self._seen[path]

    def has_folder(self, path: Path) -> bool:
        """Return whether a folder lies there, within the folders."""
        return os.path.isdir(path) and self._contains(path)  # noqa: PTH112  (never raises)

    def _contains(self, path: Path) -> bool:
        """Return whether a path is in the folders, literally or after following links."""
        return self._has(path) or self._has(_real(path))

    def _has(self, path: Path) -> bool:
        text = str(path)
        return any(text == place or text.startswith(place + os.sep) for place in self._places)


def _content(path: Path, found: os.stat_result) -> str:
    """Hash a file; what grows meanwhile is read to its old end."""
    if found.st_size <= MAX_HASHED:
        try:
            with open(os.open(path, _OPEN), "rb") as file:  # noqa: PTH123  (no path)
                return hashlib.sha256(file.read(found.st_size)).hexdigest()
        except OSError:
            pass
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def _real(path: Path) -> Path:
    """Follow the links in a path; one that cannot exist stays as it is."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path


def named_parts(words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return all in arguments and variables that could be a path, one more than is looked at."""
    values = (value for name, value in env.items() if name.upper() != "PATH")
    pieces = (piece for word in (*words, *values) for piece in pieces_of(word))
    return list(itertools.islice(dict.fromkeys(pieces), MAX_NAMES + 1))


def named_files(
    words: Sequence[str], program: str, env: Mapping[str, str], start: Path, files: FolderFiles
) -> tuple[FolderFile, ...]:
    """Find the files that an entry names, and what its runner is known to obey. Blocks.

    Args:
        words: The program as the entry names it, and its arguments.
        program: The file that it means, if one was found.
        env: Its variables, and those that load code into it.
        start: The folder where it starts.
        files: Looks at files of the guarded folders.
    """
    parts = named_parts(words[1:], env)[:MAX_NAMES]
    names = program_names(words[0], program, os.path.realpath(program) if program else "")
    is_contained = bool(names & CONTAINERS) and not BUILDS & set(words)
    # a program may run another one that its arguments name; in a container it finds nothing here
    names = set() if is_contained else names | program_names(*parts)
    if names & {"uvx", "pipx"} and _FROM & {word.partition("=")[0] for word in words}:
        names |= {"uv"}
    folders = [place for part in parts if files.has_folder(place := start / part)]
    places = list(dict.fromkeys((start, *folders)))[:MAX_PLACES]
    manifests = {manifest for name in names for manifest in MANIFESTS.get(name, ())}
    modules = [name.replace(".", "/") for name in _modules(words)]
    is_node = bool(names & NODES) or "NODE_OPTIONS" in env
    endings = _ENDINGS if is_node else ("",)
    inside = [
        *(f"{part}{ending}" for part in parts for ending in endings),
        *(f"{module}{ending}" for module in modules for ending in (".py", "/__main__.py")),
        *sorted(manifests),
    ]
    starts = map(str, places)
    paths = [os.path.join(place, name) for place in starts for name in inside]  # noqa: PTH118
    climbing = [(path, os.path.normpath(path)) for path in paths if os.pardir in path]
    paths += [short for path, short in climbing if _real(Path(short)) != _real(Path(path))]
    if is_node or interpreters_in(names):
        named = (place for place in places if place in folders)
        paths += [str(path) for place in named for path in _mains(place, files)]
    found = {one.path: one for path in paths if (one := files.look(path)) is not None}
    return tuple(found.values())[:MAX_FILES]


def _modules(words: Sequence[str]) -> Iterator[str]:
    """Return what stands behind ``-m``."""
    for word, behind in itertools.pairwise((*words, "")):
        if match := _MODULE.fullmatch(word):
            name = match[1] or behind
            if "/" not in name and all(name.split(".")):
                yield name


def _mains(folder: Path, files: FolderFiles) -> Iterator[Path]:
    """Return what an interpreter runs of a folder that it is given."""
    yield folder / "__main__.py"
    manifest = folder / "package.json"
    yield manifest
    main = _main_in(manifest) if files.look(str(manifest)) else ""
    names = (main, f"{main}/index", "index")
    yield from (folder / f"{name}{ending}" for name in names for ending in _ENDINGS)


def _main_in(manifest: Path) -> str:
    """Return what a ``package.json`` names as its main file; empty if it cannot be read."""
    try:
        main = read_object(read_regular(manifest, MAX_MANIFEST), last_key_counts=True).get("main")
    except (OSError, JsonError):
        return ""
    return main if isinstance(main, str) else ""


def extensions_folder(home: Path) -> Path:
    """Return the folder in which gemini-cli keeps a user's extensions."""
    return home / FOLDER_NAME / "extensions"


def code_folders(
    one: ServerDefinition, opened: Path, home: Path, environ: Mapping[str, str]
) -> tuple[Path, ...]:
    """Return the folders whose code a user's server would run, which waits for a yes. Blocks.

    These are the opened folder and, where that is another one, the folder that it starts in,
    unless the user installed that as an extension.

    Args:
        one: The server. Of the variables that it inherits those count that load code into it.
        opened: The opened folder.
        home: The user's home.
        environ: The environment that it inherits from.
    """
    start = one.cwd if one.cwd is not None else opened
    opened = Path(os.path.realpath(opened))
    is_inside = is_within(os.path.realpath(start), opened)  # a link in it leads elsewhere
    env = variables_of(one, environ)
    folders = [] if starts_installed(one, start, home) else [opened if is_inside else start]
    if not is_inside and reaches_into(opened, start, one, env):
        folders.insert(0, opened)
    return tuple(folder for folder in folders if runs_code_of(folder, start, one, env))


def starts_installed(server: ServerDefinition, start: Path, home: Path) -> bool:
    """Return whether a server starts among the extensions, which the user installed. Blocks."""
    installed = os.path.realpath(extensions_folder(home))
    return bool(server.extension) and Path(os.path.realpath(start)).is_relative_to(installed)


def runs_code_of(folder: Path, start: Path, one: ServerDefinition, env: Mapping[str, str]) -> bool:
    """Return whether a server would run code of a folder where it starts or that it names. Blocks.

    A folder among its arguments is data, unless the program may run that.

    Args:
        folder: The folder.
        start: Where it starts.
        one: The server.
        env: The variables that count, such as those that its entry sets.
    """
    command, args, program = one.command, one.args, one.program
    if any(_loads_code(name, value, folder) for name, value in env.items()):
        return True
    names = program_names(command, program, os.path.realpath(program) if program else "")
    names |= {name.partition(".")[0] for name in names}  # vim.basic
    if _lies_in(command, folder) or _runs(names, program or command, args, folder):
        return True
    if any(_is_file_of(piece, start, folder) for word in args for piece in pieces_of(word)):
        return True
    if names & CONTAINERS:  # what the other words name runs in the container
        return bool(BUILDS & set(args))
    return _names_command(args, folder, is_wrapper=bool(names & _WRAPPERS))


def reaches_into(folder: Path, start: Path, one: ServerDefinition, env: Mapping[str, str]) -> bool:
    """Return whether a server that starts elsewhere names anything in a folder. Blocks."""
    words = (one.command, *one.args, *env.values())
    pieces = {piece for word in words for piece in pieces_of(word)}
    place = Path(os.path.realpath(start))
    return any(is_within(place / piece, folder) for piece in pieces if "\0" not in piece)


def _runs(names: Iterable[str], program: str, args: Sequence[str], folder: Path) -> bool:
    known = set(names)
    if known & RUNNERS or _lies_in(program, folder):
        return True
    interpreters = interpreters_in(known)
    return bool(interpreters) and not any(_has_own_script(i, args, folder) for i in interpreters)


def _names_command(args: Sequence[str], folder: Path, *, is_wrapper: bool) -> bool:
    """Look at each word as if a command began there: which one does depends on the program."""
    for index, word in enumerate(args):
        name, sign, value = word.partition("=")
        if name in _CODE_FLAGS or _CODE_MARK.search(word):
            return True
        if is_wrapper and (_BLANKS.search(word) or (not sign and _lies_in(word, folder))):
            return True
        if sign and _loads_code(name, value, folder):
            return True
        for piece in pieces_of(word):
            if piece.startswith(os.sep) and os.path.isdir(piece):  # noqa: PTH112  (never raises)
                continue  # a folder is no program, whatever it is called
            rest = args[index + 1 :] if piece == word else ()
            if _runs(program_names(piece), "", rest, folder):
                return True
    return False


def _has_own_script(interpreter: str, args: Sequence[str], folder: Path) -> bool:
    """Return whether an interpreter runs a script at an absolute path outside the folder."""
    kind = _ALIASES.get(interpreter, interpreter)
    if kind not in _OWN_FOLDER or (kind == "java" and "-jar" not in args):
        return False
    takes_value = ("-W", "-X") if kind == "python" else ()
    words = iter(args)
    for word in words:
        flag = word + next(words, "") if word in takes_value else word
        if not word.startswith("-"):
            return _is_outside(word, folder)
        if word != "--" and not _is_quiet(kind, flag, folder):
            return False
    return False


def _is_quiet(kind: str, flag: str, folder: Path) -> bool:
    """Return whether a flag of an interpreter loads no code; a path in it must lie outside."""
    name, sign, value = flag.partition("=")
    if sign and all(_is_outside(part, folder) for part in value.split(os.pathsep)):
        flag = f"{name}=/"
    return kind in _QUIET_FLAGS and bool(re.fullmatch(_QUIET_FLAGS[kind], flag))


def _is_outside(path: str, folder: Path) -> bool:
    return Path(path).is_absolute() and not is_within(path, folder)


def _lies_in(program: str, folder: Path) -> bool:
    """Return whether a program is a relative path, or lies in the folder; a bare name does not."""
    path = Path(program)
    if path.is_absolute():
        return is_within(path, folder)
    return "/" in program or "\\" in program or program in {".", ".."}


def _is_file_of(piece: str, start: Path, folder: Path) -> bool:
    """Return whether a part of an argument names a file of the folder."""
    ways = (start / piece, Path(os.path.normpath(start / piece)))
    return any(os.path.isfile(way) and is_within(way, folder) for way in ways)  # noqa: PTH113


def _loads_code(name: str, value: str, folder: Path) -> bool:
    """Return whether a variable may make a program load code of the folder it starts in."""
    upper = name.upper()
    if not is_loader_variable(name) or upper in _ADDRESS_VARIABLES:
        return False
    if kind := _OPTION_VARIABLES.get(upper):
        return not all(_is_quiet(kind, word, folder) for word in value.split())
    if upper.endswith("PATH"):
        parts = re.split(r"[:;]", value)
    else:
        parts = [part for part in _SEPARATORS.split(value) if part]
    return not all(_is_outside(part, folder) for part in parts)


class ServerCode:
    """Finds the files of the guarded folders that consent to servers binds. Blocks.

    Args:
        environ: The environment that servers inherit from.
        folder: The opened folder.
        home: The user's home.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path, home: Path) -> None:
        self._environ = environ
        self._folder = folder
        self._home = home
        self._files = FolderFiles()
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
        data = set() if is_projects else _data_of(server, start)
        found = tuple(f for f in found if f.path not in data or os.access(f.path, os.X_OK))
        only_path = (server.developed or (not is_projects and is_database(f)) for f in found)
        return tuple(
            FolderFile(file.path, "") if is_path else file
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
    now = ServerCode(environ, folder, home).find(server, server.program)
    yield from sorted({one.path for one in set(server.files).symmetric_difference(now)})


def _data_of(server: ServerDefinition, start: Path) -> set[str]:
    """Return the files that variables of a user's entry call data, and that nothing else names."""
    named = {str(start / piece) for word in server.args for piece in pieces_of(word)}
    return {
        str(start / value)
        for name, value in server.env.items()
        if _DATA_NAME.fullmatch(name.upper()) and value.endswith(_DATA)
    } - named


def is_database(file: FolderFile) -> bool:
    """Return whether a file is a database, which a server that is told to use it changes."""
    path = Path(file.path)
    if path.suffix not in _DATABASES:
        return False
    try:
        with open(os.open(path, _OPEN), "rb") as opened:  # noqa: PTH123  (no path)
            return opened.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False
