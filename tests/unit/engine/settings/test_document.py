import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.settings.sources.document import (
    LOCATED_ITEMS,
    MAX_DUPLICATES,
    MAX_FILE,
    BadDocumentError,
    dotted,
    parse_document,
    read_document,
)
from tui.model.bounded_json import MAX_DEPTH

Json = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)
Objects = st.dictionaries(st.text(max_size=6), Json, max_size=5)


@given(Objects)
def test_what_json_writes_is_read_back(value: dict[str, Any]) -> None:
    assert parse_document(json.dumps(value)).content == value
    assert parse_document(json.dumps(value, indent=2, ensure_ascii=False)).content == value


@given(st.text(alphabet="{}[]:,\"\\/* \n\tabu01'-.eE\ud800NI", max_size=60))
def test_no_text_raises_anything_but_a_bad_document(text: str) -> None:
    line = 0
    try:
        parse_document(text)
    except BadDocumentError as error:
        line = error.line
    assert 0 <= line <= text.count("\n") + 1


def test_comments_and_trailing_commas_are_accepted() -> None:
    text = """// top
    { /* one
         two */ "a": [1, 2, /* last */ ], // "b": 3,
      "url": "http://x/*y*/", "path": "a // b", }
    // end"""
    content = parse_document(text).content
    assert content == {"a": [1, 2], "url": "http://x/*y*/", "path": "a // b"}


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    document = read_document(file)
    assert document is not None
    assert document.content == {"a": 1}


@pytest.mark.parametrize("text", ["", "  \n", "// only a comment\n", "{}"])
def test_an_empty_file_is_an_empty_object(text: str) -> None:
    assert parse_document(text).content == {}


def test_each_key_and_item_knows_its_line() -> None:
    document = parse_document('{\n"a": {\n/* x\n*/ "b.c": [1,\n2, {"d": 0}]\n}}')
    assert document.line_of(("a",)) == 2
    assert document.line_of(("a", "b.c")) == 4
    assert document.line_of(("a", "b.c", 1)) == 5
    assert document.line_of(("a", "b.c", 2, "d")) == 5
    assert document.line_of(("a", "not there")) == 2
    assert document.line_of(("not there",)) == 0


def test_items_far_down_a_list_have_the_line_of_the_list() -> None:
    document = parse_document('{"a":\n[\n' + ",\n".join(["0"] * (LOCATED_ITEMS + 5)) + "]}")
    assert document.line_of(("a", 0)) == 3
    assert document.line_of(("a", LOCATED_ITEMS)) == 1


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        *(('{"a": 1\n"b": 2}', 2, "delimiter"), ('{\n"a": tru}', 2, "expecting value")),
        *(('{\n"a": "x\n"}', 2, "not closed"), ("{\n/* never\n\n", 2, "comment")),
        *(("{'a': 1}", 1, "double quotes"), ('{\n"a": NaN}', 2, "NaN")),
        *(('{"a": [0,\n-Infinity]}', 2, "-Infinity"), ('{"a":\n1e999}', 2, "out of range")),
        *(('{"a":\n' + "9" * 5000 + "}", 2, "out of range"), ('{"a":\n"\\ud800"}', 2, "surrogate")),
        *(("[1]", 1, "object"), ('{"a": 1,,}', 1, "expecting"), ("{,}", 1, "expecting")),
        *(('{"a": [,]}', 1, "expecting"), ("\n\u202e{}", 2, "U+202E")),
        ("{\n" + '"a":{' * (MAX_DEPTH + 1), 2, "nested"),
    ],
)
def test_a_bad_text_is_refused_with_its_line(text: str, line: int, word: str) -> None:
    with pytest.raises(BadDocumentError, match=word.replace("+", r"\+")) as caught:
        parse_document(text)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('{"a": {"command": "safe",\n"command": "evil"}}', 2, "a.command"),
        ('{"a": 1,\n"\\u0061": 2}', 2, "a"),
        ('{"x": [{}, {"b": 1,\n\n"b": 2}]}', 3, "x[1].b"),
    ],
)
def test_of_a_key_that_stands_twice_the_last_counts_and_its_line_is_known(
    text: str, line: int, key: str
) -> None:
    document = parse_document(text)
    assert [(dotted(path), at) for path, at in document.duplicates] == [(key, line)]
    assert document.content == json.loads(text)


def test_the_duplicates_that_are_noted_are_few() -> None:
    document = parse_document("{" + ",".join(['"a": 1'] * 5_000) + "}")
    assert len(document.duplicates) == MAX_DUPLICATES


def test_equal_keys_in_different_objects_are_fine() -> None:
    content = parse_document('{"a": {"k": 1}, "b": [{"k": 2}, {"k": 3}], "k": 4}').content
    assert content["k"] == 4


def test_half_a_surrogate_is_told_from_a_whole_pair() -> None:
    assert parse_document('{"a": "\\ud83d\\ude00"}').content == {"a": "😀"}


@pytest.mark.parametrize(
    ("start", "unit", "end"),
    [
        *(("{/*", "\n", ""), ("", "[", ""), ('{"a":[', "1,", ""), ("", '"', ""), ("", "/", "")),
        *(('{"a":"', "\\", ""), ('{"a": 1', " ", ",}")),
    ],
)
def test_a_hostile_text_costs_no_more_than_its_size(start: str, unit: str, end: str) -> None:
    text = start + unit * (500_000 // len(unit)) + end
    started = time.process_time()
    with contextlib.suppress(BadDocumentError):
        parse_document(text)
    assert time.process_time() - started < 5  # the wrong algorithm takes minutes


def test_a_missing_file_is_no_document(tmp_path: Path) -> None:
    assert read_document(tmp_path / "settings.json") is None
    (tmp_path / "file").write_text("")
    assert read_document(tmp_path / "file" / "settings.json") is None


def test_what_is_no_regular_file_is_refused_without_reading(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero")):
        with pytest.raises(BadDocumentError, match="not a regular file"):
            read_document(path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b" " * (MAX_FILE + 1))
    with pytest.raises(BadDocumentError, match="larger than 1024 KiB"):
        read_document(file)
    file.write_bytes(b" " * MAX_FILE)
    assert read_document(file) is not None


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes('{\n"a": "é"}'.encode("latin-1"))
    with pytest.raises(BadDocumentError, match="UTF-8") as caught:
        read_document(file)
    assert caught.value.line == 2


def test_a_path_is_written_with_dots_and_cleaned() -> None:
    assert dotted(("mcpServers", "git", "args", 0)) == "mcpServers.git.args[0]"
    assert "\x1b" not in dotted(("mcpServers", "\x1b[31mred\n"))
