"""The fast half of the tests, ``pytest -m "not slow"``: under thirty seconds, for every change.

A test is slow when it starts a process or a server, draws a screen, or looks for a
counterexample. Most of these have a folder or a file of their own, which stands here; a single
test is marked with ``pytest.mark.slow``. What the fast half prints as slow in spite of that
belongs to one of them.
"""

from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]

TOO_SLOW: Final = 1.0
"""Seconds; a test of the fast half that takes longer is named in the summary."""

NAMES: Final = {
    "": "benchmarks/ cli/ conformance/ providers/ pty/ real/ security/ snapshots/ ui/",
    "architecture": "imports",
    "support": "checks warm",
    "unit/engine/sign_in": "google signing_in",
    "unit/engine": """
        browser chats/ context_files engine faults feature_commands files
        first_starts library own_tools results round_trips stopping typed_messages
    """,
    "unit/engine/approval": "direct_calls",
    "unit/engine/sessions": """
        killed model_commands recording resuming several_conversations two_instances
    """,
    "unit/engine/demo": "notes_server",
    "unit/engine/mcp": """
        call_timeout early_starts enablement era_cache features flow_control inbound
        list_changes many_offers network/ real_servers reaper safe_regex wire zygote
    """,
    "unit/engine/settings": "reload",
}
"""By folder, the folders and files whose tests are all slow; ``x`` is the file ``test_x.py``."""

SLOW: Final = tuple(
    ROOT / "tests" / folder / (name if name.endswith("/") else f"test_{name}.py")
    for folder, names in NAMES.items()
    for name in names.split()
)


@cache
def is_slow(path: Path) -> bool:
    """Tell whether all tests of a file or folder are slow."""
    return any(path.is_relative_to(place) for place in SLOW)


def is_property(item: pytest.Item) -> bool:
    """Tell whether hypothesis looks for what breaks a test."""
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


def is_fast_half(config: pytest.Config) -> bool:
    """Tell whether only the fast half was asked for."""
    return bool(config.option.markexpr == "not slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spare the fast half the imports of the slow one."""
    return True if is_fast_half(config) and is_slow(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow."""
    for item in items:
        if is_slow(item.path) or is_property(item):
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that hold the fast half up."""
    if not is_fast_half(terminalreporter.config):
        return
    found = [
        f"{report.duration:.1f} s: {report.nodeid}"
        for report in terminalreporter.stats.get("passed", ())
        if report.duration > TOO_SLOW
    ]
    if found:
        terminalreporter.section("slow tests in the fast half: mark them")
        terminalreporter.write("\n".join(found) + "\n")
