"""Settings files as documents: how they are read and edited, and the schema."""

import contextlib
import json
import os
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rows import row
from tests.unit.engine.settings.conftest import Machine, messages
from tui.engine.settings import edits
from tui.engine.settings.origins import descriptions
from tui.engine.settings.sources.document import (
    LOCATED_ITEMS,
    MAX_DUPLICATES,
    MAX_FILE,
    BadDocumentError,
    dotted,
    parse_document,
    read_document,
)
from tui.model import settings
from tui.model.bounded_json import MAX_DEPTH
from tui.model.servers import ServerStatus, Transport

Json = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=6), Json, max_size=5))
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


def test_a_byte_order_mark_is_skipped_and_an_empty_file_is_an_empty_object(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    document = read_document(file)
    assert document is not None
    assert document.content == {"a": 1}
    empty = ("", "  \n", "// only a comment\n", "{}")
    assert [parse_document(text).content for text in empty] == [{}] * 4


def test_each_key_and_item_knows_its_line() -> None:
    document = parse_document('{\n"a": {\n/* x\n*/ "b.c": [1,\n2, {"d": 0}]\n}}')
    assert document.line_of(("a",)) == 2
    assert document.line_of(("a", "b.c")) == 4
    assert document.line_of(("a", "b.c", 1)) == 5
    assert document.line_of(("a", "b.c", 2, "d")) == 5
    assert document.line_of(("a", "not there")) == 2
    assert document.line_of(("not there",)) == 0
    document = parse_document('{"a":\n[\n' + ",\n".join(["0"] * (LOCATED_ITEMS + 5)) + "]}")
    assert document.line_of(("a", 0)) == 3
    assert document.line_of(("a", LOCATED_ITEMS)) == 1


def test_a_bad_text_is_refused_with_its_line() -> None:
    for text, line, word in [
        *(('{"a": 1\n"b": 2}', 2, "delimiter"), ('{\n"a": tru}', 2, "expecting value")),
        *(('{\n"a": "x\n"}', 2, "not closed"), ("{\n/* never\n\n", 2, "comment")),
        *(("{'a': 1}", 1, "double quotes"), ('{\n"a": NaN}', 0, "NaN")),
        *(('{"a": [0,\n-Infinity]}', 0, "Infinity"), ('{"a":\n1e999}', 0, "out of range")),
        *(('{"a":\n' + "9" * 5000 + "}", 0, "out of range"), ('{"a":\n"\\ud800"}', 0, "surrogate")),
        *(("[1]", 0, "object"), ('{"a": 1,,}', 1, "expecting"), ("{,}", 1, "expecting")),
        *(('{"a": [,]}', 1, "expecting"), ("\n\u202e{}", 2, "U+202E")),
        ("{\n" + '"a":{' * (MAX_DEPTH + 1) + "}" * (MAX_DEPTH + 2), 0, "nested"),
    ]:
        with row(text), pytest.raises(BadDocumentError, match=word.replace("+", r"\+")) as caught:
            parse_document(text)
        assert caught.value.line == line, text


def test_of_a_key_that_stands_twice_the_last_counts_and_its_line_is_known() -> None:
    for text, line, key in [
        ('{"a": {"command": "safe",\n"command": "evil"}}', 2, "a.command"),
        ('{"a": 1,\n"\\u0061": 2}', 2, "a"),
        ('{"x": [{}, {"b": 1,\n\n"b": 2}]}', 3, "x[1].b"),
    ]:
        document = parse_document(text)
        assert [(dotted(path), at) for path, at in document.duplicates] == [(key, line)], text
        assert document.content == json.loads(text)


def test_few_duplicates_are_noted_and_none_in_different_objects() -> None:
    document = parse_document("{" + ",".join(['"a": 1'] * 5_000) + "}")
    assert len(document.duplicates) == MAX_DUPLICATES
    document = parse_document('{"a": {"k": 1}, "b": [{"k": 2}, {"k": 3}], "k": "\\ud83d\\ude00"}')
    assert (document.duplicates, document.content["k"]) == ((), "😀"), "a whole pair"


def test_a_hostile_text_costs_no_more_than_its_size() -> None:
    for start, unit, end in [
        *(("{/*", "\n", ""), ("", "[", ""), ('{"a":[', "1,", ""), ("", '"', ""), ("", "/", "")),
        *(('{"a":"', "\\", ""), ('{"a": 1', " ", ",}")),
    ]:
        seconds: list[float] = []
        for size in (100_000, 400_000):
            text = start + unit * (size // len(unit)) + end
            started = time.process_time()
            with contextlib.suppress(BadDocumentError):
                parse_document(text)
            seconds.append(time.process_time() - started)
        # the wrong algorithm takes sixteen times as long for four times the text
        assert seconds[1] < 10 * max(seconds[0], 0.05), start


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


def test_a_file_that_is_too_large_or_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b" " * (MAX_FILE + 1))
    with pytest.raises(BadDocumentError, match="larger than 1024 KiB"):
        read_document(file)
    file.write_bytes(b" " * MAX_FILE)
    assert read_document(file) is not None
    file.write_bytes('{\n"a": "é"}'.encode("latin-1"))
    with pytest.raises(BadDocumentError, match="not UTF-8 text; the file is ignored"):
        read_document(file)


def test_a_path_is_written_with_dots_and_cleaned() -> None:
    assert dotted(("mcpServers", "git", "args", 0)) == "mcpServers.git.args[0]"
    assert "\x1b" not in dotted(("mcpServers", "\x1b[31mred\n"))


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


def test_an_entry_is_added_at_the_end_and_all_else_stays(file: Path) -> None:
    edits.add_server(file, "new", ENTRY)
    assert json.loads(file.read_text("utf-8")) == {"mcpServers": {"new": ENTRY}}
    assert file.stat().st_mode & 0o777 == 0o600, "a file is begun"
    edits.add_server(written(file, COMMENTED), "new", ENTRY)
    last = '"b": { "url": "http://h" }'
    assert file.read_text("utf-8") == COMMENTED.replace(
        f"{last} // last, and\n", f"{last}, // last, and\n    {ADDED}\n"
    )


@pytest.mark.parametrize("text", ["// see {docs}\n", "{ // my notes\n}", "// see {docs}\n{}"])
def test_comments_of_an_empty_file_stay(file: Path, text: str) -> None:
    comment = text.partition("//")[2].partition("\n")[0]
    edits.add_server(written(file, text), "new", ENTRY)
    assert comment in file.read_text("utf-8")


def test_line_ends_stay_those_of_the_file(file: Path) -> None:
    text = '{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n'
    file.parent.mkdir()
    file.write_bytes(text.encode())
    edits.add_server(file, "new", ENTRY)
    assert b"\n" not in file.read_bytes().replace(b"\r\n", b"")
    edits.remove_server(file, "new")
    assert file.read_bytes() == text.encode()


def test_nothing_is_made_where_there_is_nothing_to_remove(file: Path) -> None:
    with pytest.raises(edits.EditError):
        edits.remove_server(file, "new")
    assert not file.parent.exists()
    with pytest.raises(edits.EditError, match="no such server"):
        edits.remove_server(written(file, COMMENTED), "new")


def test_an_entry_that_is_removed_takes_its_line_along(file: Path) -> None:
    edits.remove_server(written(file, COMMENTED), "a")
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
    edits.add_server(written(file, text), "new", ENTRY)
    servers = {**before.get("mcpServers", {}), "new": ENTRY}
    assert parse_document(file.read_text("utf-8")).content == {**before, "mcpServers": servers}
    edits.remove_server(file, "new")
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
    edits.add_server(file, "new entry", {})
    assert list(parse_document(file.read_text("utf-8")).content["mcpServers"])[-1] == "new entry"
    gone = [*names, "new entry"][chosen % (len(names) + 1)]
    edits.remove_server(file, gone)
    left = [name for name in [*names, "new entry"] if name != gone]
    assert list(parse_document(file.read_text("utf-8")).content["mcpServers"]) == left


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("", {}, '{\n  "gemdeck": {\n    "keys": {\n      "a.b": {}\n    }\n  }\n}\n'),
        (
            "{ // mine\n}",
            ["x"],
            '{ // mine\n  "gemdeck": {\n    "keys": {\n      "a.b": [\n        "x"\n      ]\n'
            "    }\n  }\n}",
        ),
        (
            '{"gemdeck": {"bell": 1 /* b */}}',
            1,
            '{"gemdeck": {"bell": 1, /* b */\n    "keys": {\n      "a.b": 1\n    }\n  }}',
        ),
        (
            '{"gemdeck": {"keys": {"a.b": ["f3"], // k\n}}}',
            "f4",
            '{"gemdeck": {"keys": {"a.b": "f4", // k\n}}}',
        ),
        (
            '{"gemdeck": {"keys": {\n"c": 1, // c\n"a.b": 2\n}}}',
            None,
            '{"gemdeck": {"keys": {\n"c": 1 // c\n}}}',
        ),
    ],
)
def test_a_value_is_written_replaced_and_removed_and_all_else_stays(
    file: Path, text: str, value: object, expected: str
) -> None:
    edits.set_value(written(file, text), value, "gemdeck", "keys", "a.b")
    assert file.read_text("utf-8") == expected


def test_a_value_that_has_no_place_is_refused(file: Path) -> None:
    for text, value, words in [
        *(("{}", None, "has no a.b"), ('{"gemdeck": {"keys": []}}', 1, "keys must be")),
        *(
            ('{"gemdeck": null}', 1, "gemdeck must be"),
            ('{"gemdeck": {"keys": {}}}', None, "no a.b"),
        ),
    ]:
        with row(text), pytest.raises(edits.EditError, match=words):
            edits.set_value(written(file, text), value, "gemdeck", "keys", "a.b")
        assert file.read_text("utf-8") == text


def test_a_file_that_cannot_be_edited_stays_as_it_is(file: Path) -> None:
    for text, words in [
        *(("{", "line 1: not valid JSON"), ('{"mcpServers": []}', "must be an object")),
        ('{"mcpServers": {"new": {}}}', "new already exists"),
        *(('{"a": 1, "a": 2}', "duplicate key"), ('"text"', "must be an object")),
    ]:
        written(file, text)
        with row(text), pytest.raises(edits.EditError, match=words):
            edits.add_server(file, "new", ENTRY)
        assert file.read_text("utf-8") == text


def test_permissions_and_a_link_stay(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "real.json"
    target.write_text("{}")
    target.chmod(0o644)
    file.parent.mkdir()
    file.symlink_to(target)
    edits.add_server(file, "new", ENTRY)
    assert file.is_symlink()
    assert os.stat(target).st_mode & 0o777 == 0o644  # noqa: PTH116 - follows nothing else


def test_a_file_is_begun_that_can_be_read_and_one_that_is_there_stays(home: Path) -> None:
    path = edits.begin_settings(home)
    assert path == home / ".gemini" / "settings.json"
    assert parse_document(path.read_text()).content == {"mcpServers": {}}
    path.write_text("{}")
    assert edits.begin_settings(home) == path
    assert path.read_text() == "{}"


def test_on_a_full_disk_no_empty_file_stays_in_the_way(home: Path) -> None:
    _, most = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        with pytest.raises(OSError, match="too large"):
            edits.begin_settings(home)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (home / ".gemini" / "settings.json").exists()


SAMPLE = Path(__file__).parents[4] / "settings.sample.json"
SECTIONS = (
    *(
        settings.ServerSettings,
        settings.OAuthSettings,
        settings.McpSettings,
        settings.ModelSettings,
        settings.GemdeckSettings,
    ),
    *(settings.ToolPattern, settings.ContextSettings, settings.PriceSettings, settings.ModelPrice),
)
NOT_SUPPORTED = {"tcp"}


def schema_keys() -> set[str]:
    keys = {field.alias or name for model in SECTIONS for name, field in model.model_fields.items()}
    return keys | {"mcpServers", "mcp", "gemdeck", "model", "context"}


def keys_in(value: object) -> Iterator[str]:
    match value:
        case dict():
            for key, item in value.items():
                yield key
                yield from keys_in(item)
        case list():
            for item in value:
                yield from keys_in(item)


@pytest.fixture
def sample() -> str:
    return SAMPLE.read_text(encoding="utf-8")


def test_every_key_has_a_description_and_is_camel_case() -> None:
    for model in SECTIONS:
        words = descriptions(model)
        assert len(words) == len(model.model_fields)
        assert all(one.endswith(".") for one in words.values()), model
    assert all("_" not in key for key in schema_keys())


def test_the_sample_holds_every_key(sample: str) -> None:
    assert schema_keys() - NOT_SUPPORTED <= set(keys_in(parse_document(sample).content))
    assert all(f'// "{key}":' in sample for key in NOT_SUPPORTED)


def test_every_key_of_the_sample_has_a_comment(sample: str) -> None:
    lines = sample.splitlines()
    for key in schema_keys():
        numbers = [number for number, line in enumerate(lines) if f'"{key}":' in line]
        assert any("//" in lines[number] or "//" in lines[number - 1] for number in numbers), key


def test_the_sample_loads_without_problems(machine: Machine, sample: str) -> None:
    names = set(
        re.findall(r"\$\{?(\w+)", "\n".join(line.split(" // ")[0] for line in sample.splitlines()))
    )
    machine.environ |= {name: f"/{name.lower()}" for name in names}
    machine.write("user", sample)
    loaded = machine.load()
    assert messages(loaded) == []
    statuses = {str(server.id): server.withheld for server in loaded.servers}
    assert statuses.pop("old") is ServerStatus.DISABLED
    assert set(statuses.values()) == {None}
    assert len(statuses) == 7
    assert {server.transport for server in loaded.servers} == set(Transport)


@pytest.mark.parametrize(
    ("entry", "tools", "expected"),
    [
        (
            '{"command": "x"}',
            ["a"],
            '{"command": "x",\n      "excludeTools": [\n        "a"\n      ]\n    }',
        ),
        ('{"excludeTools": []}', ["a"], '{"excludeTools": [\n        "a"\n      ]}'),
        ('{"excludeTools": ["a", "b"]}', ["b"], '{"excludeTools": [ "b"]}'),
        ('{"excludeTools": ["b", // bad\n]}', [], '{"excludeTools": [ // bad\n]}'),
        (
            '{"excludeTools": [\n "a", // why\n /* and */ "b"\n]}',
            ["a", 'c"\n\\'],
            '{"excludeTools": [\n "a", // why\n /* and */\n        "c\\"\\n\\\\"\n]}',
        ),
    ],
)
def test_the_tools_that_an_entry_leaves_out_change_one_by_one(
    file: Path, entry: str, tools: list[str], expected: str
) -> None:
    text = '{{ // mine\n  "mcpServers": {{\n    "s": {}, // s\n  }}\n}}'
    edits.set_excluded(written(file, text.format(entry)), "s", tools)
    assert file.read_text("utf-8") == text.format(expected)
    assert (
        parse_document(file.read_text("utf-8")).content["mcpServers"]["s"]["excludeTools"] == tools
    )
