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

SLOW: Final = tuple(
    ROOT / "tests" / place
    for place in (
        *("benchmarks", "cli", "conformance", "providers", "pty", "real", "security"),
        *("snapshots", "ui"),
        "architecture/test_imports.py",
        "support/test_checks.py",
        "support/test_run.py",
        "support/test_warm.py",
        *(
            f"unit/engine/sign_in/test_{name}.py"
            for name in ("callback", "google", "hostile_servers", "two_instances")
        ),
        "unit/engine/sign_in/test_signing_in.py",
        "unit/engine/chats",
        "unit/engine/approval/test_direct_calls.py",
        "unit/engine/approval/test_records.py",
        *(f"unit/engine/sessions/test_{name}.py" for name in ("killed", "model_commands")),
        *(
            f"unit/engine/sessions/test_{name}.py"
            for name in ("recording", "resuming", "several_conversations", "two_instances")
        ),
        "unit/engine/demo/test_notes_server.py",
        "unit/engine/mcp/network",
        "unit/engine/mcp/test_early_starts.py",
        "unit/engine/mcp/test_enablement.py",
        "unit/engine/mcp/test_era_cache.py",
        "unit/engine/mcp/test_features.py",
        "unit/engine/mcp/test_list_changes.py",
        "unit/engine/mcp/test_inbound.py",
        "unit/engine/mcp/test_flow_control.py",
        "unit/engine/mcp/test_many_offers.py",
        "unit/engine/mcp/test_many_servers.py",
        "unit/engine/mcp/test_real_servers.py",
        "unit/engine/mcp/test_reaper.py",
        "unit/engine/mcp/test_safe_regex.py",
        "unit/engine/mcp/test_secrets.py",
        "unit/engine/mcp/test_zygote.py",
        "unit/engine/mcp/test_call_timeout.py",
        "unit/engine/settings/test_reload.py",
        "unit/engine/test_asked_of_the_engine.py",
        "unit/engine/test_browser.py",
        "unit/engine/test_context_files.py",
        "unit/engine/test_engine.py",
        "unit/engine/test_engine_tasks.py",
        "unit/engine/test_faults.py",
        "unit/engine/test_feature_commands.py",
        "unit/engine/test_files.py",
        "unit/engine/test_first_starts.py",
        "unit/engine/test_library.py",
        "unit/engine/test_own_tools.py",
        "unit/engine/test_result_review.py",
        "unit/engine/test_results.py",
        "unit/engine/test_round_trips.py",
        "unit/engine/test_stopping.py",
        "unit/engine/test_typed_messages.py",
    )
)
"""Folders and files whose tests are all slow."""


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
