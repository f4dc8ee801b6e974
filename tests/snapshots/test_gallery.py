"""The gallery draws scenes without a terminal, as the map of the code says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_scenes_that_match_are_drawn(tmp_path: Path) -> None:
    command = [sys.executable, "screenshots/make.py", "--all", str(tmp_path), "model-16-80x24"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [picture] = tmp_path.iterdir()
    shown = picture.read_text("utf-8").replace("&#160;", " ")
    assert picture.name == "model-16-80x24.svg"
    assert "gemini-3.8-flash · " in shown
