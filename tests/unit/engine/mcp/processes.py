"""Finds the processes of test servers."""

from tests.unit.engine.mcp.support import (
    children,
)


def pid_of(server: str) -> int:
    """Find the process of a test server by its script and behaviours."""
    [found] = [c for c in children() if server in " ".join(c.cmdline())]
    return found.pid
