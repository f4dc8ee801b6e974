"""Runs tests in a copy of the project, each time in a process forked from one that started warm.

The copy has an environment of its own, made of links: every process that a test starts, from any
folder, takes the copy's `tui` and `tests`, and the rest from the environment of the original.
As ``python -m tests.mutants.runner``, started by `Copy`, this module is the warm process.
"""

import faulthandler
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

LEFT_OUT: Final = shutil.ignore_patterns(".*", "__pycache__", "node_modules")

PLUGINS: Final = (
    *("pytest", "hypothesis", "xdist.plugin", "pytest_cov.plugin", "pytest_textual_snapshot"),
    *("pytest_timeout", "anyio.pytest_plugin", "anyio._backends._asyncio"),
)

HEAVY: Final = (
    *PLUGINS,
    *("textual.pilot", "textual.widgets", "mcp.server.mcpserver", "google.genai.types", "uvicorn"),
    *("jsonschema", "regex", "watchfiles", "keyring.core", "httpx2"),
    *("google.auth.transport.requests", "google.oauth2.credentials"),
)
"""What most tests import besides the project itself; none is needed."""

OUTER: Final = ("PYTHONPATH", "PYTEST_", "COVERAGE_")
"""Variables of the run that asks, which mean nothing in a copy: its place, worker and coverage."""

TOLD: Final = "told/told.json"

OUTPUT: Final = "../told/output"

LONGEST: Final = 30
"""Seconds for one test."""

OPTIONS: Final = (
    *("-x", "-q", f"--timeout={LONGEST}"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("-p", "no:cacheprovider", "-p", "tests.mutants.recording"),
)


class Copy:
    """The copy in `folder` of the project `root`; what stood in the folder before goes."""

    def __init__(self, root: Path, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self.folder, self.root = folder, folder / "project"
        (folder / "told").mkdir(parents=True)
        shutil.copytree(root, self.root, ignore=LEFT_OUT)
        if (modules := root / "tests/node/node_modules").is_dir():
            (self.root / "tests/node/node_modules").symlink_to(modules)
        original = Path(sysconfig.get_path("purelib"))
        packages = folder / "venv" / original.relative_to(sys.prefix)
        packages.mkdir(parents=True)
        # The second line reads the original's own .pth files, whose paths come after the first.
        also = f"import site; site.addsitedir({str(original)!r})"
        (packages / "copy.pth").write_text(f"{self.root}\n{also}\n")
        shutil.copy(Path(sys.prefix, "pyvenv.cfg"), folder / "venv")
        (folder / "venv/bin").mkdir()
        for program in Path(sys.prefix, "bin").iterdir():
            (folder / "venv/bin" / program.name).symlink_to(program.resolve())
        self.python = str(folder / "venv/bin/python3")
        (folder / "tmp").mkdir()
        places = {"MUTANTS_FOLDER": str(folder / "told"), "TMPDIR": str(folder / "tmp")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OUTER)}
        self.environment = {**kept, **places}
        self._written = 0

    def __enter__(self) -> Self:
        command = [self.python, "-m", "tests.mutants.runner", *HEAVY]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._warm = subprocess.Popen(command, cwd=self.root, env=self.environment, **pipes)
        return self

    def __exit__(self, *_: object) -> None:
        self._warm.communicate()
        shutil.rmtree(self.folder)

    def write(self, path: str, text: str) -> None:
        """Replace a file, with a time of its own: compiled code is trusted by seconds and size."""
        self._written += 1
        (self.root / path).write_text(text, "utf-8")
        os.utime(self.root / path, (self._written, self._written))

    def run(self, tests: list[str], patience: float) -> tuple[str, str]:
        """Run tests to the first failure; give the result, and what failed, a test or a file.

        What ends Python itself counts as timed out.
        """
        (self.folder / TOLD).unlink(missing_ok=True)
        (self.folder / "told/ask.json").write_text(json.dumps(tests), "utf-8")
        named = dict.fromkeys(test.split("::")[0] for test in tests)
        files = [file for file in named if (self.root / file).exists()]
        assert self._warm.stdin
        assert self._warm.stdout
        print(json.dumps([patience, *OPTIONS, *files]), file=self._warm.stdin, flush=True)
        self._warm.stdout.readline()
        if not (self.folder / TOLD).exists():
            return "timed out", ""
        told = json.loads((self.folder / TOLD).read_text("utf-8"))
        killer = next((test for test, (outcome, _) in told.items() if outcome == "failed"), "")
        if killer and told[killer][1] >= LONGEST:
            return "timed out", killer
        return "killed" if killer else "survived", killer


def serve() -> None:
    """Fork for each line of input, and answer when the run has ended or patience has."""
    for name in sys.argv[1:]:
        with suppress(ImportError):
            importlib.import_module(name)
    pytest = importlib.import_module("pytest")
    gc.freeze()
    for line in sys.stdin:
        patience, *arguments = json.loads(line)
        if (pid := os.fork()) == 0:
            os.setsid()
            output = os.open(OUTPUT, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            for stream in range(3):
                os.dup2(output, stream)
            faulthandler.dump_traceback_later(patience, exit=True)
            sys.exit(pytest.main(arguments))
        os.waitpid(pid, 0)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        print(flush=True)


if __name__ == "__main__":
    serve()
