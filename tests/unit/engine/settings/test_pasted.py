"""What is pasted becomes an entry, or a reason; what is edited loses no secret and shows none."""

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.settings.importers import MAX_PASTED, Machine, understand
from tui.engine.settings.typed_entries import EntryError, EntryFields, with_access
from tui.model.servers import RefusedAccess

MACHINE: Final = Machine(Path("/home/me"), Path("/home/me/shop"), {})

GIT: Final = {"command": "uvx", "args": ["mcp-server-git", "--repository", "."]}
LINEAR: Final = {"url": "https://mcp.linear.app/mcp", "type": "http"}
KEYED: Final = {"command": "npx", "args": ["-y", "@x/github"], "env": {"A": "b", "T": "$T"}}

UNDERSTOOD: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("uvx mcp-server-git --repository .", "git", GIT),
    ("$ uvx mcp-server-git \\\n  --repository .  # this one", "git", GIT),
    ("```sh\n# first\nuvx mcp-server-git --repository .;\n```", "git", GIT),
    ("export A=b;\nexport T=$T && npx -y @x/github", "github", KEYED),
    ("env A=b T=$T npx -y @x/github", "github", KEYED),
    ("claude mcp add gh -e A=b T=$T -- npx -y @x/github", "gh", KEYED),
    ("gemini mcp add --env=A=b -e T=$T gh npx -y @x/github", "gh", KEYED),
    ("codex mcp add gh --env A=b --env 'T=$T' -- npx -y @x/github", "gh", KEYED),
    ("gemdeck mcp add -s user x npx a -- -e B", "x", {"command": "npx", "args": ["a", "-e", "B"]}),
    (
        "node '/a b/server.js' ~/notes",
        "server",
        {"command": "node", "args": ["/a b/server.js", "${HOME}/notes"]},
    ),
    (
        "node /x/@y/server-files/dist/index.js",
        "files",
        {"command": "node", "args": ["/x/@y/server-files/dist/index.js"]},
    ),
    ("node dist/index.js", "server", {"command": "node", "args": ["dist/index.js"]}),
    (
        "npx -y @modelcontextprotocol/server-time '$A|b'",
        "time",
        {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-time", "$A|b"]},
    ),
    (
        "N=~/n srv https://x.dev/~/a b~  # don't",
        "srv",
        {"command": "srv", "args": ["https://x.dev/~/a", "b~"], "env": {"N": "${HOME}/n"}},
    ),
    ("https://mcp.linear.app/mcp", "linear", LINEAR),
    ("http://127.0.0.1:80/mcp", "server", {"url": "http://127.0.0.1:80/mcp", "type": "http"}),
    ("https://mcp.linear.app/sse", "linear", {"url": "https://mcp.linear.app/sse", "type": "sse"}),
    ("claude mcp add --transport http li https://mcp.linear.app/mcp", "li", LINEAR),
    ("codex mcp add li --url https://mcp.linear.app/mcp", "li", LINEAR),
    (
        "claude mcp add x https://x.dev/mcp -t http -H 'Authorization: Bearer $T'",
        "x",
        {"url": "https://x.dev/mcp", "type": "http", "headers": {"Authorization": "Bearer $T"}},
    ),
    (
        '{"mcpServers": {"git": {"command": "uvx", /* it */ "args": ["a"],},}}',
        "git",
        {"command": "uvx", "args": ["a"]},
    ),
    ('{"git": {"command": "uvx"}}', "git", {"command": "uvx"}),
    ("gemdeck mcp add --sandbox x y", "x", {"command": "y", "sandbox": True}),
    (
        '{"x": {"command": "y", "sandbox": {"network": true}}}',
        "x",
        {"command": "y", "sandbox": {"network": True}},
    ),
    ('"git": {"command": "uvx", "trust": false},', "git", {"command": "uvx"}),
    (
        '{"command": "uvx", "args": ["mcp-server-git"]}',
        "git",
        {"command": "uvx", "args": ["mcp-server-git"]},
    ),
    ("copilot mcp add gh -e A=b T=$T -- npx -y @x/github", "gh", KEYED),
    (
        """claude mcp add-json li '{"type":"http","url":"https://mcp.linear.app/mcp"}'""",
        "li",
        LINEAR,
    ),
    ("""code --add-mcp '{"name":"git","command":"uvx"}'""", "git", {"command": "uvx"}),
    ('{"mcp": {"inputs": [], "servers": {"git": {"command": "uvx"}}}}', "git", {"command": "uvx"}),
    ('{"mcp": {"command": "uvx"}}', "mcp", {"command": "uvx"}),
    ('{"mcp": {"allowed": []}, "mcpServers": {"a": {"command": "b"}}}', "a", {"command": "b"}),
    ('{"amp.mcpServers": {"git": {"command": "uvx"}}}', "git", {"command": "uvx"}),
    (
        '{"context_servers": {"git": {"command": {"path": "uvx", "args": ["a"], "env": null}}}}',
        "git",
        {"command": "uvx", "args": ["a"]},
    ),
    (
        '{"mcp": {"x": {"type": "remote", "url": "https://x.dev", "headers": {"A": "{env:K}"}}}}',
        "x",
        {"type": "http", "url": "https://x.dev", "headers": {"A": "${K}"}},
    ),
    (
        '[mcp_servers.git]\ncommand = "uvx"\nenv_vars = ["A", {name = "B", source = "local"}]',
        "git",
        {"command": "uvx", "env": {"A": "${A}", "B": "${B}"}},
    ),
    (
        '{"servers": {"z": {"type": "stdio", "command": "c", "env": {"K": "${env:K}"}}}}',
        "z",
        {"command": "c", "env": {"K": "${K}"}},
    ),
]


@pytest.mark.parametrize(("text", "name", "entry"), UNDERSTOOD)
def test_what_is_pasted_is_understood(text: str, name: str, entry: dict[str, Any]) -> None:
    [one] = understand(text, MACHINE)
    assert (one.name, one.entry, one.scope) == (name, entry, "user")


def test_what_does_not_come_along_and_further_servers_are_said() -> None:
    [one] = understand("gemini mcp add -s project --trust --timeout 5000 x y", MACHINE)
    assert (one.scope, one.entry) == ("project", {"command": "y", "timeout": 5000})
    assert one.warnings == ("--trust is ignored: gemdeck asks about its tools.",)
    cline = '{{"mcpServers": {{"x": {{"command": "y", "timeout": {}}}}}}}'
    [one] = understand(cline.format(60), MACHINE)
    assert one.entry == {"command": "y", "timeout": 60_000}
    assert one.warnings == ("timeout: 60 is imported as seconds, not milliseconds.",)
    [one] = understand(cline.format(1_000), MACHINE)
    assert (one.entry["timeout"], one.warnings) == (1_000, ())
    two = understand('{"servers": {"a": {"url": "https://a.dev"}, "b": {"command": "b"}}}', MACHINE)
    assert [one.name for one in two] == ["a", "b"]


REFUSED: Final = [
    ("npx x | tee log", "“|” needs a shell"),
    ("npx x && rm -rf /", "several commands"),
    ("npx x; rm -rf /", "several commands"),
    ("cd /x && npx y", "several commands"),
    ("npx x || true", "“||” needs a shell"),
    ("npx x &", "“&” needs a shell"),
    ("npx x > log", "“>” needs a shell"),
    ("npx x <token>", "Replace <…> with a value."),
    ('npx "$(id)"', "“$(” needs a shell"),
    ("npx `id`", "“`” needs a shell"),
    ("(npx x)", "“(” needs a shell"),
    ("npx 'x", "A quote is not closed"),
    ("npx x\nnpx y", "several commands"),
    ("A=b", "has no command. Enter a command, an mcp add line, a JSON block"),
    ("claude mcp list", "This claude mcp command adds no server."),
    ("claude mcp add x", "mcp add needs a name and"),
    ("claude mcp add-json x '{\"a\": 1}'", "a: its entry must be an object"),
    ("[mcp_servers.x", "Expected ']'"),
    ("[mcp_servers.x]\na = " + "[" * 50_000, "recursion"),
    ("claude mcp add --callback-port 1 x y", "the mcp add option --callback-port"),
    ("claude mcp add -e A x -- y", "A variable must have the form KEY=VALUE."),
    ("claude mcp add -t http x y", "http needs an address."),
    ("https://x.dev/ -y", "Arguments and environment variables need a command, not an address."),
    ('{"a": {"command": "b"}', "line 1: not valid JSON"),
    ('{"a": {"cwd": "b"}}', "a: it has neither a command nor an address"),
    ('{"a": 1}', "a: its entry must be an object"),
    ("{}", "Enter a command, an mcp add line, a JSON block or an address."),
    ("", "Enter a command, an mcp add line, a JSON block or an address."),
    ("npx x\x1b[2K", "contains invisible characters"),
    ("npx x\u202e", "contains invisible characters"),
    ("x " * MAX_PASTED, "This is too long"),
    ("{" * 50_000 + ":", "line 1"),
    ('{"a": NaN}', "not valid JSON: NaN"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_cannot_be_understood_is_said(text: str, reason: str) -> None:
    with pytest.raises(EntryError) as caught:
        understand(text, MACHINE)
    assert reason in str(caught.value)
    assert "line 0" not in str(caught.value)


@given(st.text(st.sampled_from("ab=-$~'\"\\ \n;&|<>(){}:,#[]/@") | st.characters(), max_size=60))
def test_any_text_is_understood_or_refused(text: str) -> None:
    with suppress(EntryError):
        assert understand(text, MACHINE)


SECRETS: Final[list[dict[str, Any]]] = [
    {
        "command": "a b",
        "args": ["--token", "hunter2x", "--key=hunter2x", "", "it's", "$T"],
        "timeout": 5,
    },
    {"command": "a", "args": ["--token", "hunter2x", "--token", "hunter2y"]},
    {"command": "a", "args": ["--token", "hunter2$x"], "env": {"API_KEY": "hunter2$y"}},
    {"command": "a", "env": {"API_KEY": "hunter2x", "MY_TOKEN": "$T", "N": "1 2"}},
    {"url": "https://me:hunter2x@x.dev/?key=hunter2y", "type": "http"},
    {"url": "https://x.dev/", "headers": {"Authorization": "Bearer hunter2x", "X": "1"}},
    {"url": "https://x.dev/", "headers": {"Authorization": ""}, "type": "http"},
    {"httpUrl": "https://x.dev/", "oauth": {"enabled": False}},
]


@pytest.mark.parametrize("entry", SECRETS)
def test_an_entry_is_edited_without_its_secrets_on_the_screen(entry: dict[str, Any]) -> None:
    shown = EntryFields(entry)
    texts = shown.target, shown.args, shown.env, shown.headers
    assert "hunter2" not in repr(texts)
    assert shown.entry(*texts) == entry


def test_what_is_seldom_set_is_edited_as_well_and_what_is_odd_stays() -> None:
    entry = {"command": "a", "start": "lazy", "timeout": 2500, "excludeTools": ["x", "y"]}
    shown = EntryFields(entry)
    options = {"start": "lazy", "cwd": "", "timeout": "2.5", "excludeTools": "x, y"}
    assert shown.options == options
    edited = shown.entry("a", "", "", "", start="", cwd="/b", timeout="3", excludeTools="y , z")
    assert edited == {"command": "a", "cwd": "/b", "timeout": 3000, "excludeTools": ["y", "z"]}
    gone = shown.entry("a", "", "", "", **dict.fromkeys(options, ""))
    assert gone == {"command": "a"}
    for text in ("x", "0", "nan", "1e400"):
        with pytest.raises(EntryError, match="timeout"):
            shown.entry("a", "", "", "", timeout=text)
    odd = {"command": "a", "timeout": "$T", "excludeTools": [1]}
    assert EntryFields(odd).entry("a", "", "", "") == odd


def test_what_is_long_is_shown_to_its_end() -> None:
    word = " ".join(f"w{number}" for number in range(5_000))
    shown = EntryFields({"command": "a", "args": ["-x", word], "env": {"A": word}})
    assert shown.words == ["-x", word]
    assert shown.variables == [f"A={word}"]


@pytest.mark.parametrize(
    ("before", "shown", "typed", "after"),
    [
        (None, ("", "", ""), {"sandbox": "on"}, True),
        (None, ("", "", ""), {"sandbox": "off"}, False),
        (True, ("on", "", ""), {}, True),
        ({}, ("on", "", ""), {"sandbox": ""}, None),
        ("none", ("off", "", ""), {}, "none"),
        (True, ("on", "", ""), {"read": "~/a '/b c'"}, {"read": ["~/a", "/b c"]}),
        (
            {"write": ["/b c"], "network": False, "env": ["A"]},
            ("on", "", "'/b c'"),
            {"write": "", "sandbox": "network"},
            {"env": ["A"], "network": True},
        ),
        (
            {"network": "true", "read": ["$A"]},
            ("network", "$A", ""),
            {"sandbox": "on"},
            {"read": ["$A"]},
        ),
        (False, ("off", "", ""), {"write": "~/a"}, "Paths are for a server in a sandbox"),
        (True, ("on", "", ""), {"write": "'~/a"}, "A quote is not closed"),
    ],
)
def test_a_sandbox_is_edited_as_a_choice_and_two_lists_of_paths(
    before: object, shown: tuple[str, ...], typed: dict[str, str], after: object
) -> None:
    entry = {"command": "a"} | ({} if before is None else {"sandbox": before})
    fields = EntryFields(entry)
    assert tuple(fields.sandbox.values()) == shown
    try:
        made: object = fields.entry("a", "", "", "", **typed).get("sandbox")
    except EntryError as error:
        made = str(error).partition(":")[0]
    assert (type(made), made) == (type(after), after)


def test_what_was_refused_is_added_to_a_sandbox() -> None:
    read, network = RefusedAccess("read", "~/a b"), RefusedAccess("network")
    assert with_access({"command": "a", "sandbox": False}, read)["sandbox"] == {"read": ["~/a b"]}
    box = {"read": ["/x"], "env": ["A"]}
    assert with_access({"sandbox": box}, read)["sandbox"] == {**box, "read": ["/x", "~/a b"]}
    assert with_access({"sandbox": box}, network)["sandbox"] == {**box, "network": True}
    assert box == {"read": ["/x"], "env": ["A"]}
