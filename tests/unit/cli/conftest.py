"""Runs commands in this process."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

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


class Typed(io.BytesIO):
    """Standard input with a descriptor, from which a key is read."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file.read())
        file.seek(0)
        self._file = file

    def fileno(self) -> int:
        return self._file.fileno()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder of the test."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run_it(*words: str, typed: str = "", code: int | None = None) -> Ran:
        given = tmp_path / "typed"
        given.write_text(typed)
        with given.open("rb") as file:
            result = CliRunner().invoke(main, words, input=Typed(file), prog_name="gemdeck")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert code in {None, result.exit_code}, result.stderr
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run_it
