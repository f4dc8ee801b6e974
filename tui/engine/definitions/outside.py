"""The user's own servers outside the opened folder: which need it, where and with what they start.

What needs the folder is read off the text of an entry alone: no file is looked for, so that no
clone can make a server wait, or start, by what it holds.
"""

import contextlib
import errno
import json
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from stat import S_IFDIR
from typing import Final
from urllib.parse import unquote

from tui.engine.definitions.definition import Launch, ServerDefinition
from tui.engine.definitions.programs import (
    FETCHERS,
    FULL_PATH,
    guarded_folders,
    is_within,
    search_path,
)
from tui.engine.files.atomic import remove_stale, temporary_folder
from tui.engine.files.paths import APP_NAME, shown_path
from tui.engine.logs.redaction import is_secret_name, masked_words
from tui.text import sanitize_line

OUTSIDE: Final = "outside"
"""The folder of all start folders, in the state folder."""

NO_START_FOLDER: Final = "gemdeck has no private folder outside it"
"""Why a server waits that could start outside."""

MAX_NAME: Final = 40
"""Characters of a server's name in that of its start folder."""

MAX_PATH: Final = 4_096
"""Longest path that the system takes, in bytes."""

MAX_REASON: Final = 120
"""Characters of a word that is quoted in a reason."""

_SEPARATORS: Final = re.compile(r"""[\s=:,;'"`|&<>()\[\]{}!]|@(?=[/~.])""")
_FILE_URL: Final = re.compile(r"\bfile:(?://(?:localhost)?)?(?=/)", re.IGNORECASE)
_ADDRESS: Final = re.compile(
    r"""\b(?:https?://(?!/|[^\s/]*%2F)[^\s,;'"]*"""
    r"""|[\w+.-]{1,20}://(?!/|[^\s/]*%2F)[^\s,;'"?#]*)""",
    re.IGNORECASE,
)
"""What names no place of this machine, as a socket's address does in the place of a host; what a
database's address asks for may."""

_QUOTES: Final = re.compile(r"""["'\\]""")
"""What a shell takes out of a word."""

_FLAG: Final = re.compile(r"-[\w-]*(?=[/~]|\.{1,2}/)|-\w(?=\w)")
"""A flag with its value, as in ``-fFILE``."""

_RELATIVE: Final = re.compile(r"\.{1,2}(?:/|$)|\.[\w-]+/")
_FILE: Final = re.compile(
    r"\.env|\w[\w./+-]*\.(?:py|pyz|[cm]?[jt]s|[jt]sx|sh|bash|zsh|rb|php|lua|jar|wasm|toml|jsonc?"
    r"|ya?ml|ini|cfg|conf|env|xml|sql|db|sqlite3?|csv)"
)
"""A relative word that is a script or another file, by its end."""

_LINE: Final = re.compile(r"[\"']|[^\s/]+\s")
"""The beginning of a command that is a whole line, or in quotes: outside it leads nowhere."""

_WORKING: Final = re.compile(r"\$(?:PWD\b|\{PWD\W)")
_PARTS_OF_ENTRY: Final = ("command", "args", "env", "cwd", "headersCommand")
_SEARCH_LISTS: Final = frozenset(
    {"PATH", "PYTHONPATH", "NODE_PATH", "CLASSPATH", "GOPATH", "PERL5LIB", "RUBYLIB"}
    | {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"}
)
"""Variables with folders to search, of which a bare name is a relative one."""

_SHELLS_OWN: Final = frozenset({"PWD", "OLDPWD", "INIT_CWD"})
"""Variables that say where a shell or a runner is or was."""


class _Places:
    """Tells what lies in the opened folder, by its name and after following links. Blocks.

    Args:
        folder: The opened folder. The home, and what contains it, hold the user's own files: what
            names a place there by its whole path needs no yes.
        home: The user's home.
        start: The folder that relative words count from; None for the opened one.
    """

    def __init__(self, folder: Path, home: Path, start: Path | None = None) -> None:
        self.guarded = guarded_folders((folder,), home)
        self._home, self._start = home, start
        self._beginnings = tuple(f"{one}{os.sep}" for one in self.guarded)
        self._places = {_identity(str(one)) for one in self.guarded} - {None}
        self._known: dict[str, bool] = {}
        names = map(str, (folder, *self.guarded))
        self._joined = 1 + max(len(_SEPARATORS.findall(name)) for name in names)

    def has(self, path: Path) -> bool:
        """Return whether a path leads into the folder or through it, on the way that links take.

        So does one that has ``..`` behind a link, and is read without following that, and one that
        calls the folder by another name.
        """
        return any(map(self._leads_in, {str(path), os.path.normpath(path)}))

    def _leads_in(self, path: str) -> bool:
        at = os.sep
        for part in Path(path).parts[1:] if len(path) <= MAX_PATH else ():
            at = os.path.dirname(at) if part == ".." else os.path.join(at, part)  # noqa: PTH118, PTH120
            if os.path.islink(at):  # noqa: PTH114 - it never raises
                at = os.path.realpath(at)
            if at not in self._known:
                is_named = f"{at}{os.sep}".startswith(self._beginnings)
                self._known[at] = is_named or _identity(at) in self._places
            if self._known[at]:
                return True
        return False

    def named_in(self, text: str, *, ends_as_file: bool = False) -> str:
        """Return what a word names in the folder, as shown; or ""."""
        for piece in dict.fromkeys(self._pieces(text)):
            if piece.startswith(("/", "~")):
                path = Path(os.path.expanduser(piece))  # noqa: PTH111 - it never raises
                if self.has(self._home / piece[2:] if piece[:2] in {"~", "~/"} else path):
                    return shown_path(path, self._home)
            elif self._start is not None:
                if self.has(self._start / piece):
                    return piece
            elif _RELATIVE.match(piece) or (ends_as_file and _FILE.fullmatch(piece)):
                return piece
        return ""

    def named_by(self, name: str, value: str) -> str:
        """Return what the value of a variable names in the folder, as shown; or ""."""
        is_list = name in _SEARCH_LISTS and self._start is None
        parts = value.split(os.pathsep) if is_list else ()
        bare = (part for part in parts if part and not part.startswith(("/", "~")))
        return self.named_in(value) or next(bare, "")

    def _pieces(self, text: str) -> Iterator[str]:
        """Yield all that could be a path in a word: in flags, lists, scripts, addresses of files.

        A name with blanks or other separators is found in a whole word, and the folder's anywhere.
        What a shell puts together of quoted parts, and what an address encodes, is read as well.
        """
        plain = _ADDRESS.sub(" ", _FILE_URL.sub(" ", text.partition("\0")[0]))
        for one in dict.fromkeys((plain, unquote(plain), _QUOTES.sub("", plain))):
            cuts = [cut.span() for cut in _SEPARATORS.finditer(one)]
            ends = [*(begin for begin, _ in cuts), len(one)]
            parts = (
                one[start:end]
                for number, start in enumerate((0, *(end for _, end in cuts)))
                for end in ends[number : number + self._joined]
            )
            for piece in filter(None, (one, *parts)):
                yield piece
                if flag := _FLAG.match(piece):
                    yield piece[flag.end() :]


def _identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file or folder from others, whatever it is called."""
    try:
        found = os.stat(path)  # noqa: PTH116 - hot
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def needs_folder(one: ServerDefinition, folder: Path, home: Path) -> str:
    """Say why a user's server needs the opened folder; "" where it does not. Blocks.

    Its command, arguments, variables, certificates and working folder are read as text, after
    expansion. A path counts that leads into the folder or through it, with its links followed or
    not, and so does a relative one; where the entry starts elsewhere, relative paths count from
    there. What contains the opened folder, such as the home as an argument, is the user's word.
    """
    entry, launch = one.entry, one.launch
    written = {key: entry.written[key] for key in _PARTS_OF_ENTRY if key in entry.written}
    if _WORKING.search(json.dumps(written, default=str)):
        return "it uses ${PWD}"
    cwd = (entry.preview.whole if entry.preview is not None else entry.written).get("cwd")
    is_relative = isinstance(cwd, str) and cwd and not cwd.startswith(("/", "~"))
    if is_relative or (launch.cwd is not None and not launch.cwd.is_absolute()):
        return "its cwd is relative"
    places = _Places(folder, home, launch.cwd)
    if launch.cwd is not None and places.has(launch.cwd):
        return f"its cwd is {shown_path(launch.cwd, home)}"
    if found := _named_command(launch, places, home):
        return sanitize_line(f"its command is {found}", MAX_REASON)
    tls = one.endpoint.tls
    files = (tls.ca_file, tls.cert_file, tls.key_file) if tls is not None else ()
    for file in filter(None, files):
        if found := places.named_in(file):
            return sanitize_line(f"its tls refers to {found}", MAX_REASON)
    masked = masked_words((launch.command, *launch.args), one.secrets)[1:]
    is_package = Path(launch.command).name in FETCHERS
    for number, word in enumerate(launch.args, 1):
        ends_as_file = not (is_package and not word.startswith("-"))
        is_package = is_package and ends_as_file
        if found := places.named_in(word, ends_as_file=ends_as_file):
            is_shown = masked[number - 1 : number] == [word]
            verb = "is" if found == word else "refers to"
            what = f"{verb} {found}" if is_shown else "refers to a path in it"
            return sanitize_line(f"argument {number} {what}", MAX_REASON)
    for path in (*launch.sandbox.read, *launch.sandbox.write) if launch.sandbox else ():
        if places.has(path):
            return sanitize_line(f"its sandbox gives {shown_path(path, home)}", MAX_REASON)
    for name, value in launch.env.items():
        if found := places.named_by(name, value):
            what = "a path in it" if is_secret_name(name) or value in one.secrets else found
            return sanitize_line(f"the variable {name} refers to {what}", MAX_REASON)
    return ""


def _named_command(launch: Launch, places: _Places, home: Path) -> str:
    """Return the command of a server if it lies in the opened folder, or is found only there."""
    command = launch.command
    is_relative = "/" in command and launch.cwd is None and not command.startswith(("/", "~"))
    if is_relative and not _LINE.match(command):
        return command
    if launch.program and places.has(Path(launch.program)):
        return shown_path(Path(launch.program), home)
    return places.named_in(command) if "/" in command and not is_relative else ""


def without_folder(
    environ: Mapping[str, str], folder: Path, home: Path
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Leave out variables that name the opened folder or have a relative part. Blocks.

    Of ``PATH`` only such parts go. ``PWD`` goes as well, unnamed: who starts a program sets it.

    Returns:
        The others, and the names of those that were left out or lost a part.
    """
    places = _Places(folder, home)
    empty = {n for n, v in environ.items() if n in _SEARCH_LISTS and "" in v.split(os.pathsep)}
    kept = {
        name: value
        for name, value in environ.items()
        if name not in {"PATH", *_SHELLS_OWN, *empty} and not places.named_by(name, value)
    }
    if path := search_path(environ.get("PATH", ""), places.guarded):
        kept["PATH"] = path  # an empty one would mean the working folder
    full = environ.get(FULL_PATH, environ.get("PATH", ""))
    gone = environ.keys() - kept.keys() - {"PATH", "PWD", FULL_PATH}
    gone |= {"PATH"} if search_path(full, places.guarded) != full else set()
    return kept, tuple(sorted(gone))


def outside_places(state: Path | None, folder: Path, home: Path) -> tuple[Path, ...]:
    """Return where start folders may lie, best first; without one, servers wait. Blocks.

    They lie in no opened folder, except in a home that is opened itself: all in there is the
    user's own.
    """
    if state is None:
        return ()
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    more = (runtime / APP_NAME / OUTSIDE,) if _is_ours(runtime) else ()
    real, places = Path(os.path.realpath(folder)), (state / OUTSIDE, *more)
    away = tuple(one for one in places if not is_within(one, folder))
    return away or (places[:1] if real == Path(os.path.realpath(home)) else ())


def _is_ours(folder: Path) -> bool:
    """Return whether this is a folder, and no link, that only the user can enter."""
    try:
        found = folder.lstat() if folder.is_absolute() else None
    except (OSError, ValueError):
        return False
    return (
        found is not None and found.st_uid == os.geteuid() and found.st_mode & 0o170077 == S_IFDIR
    )


class Outside:
    """Makes the empty folders in which servers start outside the opened one. Blocks.

    Each is new, and in a folder of this run alone: none is shared with another gemdeck, and nothing
    has to be emptied. What killed runs left goes once it is stale.

    Args:
        folder: The opened folder.
        home: The user's home.
        state: The state folder, or None for no servers outside.
    """

    def __init__(self, folder: Path, home: Path, state: Path | None) -> None:
        self._folders, self._state = (folder, home), state
        self._stack, self._turn = contextlib.ExitStack(), threading.Lock()
        self._own: Path | None = None

    @cached_property
    def variables(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """What servers may inherit outside, and the names of what is left out of that."""
        return without_folder(os.environ, *self._folders)

    def start_folder(self, server: str) -> Path:
        """Make a folder for one start of a server, which nobody else can enter.

        Raises:
            OSError: If there is no place for it.
        """
        with self._turn:
            if self._own is None or not self._own.is_dir():
                self._own = self._begin()
        name = re.sub(r"\W", "_", server)[:MAX_NAME]
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._own))

    def drop(self, folder: Path | None) -> None:
        """Remove a folder, if it is a start folder of this run."""
        if folder is not None and folder.parent == self._own:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        self._stack.close()

    def _begin(self) -> Path:
        """Make the folder of this run, in the first place that can be used."""
        problem = OSError(errno.ENOENT, NO_START_FOLDER)
        for place in outside_places(self._state, *self._folders):
            try:
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                if _is_ours(place):
                    remove_stale(place, time.time())
                    return self._stack.enter_context(temporary_folder(place))
                problem = OSError(errno.ENOTDIR, f"{place} is not a private folder")
            except OSError as error:
                problem = error
        raise problem
