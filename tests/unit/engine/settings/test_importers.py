"""Servers of other clients, from files as each client documents them."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.definitions.expansion import KEYRING, Expansion
from tui.engine.settings.importers import (
    CLIENTS,
    Candidate,
    Machine,
    asked,
    find_files,
    read_client_file,
    withheld,
)
from tui.engine.settings.sources.source import MAX_SERVERS

CODEX = """
model = "o5"

[mcp_servers.docs]
command = "npx"
args = ["-y", "@acme/docs@1.2.3"]
env_vars = ["DOCS_TOKEN"]
tool_timeout_sec = 90
enabled_tools = ["search"]

[mcp_servers.docs.env]
LEVEL = "debug"

[mcp_servers.remote]
url = "https://mcp.example.com/mcp"
tool_timeout_sec = inf
bearer_token_env_var = "REMOTE_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Team" = "TEAM" }
startup_timeout_sec = 20

[mcp_servers.old]
command = "old-server"
enabled = false
"""

VSCODE = """
{
  // asked for once, then kept by the editor
  "inputs": [
    {"type": "promptString", "id": "api-key", "description": "Key of Acme", "password": true},
  ],
  "servers": {
    "acme": {
      "type": "stdio",
      "command": "${userHome}/bin/acme",
      "args": ["--root", "${workspaceFolder}/src"],
      "env": {"KEY": "${input:api-key}", "LANG": "${env:LANG}"},
      "envFile": "${workspaceFolder}/.env"
    },
    "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"X": "${input:api-key}"}}
  }
}
"""

ZED = """
{
  "theme": "One Dark",
  "context_servers": {
    "now": {"source": "custom", "enabled": true, "command": "run-now", "args": ["a"], "env": {}},
    "before": {"command": {"path": "run-before", "args": ["b"], "env": {"A": "1"}}, "settings": {}},
    "far": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer x"}},
    "boxed": {"source": "extension", "settings": {}},
  },
}
"""

PLAIN = {"command": "npx", "args": ["-y", "@acme/files", "/home/me"], "env": {"A": "b"}}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "shop").mkdir()
    return Machine(tmp_path, tmp_path / "shop", {}, "linux")


def write(path: Path, content: str | dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")


def found(machine: Machine, client: str) -> dict[str, Candidate]:
    files = list(find_files(machine, client))
    assert [one.problem for one in files] == [""] * len(files)
    return {one.name: one for file in files for one in file.candidates}


def test_a_local_server_is_taken_over_as_it_is(machine: Machine) -> None:
    for client, place in [
        ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("claude-code", ".claude.json"),
        ("claude-code", "shop/.mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("cursor", "shop/.cursor/mcp.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("gemini-cli", "shop/.gemini/settings.json"),
        ("agents", ".agents/mcp.json"),
        ("agents", "shop/.agents/mcp.json"),
    ]:
        write(machine.home / place, {"mcpServers": {"files": PLAIN}})
        [only] = found(machine, client).values()
        assert only.entry == PLAIN, client
        assert (only.problem, only.warnings) == ("", ()), client
        (machine.home / place).unlink()


def test_codex(machine: Machine) -> None:
    write(machine.home / ".codex" / "config.toml", CODEX)
    servers = found(machine, "codex")
    assert servers["docs"].entry == {
        "command": "npx",
        "args": ["-y", "@acme/docs@1.2.3"],
        "env": {"DOCS_TOKEN": "${DOCS_TOKEN}", "LEVEL": "debug"},
        "timeout": 90_000,
        "includeTools": ["search"],
    }
    remote = dict(servers["remote"].entry)
    headers = {"X-Region": "eu", "X-Team": "${TEAM}", "Authorization": "Bearer ${REMOTE_TOKEN}"}
    assert remote.pop("headers") == headers
    assert remote == {"url": "https://mcp.example.com/mcp", "type": "http"}
    assert servers["old"].entry == {"command": "old-server", "disabled": True}
    assert [one.warnings for one in servers.values()] == [(), (), ()]


OPENCODE = {
    "here": {
        "type": "local",
        "command": ["npx", "-y", "@acme/docs"],
        "environment": {"TOKEN": "{env:DOCS_TOKEN}", "CERT": "{file:~/cert}"},
        "enabled": False,
        "timeout": 5_000,
    },
    "far": {"type": "remote", "url": "https://a.example/mcp", "oauth": False},
}
GOOSE = """
GOOSE_MODEL: x
extensions:
  docs:
    {enabled: true, type: stdio, name: docs, cmd: npx, args: [-y, acme-docs], timeout: 300,
     bundled: false, envs: {LEVEL: debug}, env_keys: [DOCS_TOKEN], description: Docs.,
     available_tools: []}
  web: {enabled: false, type: streamable_http, uri: "https://a.example/mcp", headers: {X: $KEY}}
  old: {enabled: true, config: {type: stdio, name: old, cmd: old-server, args: []}}
  developer: {enabled: true, type: builtin, name: developer, bundled: true}
  timed: {type: stdio, cmd: timed, timeout: .inf, description: 2026-01-01}
  2026-01-01: {type: stdio, cmd: dated}
"""
COPILOT = {
    "all": {"type": "local", **PLAIN, "tools": ["*"]},
    "some": {"type": "http", "url": "https://a.example/mcp", "tools": ["search"]},
}


@pytest.mark.parametrize("inner", [OPENCODE, {"servers": OPENCODE}], ids=["first", "second"])
@pytest.mark.parametrize(
    "place", ["../.config/opencode/opencode.json", "opencode.json", "opencode.jsonc"]
)
def test_opencode(machine: Machine, place: str, inner: dict[str, Any]) -> None:
    write(machine.folder / place, {"theme": "x", "mcp": inner})
    servers = found(machine, "opencode")
    assert servers["here"].entry == {
        "command": "npx",
        "args": ["-y", "@acme/docs"],
        "env": {"TOKEN": "${DOCS_TOKEN}", "CERT": "${file:~/cert}"},
        "timeout": 5_000,
        "disabled": True,
    }
    [warning] = servers["here"].warnings
    assert "does not know ${file:~/cert}" in warning
    far = {"type": "http", "url": "https://a.example/mcp", "oauth": {"enabled": False}}
    assert (servers["far"].entry, servers["far"].warnings) == (far, ())


def test_goose(machine: Machine) -> None:
    write(machine.home / ".config" / "goose" / "config.yaml", GOOSE)
    servers = found(machine, "goose")
    assert servers["docs"].entry == {
        "command": "npx",
        "args": ["-y", "acme-docs"],
        "env": {"DOCS_TOKEN": "${DOCS_TOKEN}", "LEVEL": "debug"},
        "timeout": 300_000,
        "description": "Docs.",
    }
    assert servers["web"].entry == {
        "url": "https://a.example/mcp",
        "type": "http",
        "headers": {"X": "$KEY"},
        "disabled": True,
    }
    assert servers["old"].entry == {"command": "old-server", "args": []}
    assert "neither a command nor an address" in servers["developer"].problem
    assert servers["timed"].entry == {"command": "timed", "description": "2026-01-01"}
    assert len(servers) == 5
    assert [warning for one in servers.values() for warning in one.warnings] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &a [1]\nextensions: {x: *a}", "aliases"),
        ("extensions: {x: !!python/object/apply:os.system [touch canary]}", "no YAML"),
        ("extensions: [", "no YAML"),
        ("a: " + "x" * 300_000, "more than 200,000 characters"),
        ("[" * 150_000, "more than 64 levels"),
        ("a: !!timestamp soon", "no YAML"),
        ("a: !!bool soon", "no YAML"),
        ("a: 1" + ":1" * 400 + ".5", "no YAML"),
    ],
    ids=["alias", "object", "open", "long", "deep", "timestamp", "bool", "base 60"],
)
def test_yaml_that_does_more_than_list_servers_is_not_read(
    machine: Machine, text: str, said: str
) -> None:
    write(machine.home / ".config" / "goose" / "config.yaml", text)
    [file] = find_files(machine, "goose")
    assert said in file.problem
    assert (file.problem != "", file.candidates) == (True, ())


@pytest.mark.parametrize(
    "text", ["a" + ".a" * 60_000 + " = 1", f"[{'a.' * 900}a]\n" + "b.c = 1\n" * 3_000]
)
def test_toml_whose_keys_would_fill_the_memory_is_not_read(machine: Machine, text: str) -> None:
    write(machine.folder / ".codex" / "config.toml", f"[mcp_servers.x]\ncommand = 'y'\n{text}")
    [file] = find_files(machine, "codex")
    assert (file.problem, file.candidates) == ("Its keys have too many parts.", ())


@pytest.mark.parametrize("place", ["../.copilot/mcp-config.json", ".github/mcp.json"])
def test_copilot(machine: Machine, place: str) -> None:
    write(machine.folder / place, {"mcpServers": COPILOT})
    servers = found(machine, "copilot")
    assert servers["all"].entry == PLAIN
    assert servers["some"].entry == {
        "type": "http",
        "url": "https://a.example/mcp",
        "includeTools": ["search"],
    }
    assert [one.warnings for one in servers.values()] == [(), ()]


def test_vs_code_and_what_it_asks_for(machine: Machine) -> None:
    write(machine.folder / ".vscode" / "mcp.json", VSCODE)
    servers = found(machine, "vscode")
    assert servers["acme"].entry == {
        "command": f"{machine.home}/bin/acme",
        "args": ["--root", f"{machine.folder}/src"],
        "env": {"KEY": "${API_KEY}", "LANG": "${LANG}"},
    }
    asked = "Set the environment variable API_KEY; the client prompts for it."
    assert asked in servers["acme"].warnings
    assert any("envFile" in words for words in servers["acme"].warnings)
    assert servers["web"].entry["headers"] == {"X": "${API_KEY}"}
    assert servers["web"].warnings == (asked,)


def test_no_more_servers_are_taken_over_than_a_file_may_have(machine: Machine) -> None:
    many = {f"s{number}": {"command": "x"} for number in range(MAX_SERVERS + 1)}
    write(machine.home / ".cursor" / "mcp.json", {"mcpServers": many})
    assert [*found(machine, "cursor")] == [*many][:-1]


def test_zed_in_its_forms(machine: Machine) -> None:
    write(machine.home / ".config" / "zed" / "settings.json", ZED)
    write(machine.folder / ".zed" / "settings.json", '{"context_servers": {"a": {"command": "b"}}}')
    servers = found(machine, "zed")
    assert servers["a"].entry == {"command": "b"}
    assert servers["now"].entry == {"command": "run-now", "args": ["a"], "env": {}}
    assert servers["before"].entry == {"command": "run-before", "args": ["b"], "env": {"A": "1"}}
    assert servers["before"].warnings == ()
    assert servers["far"].entry["url"] == "https://example.com/mcp"
    assert servers["boxed"].problem
    assert not servers["boxed"].entry


def test_claude_code_has_servers_for_one_folder_and_its_words_for_transports(
    machine: Machine,
) -> None:
    own = {"type": "streamable-http", "url": "https://example.com/${REGION:-eu}"}
    elsewhere = {"mcpServers": {"other": {"command": "x"}}}
    projects = {str(machine.folder): {"mcpServers": {"own": own}}, "/elsewhere": elsewhere}
    everywhere = {"mcpServers": {"own": {"command": "x"}}}
    write(machine.home / ".claude.json", {"projects": projects, **everywhere})
    [only] = found(machine, "claude-code").values()
    assert only.entry == {"type": "http", "url": "https://example.com/${REGION:-eu}"}
    assert only.warnings == ()


def test_what_does_not_come_along_is_said(machine: Machine) -> None:
    for client, entry, said in [
        ("cursor", {"command": "x", "autoApprove": ["rm"]}, "Not imported: autoApprove."),
        ("gemini-cli", {"command": "x", "trust": True}, "Not imported: trust."),
        ("windsurf", {"command": "x", "args": ["$HOME"]}, "windsurf leaves $HOME as it is"),
        ("cursor", {"command": "x", "fancy": 1}, "Not imported: fancy."),
        ("cursor", {"command": "x", "tls": {}}, "Not imported: tls."),
        ("cursor", {"command": "${file:/etc/x}"}, "does not know ${file:/etc/x}"),
    ]:
        path = machine.home / "servers.json"
        write(path, {"mcpServers": {"a": entry}})
        read = read_client_file(machine, client, path)
        assert read is not None, client
        [only] = read.candidates
        assert said in "".join(only.warnings), client
        assert only.entry.keys() <= {"command", "args"}, client


def test_our_own_references_pass_unchanged_and_unremarked(machine: Machine) -> None:
    env = {"A": "${keyring:a}", "B": "${B:-b}", "C": "$C ${C}"}
    write(
        machine.home / ".cursor" / "mcp.json", {"mcpServers": {"a": {"command": "x", "env": env}}}
    )
    [only] = found(machine, "cursor").values()
    assert (only.entry["env"], only.warnings) == (env, ())


def test_what_cannot_be_read_is_said(machine: Machine) -> None:
    for text, said in [
        *(("{", "line 1"), ("[]", "object"), ('{"mcpServers": {"a": 1}}', "must be an object")),
        ('{"mcpServers": {"a": {"command": ["npx"]}}}', "command: must be a valid string"),
        ('{"mcpServers": {"a": {"url": true}}}', "url: must be a valid string"),
    ]:
        path = machine.home / "servers.json"
        write(path, text)
        read = read_client_file(machine, "cursor", path)
        assert read is not None, text
        assert said in read.problem + "".join(one.problem for one in read.candidates), text


def test_files_are_where_each_system_has_them(tmp_path: Path) -> None:
    place = "Library/Application Support/Claude/claude_desktop_config.json"
    machine = Machine(tmp_path, tmp_path, {}, "darwin")
    assert list(machine.places("claude-desktop")) == [tmp_path / place]
    assert all(list(Machine(tmp_path, tmp_path, {}, "linux").places(one)) for one in CLIENTS)


WITHHELD: Final = [
    ("${keyring:github}", "keyring:github", ""),
    ("Bearer $TOKEN", "TOKEN", ""),
    ("${HOME}/a $USER ${XDG_CACHE_HOME:-/b}", "", "${HOME}/a $USER ${XDG_CACHE_HOME:-/b}"),
    ("${HOME}/${TOKEN:-t} ${USER:-me}", "TOKEN", "${HOME}/t ${USER:-me}"),
    ("https://x.dev/${REGION:-eu}", "REGION", "https://x.dev/eu"),
    ("${A:-${SECRET}}", "A", ""),
    ("${A:-$SECRET}", "A", ""),
    ("${A:-${HOME}}", "A", "${HOME}"),
    ("${A:-${keyring:b}}", "A keyring:b", ""),
    ("${A:-$}{keyring:b}", "A", ""),
    ("$${A:-}{keyring:b}", "A", ""),
    ("$$TOKEN", "TOKEN", ""),
    ("${Home} $home", "Home home", ""),
    ("${KEYRING:b}", "KEYRING:b", ""),
    ("${keyring:-b}", "keyring", "b"),
    ("${TOKEN-b}", "TOKEN-b TOKEN", ""),
    ("${HOME-b}", "HOME-b", ""),
    ("$5 and 5$ ${}", "", "$5 and 5$ ${}"),
]


@pytest.mark.parametrize(("text", "names", "left"), WITHHELD)
def test_what_an_entry_would_be_given_is_named_and_left_out(
    text: str, names: str, left: str
) -> None:
    entry = {"url": "x", "oauth": {"clientSecret": [text, 1]}}
    assert asked(entry) == tuple(names.split())
    assert withheld(entry, frozenset(asked(entry))) == {
        **entry,
        "oauth": {"clientSecret": [left, 1]},
    }
    assert withheld(entry, frozenset()) == entry


def test_only_what_is_not_given_is_left_out() -> None:
    entry = {"command": "x", "env": {"A": "$A", "B": "$B", "C": "$A ${B:-b}", "D": "$A $B"}}
    assert withheld(entry, {"B"})["env"] == {"A": "$A", "B": "", "C": "$A b", "D": ""}


def test_a_text_that_another_one_would_end_hides_no_secret() -> None:
    entry = {"args": ["${keyring:x", {"${keyring:y": "${keyring:github}"}, "}"]}
    assert "keyring:github" in asked(entry)
    assert withheld(entry, frozenset(asked(entry)))["args"][1] == {"${keyring:y": ""}


PIECES: Final = ["$", "{", "}", ":", "-", ":-", "A", "B", "HOME", "${", "keyring:", "keyring", "/"]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.booleans())
def test_nothing_is_given_whatever_the_text(text: str, gives: bool) -> None:
    entry = {"env": {"K": text}, "args": [text]}
    made = withheld(entry, frozenset(asked(entry)) - ({"B"} if gives else set()))
    secrets = {"A": "S1", "keyring": "S2", "B": "S3", "A-": "S4", "keyring:A": "S5"}
    told = repr([*Expansion(secrets, blank={"env"}).members(made).values()])
    assert not [one for one in (*secrets.values(),) if one in told and not (gives and one == "S3")]
    assert not KEYRING.search(made["args"][0])


def test_no_spelling_of_a_client_hands_a_secret_over(machine: Machine) -> None:
    codex = """
        [mcp_servers.a]
        command = "x"
        env_vars = ["keyring:b", "T"]
        [mcp_servers.c]
        url = "https://x.dev"
        bearer_token_env_var = "keyring:d"
        env_http_headers = { X = "keyring:e" }
    """
    names = machine.folder.with_name("{keyring:f}")
    names.mkdir()
    machine = Machine(machine.home, names, {}, "linux")
    odd = {"A": "${env:keyring:g}", "B": "$${workspaceFolderBasename}", "C": "${input:c}"}
    write(machine.folder / ".codex" / "config.toml", codex)
    write(machine.folder / ".vscode" / "mcp.json", {"servers": {"v": {"command": "x", "env": odd}}})
    every = [*found(machine, "codex").values(), *found(machine, "vscode").values()]
    assert {name for one in every for name in asked(one.entry)} == {
        *("keyring:b", "T", "keyring:d", "keyring:e", "keyring:g", "keyring:f", "C"),
    }
    left = [withheld(one.entry, frozenset(asked(one.entry))) for one in every]
    assert "$" not in repr(left)
