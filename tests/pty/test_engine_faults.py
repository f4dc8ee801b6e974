"""A fault of the engine ends in a report and one line, whenever it comes."""

import sys
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import World
from tests.support.terminal import Terminal

BROKEN: Final = """
from tui.engine.engine import Engine

async def broken(*_):
    raise ZeroDivisionError("AIza-a-key-in-a-message")

Engine.{method} = broken
"""


@pytest.mark.parametrize("method", ["start", "__aenter__", "__aexit__"])
def test_a_fault_of_the_engine_ends_with_a_report(
    world: World, tmp_path: Path, method: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN.format(method=method))
    env = {"PYTHONPATH": str(tmp_path)}
    with Terminal([sys.executable, "-m", "tui", "--demo"], cwd=tmp_path, env=env) as terminal:
        if method == "__aexit__":
            terminal.wait_for("1 ready")  # the engine has begun
            terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 1
        shown = " ".join(terminal.screen.split())
        assert "internal error (ZeroDivisionError)" in shown
        assert "Traceback" not in shown
        assert "ExceptionGroup" not in shown
        assert "in-a-message" not in shown
    [report] = world.state.rglob("crash-*.txt")
    assert ", in broken" in report.read_text()
