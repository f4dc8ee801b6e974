"""Values of entries: variables, files of them, and how they are shown."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.definitions import altered, define_server
from tui.engine.definitions.definition import shown_target
from tui.engine.definitions.expansion import MAX_EXPANDED, MAX_GROWTH, Expansion, references_in
from tui.engine.logs import redaction
from tui.engine.settings.entries import salvaged
from tui.engine.settings.sources import source
from tui.model.servers import Origin, ServerId, Transport
from tui.model.settings_rules import MAX_ITEMS
from tui.text import sanitize_line


def test_the_usual_forms_are_read() -> None:
    text = "# word\nexport A=1\nB='two words'\nC=\"a\\nb\"\nD=\nE\nF=${A}\n"
    expected = {"A": "1", "B": "two words", "C": "a\nb", "D": "", "F": "${A}"}
    assert dict(source.parse_dotenv(text)) == expected


@given(st.text())
def test_any_text_gives_variables_that_a_process_could_have(text: str) -> None:
    for name, value in source.parse_dotenv(text).items():
        assert name.isidentifier()
        assert "\0" not in value


def test_it_is_bounded(tmp_path: Path) -> None:
    assert (
        len(source.parse_dotenv("".join(f"V{n}=1\n" for n in range(5_000)))) == source.MAX_VARIABLES
    )
    report = source.Report(tmp_path)
    (tmp_path / ".env").write_text("A=" + "x" * source.MAX_FILE)
    assert source.read_dotenv(tmp_path, report) == {}
    assert "larger than 64 KiB" in str(report.problems[0])


def test_what_is_no_text_is_a_problem_and_no_reason_to_look_elsewhere(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".env").write_text("A=1")
    first = tmp_path / ".gemini" / ".env"
    for content in (b"A=\xff", None):
        if content is None:
            first.unlink()
            os.mkfifo(first)
        else:
            first.write_bytes(content)
        report = source.Report(tmp_path)
        assert source.read_dotenv(tmp_path, report) == {}, content
        assert len(report.problems) == 1, content


def test_it_sets_nothing_in_the_process(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GEMDECK_TEST_VARIABLE=1")
    variables = source.read_dotenv(tmp_path, source.Report(tmp_path))
    assert variables["GEMDECK_TEST_VARIABLE"] == "1"
    assert "GEMDECK_TEST_VARIABLE" not in os.environ


ENVIRON = {"F": "foo", "EMPTY": "", "NESTED": "$F ${F}", "MY_TOKEN": "tok-secret"}


def test_a_reference_expands_as_gemini_cli_does() -> None:
    for text, expected in [
        *(("$F", "foo"), ("${F}", "foo"), ("v-$F-${NOPE:-d}", "v-foo-d"), ("${F:-d}", "foo")),
        *(("${NOPE:-}", ""), ("${EMPTY:-d}", ""), ("$F$F/${F}", "foofoo/foo"), ("$FF", "$FF")),
        *(("$NOPE", "$NOPE"), ("${NOPE}", "${NOPE}"), ("cost $5", "cost $5"), ("$", "$")),
        *(("${}", "${}"), ("${F", "${F"), ("$Fé", "fooé")),
        ("${A:-${F}}", "${F}"),  # one pass: the default is not read again
        *(("${A:-b:-c}", "b:-c"), ("${:-x}", "${:-x}"), ("$NESTED", "$F ${F}"), ("$$F", "$foo")),
    ]:
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


STDIO = define_server(ServerId("it"), Origin.USER, Transport.STDIO)
HTTP = replace(STDIO, transport=Transport.HTTP)


def command_line(*words: str, secrets: frozenset[str] = frozenset()) -> str:
    return shown_target(altered(STDIO, command=words[0], args=words[1:], secrets=secrets))


def test_an_ordinary_command_line_is_shown_as_it_is() -> None:
    for words in [
        ("npx", "-y", "@modelcontextprotocol/server-everything@2025.3.1"),
        ("uvx", "mcp-server-git", "--repository", "/home/me/src/project-2024"),
        ("docker", "run", "-i", "--rm", "-e", "LOG_LEVEL=debug", "mcp/fetch"),
        ("docker", "run", "-i", "-e", "PWD=/work", "-e", "SSH_AUTH_SOCK=/run/agent", "mcp/git:1"),
        *(("git", "log", "--author", "me", "--sort-key"), ("C:\\tools\\server.exe", "/port:80")),
    ]:
        assert command_line(*words) == " ".join(words)


def test_secrets_in_a_command_line_are_masked() -> None:
    for words, expected in [
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
        (("s", "sqlite:////data/x.db?key=hunter2"), "s sqlite:////data/x.db?key=***"),
    ]:
        assert command_line(*words) == expected


def test_a_value_known_as_secret_is_masked_wherever_it_stands() -> None:
    secrets = frozenset({"s3cret", "s3cret-longer", "no"})
    assert command_line("s3cret", "a=s3cret-longer.", "no", secrets=secrets) == "*** a=***. no"


def test_blanks_that_push_a_word_out_of_sight_are_counted_or_written_out() -> None:
    shown = command_line("sh", "-c", "safe" + " " * 300 + "; rm -rf /", "a\nb", "c\td", "e\u3000f")
    assert shown == "sh -c 'safe⟨␠×300⟩; rm -rf /' 'a\\nb' 'c\\td' 'e\\u3000f'"
    assert command_line("sh", "a \n\t b") == "sh 'a \\n\\t b'"


def test_words_with_spaces_or_nothing_in_them_are_quoted() -> None:
    assert command_line("my server", "", 'a"b', "c") == "'my server' '' 'a\"b' c"


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    for url, expected in [
        ("https://h.example:8443/mcp", "https://h.example:8443/mcp"),
        ("https://u:p@h/mcp?key=abc&flag#frag", "https://***@h/mcp?key=***&***"),
        ("https://h/s/ZmQwODk1ZTAtYjQ3ZS00ZDg2/mcp", "https://h/s/***/mcp"),
        ("https://h/550e8400-e29b-41d4-a716-446655440000", "https://h/***"),
        ("http://[::1", "***"),
    ]:
        assert shown_target(altered(HTTP, url=url)) == expected


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.text(max_size=30))
def test_a_target_is_one_clean_line_and_hides_what_is_known(words: list[str], url: str) -> None:
    secret = "K9-very-secret"
    known = frozenset({secret})
    line = command_line(*words, f"a{secret}b", secrets=known)
    address = shown_target(altered(HTTP, url=url + secret, secrets=known))
    for shown in (line, address):
        assert secret not in shown
        assert sanitize_line(shown) == shown
        assert len(shown) <= 2_000


def test_names_of_secrets_are_told_from_others() -> None:
    secret = ("API_KEY", "githubToken", "X-Api-Key", "--pat", "DB_PASSWORD")
    others = ("HOME", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "XDG_SESSION_TYPE", "DESKTOP_SESSION")
    words = ("--author", "KEYBOARD", "PATH", "--compass", "monkey")
    assert [name for name in (*secret, *others, *words) if redaction.is_secret_name(name)] == [
        *secret
    ]
    assert redaction.is_secret_variable("PWD", "hunter2")
    assert not redaction.is_secret_variable("PWD", "/work"), "a folder"


@pytest.mark.parametrize("unit", ["a", "a1", "eyJ", "-", "a-", "=a", "http://a", "aaaaaaaa-", "$"])
def test_a_hostile_word_costs_no_more_than_its_size(unit: str) -> None:
    word = unit * (500_000 // len(unit))
    started = time.process_time()
    redaction.masked_words([word, *["x"] * 50_000])
    redaction.masked_address(f"https://h/{word}")
    assert time.process_time() - started < 5


def test_a_definition_does_not_show_what_may_be_secret_in_its_representation() -> None:
    definition = altered(
        STDIO, args=("hunter2",), env={"A": "hunter2"}, headers={"A": "hunter2"}, url="hunter2"
    )
    assert "hunter2" not in repr(definition)
    assert redaction.MASK not in repr(definition)


def test_an_entry_with_many_wrong_values_costs_no_more_than_its_size() -> None:
    env = {"A": "1", **{f"V{number}": [] for number in range(1, MAX_ITEMS)}}
    started = time.process_time()
    for _ in range(20):
        settings, _ = salvaged({"command": "git", "env": env})
        assert settings.env == {"A": "1"}
    assert time.process_time() - started < 5
