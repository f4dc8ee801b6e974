"""Puts a server's program into a sandbox, by bubblewrap.

What is inside sees the system read-only, a home and a temporary folder of its own in memory, no
other process, and what `Sandbox` gives it. The opened folder is writable, except for what other
programs run or obey there. Of those names only what is there when the first server starts is
protected: a mount over a missing one would leave an empty file in the folder, and one that appears
later may be a server's trap for the next.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from tui.engine.definitions.bubblewrap import BWRAP, options, places, sandbox_problem
from tui.engine.definitions.definition import Sandbox, ServerDefinition
from tui.engine.definitions.programs import fetches, find_program
from tui.engine.files.paths import cache_dir, extensions_folder, shown_path
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.stdio.process import Invocation
from tui.engine.mcp.transports.stdio.start_errors import shebang

_CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl"})
_CACHES: Final = {"XDG_CACHE_HOME": "cache", "XDG_DATA_HOME": "data", "npm_config_cache": "npm"}
_LEFT_OUT: Final = re.compile(
    r"XDG_\w+_(?:HOME|DIR)|(?:BUN|DENO|NPM|PIPX|UV)_\w+|TE?MP|TMPDIR"
    r"|DBUS_\w+|SSH_A\w+|GPG_AGENT_INFO|(?:WAYLAND_)?DISPLAY|XAUTHORITY",
    re.IGNORECASE,
)
"""Inherited variables that lead to what is not there."""

_LOADER: Final = re.compile(r"LD_\w+|GLIBC_TUNABLES")
"""Variables by which a program would be run in bwrap itself, before there is a sandbox."""

_INSTALLED: Final = ("lib", "lib64", "libexec", "pyvenv.cfg")
"""What tells the prefix of an installation from a folder that has a `bin`."""

_Given = tuple[str, Path]


class Sandboxes:
    """What all sandboxes of a run share. Blocks; several threads may use it.

    Args:
        home: The user's home.
        state: The state folder, or None.
    """

    def __init__(self, home: Path, state: Path | None) -> None:
        self._home, self._state = home, state
        self._protected: dict[Path, frozenset[Path]] = {}

    @cached_property
    def _private(self) -> tuple[Path, ...]:
        """The home, then what no sandbox may get a part of, after following links."""
        every = self._home, self._state, cache_dir(), *places("private", self._home)
        return tuple(Path(os.path.realpath(place)) for place in every if place is not None)

    def refusal(self, path: Path) -> str:
        """Say why no sandbox may get a file or folder; "" where one may."""
        real, (home, *private) = Path(os.path.realpath(path)), self._private
        if home.is_relative_to(real):
            return "it contains your whole home"
        if extensions_folder(home) in real.parents:
            return ""
        for place in private:
            if real.is_relative_to(place) or place.is_relative_to(real):
                return f"it gives access to {shown_path(place, home)}"
        return ""

    def sandboxed(
        self,
        invocation: Invocation,
        sandbox: Sandbox,
        definition: ServerDefinition,
        workspaces: Iterable[Path],
    ) -> Invocation:
        """Return what starts the same in a sandbox.

        Args:
            invocation: What would start without.
            sandbox: What the server gets.
            definition: The server.
            workspaces: The opened folders.

        Raises:
            ServerError: If there is no sandbox here, or it asks for what none may get.
        """
        reason, advice = sandbox_problem()
        if reason:
            raise _refused(f"cannot run in a sandbox: {reason}", advice)
        program, launch = invocation.arguments[0], definition.launch
        if {Path(program).name, Path(os.path.realpath(program)).name} & _CONTAINERS:
            reason = "no sandbox holds a container: the socket that starts one gives root"
            raise _refused(reason, "Set `sandbox` of the entry to false, or start another program.")
        environment = {
            name: value
            for name, value in invocation.environment.items()
            if not _LEFT_OUT.fullmatch(name) or name in launch.env or name.upper() in sandbox.env
        }
        given: list[_Given] = [
            ("--ro-bind", place) for place in self._installation(program, environment)
        ]
        if fetches(launch.command, launch.args):
            own = self._own_cache(definition)
            environment = {name: str(own / at) for name, at in _CACHES.items()} | environment
            given.append(("--bind", own))
        inside = () if definition.is_outside else tuple(workspaces)
        if definition.is_outside and invocation.folder != launch.cwd:
            given.append(("--bind", invocation.folder))
        named = [*self._named(sandbox)]
        narrower = [one for one in named if not set(inside).isdisjoint(one[1].parents)]
        given += (one for one in named if one not in narrower)
        given += (one for folder in inside for one in self._workspace(folder))
        given += narrower
        self._check_folder(invocation.folder, (path for _, path in given))
        loader = {name: environment.pop(name) for name in [*environment] if _LOADER.match(name)}
        arguments = [shutil.which(BWRAP) or BWRAP, *options("apart")]
        arguments += () if sandbox.network else ("--unshare-net",)
        resolver = (os.path.realpath("/etc/resolv.conf"),) if sandbox.network else ()
        for place in (*places("system", self._home), *resolver):
            arguments += ("--ro-bind-try", str(place), str(place))
        arguments += options("fresh", self._home)
        for kind, path in given:
            arguments += (kind, str(path), str(path))
        for name, value in loader.items():
            arguments += ("--setenv", name, value)
        arguments += ("--remount-ro", "/", "--chdir", str(invocation.folder), "--")
        whole = (*arguments, *invocation.arguments)
        return replace(invocation, arguments=whole, environment=environment)

    def _named(self, sandbox: Sandbox) -> Iterator[_Given]:
        """Yield what the entry gives; what it can change comes last and wins."""
        read = ((path, "read", "--ro-bind") for path in sandbox.read)
        for path, key, kind in (*read, *((path, "write", "--bind") for path in sandbox.write)):
            shown, words = shown_path(path, self._home), self.refusal(path)
            if words:
                advice = f"Name only what it needs in `{key}`."
                raise _refused(f"its sandbox cannot be given {shown}: {words}", advice)
            if not path.exists():
                reason = f"its sandbox is to be given what does not exist: {shown}"
                raise _refused(reason, f"Create it, or correct `{key}`.")
            yield kind, path

    def _workspace(self, folder: Path) -> Iterator[_Given]:
        """Yield an opened folder and what is read-only in it; a home is not given."""
        if self.refusal(folder):
            return
        named = places("protected", folder)
        there = [at for at in named if at.exists() and not at.is_symlink()]
        known = self._protected.setdefault(folder, frozenset(there))
        yield "--bind", folder
        yield from (("--ro-bind", at) for at in there if at in known)

    def _check_folder(self, folder: Path, given: Iterable[Path]) -> None:
        """Refuse a working directory that there would not be."""
        at = Path(os.path.realpath(folder))
        there = map(os.path.realpath, (*places("system", self._home), *given))
        if at != self._private[0] and not any(map(at.is_relative_to, there)):
            advice = "Add it to `read` or `write` of the sandbox."
            raise _refused(f"its working directory is not in its sandbox: {at}", advice)

    def _own_cache(self, definition: ServerDefinition) -> Path:
        """Return where a server that fetches its program keeps it: no other server runs that."""
        name = re.sub(r"\W", "_", definition.id)[:40]
        own = cache_dir() / "sandboxes" / f"{name}-{definition.fingerprint[:16]}"
        for folder in (own.parent, own):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return own

    def _installation(self, program: str, environment: Mapping[str, str]) -> Iterable[Path]:
        """Find what a program outside the system needs of its own: its prefix, or it alone.

        Links are followed one by one, and a script's interpreter as well: a virtual environment
        leads to the Python that it was made with.
        """
        found: dict[Path, None] = {}
        seen: set[Path] = set()
        waiting = [Path(program)]
        while waiting:
            path = waiting.pop()
            is_program = path.is_file() and os.access(path, os.X_OK)
            if path in seen or not is_program or self.refusal(path):
                continue
            seen.add(path)
            if not any(map(path.is_relative_to, places("system", self._home))):
                prefix = path.parent.parent
                is_shared = prefix == self._home / ".local" or self.refusal(prefix)
                is_own = path.parent.name == "bin" and not is_shared
                is_own = is_own and any((prefix / name).exists() for name in _INSTALLED)
                is_own = is_own and not (prefix / ".git").exists()  # somebody's project
                found[prefix if is_own else path] = None
            if path.is_symlink():
                target = os.path.normpath(path.parent / path.readlink())
                waiting += (Path(target), Path(os.path.realpath(path)))
            elif (interpreter := _interpreter(path, environment)) is not None:
                waiting.append(Path(interpreter))
        return found


def _refused(reason: str, advice: str) -> ServerError:
    return ServerError(reason, advice, permanent=True)


def _interpreter(path: Path, environment: Mapping[str, str]) -> str | None:
    """Return the program in the ``#!`` line of a script, or None."""
    try:
        words = os.fsdecode(shebang(str(path))).split()
    except OSError:
        return None
    if words[1:] and Path(words[0]).name == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return find_program(names[0], environment, path.parent) if names else None
    return words[0] if words else None
