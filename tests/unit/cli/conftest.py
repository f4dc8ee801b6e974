"""Runs commands in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tui.cli.main import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.stdout)
        return value


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder of the test."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run_it(*words: str, typed: str = "") -> Ran:
        given = tmp_path / "typed"  # a key is read from a descriptor
        given.write_text(typed)
        with given.open("rb") as stream:
            result = CliRunner().invoke(main, words, input=stream, prog_name="gemdeck")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run_it
