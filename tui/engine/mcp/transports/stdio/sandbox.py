"""Puts a server's program into a sandbox: bubblewrap, which needs no privileges on Linux.

What is inside sees the system read-only, a home and a temporary folder of its own in memory, no
other process, and what `Sandbox` gives it. The opened folder is writable, except for what other
programs run or obey there. Of those names only what is there when the first server starts is
protected: a mount over a missing one would leave an empty file in the folder, and one that appears
later may be a server's trap for the next.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import Sandbox, ServerDefinition
from tui.engine.definitions.programs import fetches, find_program
from tui.engine.files.paths import GEMINI_FOLDER, cache_dir, extensions_folder, shown_path
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.stdio.process import Invocation
from tui.text import sanitize_line

BWRAP: Final = "bwrap"
"""The program of bubblewrap."""

MEMORY: Final = 512 * 1024 * 1024
"""Bytes of each folder in memory."""

PROBE_TIMEOUT: Final = 10.0
"""Seconds for finding out whether there can be a sandbox; usually hundredths."""

MAX_HEAD: Final = 512
"""Bytes of a script in which its interpreter is looked for."""

PROTECTED: Final = (
    *(".git", GEMINI_FOLDER, ".mcp.json", ".vscode", ".idea", ".cursor", ".claude", ".codex"),
    *(".github", ".husky", ".devcontainer", ".envrc", ".env", ".pre-commit-config.yaml"),
    *("GEMINI.md", "AGENTS.md", "CLAUDE.md", ".npmrc"),
)
"""What programs run or obey in an opened folder: read-only there, unless `write` names it."""

_SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    *("/nix/store", "/gnu/store", "/run/current-system", "/snap"),
)
_PRIVATE: Final = (
    *(".ssh", ".gnupg", ".password-store", ".local/share/keyrings", ".local/share/kwalletd"),
    GEMINI_FOLDER,
)
_SOCKETS: Final = ("/run/docker.sock", "/run/podman", "/run/containerd", "/run/dbus")
_CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl"})
_LEFT_OUT: Final = frozenset(
    {"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "GPG_AGENT_INFO", "SSH_AUTH_SOCK", "SSH_AGENT_PID"}
    | {"TEMP", "TMP", "TMPDIR", "UV_CACHE_DIR", "WAYLAND_DISPLAY", "XAUTHORITY"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}
    | {"NPM_CONFIG_CACHE", "BUN_INSTALL_CACHE_DIR", "DENO_DIR", "PIPX_HOME"}
)
"""Inherited variables that lead to what is not there."""

_CACHES: Final = {
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "npm_config_cache": "npm",
    "UV_CACHE_DIR": "uv",
}
_LOADER: Final = re.compile(r"LD_\w+|GLIBC_TUNABLES")
"""Variables by which a program would be run in bwrap itself, before there is a sandbox."""

_APART: Final = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
_INSTALL: Final = "Install the package bubblewrap, or remove `sandbox` from the entry."
_ALLOW: Final = (
    "Allow unprivileged user namespaces for bwrap (kernel.unprivileged_userns_clone=1, or on "
    "Ubuntu its AppArmor profile), or remove `sandbox` from the entry."
)


class Sandboxes:
    """What all sandboxes of a run share. Blocks; several threads may use it.

    Args:
        home: The user's home.
        state: The state folder, or None.
    """

    def __init__(self, home: Path, state: Path | None) -> None:
        self._home, self._state = home, state
        self._protected: dict[Path, tuple[str, ...]] = {}

    @cached_property
    def problem(self) -> tuple[str, str]:
        """Why no sandbox can be had, and what to do; nothing where one can."""
        if sys.platform != "linux":
            return "only Linux has a sandbox", "Remove `sandbox` from the entry."
        if (program := shutil.which(BWRAP)) is None:
            return "bubblewrap (bwrap) is not installed", _INSTALL
        command = (program, *_APART, "--unshare-net", "--ro-bind", "/", "/", *_folders(self._home))
        try:
            subprocess.run(  # noqa: S603 - the system's own program
                (*command, "--", program, "--version"),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_TIMEOUT,
                check=True,
                env={},
            )
        except subprocess.CalledProcessError as error:
            words = error.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            return sanitize_line(f"this system lets bwrap make none ({words})", 300), _ALLOW
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bwrap does not run ({type(error).__name__})", _ALLOW
        return "", ""

    def refusal(self, path: Path) -> str:
        """Say why no sandbox may get a file or folder; "" where one may."""
        real, home = Path(os.path.realpath(path)), Path(os.path.realpath(self._home))
        if real == home or real in home.parents:
            return "it contains your whole home"
        if Path(os.path.realpath(extensions_folder(home))) in real.parents:
            return ""
        places = [home / name for name in _PRIVATE]
        places += [Path(os.path.realpath(one)) for one in (self._state, cache_dir()) if one]
        for place in (*places, *(Path(os.path.realpath(one)) for one in _SOCKETS)):
            if real == place or real in place.parents or place in real.parents:
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
        reason, advice = self.problem
        if reason:
            raise _refused(f"cannot run in a sandbox: {reason}", advice)
        program = invocation.arguments[0]
        if {Path(program).name, Path(os.path.realpath(program)).name} & _CONTAINERS:
            reason = "no sandbox holds a container: the socket that starts one gives root"
            raise _refused(reason, "Set `sandbox` of the entry to false, or start another program.")
        environment = {
            name: value
            for name, value in invocation.environment.items()
            if name.upper() not in _LEFT_OUT
            or name in definition.launch.env
            or name.upper() in sandbox.env
        }
        given: list[tuple[str, Path]] = [
            ("--ro-bind", place) for place in self._installation(program, environment)
        ]
        if fetches(definition.launch.command, definition.launch.args):
            own = self._own_cache(definition)
            caches = {name: str(own / place) for name, place in _CACHES.items()}
            environment = caches | environment
            given.append(("--bind", own))
        if not definition.is_outside:
            given += (pair for folder in workspaces for pair in self._workspace(folder))
        elif invocation.folder != definition.launch.cwd:
            given.append(("--bind", invocation.folder))
        given += self._named(sandbox)
        at = os.path.realpath(invocation.folder)
        visible = (self._home, *map(Path, _SYSTEM), *(path for _, path in given))
        if not any(Path(at).is_relative_to(os.path.realpath(place)) for place in visible):
            advice = "Add that folder to `read` or `write` of its sandbox."
            raise _refused(f"its working directory is not in its sandbox: {at}", advice)
        loader = {name: environment.pop(name) for name in [*environment] if _LOADER.match(name)}
        arguments = [shutil.which(BWRAP) or BWRAP, *_APART]
        arguments += () if sandbox.network else ("--unshare-net",)
        for place in _SYSTEM:
            arguments += ("--ro-bind-try", place, place)
        resolver = os.path.realpath("/etc/resolv.conf")
        if sandbox.network and not resolver.startswith("/etc/"):
            arguments += ("--ro-bind-try", resolver, resolver)
        arguments += _folders(self._home)
        for kind, path in given:
            arguments += (kind, str(path), str(path))
        for name, value in loader.items():
            arguments += ("--setenv", name, value)
        arguments += ("--remount-ro", "/", "--chdir", str(invocation.folder), "--")
        return replace(
            invocation,
            arguments=(*arguments, *invocation.arguments),
            environment=environment,
        )

    def _named(self, sandbox: Sandbox) -> Iterator[tuple[str, Path]]:
        """Yield what the entry gives; what it can change comes last and wins."""
        for kind, key, paths in (
            ("--ro-bind", "read", sandbox.read),
            ("--bind", "write", sandbox.write),
        ):
            for path in paths:
                shown = shown_path(path, self._home)
                if words := self.refusal(path):
                    advice = f"Name a folder in it that contains no secrets in `{key}`."
                    raise _refused(f"its sandbox may not get {shown}: {words}", advice)
                if not path.exists():
                    advice = f"Correct `{key}` of its sandbox, or create it."
                    raise _refused(f"its sandbox needs a file that does not exist: {shown}", advice)
                yield kind, path

    def _workspace(self, folder: Path) -> Iterator[tuple[str, Path]]:
        """Yield an opened folder and what is read-only in it; a home is not given."""
        if self.refusal(folder):
            return
        if folder not in self._protected:
            names = [one for one in PROTECTED if (folder / one).exists()]
            self._protected[folder] = tuple(one for one in names if not (folder / one).is_symlink())
        yield "--bind", folder
        for name in self._protected[folder]:
            if (folder / name).exists():
                yield "--ro-bind", folder / name

    def _own_cache(self, definition: ServerDefinition) -> Path:
        """Return where a server that fetches its program keeps it: no other server runs that."""
        name = re.sub(r"\W", "_", definition.id)[:40]
        own = cache_dir() / "sandboxes" / f"{name}-{definition.fingerprint[:16]}"
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        return own

    def _installation(self, program: str, environment: Mapping[str, str]) -> Iterator[Path]:
        """Yield what a program outside the system needs of its own: its prefix, or it alone.

        Links are followed one by one, and a script's interpreter as well: a virtual environment
        leads to the Python that it was made with.
        """
        seen: set[str] = set()
        waiting = [program]
        while waiting:
            at = waiting.pop()
            if at in seen or not Path(at).is_absolute():
                continue
            seen.add(at)
            path = Path(at)
            if not any(path.is_relative_to(place) for place in _SYSTEM):
                prefix = path.parent.parent
                is_apart = path.parent.name == "bin" and not self._is_shared(prefix)
                yield prefix if is_apart else path
            if path.is_symlink():
                waiting += (str(path.parent / path.readlink()), os.path.realpath(path))
            elif (interpreter := _interpreter(path, environment)) is not None:
                waiting.append(interpreter)

    def _is_shared(self, prefix: Path) -> bool:
        """Return whether a prefix holds more than one program's own files."""
        return prefix in {Path("/"), self._home / ".local"} or bool(self.refusal(prefix))


def _refused(reason: str, advice: str) -> ServerError:
    return ServerError(reason, advice, permanent=True)


def _folders(home: Path) -> tuple[str, ...]:
    """Return what is new in a sandbox: processes, devices, and folders in memory."""
    memory = ("--size", str(MEMORY), "--tmpfs")
    proc = ("/proc/sys", "/proc/sysrq-trigger")  # open to root, where gemdeck runs as root
    return (
        *("--proc", "/proc", *(word for at in proc for word in ("--ro-bind-try", at, at))),
        *("--dev", "/dev", *memory, "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
        *(*memory, "/tmp", "--dir", "/run", "--tmpfs", "/var", "--symlink", "/tmp", "/var/tmp"),  # noqa: S108
        *("--remount-ro", "/var", *memory, str(home)),
    )


def _interpreter(path: Path, environment: Mapping[str, str]) -> str | None:
    """Return the program in the ``#!`` line of a script, or None."""
    try:
        with path.open("rb") as file:
            head = file.read(MAX_HEAD)
    except OSError:
        return None
    first, _, _ = head[2:].partition(b"\n")
    words = os.fsdecode(first).split() if head.startswith(b"#!") else []
    if words[1:] and Path(words[0]).name == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return find_program(names[0], environment, path.parent) if names else None
    return words[0] if words else None
