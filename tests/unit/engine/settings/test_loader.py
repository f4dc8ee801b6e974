"""What the loader makes of all layers: which counts, which is left out, and what is said of it."""

import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.engine.settings.conftest import GOOD, OFF, Machine, messages, withheld
from tui.engine.approval.policy import DenyingPatterns
from tui.engine.definitions.definition import shown_target
from tui.engine.settings.loader import MAX_PROBLEMS
from tui.engine.settings.sources.source import MAX_SERVERS, layer_files
from tui.model.servers import Origin, ProtocolEra, ServerStatus
from tui.model.settings import DEFAULT_MODEL, GemdeckSettings
from tui.text import sanitize_line


def test_without_any_file_there_are_the_defaults(machine: Machine) -> None:
    loaded = machine.load()
    assert loaded.gemdeck == GemdeckSettings()
    assert (loaded.servers, loaded.problems) == ((), ())
    assert loaded.gemdeck.model == DEFAULT_MODEL
    assert loaded.gemdeck.max_tool_calls == 50


# Places


def places(platform: str) -> list[tuple[Origin, str]]:
    files = layer_files(Path("/p"), environ={}, home=Path("/h"), platform=platform)
    return [(layer.origin, str(layer.path)) for layer in files]


def test_layers_lie_where_gemini_cli_has_them() -> None:
    assert places("linux") == [
        (Origin.SYSTEM_DEFAULTS, "/etc/gemini-cli/system-defaults.json"),
        (Origin.USER, "/h/.gemini/settings.json"),
        (Origin.PROJECT, "/p/.mcp.json"),
        (Origin.PROJECT, "/p/.gemini/settings.json"),
        (Origin.SYSTEM, "/etc/gemini-cli/settings.json"),
    ]
    mac = "/Library/Application Support/GeminiCli"
    assert places("darwin")[0][1] == f"{mac}/system-defaults.json"
    assert places("darwin")[4][1] == f"{mac}/settings.json"


def test_the_home_and_a_link_to_the_users_folder_make_no_project_layer(machine: Machine) -> None:
    machine.write("user", {"mcpServers": {"a": GOOD}})
    linked = machine.root / "linked"
    linked.mkdir()
    (linked / ".gemini").symlink_to(machine.home / ".gemini")
    for folder in (machine.home, linked):
        loaded = machine.load_folder(folder)
        assert [server.entry.origin for server in loaded.servers] == [Origin.USER]
        assert not loaded.problems


# Layers


def test_a_whole_entry_of_a_higher_layer_replaces_a_lower_one(machine: Machine) -> None:
    machine.write("defaults", {"mcpServers": {"a": {"command": "d", "trust": True}, "z": GOOD}})
    machine.write("user", {"mcpServers": {"b": GOOD, "a": {"command": "u"}, "c": GOOD}})
    machine.write("system", {"mcpServers": {"c": {"command": "s"}}})
    servers = machine.servers()
    assert list(servers) == ["a", "z", "b", "c"]
    assert (servers["a"].launch.command, servers["a"].trust) == ("u", False)
    assert servers["a"].entry.origin is Origin.USER
    assert (servers["c"].launch.command, servers["c"].entry.origin) == ("s", Origin.SYSTEM)
    assert servers["z"].entry.origin is Origin.SYSTEM_DEFAULTS


def test_own_settings_merge_key_by_key(machine: Machine) -> None:
    machine.write("defaults", {"gemdeck": {"model": "low", "maxToolCalls": 7}})
    machine.write("user", {"gemdeck": {"model": "mid", "thoughts": False}})
    machine.write("system", {"gemdeck": {"idleTimeout": "30"}})
    own = machine.load().gemdeck
    assert (own.model, own.max_tool_calls, own.thoughts, own.idle_timeout) == ("mid", 7, False, 30)


def test_the_command_lines_model_wins_over_all_if_it_is_one(machine: Machine) -> None:
    machine.write("system", {"gemdeck": {"model": "high"}})
    assert machine.load(model=" mine ").gemdeck.model == "mine"
    assert machine.load().gemdeck.model == "high"
    machine.write("system", {})
    loaded = machine.load(model="../../evil?x")
    assert loaded.gemdeck.model == DEFAULT_MODEL
    (problem,) = loaded.problems
    assert (problem.file, problem.key) == ("command line", "--model")


def test_gemini_clis_model_counts_below_our_own_if_it_is_one(machine: Machine) -> None:
    for word in ("auto", "pro", "auto-gemini-3"):
        machine.write("user", {"model": {"name": word}})
        loaded = machine.load()
        assert loaded.gemdeck.model == DEFAULT_MODEL
        (problem,) = loaded.problems
        assert (problem.key, problem.line) == ("model.name", 1)
    machine.write("user", {})
    for value in ("of-gemini-cli", {"name": "of-gemini-cli", "maxTurns": 5}):
        machine.write("system", {"model": value})
        assert machine.load().gemdeck.model == "of-gemini-cli"
    machine.write("defaults", {"gemdeck": {"model": "own"}})
    assert (machine.load().gemdeck.model, machine.load().problems) == ("own", ())


def test_a_wrong_key_of_our_own_leaves_the_others(machine: Machine) -> None:
    machine.write(
        "user", '{"gemdeck": {\n"maxToolCalls": 0,\n"thoughts": false,\n"bogus": 1, "model": "$M"}}'
    )
    machine.environ["M"] = "mine"
    loaded = machine.load()
    assert (loaded.gemdeck.max_tool_calls, loaded.gemdeck.thoughts) == (50, False)
    assert loaded.gemdeck.model == "mine"
    places = [(problem.line, problem.key) for problem in loaded.problems]
    assert places == [(2, "gemdeck.maxToolCalls"), (4, "gemdeck.bogus")]


def test_a_section_that_is_no_object_is_a_problem(machine: Machine) -> None:
    machine.write("system", {"mcpServers": {"a": GOOD}})
    values: tuple[object, ...] = (5, ["a"], True)
    for key, value in product(("mcpServers", "gemdeck", "mcp", "model"), values):
        machine.write("user", {key: value, "other": 1})
        loaded = machine.load()
        assert {problem.key for problem in loaded.problems} == {key}, value
        held = ServerStatus.DISABLED if key == "mcp" else None
        assert [server.withheld for server in loaded.servers] == [held], (key, value)
        denied = any(DenyingPatterns(loaded.gemdeck.always_deny).find("a", "b"))
        assert denied == (key == "gemdeck"), "it may have forbidden any tool"


def test_a_rule_of_always_deny_that_cannot_be_read_denies_every_tool(machine: Machine) -> None:
    arguments: tuple[object, ...] = ({}, {"x": {"like": "a"}}, {"x": {}}, 1)
    unread = ({"tool": "rm", "arguments": one} for one in arguments)
    for wrong in ("files.rm", {"server": 5, "tool": "rm"}, 7, *unread):
        machine.write("user", {"gemdeck": {"alwaysDeny": [{"tool": "buy"}, wrong]}})
        loaded = machine.load()
        assert any(DenyingPatterns(loaded.gemdeck.always_deny).find("a", "b")), wrong
        [problem] = loaded.problems
        assert problem.key.startswith("gemdeck.alwaysDeny[1]")
        assert problem.message.endswith("; no tool runs until this is corrected")


# Bad files


@pytest.mark.parametrize(
    ("content", "line", "word"),
    [(b'{\n"a": ', 2, "not valid JSON"), (b'{"a": "\xff"}', 0, "UTF-8"), (b"[]", 0, "object")],
)
def test_a_bad_file_is_one_fatal_problem_and_the_others_load(
    machine: Machine, content: bytes, line: int, word: str
) -> None:
    machine.write("user", content)
    machine.write("system", {"mcpServers": {"a": GOOD}, "gemdeck": {"model": "m"}})
    loaded = machine.load()
    assert [server.id for server in loaded.servers] == ["a"]
    assert loaded.gemdeck.model == "m"
    (problem,) = loaded.problems
    assert problem.fatal
    assert (problem.file, problem.line) == ("~/.gemini/settings.json", line)
    assert word in problem.message


@pytest.mark.parametrize("layer", ["defaults", "system"])
def test_a_file_of_the_system_that_others_can_write_is_not_used(
    machine: Machine, layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write(layer, {"mcpServers": {"a": GOOD}})
    file = machine.files[layer]
    link = machine.root / "link.json"
    link.symlink_to(file)
    for place, mode in ((file, 0o666), (file, 0o664), (file.parent, 0o777), (file.parent, 0o775)):
        before = place.stat().st_mode
        for path in (file, link):
            variable = "DEFAULTS" if layer == "defaults" else "SETTINGS"
            machine.environ[f"GEMINI_CLI_SYSTEM_{variable}_PATH"] = str(path)
            assert [server.id for server in machine.load().servers] == ["a"]
            place.chmod(mode)
            loaded = machine.load()
            place.chmod(before)
            assert loaded.servers == ()
            [problem] = loaded.problems
            words = f"others than root and you can write to {place}; the file was not used"
            assert (problem.fatal, problem.message) == (False, words)
    file.parent.chmod(0o1777)  # as /tmp: the file is nobody else's
    assert [server.id for server in machine.load().servers] == ["a"]
    if os.geteuid() == 0:
        os.chown(file, 12_345, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    assert machine.load().servers == (), "it belongs to another user"


def test_of_too_many_servers_the_first_count_and_the_others_are_named(machine: Machine) -> None:
    gemdeck = {"alwaysDeny": [{"tool": "wipe"}]}
    many = {f"s{i}": GOOD for i in range(1_000)}
    machine.write("user", {"mcpServers": many, "gemdeck": gemdeck})
    loaded = machine.load()
    assert [server.id for server in loaded.servers] == [f"s{i}" for i in range(MAX_SERVERS)]
    assert [rule.tool for rule in loaded.gemdeck.always_deny] == ["wipe"]
    [problem] = loaded.problems
    assert not problem.fatal
    assert problem.key == "mcpServers.s256"
    names = ", ".join(f"s{i}" for i in range(256, 266))
    words = f"only the first 256 servers count; left out: {names} and 734 more"
    assert problem.message == words
    machine.write("user", {"mcpServers": {f"s{i}": GOOD for i in range(MAX_SERVERS + 1)}})
    [problem] = machine.load().problems
    assert problem.message == "only the first 256 servers count; left out: s256"


def test_a_projects_file_that_cannot_be_used_is_never_fatal(machine: Machine) -> None:
    too_many = json.dumps({"mcpServers": {f"s{i}": GOOD for i in range(MAX_SERVERS + 1)}})
    for content in ("{", too_many):
        machine.write("project", content)
        (problem,) = machine.load().problems
        assert problem.file == "~/shop/.gemini/settings.json", content[:20]
        assert not problem.fatal, content[:20]


def test_problems_come_by_layer_and_line_and_are_limited(machine: Machine) -> None:
    machine.write("defaults", {"gemdeck": {"a": 1}})
    machine.write("user", {"mcpServers": {f"s{i}": {"b": i} for i in range(MAX_SERVERS)}})
    machine.write("system", "{")
    loaded = machine.load()
    assert loaded.problems[0].key == "gemdeck.a"
    assert len(loaded.problems) == MAX_PROBLEMS + 1
    assert "more problems" in loaded.problems[-1].message
    assert len(loaded.servers) == MAX_SERVERS


# The opened folder


def test_a_projects_servers_are_listed_and_not_trusted(machine: Machine) -> None:
    machine.environ["SECRET"] = "hunter2"
    mine = {"command": "sh", "args": ["$SECRET", "${SECRET}"], "trust": True}
    off, bad = {"command": "sh", "disabled": True}, {"url": "https://$SECRET/ ", "trust": True}
    machine.write("project", {"mcpServers": {"mine": mine, "off": off, "bad": bad}})
    servers = machine.servers()
    for server in servers.values():
        assert server.entry.origin is Origin.PROJECT
        assert not server.trust
        assert server.failure is not None
        assert "hunter2" not in f"{server.launch.args}{server.endpoint.url}"
    assert servers["mine"].launch.args == ("$SECRET", "${SECRET}")
    assert servers["mine"].withheld is ServerStatus.UNTRUSTED
    assert servers["mine"].failure is not None
    assert "untrusted folder" in servers["mine"].failure.reason
    assert "Review this folder" in servers["mine"].failure.advice
    assert servers["off"].withheld is ServerStatus.UNTRUSTED
    assert servers["bad"].withheld is ServerStatus.UNTRUSTED
    found = messages(machine.load())
    assert any("mine.trust: has no effect" in message for message in found)
    assert len(found) == 2


@pytest.mark.parametrize("layer", ["defaults", "user", "system"])
def test_a_project_cannot_stand_in_for_a_server_of_the_user(machine: Machine, layer: str) -> None:
    machine.write(layer, {"mcpServers": {"git": {"command": "safe"}}})
    machine.write(
        "project",
        '{"mcpServers": {\n"git": {"command": "evil"},\n" git\\u001b[0m": {"command": "evil"}}}',
    )
    loaded = machine.load()
    assert [(server.id, server.launch.command) for server in loaded.servers] == [("git", "safe")]
    said = [(problem.line, problem.message.split(":")[0]) for problem in loaded.problems]
    assert said == [(2, "skipped"), (3, "skipped")]


def test_nothing_of_a_project_counts_before_it_is_trusted(machine: Machine) -> None:
    machine.write("user", {"mcpServers": {"a": GOOD}})
    evil = {
        "gemdeck": {"model": "evil", "maxToolCalls": 999, "maxCost": 999},
        "model": {"name": "evil"},
    }
    rules = {"excluded": ["a"], "serverCommand": "evil", "allowed": []}
    machine.write("project", {**evil, "mcp": rules, "ui": {"theme": "dark"}})
    loaded = machine.load()
    assert loaded.gemdeck == GemdeckSettings()
    assert [(server.id, server.withheld) for server in loaded.servers] == [("a", None)]
    keys = [one.key for one in loaded.problems if "no effect in a project" in one.message]
    assert keys == ["model", "mcp.serverCommand", "gemdeck.maxCost", "gemdeck.model"]


def test_a_projects_servers_stay_untrusted_whatever_the_lists_say(machine: Machine) -> None:
    machine.write("user", {"mcp": {"allowed": ["mine"], "excluded": ["other"]}})
    machine.write("project", {"mcpServers": {"mine": GOOD, "other": GOOD, "third": GOOD}})
    assert set(withheld(machine).values()) == {ServerStatus.UNTRUSTED}


def test_only_servers_that_every_layer_allows_start(machine: Machine) -> None:
    machine.write("user", {"mcpServers": {"A": GOOD, "b": GOOD}, "mcp": {"allowed": [" a", "b"]}})
    assert withheld(machine) == {"A": None, "b": None}
    machine.write("system", {"mcp": {"allowed": ["B", "c"]}})
    assert withheld(machine) == {"A": OFF, "b": None}
    failure = machine.servers()["A"].failure
    assert failure is not None
    assert "mcp.allowed" in failure.reason
    assert str(machine.files["system"]) in failure.advice


@pytest.mark.parametrize("layer", ["user", "project"])
@pytest.mark.parametrize("key", ["allowed", "excluded"])
def test_a_text_in_place_of_a_list_of_servers_is_said_to_be_one_name(
    machine: Machine, layer: str, key: str
) -> None:
    machine.write(layer, {"mcp": {key: "a, b"}})
    [problem] = messages(machine.load())
    words = f"mcp.{key}: this text counts as one name; several are a list: [ … ]"
    assert problem.endswith(words)


def test_an_allowed_list_that_cannot_be_read_allows_nothing(machine: Machine) -> None:
    machine.write("user", {"mcpServers": {"a": GOOD}, "mcp": {"allowed": {"a": True}}})
    assert withheld(machine) == {"a": OFF}
    assert any("no server is started" in message for message in messages(machine.load()))


def test_excluded_lists_of_all_layers_count(machine: Machine) -> None:
    machine.write("defaults", {"mcp": {"excluded": ["a"]}})
    machine.write("user", {"mcpServers": {"a": GOOD, "b": GOOD, "c": GOOD, "bad": {}}})
    machine.write("system", {"mcp": {"excluded": ["B ", "bad"], "allowed": ["a", "b", "c"]}})
    assert withheld(machine) == {"a": OFF, "b": OFF, "c": None, "bad": ServerStatus.INVALID}
    failure = machine.servers()["a"].failure
    assert failure is not None
    assert str(machine.files["defaults"]) in failure.advice


def test_the_server_command_becomes_a_server_without_a_shell(machine: Machine) -> None:
    machine.environ["D"] = "a dir; touch x"
    machine.write("user", {"mcp": {"serverCommand": "run --dir 'my dir' ; echo \"$D\""}})
    server = machine.servers()["mcp"]
    assert (server.launch.command, server.entry.origin) == ("run", Origin.USER)
    assert server.launch.args == ("--dir", "my dir", ";", "echo", "a dir; touch x")


def test_a_server_command_that_cannot_be_read_is_invalid(machine: Machine) -> None:
    for command, word in [("a 'b", "object"), ("  ", "needs one of")]:
        machine.write("user", {"mcp": {"serverCommand": command}})
        assert withheld(machine) == {"mcp": ServerStatus.INVALID}, command
        (problem,) = machine.load().problems
        assert problem.key == "mcp.serverCommand", command
        assert word in problem.message, command


def test_a_server_called_mcp_is_not_replaced_by_the_command(machine: Machine) -> None:
    machine.write("user", {"mcpServers": {"mcp": GOOD}, "mcp": {"serverCommand": "other"}})
    servers = machine.servers()
    assert servers["mcp"].launch.command == "x"
    assert servers["mcp (2)"].withheld is ServerStatus.INVALID


# Anything at all

Scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 10**12)
    | st.text(alphabet="a$V{}:-/\x1b \u202e\0.", max_size=10)
    | st.sampled_from(["https://h/$V", "stdio", "true", "${V:-x}", "'"])
)


Keys = st.sampled_from(
    [
        *("command", "args", "env", "url", "httpUrl", "type", "headers", "oauth", "trust"),
        *("timeout", "cwd", "disabled", "allowed", "excluded", "serverCommand", "model"),
        *("name", "scopes", "includeTools", "tcp", "maxToolCalls", "x"),
    ]
)


Values = st.recursive(
    Scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(Keys, inner, max_size=5),
    max_leaves=15,
)


Servers = st.dictionaries(st.text(max_size=4), Values, max_size=4) | Values


Files = st.fixed_dictionaries(
    {}, optional={"mcpServers": Servers, "mcp": Values, "gemdeck": Values, "model": Values}
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(user=Files, project=Files, value=st.text(max_size=5))
def test_no_content_makes_the_loader_raise(
    machine: Machine, user: dict[str, Any], project: dict[str, Any], value: str
) -> None:
    machine.environ["V"] = value
    machine.write("user", user)
    machine.write("project", project)
    loaded = machine.load()
    assert len({server.id for server in loaded.servers}) == len(loaded.servers)
    for server in loaded.servers:
        failure = str(server.failure)
        for shown in (server.id, shown_target(server), server.description, failure):
            assert sanitize_line(shown) == shown
        if server.entry.origin is Origin.PROJECT:
            assert server.withheld in {ServerStatus.UNTRUSTED, ServerStatus.INVALID}
            assert not server.trust
        if server.withheld is None:
            assert bool(server.launch.command) != bool(server.endpoint.url)
    for problem in loaded.problems:
        assert sanitize_line(str(problem)) == str(problem)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80))
def test_no_bytes_make_the_loader_raise(machine: Machine, data: bytes) -> None:
    machine.write("user", data)
    loaded = machine.load()
    assert loaded.gemdeck == GemdeckSettings()
    assert len(loaded.problems) <= 1


def test_the_era_of_the_protocol_can_be_forced_by_server(machine: Machine) -> None:
    servers = {name: {"command": "x"} for name in ("old", "new", "any")}
    protocols = {"old": "handshake", "new": "stateless", "gone": "auto"}
    machine.write("user", {"mcpServers": servers, "gemdeck": {"protocols": protocols}})
    loaded = machine.load()
    eras = [ProtocolEra.HANDSHAKE, ProtocolEra.STATELESS, ProtocolEra.AUTO]
    assert [server.protocol for server in loaded.servers] == eras
    assert not loaded.problems
    machine.write("user", {"gemdeck": {"protocols": {"git": "modern"}}})
    [problem] = messages(machine.load())
    assert "gemdeck.protocols.git: must be 'auto', 'handshake' or 'stateless'" in problem


def test_when_a_server_starts_is_its_entrys_word_and_a_project_can_only_delay(
    machine: Machine,
) -> None:
    entries = {name: {"command": "x", "start": name} for name in ("eager", "lazy")}
    own = {"mcpServers": {**entries, "plain": {"command": "x"}}}
    its = {f"its-{name}": entry for name, entry in entries.items()}
    machine.write("project", {"mcpServers": its, "gemdeck": {"start": "lazy", "sleepAfter": 1}})
    for usual, lazy in (
        ("eager", {"lazy", "its-lazy"}),
        ("lazy", {"lazy", "plain", "its-lazy", "its-eager"}),
    ):
        machine.write("user", {**own, "gemdeck": {"start": usual}})
        loaded = machine.load()
        assert {one.id for one in loaded.servers if one.is_lazy} == lazy
        assert loaded.gemdeck.sleep_after == 600, "a project does not say how long one is kept"
    same = [one for one in loaded.servers if one.id in {"eager", "lazy"}]
    assert same[0].fingerprint == same[1].fingerprint
    machine.write("user", {"mcpServers": {"a": {"command": "x", "start": "later"}}})
    [problem] = [str(one) for one in machine.load().problems if "a.start" in str(one)]
    assert "must be 'eager' or 'lazy'" in problem


def test_a_key_of_older_versions_is_named_and_has_no_effect(machine: Machine) -> None:
    machine.write("user", {"gemdeck": {"developedServers": ["it"]}})
    [problem] = machine.load().problems
    assert problem.quiet
    assert problem.message == "has no effect: code of servers is not watched any more"
