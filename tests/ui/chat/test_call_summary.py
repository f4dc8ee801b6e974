"""A tool call in a few words."""

import json

import pytest

from tui.ui.widgets.chat.tool_call import MAX_SCANNED, arguments_line, result_line


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, ""),
        ({"path": "long.txt", "head": 10, "all": False}, "path=long.txt  head=10  all=false"),
        ({"text": "buy milk", "empty": "", "none": None}, 'text="buy milk"  empty=""'),
        ({"content": "a\nb\nc\n", "path": "new.py"}, "path=new.py  content=3 lines"),
        (
            {"deep": {"path": "x"}, "all": [1, 2], "ids": [], "n": 1},
            "ids=[]  n=1  deep={…}  all=[…]",
        ),
        ({"long": "x" * 100, "a": 1}, f"a=1  long={'x' * 59}…"),
        ({"a": "\x1b[31mred\u202e"}, "a=red⟨U+202E⟩"),
    ],
)
def test_arguments_stand_in_one_line_with_short_ones_first(
    arguments: dict[str, object], line: str
) -> None:
    assert arguments_line(json.dumps(arguments, indent=2)) == line


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "not json",
        '  "a": ',
        '  "a": "\\',
        "{" * 100_000,
        '  "a": ' + "[" * 9_000 + "]" * 9_000,
    ],
)
def test_arguments_that_cannot_be_read_name_nothing_false(text: str) -> None:
    assert "=" not in arguments_line(text).removeprefix("a=")


def test_only_the_beginning_of_long_arguments_is_read() -> None:
    long = json.dumps({"a": 1, "content": "x" * 10 * MAX_SCANNED, "b": 2}, indent=2)
    assert arguments_line(long) == "a=1  content=…"


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("Added note 1", "Added note 1"),
        ("\n  first \nsecond\n", "2 lines · first"),
        ('{\n  "a": [\n    1\n  ]\n}', '5 lines · { "a": [ 1 ] }'),
        ("", ""),
    ],
)
def test_a_result_stands_in_one_line(result: str, line: str) -> None:
    assert result_line(result) == line
