"""Edited arguments: read as strictly as they are shown, and told to the model."""

import pytest

from tests.unit.engine.chats.support import make_tool
from tui.engine.approval.inquiry import UnusableEditError
from tui.engine.chats import calls as module
from tui.engine.chats.calls import read_edit, told_changes

SCHEMA = make_tool("go").schema


async def test_an_edit_is_what_is_sent_and_how_it_is_shown() -> None:
    edit = await read_edit('{"text": "a\\u202eb"}', SCHEMA)
    assert edit.arguments == {"text": "a\u202eb"}
    assert edit.shown == '{\n  "text": "a\\u202eb"\n}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("[]", "must be an object"),
        ('{"text": 1, "text": 2}', "duplicate key"),
        ('{"text": NaN}', "not a JSON number"),
        ('{"text": 1e999}', "out of range"),
        ('{"text": "\\ud800"}', "surrogate"),
        ('{"wrong": 1}', "wrong. was unexpected"),
        ("[" * 100_000, "nested deeper"),
    ],
)
async def test_an_edit_that_says_two_things_or_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(UnusableEditError, match=words):
        await read_edit(text, SCHEMA)


async def test_an_edit_longer_than_anyone_reads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EDIT", 10)
    with pytest.raises(UnusableEditError, match="longer than 10"):
        await read_edit('{"text": "long"}', SCHEMA)


def test_the_model_is_told_each_change() -> None:
    told = told_changes({"a": 1, "b": "x", "c": True}, {"b": "y", "c": 1, "d": [2]})
    assert told == (
        'The user changed the arguments before the call: "a" was removed; "b" is now "y"; '
        '"c" is now 1; "d" was added: [2].'
    )


def test_a_long_change_is_told_in_short() -> None:
    assert len(told_changes({}, {"a": "x" * 100_000})) < 1_200
    many = {f"k{number}": number for number in range(100)}
    assert told_changes({}, many).endswith("; and 80 more.")
