"""A settings file is begun; edits keep what they are not about, to the byte."""

import json
import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.settings.edits import (
    EditError,
    add_server,
    begin_settings,
    remove_server,
    sample_settings,
)
from tui.engine.settings.sources.document import parse_document

ENTRY = {"command": "x", "args": ["ü"]}
ADDED = '"new": {\n      "command": "x",\n      "args": [\n        "ü"\n      ]\n    }'

COMMENTED = """// mine
{
  "theme": "dark", // keep
  // servers
  "mcpServers": {
    "a": { "command": "x" }, // the first
    /* two { */
    "b": { "url": "http://h" } // last, and
  },
  "unknown": { "key": [1, 2,], },
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "settings.json"


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def test_a_file_is_begun(file: Path) -> None:
    add_server(file, "new", ENTRY)
    assert json.loads(file.read_text("utf-8")) == {"mcpServers": {"new": ENTRY}}
    assert file.stat().st_mode & 0o777 == 0o600


def test_an_entry_is_added_at_the_end_and_all_else_stays(file: Path) -> None:
    add_server(written(file, COMMENTED), "new", ENTRY)
    last = '"b": { "url": "http://h" }'
    assert file.read_text("utf-8") == COMMENTED.replace(
        f"{last} // last, and\n", f"{last}, // last, and\n    {ADDED}\n"
    )


@pytest.mark.parametrize("text", ["// see {docs}\n", "{ // my notes\n}", "// see {docs}\n{}"])
def test_comments_of_an_empty_file_stay(file: Path, text: str) -> None:
    comment = text.partition("//")[2].partition("\n")[0]
    add_server(written(file, text), "new", ENTRY)
    assert comment in file.read_text("utf-8")


def test_line_ends_stay_those_of_the_file(file: Path) -> None:
    text = '{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n'
    file.parent.mkdir()
    file.write_bytes(text.encode())
    add_server(file, "new", ENTRY)
    assert b"\n" not in file.read_bytes().replace(b"\r\n", b"")
    remove_server(file, "new")
    assert file.read_bytes() == text.encode()


def test_nothing_is_made_where_there_is_nothing_to_remove(file: Path) -> None:
    with pytest.raises(EditError):
        remove_server(file, "new")
    assert not file.parent.exists()


def test_an_entry_that_is_removed_takes_its_line_along(file: Path) -> None:
    remove_server(written(file, COMMENTED), "a")
    assert file.read_text("utf-8") == COMMENTED.replace(
        '    "a": { "command": "x" }, // the first\n', "     // the first\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "", " // nothing\n", '{"mcpServers": {}}', '{"mcpServers": {},}'),
        *('{"mcpServers": { /* none */ }}', '{"mcpServers": {"a": {"command": "x"}}}'),
        '{"mcpServers": {"a": {"command": "x"},}}',
        '{"mcpServers": {"a": {"command": "x"} /* , */ }}',
        '{"mcpServers": {"a": {"command": "x"} /* c */ , // d\n }}',
        *('{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}\r\n', '{"theme": "dark"}'),
        *('{"theme": "dark", // x\n}', '{"mcp\\u0053ervers" /* : */ : {"a\\"{": {}}}', COMMENTED),
    ],
)
def test_what_was_added_can_be_removed_and_all_else_means_the_same(file: Path, text: str) -> None:
    before = parse_document(text).content
    add_server(written(file, text), "new", ENTRY)
    servers = {**before.get("mcpServers", {}), "new": ENTRY}
    assert parse_document(file.read_text("utf-8")).content == {**before, "mcpServers": servers}
    remove_server(file, "new")
    after = parse_document(file.read_text("utf-8")).content
    assert {"mcpServers": {}, **before} == after
    for comment in ("// keep", "/* two { */", "// last, and", "/* c */"):
        assert (comment in text) == (comment in file.read_text("utf-8"))


@given(
    names=st.lists(st.text(max_size=5), unique=True, max_size=4),
    gaps=st.lists(st.sampled_from(["", " ", "\n", "// c\n", "/* , { */", "\t\n  "]), min_size=20),
    trailing=st.booleans(),
    chosen=st.integers(0, 3),
)
def test_any_entry_of_any_layout_can_be_removed(
    tmp_path_factory: pytest.TempPathFactory,
    names: list[str],
    gaps: list[str],
    trailing: bool,
    chosen: int,
) -> None:
    gap = iter(gaps)
    members = (",").join(
        f"{next(gap)}{json.dumps(name)}{next(gap)}:{next(gap)}{{}}{next(gap)}" for name in names
    )
    text = f'{{"mcpServers": {{{members}{"," if trailing and names else ""}{next(gap)}}}}}'
    file = written(tmp_path_factory.mktemp("edits") / "s.json", text)
    add_server(file, "new entry", {})
    assert list(parse_document(file.read_text("utf-8")).content["mcpServers"])[-1] == "new entry"
    gone = [*names, "new entry"][chosen % (len(names) + 1)]
    remove_server(file, gone)
    left = [name for name in [*names, "new entry"] if name != gone]
    assert list(parse_document(file.read_text("utf-8")).content["mcpServers"]) == left


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(("{", "line 1: not valid JSON"), ('{"mcpServers": []}', "must be an object")),
        ('{"mcpServers": {"new": {}}}', "new is there already"),
        *(('{"a": 1, "a": 2}', "stands twice"), ('"text"', "must contain an object")),
    ],
)
def test_a_file_that_cannot_be_edited_stays_as_it_is(file: Path, text: str, words: str) -> None:
    written(file, text)
    with pytest.raises(EditError, match=words):
        add_server(file, "new", ENTRY)
    assert file.read_text("utf-8") == text


def test_what_is_not_there_cannot_be_removed(file: Path) -> None:
    with pytest.raises(EditError, match="no such server"):
        remove_server(written(file, COMMENTED), "new")


def test_permissions_and_a_link_stay(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "real.json"
    target.write_text("{}")
    target.chmod(0o644)
    file.parent.mkdir()
    file.symlink_to(target)
    add_server(file, "new", ENTRY)
    assert file.is_symlink()
    assert os.stat(target).st_mode & 0o777 == 0o644  # noqa: PTH116 - follows nothing else


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


def test_on_a_full_disk_no_empty_file_stays_in_the_way(home: Path) -> None:
    _, most = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        with pytest.raises(OSError, match="too large"):
            begin_settings(home)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (home / ".gemini" / "settings.json").exists()
