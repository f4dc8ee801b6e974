"""Benchmarks compare two things within one run: ratios hold on any machine, times do not."""

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the benchmarks, which the default run leaves out but for the quick ones."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.benchmark)
