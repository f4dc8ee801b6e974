"""Runs the official conformance suite and reads what it says."""

import asyncio
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.node import node_executable, node_package

BASELINE: Final = Path(__file__).with_name("baseline.yml")

SUITE_SECONDS: Final = 200.0
"""Longest time of one run of the suite; it takes about fifteen seconds."""

_SUMMARY: Final = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What a run of the suite came to; by scenario how many checks passed and failed."""

    code: int
    output: str
    scores: Mapping[str, tuple[int, int]]


async def run_suite(folder: Path, *which: str) -> Verdict:
    """Run scenarios; the results are left in the folder.

    Args:
        folder: Where the results go.
        which: Which side is tested, where, and by which scenarios, in the words of the suite.
    """
    script = node_package("conformance") / "dist" / "index.js"
    process = await asyncio.create_subprocess_exec(
        str(node_executable()),
        str(script),
        *which,
        *("--expected-failures", str(BASELINE)),
        *("--output-dir", str(folder / "results")),
        env={**os.environ, "NODE_NO_WARNINGS": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(SUITE_SECONDS):
            output = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    found = _SUMMARY.findall(output)
    scores = {name: (int(passed), int(failed)) for name, passed, failed in found}
    return Verdict(process.returncode or 0, output, scores)


def lacking(side: str) -> set[str]:
    """Name the scenarios of a side that the baseline lets fail, wholly or by checks of theirs."""
    section = re.search(rf"^{side}:\n((?:  .*\n)*)", BASELINE.read_text(), re.MULTILINE)
    return set(re.findall(r"^  - ([^:\s]+)", section[1] if section else "", re.MULTILINE))


def failed_checks(folder: Path, scenario: str) -> list[str]:
    """Name the checks of a scenario that did not succeed, with the reasons."""
    return [
        f"{scenario}:{check['id']}: {check.get('errorMessage', check['status'])}"
        for file in folder.glob(f"results/{scenario}-*/checks.json")
        for check in json.loads(file.read_text())
        if check["status"] in {"FAILURE", "WARNING"}
    ]


def statuses(folder: Path) -> list[str]:
    """Give what all checks came to."""
    files = folder.glob("results/*/checks.json")
    return [check["status"] for file in files for check in json.loads(file.read_text())]
