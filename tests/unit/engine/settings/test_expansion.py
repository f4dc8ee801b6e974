import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.definitions.expansion import MAX_EXPANDED, MAX_GROWTH, Expansion, references_in

ENVIRON = {"F": "foo", "EMPTY": "", "NESTED": "$F ${F}", "MY_TOKEN": "tok-secret"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$F", "foo"),
        ("${F}", "foo"),
        ("v-$F-${NOPE:-d}", "v-foo-d"),
        ("${F:-d}", "foo"),
        ("${NOPE:-}", ""),
        ("${EMPTY:-d}", ""),
        ("$F$F/${F}", "foofoo/foo"),
        ("$FF", "$FF"),
        ("$NOPE", "$NOPE"),
        ("${NOPE}", "${NOPE}"),
        ("cost $5", "cost $5"),
        ("$", "$"),
        ("${}", "${}"),
        ("${F", "${F"),
        ("$Fé", "fooé"),
        ("${A:-${F}}", "${F}"),  # one pass: the default is not read again
        ("${A:-b:-c}", "b:-c"),
        ("${:-x}", "${:-x}"),
        ("$NESTED", "$F ${F}"),
        ("$$F", "$foo"),
    ],
)
def test_a_reference_expands_as_gemini_cli_does(text: str, expected: str) -> None:
    assert Expansion(ENVIRON).text(text) == expected


@given(st.text())
def test_a_text_without_a_dollar_stays_as_it_is(text: str) -> None:
    plain = text.replace("$", "")
    assert Expansion({"a": "b"}).text(plain) is plain


@given(st.text(alphabet="${}:-AB x\n", max_size=40))
def test_nothing_set_and_no_default_changes_nothing(text: str) -> None:
    assert Expansion({}).text(text.replace(":-", "")) == text.replace(":-", "")


@given(st.text(alphabet="${}:-AB x\n", max_size=40), st.text(max_size=10))
def test_expansion_never_raises_and_reports_only_what_it_left(text: str, value: str) -> None:
    expansion = Expansion({"A": value})
    result = expansion.text(text)
    assert "A" not in expansion.undefined
    assert all(name in result for name in expansion.undefined)


def test_every_string_in_a_value_expands_and_keys_do_not() -> None:
    value = {"$F": ["$F", {"k": "${F}!"}], "n": 5, "b": True, "z": None}
    expected = {"$F": ["foo", {"k": "foo!"}], "n": 5, "b": True, "z": None}
    assert Expansion(ENVIRON).value(value) == expected


def test_an_undefined_variable_is_reported_with_its_first_key() -> None:
    expansion = Expansion(ENVIRON)
    expansion.value({"a": ["x", "$NOPE"], "b": "${NOPE} ${OTHER} $5 ${D:-d}"}, ("top",))
    assert expansion.undefined == {"NOPE": ("top", "a", 1), "OTHER": ("top", "b")}


def test_values_of_secret_variables_are_remembered() -> None:
    expansion = Expansion(ENVIRON)
    expansion.text("Bearer $MY_TOKEN for $F")
    assert expansion.secrets == {"tok-secret"}
    assert "tok-secret" not in repr(expansion)


def test_a_string_that_would_grow_too_long_stays_as_it_is() -> None:
    expansion = Expansion({"P": "x" * 1000})
    text = "$P" * (MAX_EXPANDED // 1000 + 1)
    assert expansion.text(text, ("a",)) == text
    assert expansion.too_long == [("a",)]


def test_many_strings_together_grow_no_further_than_the_limit() -> None:
    expansion = Expansion({"P": "x" * 100_000})
    grown = expansion.value(["$P"] * 200)
    assert sum(map(len, grown)) <= MAX_GROWTH + 2 * 200
    assert expansion.too_long


@pytest.mark.parametrize("unit", ["${", "$", "${a:-", "$P", "${P}", "$é"])
def test_a_hostile_text_costs_no_more_than_its_size(unit: str) -> None:
    started = time.process_time()
    Expansion({"P": "x" * 1000}).text(unit * (500_000 // len(unit)))
    assert time.process_time() - started < 5


def test_in_env_and_headers_a_default_may_follow_a_dash() -> None:
    raw = {name: {"A": "${NOPE-d}", "B": "${F-d}", "C": "${NOPE-}"} for name in ("env", "other")}
    expansion = Expansion(ENVIRON, blank={"env"})
    values = expansion.members(raw)
    assert values["env"] == {"A": "d", "B": "foo", "C": ""}
    assert values["other"] == raw["other"]
    assert {"NOPE", "F"} <= set(references_in(raw))
