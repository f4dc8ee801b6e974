"""Which tests run a line, from one run of them with coverage, and how long each takes."""

import ast
import difflib
import json
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Container
from functools import cache
from pathlib import Path
from typing import Final

from coverage import CoverageData

from tests.mutants.changes import WHOLE, Function, Mutant
from tests.mutants.runner import Copy

SLOWEST: Final = 10.0
"""Seconds; tests that took longer when they were recorded are left out."""

RC: Final = """\
[run]
data_file = {told}/coverage
parallel = true
source = {root}/tui
context = ${{MUTANTS_TEST-}}
disable_warnings = no-data-collected, module-not-measured, module-not-imported
"""


def record(root: Path, folder: Path, tests: list[str]) -> int:
    """Run tests and keep in `folder` what they cover, and the code they covered."""
    copy = Copy(root, folder)
    rc = folder / "told/coveragerc"
    rc.write_text(RC.format(told=folder / "told", root=copy.root))
    command = [copy.python, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    command += ["-p", "tests.mutants.recording", "-p", "no:cacheprovider", f"--cov-config={rc}"]
    command += [f"--cov={copy.root}/tui", "--cov-context=test", "--cov-report=", *tests]
    code = subprocess.call(command, cwd=copy.root, env=copy.environment)
    shutil.rmtree(folder / "tmp")
    return code


class Cover:
    """What `record` left in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._project = folder / "project"
        self._data = CoverageData(str(folder / "told/coverage"))
        self._data.read()
        measured = self._data.measured_files()
        self._measured = {file.partition("/project/")[2]: file for file in measured}
        told: dict[str, tuple[str, float]] = json.loads((folder / "told/told.json").read_text())
        passed = {test: seconds for test, (how, seconds) in told.items() if how == "passed"}
        self.seconds = {test: seconds for test, seconds in passed.items() if seconds < SLOWEST}
        count = "select context, count(*) from line_bits join context on context_id = context.id"
        self._breadth: dict[str, int] = {}
        with sqlite3.connect(folder / "told/coverage") as data:
            for context, files in data.execute(f"{count} group by context"):
                test = _test(context)
                self._breadth[test] = self._breadth.get(test, 0) + files

    def tests(self, mutant: Mutant, source: str) -> list[str]:
        """List the tests of the mutant's lines in today's `source`, the most telling first.

        These are quick and touch few other files. What runs only on import has none, but those of
        the code around it, and failing that, of the modules that import it.
        """
        found: dict[str, None] = {}
        today = _matches((self._project / mutant.path), source)
        for first, last in mutant.scopes:
            old = {today[line] for line in range(first, last + 1) if line in today}
            found |= dict.fromkeys(self._of_lines(mutant.path, old))
        if not found and mutant.scopes[-1] == WHOLE:
            name = f"from {mutant.path[:-3].replace('/', '.')} import"
            for file in self._project.glob("tui/**/*.py"):
                if name in file.read_text("utf-8"):
                    path = str(file.relative_to(self._project))
                    found |= dict.fromkeys(self._of_lines(path, range(*WHOLE)))
        return list(found)

    def _of_lines(self, path: str, lines: Container[int]) -> list[str]:
        """Sort by what a test costs and runs besides, against the lines it runs of these."""
        hits = Counter(
            test
            for line, contexts in self._contexts(path).items()
            if line in lines
            for test in {_test(context) for context in contexts} & self.seconds.keys()
        )
        return sorted(
            hits, key=lambda t: (self._breadth[t] * (self.seconds[t] + 0.02) / hits[t] ** 2, t)
        )

    @cache  # noqa: B019 - one object for the whole run
    def _contexts(self, path: str) -> dict[int, list[str]]:
        """Give the tests of the lines in functions; the rest belongs to whoever imports first."""
        found = self._data.contexts_by_lineno(self._measured.get(path, path))
        return {line: found[line] for line in _inner_lines(self._project / path) if line in found}


def _inner_lines(file: Path) -> set[int]:
    nodes = ast.walk(ast.parse(file.read_text("utf-8") if file.exists() else ""))
    bodies = [node.body for node in nodes if isinstance(node, Function)]
    return {n for body in bodies for n in range(body[0].lineno, (body[-1].end_lineno or 0) + 1)}


def _test(context: str) -> str:
    """Take coverage's own additions off a test's id."""
    return context.removesuffix("|setup").removesuffix("|run").removesuffix("|teardown")


@cache
def _matches(file: Path, source: str) -> dict[int, int]:
    """Give the numbers that today's lines had when the tests were recorded."""
    old = file.read_text("utf-8").split("\n") if file.exists() else []
    blocks = difflib.SequenceMatcher(None, old, source.split("\n"), autojunk=False)
    return {b.b + n + 1: b.a + n + 1 for b in blocks.get_matching_blocks() for n in range(b.size)}
