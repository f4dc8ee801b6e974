"""The official conformance suite against the engine, for each revision that it scores."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.suite import Verdict, failed_checks, lacking, run_suite, statuses
from tests.support.measures import Measure

pytestmark = pytest.mark.timeout(240)

CLIENT_SECONDS: Final = 150
"""Longest time the suite gives one client, which may have to wait for others."""

_CORE: Final = {
    "2025-11-25": """
        initialize tools_call elicitation-sep1034-client-defaults sse-retry
        json-schema-2020-12-preservation
    """,
    "2026-07-28": """
        tools_call request-metadata sep-2322-client-request-state
        http-standard-headers http-custom-headers http-invalid-tool-headers
        json-schema-ref-no-deref json-schema-2020-12-preservation
    """,
}
CORE: Final = {revision: set(names.split()) for revision, names in _CORE.items()}
"""The scenarios of each revision without a sign-in; the schema one is not scored."""

CHECKED: Final = ("digest", "size", "frontmatter")
"""What is verified of a skill."""

SIGN_IN: Final = "auth/"
"""How the names of the scenarios with a sign-in begin."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Run the host of the clients; give the address of its socket."""
    with tempfile.TemporaryDirectory() as folder:  # the path of a socket has to be short
        socket = str(Path(folder, "host"))
        command = [sys.executable, "-m", "tests.conformance.host", socket]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, process_group=0
        ) as host:
            try:
                assert host.stdout is not None
                assert b"ready\n" in host.stdout, "the host of the clients ended"
                yield socket
            finally:
                os.killpg(host.pid, signal.SIGKILL)


async def visit(folder: Path, address: str, *which: str) -> Verdict:
    """Run scenarios for clients, by the host that listens at the address."""
    client = f"{sys.executable} -S -m tests.conformance {address}"
    patience = str(CLIENT_SECONDS * 1000)
    return await run_suite(folder, "client", "--command", client, *which, "--timeout", patience)


@pytest.mark.parametrize("revision", CORE)
async def test_the_official_suite_passes(
    revision: str, address: str, tmp_path: Path, measure: Measure
) -> None:
    verdict = await visit(tmp_path, address, "--requirements", revision)
    scores = {
        name: score for name, score in verdict.scores.items() if name not in lacking("client")
    }
    core = scores.keys() & CORE[revision]
    others = scores.keys() - core
    measure(
        f"conformance {revision}: {sum(failed == 0 for _, failed in scores.values())} of"
        f" {len(verdict.scores)} scenarios pass ({sum(passed for passed, _ in scores.values())}"
        f" checks), {len(others)} of them with a sign-in"
    )
    unsound = [line for name in scores for line in failed_checks(tmp_path, name)]
    assert unsound == []
    assert verdict.code == 0, verdict.output[-3000:]
    assert core == CORE[revision]
    assert all(name.startswith(SIGN_IN) for name in others), sorted(others)
    assert all(passed > 0 for passed, _ in scores.values()), "nothing was checked"


@pytest.mark.parametrize("suite", ["extensions", "backcompat"])
async def test_extensions_and_earlier_revisions_pass_but_what_the_sdk_lacks(
    suite: str, address: str, tmp_path: Path, measure: Measure
) -> None:
    verdict = await visit(tmp_path, address, "--suite", suite)
    good = [name for name, score in verdict.scores.items() if score[1] == 0]
    measure(f"conformance, {suite}: {len(good)} of {len(verdict.scores)} scenarios pass")
    assert verdict.code == 0, verdict.output[-3000:]


@pytest.mark.parametrize("what", ["no-prefetch", *map("verify-{}".format, CHECKED)])
async def test_skills_are_fetched_late_and_checked(what: str, address: str, tmp_path: Path) -> None:
    """These belong to no suite, and pass as well where their check is skipped."""
    scenario = f"sep-2640-client-{what}"
    verdict = await visit(tmp_path, address, "--scenario", scenario)
    assert verdict.code == 0, verdict.output[-3000:]
    assert statuses(tmp_path) == ["SUCCESS"]
