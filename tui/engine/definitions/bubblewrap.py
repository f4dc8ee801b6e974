"""bubblewrap, which makes sandboxes on Linux without privileges: whether it can, and how."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from tui.text import sanitize_line

BWRAP: Final = "bwrap"
"""Its program."""

MEMORY: Final = 512 * 1024 * 1024
"""Bytes of each folder in memory."""

PROBE_TIMEOUT: Final = 10.0
"""Seconds for finding out whether there can be a sandbox; usually some hundredths."""

_INSTALL: Final = "Install the package bubblewrap, or set `sandbox` to false."
_ALLOW: Final = (
    "Allow bwrap unprivileged user namespaces (kernel.unprivileged_userns_clone=1; on Ubuntu an "
    "AppArmor profile for it), or set `sandbox` to false."
)


@cache
def sandbox_table() -> Mapping[str, Any]:
    """Return ``sandbox.toml``, which says what it holds."""
    return tomllib.loads(Path(__file__).with_name("sandbox.toml").read_text("utf-8"))


@cache
def sandbox_problem() -> tuple[str, str]:
    """Say why no sandbox can be had, and what to do; nothing where one can. Blocks once per run."""
    if sys.platform != "linux":
        return "only Linux has one", "Set `sandbox` to false."
    if (program := shutil.which(BWRAP)) is None:
        return "bubblewrap (bwrap) is not installed", _INSTALL
    bound = "--unshare-net", "--ro-bind", "/", "/", *options("fresh", Path("/tmp"))  # noqa: S108
    try:
        subprocess.run(  # noqa: S603 - the system's own program
            (program, *options("apart"), *bound, "--", program, "--version"),
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


def options(group: str, home: Path | None = None) -> list[str]:
    """Return the options for bwrap of a group, with the home."""
    words: str = sandbox_table()["options"][group]
    return [word.format(home=home, size=MEMORY) for word in words.split()]


def places(kind: str, folder: Path) -> list[Path]:
    """Return the places of a kind; those that are relative are in the folder."""
    return [folder / place for place in sandbox_table()["places"][kind]]
