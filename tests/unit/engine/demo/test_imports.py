import subprocess
import sys

import pytest

HEAVY = ("mcp", "mcp_types", "google", "textual", "jsonschema", "httpx2")


@pytest.mark.parametrize("module", ["model", "demo_servers"])
def test_the_model_and_the_definitions_load_nothing_heavy(module: str) -> None:
    code = f"import sys, tui.engine.demo.{module}; print(*(m.split('.')[0] for m in sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "tui" in loaded
    assert set(HEAVY).isdisjoint(loaded)
