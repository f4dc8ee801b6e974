"""The theme and the messages of earlier runs."""

import json
import os
from pathlib import Path

import pytest

from tui.engine.files import preferences
from tui.engine.files.atomic import locked
from tui.engine.files.preferences import (
    append_message,
    load_layout,
    load_messages,
    load_theme,
    messages_place,
    save_layout,
    save_theme,
)


def test_a_theme_is_remembered_beside_what_else_is_kept(tmp_path: Path) -> None:
    assert load_theme(tmp_path) == ""
    save_theme(tmp_path, "nord")
    assert load_theme(tmp_path) == "nord"
    file = tmp_path / "ui.json"
    file.write_text('{"version": 1, "theme": 5, "other": 1}')
    assert load_theme(tmp_path) == ""
    save_theme(tmp_path, "gemdeck-light")
    assert json.loads(file.read_text()) == {"version": 1, "theme": "gemdeck-light", "other": 1}


def test_a_layout_is_remembered_beside_the_theme(tmp_path: Path) -> None:
    assert load_layout(tmp_path) is None
    save_theme(tmp_path, "nord")
    save_layout(tmp_path, {"alone": True})
    assert load_layout(tmp_path) == {"alone": True}
    assert load_theme(tmp_path) == "nord"


def test_messages_come_back_in_order_and_harmless(tmp_path: Path) -> None:
    assert load_messages(tmp_path) == ()
    for text in ("one\ntwo", "drei \u00fc", "fo\ud800ur"):
        append_message(tmp_path, text)
    assert load_messages(tmp_path) == ("one\ntwo", "drei \u00fc", "fo?ur")


def test_many_messages_are_cut_back_to_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preferences, "MAX_MESSAGES", 3)
    for number in range(7):
        append_message(tmp_path, str(number))
    with locked(tmp_path / preferences.MESSAGES):
        assert load_messages(tmp_path) == ("4", "5", "6")
    assert len((tmp_path / preferences.MESSAGES).read_bytes().splitlines()) == 7
    assert load_messages(tmp_path) == ("4", "5", "6")
    assert (tmp_path / preferences.MESSAGES).read_bytes() == b'"4"\n"5"\n"6"\n'


def test_what_is_no_file_of_messages_is_moved_away(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / preferences.MESSAGES)
    assert load_messages(tmp_path) == ()
    assert (tmp_path / "messages.jsonl.old").is_fifo()
    append_message(tmp_path, "hello")
    assert load_messages(tmp_path) == ("hello",)


def test_a_folder_that_is_gone_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "missing"
    append_message(folder, "hello")
    save_theme(folder, "nord")
    assert load_messages(folder) == ("hello",)
    assert load_theme(folder) == "nord"


def test_each_opened_folder_has_messages_of_its_own(tmp_path: Path) -> None:
    one, other = (messages_place(tmp_path, tmp_path / name) for name in ("one", "other"))
    append_message(one, "hello")
    assert load_messages(one) == ("hello",)
    assert load_messages(other) == ()
    assert messages_place(tmp_path, tmp_path / "one") == one
    for folder in (one, one.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
