"""Numbers in JSON: what they cost is bounded where they are read."""

import json

import pytest

from tests.support.rows import row
from tui.model.bounded_json import MAX_ALL_DIGITS, MAX_DIGITS, JsonError, read_json, read_value

LONG = "7" * (MAX_DIGITS + 1)
MANY = ",".join(["7" * MAX_DIGITS] * (MAX_ALL_DIGITS // MAX_DIGITS + 1))


def test_E43_a_number_of_many_digits_is_refused_wherever_it_stands() -> None:
    for number in (LONG, f"-{LONG}", f"0.{LONG}", f"{LONG}.5", f"1e{LONG}", f"1e-{LONG}", MANY):
        for text in (f"[{number}]", f'{{"a":{{"b":[1,{number}]}}}}', f'["\\"",{number},"\\\\"]'):
            with row(text[:40]), pytest.raises(JsonError):
                read_value(text.encode())
        if number is not MANY:
            with row(number[:40]), pytest.raises(JsonError, match="out of range"):
                read_json(f"[{number}]")
    with pytest.raises(JsonError):
        read_value(f"[NaN,{LONG}]".encode())  # mended on another way


def test_E43_long_numbers_within_texts_and_numbers_of_the_most_digits_pass() -> None:
    texts = [LONG, f'"{LONG}\\"', f"\\{LONG}", MANY]
    assert read_value(json.dumps(texts).encode()) == texts
    largest = "9" * MAX_DIGITS
    assert read_value(f"[{largest},1e999999]".encode()) == [int(largest), float("inf")]
