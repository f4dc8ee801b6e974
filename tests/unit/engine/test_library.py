"""The engine as a library: the example of the map of the code, and what is public."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

import tui.engine
from tests.support import warm
from tui.engine import api

README: Final = Path(tui.__file__).with_name("README.md")


def test_the_example_lists_calls_and_runs_a_turn(tmp_path: Path) -> None:
    _, _, section = README.read_text("utf-8").partition("## As a library")
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    env = {**os.environ, "GEMDECK_NOTES_DB": str(tmp_path / "notes.db")}
    (tmp_path / "example.py").write_text(found[1], "utf-8")
    options: dict[str, Any] = {"cwd": tmp_path, "env": env, "text": True, "timeout": 60}
    command = [warm.python(), "example.py"]
    done = subprocess.run(command, capture_output=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    assert all(words in done.stdout for words in ("notes add_note", "count_slowly"))
    assert done.stdout.count("buy milk") >= 2


def test_everything_public_is_there() -> None:
    names = [name for name in vars(api) if name[0].isupper()]
    assert {"Engine", "EngineOptions", "TurnFinished"} <= set(names)
    for name in names:
        assert getattr(tui.engine, name) is getattr(api, name)
    with pytest.raises(AttributeError):
        tui.engine.Nothing  # noqa: B018
