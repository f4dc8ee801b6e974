import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.mcp.catalog.offered_tool import assign_names, sanitize_name, without_model_prefix

ALLOWED = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")

tool_names = st.text(min_size=1, max_size=80) | st.sampled_from(
    ["echo", "Echo", "e cho", "e_cho", "a__echo", "default_api.echo", "default_api", "1", "x" * 70]
)
offers = st.lists(
    st.tuples(st.sampled_from(["a", "b", "A", "a b", "a_b", "c"]), st.lists(tool_names)),
    max_size=5,
    unique_by=lambda offer: offer[0],
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("echo", "echo"),
        ("get.file-name_2", "get.file-name_2"),
        ("list files/all", "list_files_all"),
        ("grüße", "gr__e"),
        ("2nd", "_2nd"),
        ("-x", "_-x"),
        ("", "_"),
        ("a" * 63, "a" * 63),
        ("a" * 30 + "b" * 40, "a" * 28 + "___" + "b" * 32),
    ],
)
def test_a_name_is_made_one_that_gemini_allows(name: str, expected: str) -> None:
    assert sanitize_name(name) == expected


def test_the_first_server_in_settings_order_keeps_the_bare_name() -> None:
    names = assign_names([("git", ["log", "diff"]), ("svn", ["log"]), ("hg", ["log"])])
    assert names == {
        ("git", "log"): "log",
        ("git", "diff"): "diff",
        ("svn", "log"): "svn__log",
        ("hg", "log"): "hg__log",
    }


def test_names_that_become_equal_stay_apart() -> None:
    names = assign_names([("s", ["a b", "a_b", "a/b"])])
    assert names["s", "a_b"] == "a_b"
    assert len(set(names.values())) == 3


def test_names_that_differ_in_case_only_stay_apart() -> None:
    names = assign_names([("one", ["Read"]), ("two", ["read"])])
    assert names == {("one", "Read"): "Read", ("two", "read"): "two__read"}


def test_a_name_is_kept_from_what_is_reserved() -> None:
    names = assign_names([("s", ["default_api", "default_api.x", "free"])], reserved=["free"])
    assert names["s", "default_api"] == "s__default_api"
    assert names["s", "default_api.x"] == "s__default_api.x"
    assert names["s", "free"] == "s__free"


@given(offers)
def test_names_are_allowed_and_a_bijection(given_offers: list[tuple[str, list[str]]]) -> None:
    names = assign_names(given_offers)
    assert set(names) == {(server, tool) for server, tools in given_offers for tool in tools}
    assert len({name.lower() for name in names.values()}) == len(names)
    assert all(ALLOWED.fullmatch(name) for name in names.values())


@given(offers)
def test_names_do_not_depend_on_the_order_within_a_server(
    given_offers: list[tuple[str, list[str]]],
) -> None:
    shuffled = [(server, sorted(tools, key=hash)) for server, tools in given_offers]
    assert assign_names(given_offers) == assign_names(shuffled)


@given(offers)
def test_a_later_server_never_changes_the_names_of_the_earlier_ones(
    given_offers: list[tuple[str, list[str]]],
) -> None:
    names = assign_names(given_offers)
    before = assign_names(given_offers[:-1])
    assert {key: names[key] for key in before} == before


def test_a_prefix_that_models_add_is_taken_off() -> None:
    assert without_model_prefix("default_api.echo") == "echo"
    assert without_model_prefix("default_api:echo") == "echo"
    assert without_model_prefix("my.default_api.echo") == "my.default_api.echo"
