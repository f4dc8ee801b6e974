"""A folder's ``.env``: what is read of it, and how little it may do."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.settings.sources.source import (
    MAX_FILE,
    MAX_VARIABLES,
    Report,
    parse_dotenv,
    read_dotenv,
)


def test_the_usual_forms_are_read() -> None:
    text = "# word\nexport A=1\nB='two words'\nC=\"a\\nb\"\nD=\nE\nF=${A}\n"
    assert dict(parse_dotenv(text)) == {
        "A": "1",
        "B": "two words",
        "C": "a\nb",
        "D": "",
        "F": "${A}",
    }


@given(st.text())
def test_any_text_gives_variables_that_a_process_could_have(text: str) -> None:
    for name, value in parse_dotenv(text).items():
        assert name.isidentifier()
        assert "\0" not in value


def test_it_is_bounded(tmp_path: Path) -> None:
    assert len(parse_dotenv("".join(f"V{n}=1\n" for n in range(5_000)))) == MAX_VARIABLES
    report = Report(tmp_path)
    (tmp_path / ".env").write_text("A=" + "x" * MAX_FILE)
    assert read_dotenv(tmp_path, report) == {}
    assert "larger than 64 KiB" in str(report.problems[0])


@pytest.mark.parametrize("content", [b"A=\xff", None])
def test_what_is_no_text_is_a_problem_and_no_reason_to_look_elsewhere(
    tmp_path: Path, content: bytes | None
) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".env").write_text("A=1")
    first = tmp_path / ".gemini" / ".env"
    if content is None:
        os.mkfifo(first)
    else:
        first.write_bytes(content)
    report = Report(tmp_path)
    assert read_dotenv(tmp_path, report) == {}
    assert len(report.problems) == 1


def test_it_sets_nothing_in_the_process(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GEMDECK_TEST_VARIABLE=1")
    variables = read_dotenv(tmp_path, Report(tmp_path))
    assert variables["GEMDECK_TEST_VARIABLE"] == "1"
    assert "GEMDECK_TEST_VARIABLE" not in os.environ
