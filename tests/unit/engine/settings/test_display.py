import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.definitions.definition import ServerDefinition, shown_target
from tui.engine.logs.redaction import (
    MASK,
    is_secret_name,
    is_secret_variable,
    masked_address,
    masked_words,
)
from tui.model.servers import Origin, ServerId, Transport
from tui.text import sanitize_line

STDIO = ServerDefinition(ServerId("it"), Origin.USER, Transport.STDIO)
HTTP = replace(STDIO, transport=Transport.HTTP)


def command_line(*words: str, secrets: frozenset[str] = frozenset()) -> str:
    return shown_target(replace(STDIO, command=words[0], args=words[1:], secrets=secrets))


@pytest.mark.parametrize(
    "words",
    [
        ("npx", "-y", "@modelcontextprotocol/server-everything@2025.3.1"),
        ("uvx", "mcp-server-git", "--repository", "/home/me/src/project-2024"),
        ("docker", "run", "-i", "--rm", "-e", "LOG_LEVEL=debug", "mcp/fetch"),
        ("docker", "run", "-i", "-e", "PWD=/work", "-e", "SSH_AUTH_SOCK=/run/agent", "mcp/git:1"),
        ("git", "log", "--author", "me", "--sort-key"),
        ("C:\\tools\\server.exe", "/port:80"),
    ],
)
def test_an_ordinary_command_line_is_shown_as_it_is(words: tuple[str, ...]) -> None:
    assert command_line(*words) == " ".join(words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("s", "--api-key", "hunter2"), "s --api-key ***"),
        (("s", "--token=hunter2", "x"), "s --token=*** x"),
        (("s", "-e", "GITHUB_TOKEN=hunter2"), "s -e GITHUB_TOKEN=***"),
        (("s", "--odbc", "PWD=hunter2"), "s --odbc PWD=***"),
        (("s", "--header", "Authorization: Bearer hunter2"), "s --header 'Authorization: ***'"),
        (("s", "--header", "X-Custom: Bearer hunter2"), "s --header 'X-Custom: Bearer ***'"),
        (("s", "ghp_abcdefghijklmnop"), "s ***"),
        (("s", "postgres://me:hunter2@db/x"), "s postgres://***@db/x"),
        (("s", "--url=https://h/p?k=hunter2&e=#f"), "s --url=https://h/p?k=***&e="),
        (("s", "--password", "--verbose"), "s --password --verbose"),
    ],
)
def test_secrets_in_a_command_line_are_masked(words: tuple[str, ...], expected: str) -> None:
    assert command_line(*words) == expected


def test_a_value_known_as_secret_is_masked_wherever_it_stands() -> None:
    secrets = frozenset({"s3cret", "s3cret-longer", "no"})
    assert command_line("s3cret", "a=s3cret-longer.", "no", secrets=secrets) == "*** a=***. no"


def test_blanks_that_push_a_word_out_of_sight_are_counted_or_written_out() -> None:
    shown = command_line("sh", "-c", "safe" + " " * 300 + "; rm -rf /", "a\nb", "c\td", "e\u3000f")
    assert shown == "sh -c 'safe[300 blanks]; rm -rf /' 'a\\nb' 'c\\td' 'e\\u3000f'"
    assert command_line("sh", "a \n\t b") == "sh 'a[4 blanks]b'"


def test_words_with_spaces_or_nothing_in_them_are_quoted() -> None:
    assert command_line("my server", "", 'a"b', "c") == "'my server' '' 'a\"b' c"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h.example:8443/mcp", "https://h.example:8443/mcp"),
        ("https://u:p@h/mcp?key=abc&flag#frag", "https://***@h/mcp?key=***&***"),
        ("https://h/s/ZmQwODk1ZTAtYjQ3ZS00ZDg2/mcp", "https://h/s/***/mcp"),
        ("https://h/550e8400-e29b-41d4-a716-446655440000", "https://h/***"),
        ("http://[::1", "***"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, expected: str) -> None:
    assert shown_target(replace(HTTP, url=url)) == expected


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.text(max_size=30))
def test_a_target_is_one_clean_line_and_hides_what_is_known(words: list[str], url: str) -> None:
    secret = "K9-very-secret"
    known = frozenset({secret})
    line = command_line(*words, f"a{secret}b", secrets=known)
    address = shown_target(replace(HTTP, url=url + secret, secrets=known))
    for shown in (line, address):
        assert secret not in shown
        assert sanitize_line(shown) == shown
        assert len(shown) <= 2_000


@pytest.mark.parametrize("name", ["API_KEY", "githubToken", "X-Api-Key", "--pat", "DB_PASSWORD"])
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(("value", "is_secret"), [("hunter2", True), ("/work", False)])
def test_a_pwd_is_a_password_unless_it_is_a_folder(value: str, is_secret: bool) -> None:
    assert is_secret_variable("PWD", value) is is_secret


@pytest.mark.parametrize(
    "name",
    [
        *("HOME", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "XDG_SESSION_TYPE", "DESKTOP_SESSION"),
        *("--author", "KEYBOARD", "PATH", "--compass", "monkey"),
    ],
)
def test_other_names_are_not_secret(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize("unit", ["a", "a1", "eyJ", "-", "a-", "=a", "http://a", "aaaaaaaa-", "$"])
def test_a_hostile_word_costs_no_more_than_its_size(unit: str) -> None:
    word = unit * (500_000 // len(unit))
    started = time.process_time()
    masked_words([word, *["x"] * 50_000])
    masked_address(f"https://h/{word}")
    assert time.process_time() - started < 5


def test_a_definition_does_not_show_what_may_be_secret_in_its_representation() -> None:
    definition = replace(
        STDIO, args=("hunter2",), env={"A": "hunter2"}, headers={"A": "hunter2"}, url="hunter2"
    )
    assert "hunter2" not in repr(definition)
    assert MASK not in repr(definition)
