"""The user's settings file, begun where there is none."""

import resource
from pathlib import Path

import pytest

from tui.engine.settings.edits import begin_settings, sample_settings


def test_a_file_is_begun_that_can_be_read_with_the_line_of_its_first_entry(home: Path) -> None:
    path, line = begin_settings(home)
    assert path == home / ".gemini" / "settings.json"
    assert '"files": {' in path.read_text().splitlines()[line - 1]


def test_a_file_that_is_there_is_left_as_it_is(home: Path) -> None:
    (home / ".gemini").mkdir()
    file = home / ".gemini" / "settings.json"
    file.write_text('{\n "a": 1,\n "mcpServers": {\n}}')
    assert begin_settings(home) == (file, 4)
    file.write_text("{}")
    assert begin_settings(home) == (file, 1)
    assert file.read_text() == "{}"


def test_the_sample_is_at_hand() -> None:
    assert '"mcpServers"' in sample_settings()


def test_on_a_full_disk_no_empty_file_stays_in_the_way(
    home: Path,
) -> None:
    _, most = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        with pytest.raises(OSError, match="too large"):
            begin_settings(home)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (home / ".gemini" / "settings.json").exists()
