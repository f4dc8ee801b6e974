"""Types the README's commands as they stand, on three kinds of machines.

``python3 -m tests.support.surroundings`` does so with Debian's own Python and pip, in a virtual
environment that is active, and with uv; each has a home and a copy of the sources of its own. The
first command has to end in the demo, which then runs its tool; the second has to run tests. The
machines share nothing, so all are tried at once.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

import psutil

from tests.pty.driving import wait_for_end_of_turn, wait_for_question
from tests.support.terminal import Terminal

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text("utf-8")

PYTHON: Final = "/usr/bin/python3"
"""Debian's own."""

MAX_KEYS: Final = 22
"""Most keys from the demo's first screen to the first result of a tool."""

PATIENCE: Final = 300.0
"""Seconds for one command beside those of the others, what it downloads included."""

FEW: Final = ' -q -n 2 -m "not slow" tests/unit/model'
"""Which tests the second command runs; all of them run elsewhere."""

LEFT_OUT: Final = shutil.ignore_patterns(
    ".git", ".venv", ".*_cache", ".hypothesis", "node_modules", "__pycache__"
)

DROPPED: Final = ("CI", "GEM", "GOOGLE_", "PYTHON", "UV_", "VIRTUAL_ENV", "XDG_")
"""How the names of variables begin that the machine does not have."""


def commands(begins: str) -> list[str]:
    """Return the README's two commands, to install and to test, that begin so."""
    blocks = re.findall(r"^```sh\n(.+)\n```$", README, re.MULTILINE)
    found = [block for block in blocks if block.startswith(f"{begins} ")]
    assert len(found) == 2, f"the README has {len(found)} commands with {begins}"
    return found


def first_words() -> tuple[str, str]:
    """Return what the README says to type in the demo, and the key that answers the question."""
    readme = " ".join(README.split())
    told = re.search(r"Type `([^`]+)`, press Enter, and answer the question with `(.)`", readme)
    assert told is not None, "the README does not say what to type"
    return told[1], told[2]


def debian(_home: Path, _sources: Path) -> tuple[str, list[Path]]:
    """Have nothing beside Debian's own Python and its pip."""
    return "python3", []


def environment(_home: Path, sources: Path) -> tuple[str, list[Path]]:
    """Have an environment that is active, where the command puts its own."""
    return "python3", [make_environment(sources / ".venv", "pip")]


def uv(home: Path, _sources: Path) -> tuple[str, list[Path]]:
    """Have uv, and in the search path the folder in which it puts programs."""
    programs = home / ".local" / "bin"
    programs.mkdir(parents=True)
    (programs / "uv").symlink_to(make_environment(home / "uv", "uv") / "uv")
    return "uv", [programs]


def prepare_pip() -> None:
    """Install Debian's own Python and pip where they are missing, as in an image of Python's."""
    has_python = Path(PYTHON).exists()
    if not has_python or subprocess.run([PYTHON, "-m", "pip", "--version"], check=False).returncode:
        apt = ["apt-get"] if os.geteuid() == 0 else ["sudo", "apt-get"]
        subprocess.run([*apt, "update", "-q"], check=True)
        subprocess.run(
            [*apt, "install", "-qy", "--no-install-recommends", "python3-pip"], check=True
        )


def make_environment(place: Path, package: str) -> Path:
    """Make a virtual environment with one package; give the folder of its programs."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", place], check=True)
    pip = [PYTHON, "-m", "pip", "--python", str(place / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", package], check=True)
    return place / "bin"


def variables(home: Path, programs: list[Path]) -> dict[str, str]:
    """Return the variables of a machine; only what was downloaded is shared with ours."""
    cache = Path.home() / ".cache"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    own = {"HOME": str(home), "PATH": ":".join(map(str, [*programs, "/usr/bin", "/bin"]))}
    for place in programs:
        if (place.parent / "pyvenv.cfg").exists():
            own["VIRTUAL_ENV"] = str(place.parent)
    return {
        **{"PIP_CACHE_DIR": str(cache / "pip"), "UV_CACHE_DIR": str(cache / "uv")},
        **kept,
        **own,
        "TERM": "xterm-256color",
    }


def try_demo(command: str, sources: Path, env: Mapping[str, str]) -> None:
    """Type the first command, and in the demo the sentence of the README."""
    sentence, answer = first_words()
    clean = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in env.items())]
    with Terminal([*clean, "/bin/bash", "--norc", "--noprofile", "-i"], cwd=sources) as terminal:
        terminal.type(f"{command}\r")
        terminal.wait_for("1 ready", PATIENCE)
        terminal.press(*sentence, "enter")
        wait_for_question(terminal)
        terminal.press(answer)
        wait_for_end_of_turn(terminal)
        terminal.press("ctrl+q")
        left = psutil.wait_procs(terminal.descendants(), timeout=10)[1]
    assert not left, "gemdeck does not end"
    assert len([*sentence, "enter", answer]) <= MAX_KEYS


def try_all(prepare: Callable[[Path, Path], tuple[str, list[Path]]], place: Path) -> None:
    """Type both commands on one kind of machine."""
    started = time.monotonic()
    home, sources = place / "home", place / "gemdeck"
    home.mkdir(parents=True)
    shutil.copytree(ROOT, sources, symlinks=True, ignore=LEFT_OUT)
    begins, programs = prepare(home, sources)
    env = variables(home, programs)
    install, test = commands(begins)
    try_demo(install, sources, env)
    manual = "PATH=.venv/bin:$PATH gemdeck help sessions >/dev/null"
    for words in (manual, test + FEW):
        shell = ["/bin/bash", "-ec", words]
        subprocess.run(shell, cwd=sources, env=env, timeout=PATIENCE, check=True)
    print(f"-- {prepare.__name__}: {time.monotonic() - started:.0f} s", flush=True)


def main() -> None:
    """Type the commands on each kind of machine."""
    prepare_pip()
    machines = (debian, environment, uv)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        tried = [pool.submit(try_all, one, Path(folder, one.__name__)) for one in machines]
        for trial in as_completed(tried):
            trial.result()


if __name__ == "__main__":
    main()
