"""What is kept between runs, where its files are not as they should be."""

from pathlib import Path

import pytest

from tui.engine import preferences
from tui.engine.preferences import append_message, load_messages


def test_messages_come_back_in_order_without_those_that_cannot_be_read(tmp_path: Path) -> None:
    append_message(tmp_path, "one\ntwo")
    with (tmp_path / "messages.jsonl").open("ab") as file:
        file.write(b'{"no": "message"}\n[broken\n')
    append_message(tmp_path, "th\x1b[2Jree")
    assert load_messages(tmp_path) == ("one\ntwo", "three")


def test_a_file_too_large_is_set_aside_or_left_where_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preferences, "MAX_MESSAGES_FILE", 10)
    append_message(tmp_path, "x" * 20)
    in_the_way = tmp_path / "messages.jsonl.old"
    in_the_way.mkdir()
    assert load_messages(tmp_path) == ()
    assert (tmp_path / "messages.jsonl").exists()
    in_the_way.rmdir()
    assert load_messages(tmp_path) == ()
    assert in_the_way.is_file()
    assert not (tmp_path / "messages.jsonl").exists()
