"""Regular expressions of servers: none takes long, and everyday ones work."""

import json
import subprocess
import sys
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.rows import row
from tui.engine.mcp.schema.safe_regex import find

MAX_SECONDS = 0.2
"""Longest processor time of one try; 20 ms are allowed, the rest is for a slow machine."""

TRY_ALL = """
import json, sys, time
from tui.engine.mcp.schema.safe_regex import find
slowest = 0.0
for pattern, text in json.load(sys.stdin):
    began = time.process_time()
    find(pattern, text)
    slowest = max(slowest, time.process_time() - began)
print(slowest)
"""

ATOMS = st.sampled_from(["a", "b", "[ab]", ".", r"\w", "[^b]", "^", "(?:)"])
COUNTS = st.sampled_from(["*", "+", "?", "*?", "{0,8}", "{1,8}", "{3}", "{2,}", "{0,60}", "{900}"])


def larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Sequences, choices, repetitions and assertions of smaller expressions."""
    return st.one_of(
        st.lists(parts, min_size=1, max_size=5).map("".join),
        st.lists(parts, min_size=2, max_size=3).map(lambda options: f"({'|'.join(options)})"),
        st.tuples(parts, COUNTS).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(parts, st.integers(2, 25)).map(lambda pair: f"(?:{pair[0]})" * pair[1]),
        parts.map(lambda part: f"(?={part})"),
    )


PATTERNS = st.recursive(ATOMS, larger, max_leaves=12).map(lambda pattern: pattern + "!")
TEXTS = st.integers(0, 300).map(lambda length: "a" * length + "?")


def slowest(tries: list[tuple[str, str]]) -> float:
    """Try expressions in a process, which can be ended while `re` works; give the longest time."""
    command = [sys.executable, "-c", TRY_ALL]
    return float(subprocess.check_output(command, input=json.dumps(tries), text=True, timeout=30))


@settings(max_examples=6)
@given(st.lists(st.tuples(PATTERNS, TEXTS), min_size=80, max_size=160))
def test_no_expression_that_is_tried_takes_long(tries: list[tuple[str, str]]) -> None:
    assert slowest(tries) < MAX_SECONDS


def test_a_search_that_takes_too_long_is_given_up() -> None:
    for pattern in [
        "^(a|aa)+$",
        "([a-z]{1,8}){1,8}[0-9]",
        "(a|aa)*" * 25 + "c",
        "(a?){50}a{50}b",
        "(?=(a+)+b)",
    ]:
        with row(pattern):
            began = time.process_time()
            assert find(pattern, "a" * 61 + "!") is not True
            assert time.process_time() - began < 1, "other work of this process is in it"
            if pattern == "^(a|aa)+$":
                assert find(pattern, "a" * 61 + "!") is None, "there is no result"


GREEDY = [
    *("a{4294967294}", "(?:a{1000}){1000}", "((((((a|b){9}){9}){9}){9}){9}){9}"),
    *("(?x)(?:a{900} b) {900}", "(?:[[:alpha:])]a{900}b){900}", "(?R)", "(?:){1000000000}" * 9),
    *("(()){700}", "(?:(){900}){1,8}", "((((((a|b){3}){3}){3}){3}){3}){3}", "(", "a" * 300),
]


def test_what_would_need_much_memory_or_is_unknown_is_not_compiled() -> None:
    assert slowest([(pattern, "a" * 60) for pattern in GREEDY]) < 1
    for pattern in GREEDY:
        assert find(pattern, "a" * 60) is None, pattern


def test_everyday_expressions_are_tried() -> None:
    for pattern, text, found in [
        (r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$", "somebody@mail.example.org", True),
        (r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "550e8400", False),
        (r"[a-z]+", "1" * 900, False),
        (r"^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$", "1.22.333", True),
        (r"^(?i)(get|put)$", "GET", True),
        (r"^\p{Lu}\p{L}+$", "Ärger", True),
        (r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z]{2,63}$", "www.example.org", True),
        (r"^(?:[A-Za-z0-9+/]{4}){0,200}(?:[A-Za-z0-9+/]{2}==)?$", "QUJD" * 50, True),
        (r"^(([01]?\d\d?|2[0-4]\d|25[0-5])\.){3}([01]?\d\d?|2[0-4]\d|25[0-5])$", "127.0.0.1", True),
        (r"^[0-9A-F]{128}( [0-9A-F]{128}){3}$", " ".join(["A" * 128] * 4), True),
        (r"^[]()]{2}$", "()", True),
    ]:
        assert find(pattern, text) is found, pattern
