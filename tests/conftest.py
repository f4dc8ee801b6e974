"""The world every test runs in, and what is checked after each of them.

A test sees an empty home folder, no credentials and no network but loopback. When it ends, no
process, task or file descriptor of it may be left and no secret may stand in a file it wrote.
"""

import functools
import gc
import inspect
import itertools
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import textual.constants

from tests.support import leaks
from tests.support.measures import PROPERTY, STALLS, Measure
from tests.support.network import NetworkGuard, load_certificates_once
from tests.support.stalls import LoopWatch, watch_loop
from tui.engine.definitions import bubblewrap
from tui.engine.files import unwritten
from tui.engine.keys.services import SERVICE_KEYS

CLEARED_PREFIXES: Final = ("GEMINI", "GOOGLE", "GCLOUD", "CLOUDSDK", "GEMDECK", "TEXTUAL", "MCP_")
"""Environment variables with these prefixes never reach a test."""

COVERAGE_PREFIXES: Final = ("COV_CORE_", "COVERAGE_PROCESS_")
"""Variables with which a process counts what it runs of gemdeck."""

KEPT: Final = frozenset({"TEXTUAL_SNAPSHOT_TEMPDIR"})
"""The exception: where the snapshot plug-in collects what its report shows."""

CLEARED: Final = (
    *SERVICE_KEYS,
    "OPENAI_BASE_URL",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "DBUS_SESSION_BUS_ADDRESS",
    "PYTHONDONTWRITEBYTECODE",
    "SSH_CONNECTION",
)
"""Further environment variables that would change what a test sees."""

MAX_REPORTED_STALLS: Final = 10
"""Stalls of the event loop named in the summary."""

pytest_plugins = ("tests.support.examples", "tests.support.halves")

# Where it may not be kept, each of the many processes and workers compiles everything anew.
sys.dont_write_bytecode = False

os.umask(0o022)  # settings of the system that a group can write do not count

_world_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class World:
    """The folders of one test: `home` is its HOME and `state` its GEMDECK_HOME."""

    home: Path
    state: Path


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers that the checks below understand."""
    config.addinivalue_line(
        "markers",
        "writes_secrets(*patterns): files matching these patterns may hold a fixture secret, "
        "because the test put it there or because they are the place for it",
    )
    leaks.adopt_orphans()
    hear_signals()


def hear_signals() -> None:
    """Let programs that tests start hear Ctrl+C and a hang-up where this one ignores them.

    A shell's background job, nohup and some runners ignore them, and what is ignored stays so in
    every child. A signal that is handled has its default there, and still does nothing here.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run every async test on asyncio, the only loop Textual knows."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def isolated_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Isolate fixtures that outlive one test; give the folder that holds all worlds."""
    base = tmp_path_factory.mktemp("worlds")
    with pytest.MonkeyPatch.context() as monkeypatch:
        enter_world(base / "session", monkeypatch)
        load_certificates_once(monkeypatch)
        yield base


@pytest.fixture(scope="session", autouse=True)
def session_loop_watch() -> Iterator[LoopWatch]:
    """Record stalls of the event loop over the whole run."""
    with watch_loop() as watch:
        yield watch


@pytest.fixture
def loop_watch(session_loop_watch: LoopWatch) -> Iterator[LoopWatch]:
    """Let a test assert that nothing held the event loop up.

    Stalls are reported for every test and fail only those that ask: on a busy machine the
    first layout of a screen may pass the limit without any fault. The collector is kept off what
    earlier tests left: going through all of it takes a large worker a second.
    """
    session_loop_watch.clear()
    gc.freeze()
    yield session_loop_watch
    gc.unfreeze()


@pytest.fixture
def measure(record_property: Callable[[str, object], None]) -> Measure:
    """Print a measured number, now and in the summary of the run."""

    def record(line: str) -> None:
        print(line)
        record_property(PROPERTY, line)

    return record


@pytest.fixture
def home(world: World) -> Path:
    """Give the test's empty home folder."""
    return world.home


@pytest.fixture
def sandboxes() -> None:
    """Let a test have sandboxes; without, none can be had in this process on any machine."""


@pytest.fixture(autouse=True)
def world(request: pytest.FixtureRequest, isolated_session: Path) -> Iterator[World]:
    """Give a test its own world and look at what it leaves behind."""
    processes = leaks.child_processes()
    descriptors = leaks.open_descriptors()
    network = NetworkGuard()
    folder = isolated_session / str(next(_world_numbers))
    written = [folder]
    if "tmp_path" in request.fixturenames:
        written.append(request.getfixturevalue("tmp_path"))
    with pytest.MonkeyPatch.context() as monkeypatch:
        network.install(monkeypatch)
        monkeypatch.setattr(textual.constants, "TEXTUAL_ANIMATIONS", "none")
        made = enter_world(folder, monkeypatch)
        if "sandboxes" in request.fixturenames:
            # what runs in one may not write its coverage, and reports that as refused
            for name in [name for name in os.environ if name.startswith(COVERAGE_PREFIXES)]:
                monkeypatch.delenv(name)
        else:
            monkeypatch.setattr(bubblewrap, "BWRAP", "none of this name")
        bubblewrap.sandbox_problem.cache_clear()
        yield made
    unwritten._waiting.clear()  # what a test could not write is not tried again after it
    faults = leaks.describe_and_kill(leaks.surviving_processes(processes))
    problems = [f"a process was left: {line}" for line in faults]
    problems += [
        f"a file descriptor was left: {line}" for line in leaks.leaked_descriptors(descriptors)
    ]
    problems += [f"the network was asked for {address}" for address in network.attempts]
    problems += [f"a secret was written to {path}" for path in leaked_secrets(request, written)]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def enter_world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Make a world in `folder` and point the environment at it."""
    made = World(home=folder / "home", state=folder / "state")
    made.home.mkdir(parents=True)
    for name in tuple(os.environ):
        if (name.startswith(CLEARED_PREFIXES) and name not in KEPT) or name in CLEARED:
            monkeypatch.delenv(name)
    settings = {
        "HOME": made.home,
        "USERPROFILE": made.home,
        "GEMDECK_HOME": made.state,
        "XDG_CONFIG_HOME": made.home / ".config",
        "XDG_STATE_HOME": made.home / ".local" / "state",
        "XDG_DATA_HOME": made.home / ".local" / "share",
        "XDG_CACHE_HOME": made.home / ".cache",
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH": folder / "etc" / "settings.json",
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": folder / "etc" / "system-defaults.json",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        "TEXTUAL_ANIMATIONS": "none",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    return made


def leaked_secrets(request: pytest.FixtureRequest, folders: list[Path]) -> list[Path]:
    """List files of the test that hold a secret and are not marked as the place for it."""
    marker = request.node.get_closest_marker("writes_secrets")
    allowed = marker.args if marker else ()
    return [
        path
        for parent in folders
        for path in leaks.files_with_secret(parent)
        if not any(path.match(pattern) for pattern in allowed)
    ]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail an async test that leaves tasks behind, and note where it held up the loop."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return (yield)

    @functools.wraps(test)
    async def checked(**arguments: object) -> None:
        before = leaks.running_tasks()
        await test(**arguments)
        if left := await leaks.leaked_tasks(before):
            pytest.fail("These tasks were left: " + "; ".join(left), pytrace=False)

    watch = pyfuncitem.funcargs["session_loop_watch"]
    assert isinstance(watch, LoopWatch)
    first = len(watch.stalls)
    pyfuncitem.obj = checked
    try:
        return (yield)
    finally:
        pyfuncitem.obj = test
        for stall in watch.stalls[first:]:
            pyfuncitem.user_properties.append((STALLS, f"{stall}: {pyfuncitem.nodeid}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests measured and where they held the event loop up."""
    lines: dict[str, list[str]] = {PROPERTY: [], STALLS: []}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for name, value in report.user_properties:
                lines.setdefault(name, []).append(str(value))
    sections = {
        PROPERTY: ("measured", len(lines[PROPERTY])),
        STALLS: ("event loop held up", MAX_REPORTED_STALLS),
    }
    for name, (title, limit) in sections.items():
        if lines[name]:
            terminalreporter.section(title)
            terminalreporter.write("\n".join(lines[name][:limit]) + "\n")
            if len(lines[name]) > limit:
                terminalreporter.write(f"… and {len(lines[name]) - limit} more\n")
