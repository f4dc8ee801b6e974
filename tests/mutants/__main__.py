"""``python3 -m tests.mutants [PATH…]``: makes random mutants and tells which of them tests kill.

Each mutant meets the tests that run its line, the most telling first, until one fails; the table
says which. It needs a map of what each test covers: ``--map [TESTS…]`` makes it, in the time that
these tests take with coverage, and it serves until much of the code is new. The same seed and the
same code give the same mutants; ``--save`` keeps them with their results, and ``--again`` takes
those of a file wherever their code stands by then. Everything runs in copies of the project.

Why no library: mutmut changes neither what runs on import nor most decorated functions, finds its
mutants again by number only, and takes no sample; cosmic-ray writes into the working tree, takes no
sample and runs one fixed command for every mutant, whatever that covers.
"""

import argparse
import bisect
import itertools
import json
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.mutants.changes import Mutant, mutants
from tests.mutants.cover import Cover, record
from tests.mutants.runner import OUTPUT, Copy

ROOT: Final = Path(__file__).resolve().parents[2]

MAPPED: Final = ("tests/unit", "tests/cli", "tests/security", "tests/ui")

DEAD: Final = ("killed", "timed out")

TRIED_FIRST: Final = 20
"""Tests that run before the others are even collected."""

PATIENCE: Final = 60
"""Seconds until a run that hangs is ended, besides the time of its tests."""

SAVED: Final = ("path", "line", "function", "statement", "change", "number")

Saved = dict[str, Any]
"""A mutant and its result, as the file has them."""


@dataclass(slots=True)
class Trial:
    """A mutant and what becomes of it."""

    mutant: Mutant
    before: Saved = field(default_factory=dict)
    """The saved trial that this one repeats."""
    result: str = ""
    killer: str = ""
    tests: int = 0
    """Tests that were to run; `beyond` more were past the cap."""
    beyond: int = 0

    @property
    def lives_again(self) -> bool:
        return self.before.get("result") in DEAD and self.result not in DEAD

    @property
    def saved(self) -> Saved:
        kept = {name: value for name, value in asdict(self.mutant).items() if name in SAVED}
        return {**kept, "result": self.result, "killer": self.killer}

    def __str__(self) -> str:
        told = f"{self.result} {self.killer or f'{self.tests} tests, {self.beyond} past the cap'}"
        again = "LIVES AGAIN: " * self.lives_again
        place = f"{self.mutant.path}:{self.mutant.line} {self.mutant.function}"
        return f"{again}{place}\n    {self.mutant.change}\n    {told}"

    def run(self, copy: Copy, cover: Cover, source: str, cap: float) -> None:
        """Let the mutant's tests run until one fails."""
        tests = cover.tests(self.mutant, source)
        if (last := self.before.get("killer")) in cover.seconds:
            tests = list(dict.fromkeys([last, *tests]))
        spent = list(itertools.accumulate(cover.seconds[test] for test in tests))
        self.tests = bisect.bisect(spent, cap)
        self.beyond = len(tests) - self.tests
        self.result = "survived" if self.tests else "no test"
        parts = [tests[: self.tests][:TRIED_FIRST], tests[TRIED_FIRST : self.tests]]
        while parts and self.result not in DEAD:
            if not (part := parts.pop(0)):
                continue
            copy.write(self.mutant.path, self.mutant.apply(source))
            self.result, self.killer = copy.run(part, PATIENCE + 5 * cap)
            copy.write(self.mutant.path, source)
            without = [self.killer] if self.killer else part
            if self.result in DEAD and copy.run(without, PATIENCE + 5 * cap)[0] in DEAD:
                # It fails without the mutant as well.
                rest = part[part.index(self.killer) + 1 :] if self.killer in part else []
                parts, (self.result, self.killer) = [rest, *parts], ("survived", "")


def find(every: list[Mutant], saved: Saved) -> Mutant | None:
    """Find a saved mutant in today's code: in its file, else anywhere, else in another class."""
    same = [m for m in every if all(getattr(m, n) == saved[n] for n in SAVED[3:])]
    name = saved["function"].split(".")[-1]
    whole = [m for m in same if m.function == saved["function"]]
    here = [m for m in whole if m.path == saved["path"]]
    return next(iter(here or whole or [m for m in same if m.function.split(".")[-1] == name]), None)


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Run mutants; give 1 if one that was killed in the saved run lives now."""
    parser = argparse.ArgumentParser("python3 -m tests.mutants")
    parser.add_argument("paths", nargs="*", default=["tui"], metavar="PATH")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--cap", type=float, default=40, help="seconds of tests for each mutant")
    parser.add_argument("-n", type=int, default=1, metavar="WORKERS")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep mutants and results")
    parser.add_argument("--again", type=Path, metavar="FILE", help="take the mutants of a file")
    parser.add_argument("--map", nargs="*", metavar="TESTS", help="record what tests cover")
    parser.add_argument("--cache", type=Path, default=root / ".cache/mutants", help="of the map")
    asked = parser.parse_args(arguments)
    if asked.map is not None:
        return record(root, asked.cache.resolve(), asked.map or list(MAPPED))
    if not asked.cache.exists():
        parser.error("what the tests cover is not known: record it with --map")
    before = json.loads(asked.again.read_text("utf-8")) if asked.again else []
    paths = [root / path for path in (["tui"] if before else asked.paths)]
    files = sorted({f for p in paths for f in ([p] if p.is_file() else p.rglob("*.py"))})
    sources = {str(file.relative_to(root)): file.read_text("utf-8") for file in files}
    every = [mutant for path, source in sources.items() for mutant in mutants(source, path)]
    if before:
        found = [(find(every, saved), saved) for saved in before]
        trials = [Trial(mutant, saved) for mutant, saved in found if mutant]
    else:
        chosen = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
        trials = [Trial(mutant) for mutant in chosen]
    cover = Cover(asked.cache.resolve())
    waiting = iter(trials)

    def work(folder: Path) -> None:
        with Copy(root, folder) as copy:
            if copy.run(list(cover.seconds)[:3], PATIENCE)[0] in DEAD:
                output = (copy.root / OUTPUT).read_text("utf-8")
                raise SystemExit(f"The tests fail without any mutant:\n{output}")
            for trial in waiting:
                trial.run(copy, cover, sources[trial.mutant.path], asked.cap)
                print(trial, flush=True)
                if asked.save:
                    ended = [trial.saved for trial in trials if trial.result]
                    asked.save.write_text(json.dumps(ended, indent=1), "utf-8")

    with tempfile.TemporaryDirectory(prefix="mutants-") as base, ThreadPoolExecutor() as pool:
        for ended in [pool.submit(work, Path(base, str(n))) for n in range(asked.n)]:
            ended.result()
    return report(trials, len(before) - len(trials) if before else 0)


def report(trials: list[Trial], gone: int) -> int:
    """Print how many were killed, and name those that live."""
    counts = Counter(trial.result for trial in trials)
    dead = sum(counts[result] for result in DEAD)
    living = sorted((t for t in trials if t.result not in DEAD), key=lambda t: t.mutant.path)
    print(f"\n{len(living)} live:", *living, sep="\n")
    told = ", ".join(f"{count} {result}" for result, count in counts.items())
    print(f"\n{dead} of {len(trials)} died ({dead / max(len(trials), 1):.0%}): {told}; {gone} gone")
    return int(any(trial.lives_again for trial in trials))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
