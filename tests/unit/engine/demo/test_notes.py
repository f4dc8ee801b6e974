import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui.engine.demo.notes import (
    MAX_NOTE_LENGTH,
    MAX_NOTES,
    MAX_TAG_LENGTH,
    MAX_TAGS,
    Notebook,
    NotesError,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "private" / "notes.db"


@pytest.fixture
def notebook(path: Path) -> Iterator[Notebook]:
    notebook = Notebook(path)
    yield notebook
    notebook.close()


def test_a_new_notebook_holds_three_friendly_notes_once(path: Path) -> None:
    for _ in range(2):
        notebook = Notebook(path)
        assert len(notebook.recent()) == 3
        notebook.close()


def test_the_file_and_its_folder_are_private(notebook: Notebook, path: Path) -> None:
    notebook.add("secret")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


def test_notes_survive_and_numbers_are_never_given_twice(path: Path) -> None:
    first = Notebook(path)
    added = first.add(" buy milk ", ["Shop", "#food", "shop"])
    assert (added.id, added.text, added.tags) == (4, "buy milk", ("food", "shop"))
    first.delete(4)
    kept = first.add("buy bread")
    first.close()
    second = Notebook(path)
    assert second.get(kept.id) == kept
    assert kept.id == 5
    second.close()


def test_notes_are_listed_newest_first_and_by_tag(notebook: Notebook) -> None:
    notebook.add("one", ["work"])
    notebook.add("two", ["work", "home"])
    assert [note.text for note in notebook.recent()][:2] == ["two", "one"]
    assert [note.text for note in notebook.recent("#Work")] == ["two", "one"]
    assert notebook.tags() == ("hello", "home", "ideas", "work")


def test_search_finds_all_words_in_text_and_tags_of_any_script(notebook: Notebook) -> None:
    notebook.add("Äpfel kaufen", ["markt"])
    assert [note.text for note in notebook.search("MARKT äPFEL")] == ["Äpfel kaufen"]
    assert notebook.search("äpfel birnen") == []
    assert notebook.search("100%") == []


def test_an_update_keeps_number_and_tags(notebook: Notebook) -> None:
    note = notebook.add("one", ["work"])
    changed = notebook.update(note.id, "two")
    assert (changed.id, changed.text, changed.tags) == (note.id, "two", ("work",))
    assert notebook.get(note.id) == changed


@pytest.mark.parametrize("number", [0, 99, -1, 2**63, 10**40])
def test_an_unknown_number_is_refused_by_name(notebook: Notebook, number: int) -> None:
    for act in (notebook.get, notebook.delete, lambda number: notebook.update(number, "x")):
        with pytest.raises(NotesError, match=f"no note {number}"):
            act(number)
    assert len(notebook.recent()) == 3


@pytest.mark.parametrize(
    ("text", "tags", "reason"),
    [
        ("  ", [], "needs some text"),
        ("x" * (MAX_NOTE_LENGTH + 1), [], "at most"),
        ("x", [str(number) for number in range(MAX_TAGS + 1)], "tags"),
        ("x", ["t" * (MAX_TAG_LENGTH + 1)], "tag has at most"),
    ],
)
def test_what_exceeds_a_limit_is_refused(
    notebook: Notebook, text: str, tags: list[str], reason: str
) -> None:
    with pytest.raises(NotesError, match=reason):
        notebook.add(text, tags)
    assert len(notebook.recent()) == 3


@pytest.mark.slow
def test_a_full_notebook_takes_no_more(notebook: Notebook) -> None:
    for number in range(MAX_NOTES - 3):
        notebook.add(str(number))
    with pytest.raises(NotesError, match="full"):
        notebook.add("one too many")
    assert len(notebook.recent()) == MAX_NOTES


@pytest.mark.slow
def test_many_notebooks_on_one_file_write_side_by_side(path: Path) -> None:
    failures: list[Exception] = []

    def write(name: int) -> None:
        try:
            notebook = Notebook(path)
            for number in range(10):
                notebook.add(f"{name}-{number}")
            notebook.close()
        except Exception as error:  # noqa: BLE001 - reported below
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    notebook = Notebook(path)
    assert len(notebook.recent()) == 63
    notebook.close()


def test_a_file_that_is_no_notebook_is_set_aside(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"precious, but not SQLite" * 100)
    notebook = Notebook(path)
    assert len(notebook.recent()) == 3
    notebook.close()
    (aside,) = path.parent.glob("notes.db.corrupt-*")
    assert aside.read_bytes().startswith(b"precious")


def test_a_notebook_of_a_newer_version_is_left_alone(path: Path) -> None:
    Notebook(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(NotesError, match="newer"):
        Notebook(path)
    assert [file.name for file in path.parent.glob("*corrupt*")] == []


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotesError, match="cannot be used"):
        Notebook(tmp_path / "file" / "notes.db")
