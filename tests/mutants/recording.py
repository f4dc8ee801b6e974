"""A plug-in of pytest: which tests to run, in which order, and how each ended.

`MUTANTS_FOLDER` names a folder. Where it has ``ask.json``, a list of ids, only these tests run, in
this order, and unknown ones are no error. ``told.json`` gets each test's outcome and seconds, in
the order they ended. Where it has ``coveragerc``, the processes that tests start are measured
as well.
"""

import faulthandler
import json
import os
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(os.environ["MUTANTS_FOLDER"])

ended: dict[str, tuple[str, float]] = {}


def pytest_configure() -> None:
    """Let Python processes measure themselves; coverage's own hook in them reads this."""
    if (rc := FOLDER / "coveragerc").exists():
        os.environ["COVERAGE_PROCESS_START"] = str(rc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep what was asked for."""
    if (ask := FOLDER / "ask.json").exists():
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in json.loads(ask.read_text()) if name in found]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Name the test to the processes that it starts; see ``context`` in the coveragerc."""
    os.environ["MUTANTS_TEST"] = item.nodeid


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the worst outcome of a test's three parts, and their time together."""
    outcome, seconds = ended.get(report.nodeid, ("passed", 0.0))
    outcome = report.outcome if outcome == "passed" else outcome
    ended[report.nodeid] = (outcome, round(seconds + report.duration, 3))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file that cannot be imported."""
    if report.failed:
        ended[report.nodeid] = (report.outcome, 0.0)


def pytest_sessionfinish() -> None:
    """Write all down, in the one process that hears of every test; what hangs then is ended."""
    if (FOLDER / "ask.json").exists():
        faulthandler.dump_traceback_later(10, exit=True)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        (FOLDER / "told.json").write_text(json.dumps(ended))
