import os
import sys
from pathlib import Path

import pytest

from tui.cli import headless


def read_from(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    warnings: list[str] = []
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        return headless.read_piped_input(warnings.append), warnings


def test_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "list"
    path.write_text(" milk\n")
    assert read_from(path, monkeypatch) == ("milk", [])


def test_nothing_comes_from_the_null_device_or_no_input_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read_from(Path(os.devnull), monkeypatch) == ("", [])
    assert headless.read_piped_input(print) == ""  # the file is closed by now
    monkeypatch.setattr(sys, "stdin", None)
    assert headless.read_piped_input(print) == ""


def test_what_is_cut_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headless, "MAX_INPUT", 1024 * 1024)
    path = tmp_path / "long"
    path.write_bytes(b"x" * (1024 * 1024))
    assert read_from(path, monkeypatch) == ("x" * 1024 * 1024, [])
    path.write_bytes(b"x" * (1024 * 1024 + 1))
    text, (warning,) = read_from(path, monkeypatch)
    assert text == "x" * 1024 * 1024
    assert "cut off at 1 MiB" in warning
