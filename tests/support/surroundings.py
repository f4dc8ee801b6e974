"""Types the README's commands as they stand, on several kinds of machines.

``python3 -m tests.support.surroundings`` does so with Debian's own Python and pip, in a virtual
environment that is active, with uv and with pipx; each has a fresh home, which no search path
mentions, and a copy of the sources. The first command has to open the demo, which then runs its
tool; the second has to run tests. One more machine builds the release as CONTRIBUTING.md says, and
runs the demo from nothing but the wheel, installed by uv and by pip. The machines share nothing, so
all are tried at once; names of machines as arguments try only these.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

import psutil

from tests.pty.driving import wait_for_end_of_turn, wait_for_question
from tests.support.terminal import Terminal
from tui import __version__

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING: Final = (ROOT / "CONTRIBUTING.md").read_text("utf-8")

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

Machine = Callable[[Path, Path], tuple[list[str], list[Path]]]
"""Prepares a machine with its home and sources; gives what to type, and folders of programs."""

DROPPED: Final = ("CI", "GEM", "GOOGLE_", "PYTHON", "UV_", "VIRTUAL_ENV", "XDG_")
"""How the names of variables begin that the machine does not have."""


def commands(program: str, page: str = README) -> list[str]:
    """Return the commands of a page that begin with a program, without comments."""
    blocks = "\n".join(re.findall(r"^ *```sh\n(.+?)^ *```$", page, re.MULTILINE | re.DOTALL))
    return [line.strip() for line in re.findall(rf"^ *({program} [^#\n]+)", blocks, re.MULTILINE)]


def first_words() -> tuple[str, str]:
    """Return what the README says to type in the demo, and the key that answers the question."""
    readme = " ".join(README.split())
    told = re.search(r"Type `([^`]+)`, press Enter, then press `(.)` to allow it", readme)
    assert told is not None, "the README does not say what to type"
    return told[1], told[2]


def debian(_home: Path, _sources: Path) -> tuple[list[str], list[Path]]:
    """Have nothing beside Debian's own Python and its pip."""
    return commands("python3"), []


def environment(_home: Path, sources: Path) -> tuple[list[str], list[Path]]:
    """Have an environment that is active, where the command puts its own."""
    return commands("python3"), [make_environment(sources / ".venv", "pip")]


def uv(home: Path, _sources: Path) -> tuple[list[str], list[Path]]:
    """Have uv, as an administrator installs it."""
    return [*commands("uvx"), *commands("uv")], [programs(home, "uv", "uv", "uvx")]


def pipx(home: Path, _sources: Path) -> tuple[list[str], list[Path]]:
    """Have pipx, as an administrator installs it."""
    return commands("pipx"), [programs(home, "pipx", "pipx")]


def wheel(home: Path, sources: Path) -> tuple[list[str], list[Path]]:
    """Have uv and the release that it builds, but no sources."""
    folders = [programs(home, "uv", "uv", "uvx")]
    [build] = commands("uv", CONTRIBUTING)
    shell = ["/bin/bash", "-ec", build]
    subprocess.run(shell, cwd=sources, env=variables(home, folders), check=True)
    made, built = f"gemdeck-{__version__}", sources / "dist"
    file = f"{made}-py3-none-any.whl"
    assert {path.name for path in built.glob("gemdeck*")} == {file, f"{made}.tar.gz"}
    shutil.move(built / file, home / file)
    shutil.rmtree(sources)
    sources.mkdir()
    by_pip = commands("python3")[0].replace("install .", f"install ~/{file}")
    return [f"uvx --from ~/{file} gemdeck", by_pip], folders


def prepare_pip() -> None:
    """Install Debian's own Python, pip, and the venv that pipx needs, where they are missing."""
    found = [PYTHON, "-c", "import ensurepip, pip"]
    if not Path(PYTHON).exists() or subprocess.run(found, check=False).returncode:
        apt = ["apt-get"] if os.geteuid() == 0 else ["sudo", "apt-get"]
        subprocess.run([*apt, "update", "-q"], check=True)
        subprocess.run(
            [*apt, "install", "-qy", "--no-install-recommends", "python3-pip", "python3-venv"],
            check=True,
        )


def make_environment(place: Path, package: str) -> Path:
    """Make a virtual environment with one package; give the folder of its programs."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", place], check=True)
    pip = [PYTHON, "-m", "pip", "--python", str(place / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", package], check=True)
    return place / "bin"


def programs(home: Path, package: str, *names: str) -> Path:
    """Install a package's programs where nothing else is; give the folder that has them alone."""
    made, place = make_environment(home / package, package), home / "programs"
    place.mkdir()
    for name in names:
        (place / name).symlink_to(made / name)
    return place


def variables(home: Path, folders: list[Path]) -> dict[str, str]:
    """Return the variables of a machine; only what was downloaded is shared with ours."""
    cache = Path.home() / ".cache"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    own = {"HOME": str(home), "PATH": ":".join(map(str, [*folders, "/usr/bin", "/bin"]))}
    for place in folders:
        if (place.parent / "pyvenv.cfg").exists():
            own["VIRTUAL_ENV"] = str(place.parent)
    return {
        **{"PIP_CACHE_DIR": str(cache / "pip"), "UV_CACHE_DIR": str(cache / "uv")},
        **kept,
        **own,
        "TERM": "xterm-256color",
    }


def try_demo(command: str, sources: Path, env: Mapping[str, str]) -> None:
    """Type the command, and in the demo the sentence of the README."""
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


def try_all(prepare: Machine, place: Path) -> None:
    """Type the commands on one kind of machine: those that open the demo, and one with tests."""
    started = time.monotonic()
    home, sources = place / "home", place / "gemdeck"
    home.mkdir(parents=True)
    shutil.copytree(ROOT, sources, symlinks=True, ignore=LEFT_OUT)
    typed, folders = prepare(home, sources)
    env = variables(home, folders)
    for command in typed:
        if "tests" in command:
            shell = ["/bin/bash", "-ec", command + FEW]
            subprocess.run(shell, cwd=sources, env=env, timeout=PATIENCE, check=True)
        else:
            try_demo(command, sources, env)
            again = command.rpartition("&& ")[2]
            manual = ["/bin/bash", "-ec", f"{again} help sessions >/dev/null"]
            subprocess.run(manual, cwd=sources, env=env, timeout=PATIENCE, check=True)
    print(f"-- {prepare.__name__}: {time.monotonic() - started:.0f} s", flush=True)


def main() -> None:
    """Type the commands on each kind of machine."""
    prepare_pip()
    machines = (debian, environment, uv, pipx, wheel)
    chosen = [one for one in machines if one.__name__ in (sys.argv[1:] or one.__name__)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        tried = [pool.submit(try_all, one, Path(folder, one.__name__)) for one in chosen]
        for trial in as_completed(tried):
            trial.result()


if __name__ == "__main__":
    main()
