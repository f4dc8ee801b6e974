"""bubblewrap, which makes sandboxes on Linux without privileges: whether it can, and how."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from tui.text import sanitize_line

BWRAP: Final = "bwrap"
"""Its program."""

MEMORY: Final = 512 * 1024 * 1024
"""Bytes of each folder in memory."""

PROBE_TIMEOUT: Final = 10.0
"""Seconds for finding out whether there can be a sandbox; usually some hundredths."""

APART: Final = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
"""What every sandbox is apart from."""

_INSTALL: Final = "Install the package bubblewrap, or set `sandbox` to false."
_ALLOW: Final = (
    "Allow bwrap unprivileged user namespaces (kernel.unprivileged_userns_clone=1; on Ubuntu an "
    "AppArmor profile for it), or set `sandbox` to false."
)


@cache
def sandbox_problem() -> tuple[str, str]:
    """Say why no sandbox can be had, and what to do; nothing where one can. Blocks once per run."""
    if sys.platform != "linux":
        return "only Linux has one", "Set `sandbox` to false."
    if (program := shutil.which(BWRAP)) is None:
        return "bubblewrap (bwrap) is not installed", _INSTALL
    tried = (*APART, "--unshare-net", "--ro-bind", "/", "/", *fresh_folders(Path("/tmp")))  # noqa: S108
    try:
        subprocess.run(  # noqa: S603 - the system's own program
            (program, *tried, "--", program, "--version"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT,
            check=True,
            env={},
        )
    except subprocess.CalledProcessError as error:
        words = error.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return sanitize_line(f"this system does not let bwrap make one ({words})", 300), _ALLOW
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not run ({type(error).__name__})", _ALLOW
    return "", ""


def fresh_folders(home: Path) -> tuple[str, ...]:
    """Return the options for what is new in a sandbox: processes, devices, folders in memory."""
    memory = ("--size", str(MEMORY), "--tmpfs")
    return (
        *("--proc", "/proc", "--dev", "/dev", *memory, "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
        # where gemdeck runs as root, these would be open to the server
        *("--ro-bind-try", "/proc/sys", "/proc/sys"),
        *("--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger"),
        *(*memory, "/tmp", "--dir", "/run", "--tmpfs", "/var", "--symlink", "/tmp", "/var/tmp"),  # noqa: S108
        *("--remount-ro", "/var", *memory, str(home)),
    )
