"""Benchmarks compare two things within one run: ratios hold on any machine, times do not."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the benchmarks on one worker, so that they do not disturb each other."""
    for item in items:
        if "/benchmarks/" in str(item.path.as_posix()):
            item.add_marker(pytest.mark.xdist_group("benchmarks"))
            item.add_marker(pytest.mark.slow)
