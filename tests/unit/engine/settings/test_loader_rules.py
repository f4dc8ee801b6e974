"""The rules over all servers: `mcp`, and the eras that are forced."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.engine.settings.conftest import Machine, messages
from tests.unit.engine.settings.statuses import GOOD, OFF, withheld
from tui.engine.definitions.definition import shown_target
from tui.model.servers import Origin, ProtocolEra, ServerStatus
from tui.model.settings import GemdeckSettings
from tui.text import sanitize_line


def test_only_servers_that_every_layer_allows_start(machine: Machine) -> None:
    machine.write("user", {"mcpServers": {"A": GOOD, "b": GOOD}, "mcp": {"allowed": [" a", "b"]}})
    assert withheld(machine) == {"A": None, "b": None}
    machine.write("system", {"mcp": {"allowed": ["B", "c"]}})
    assert withheld(machine) == {"A": OFF, "b": None}
    failure = machine.servers()["A"].failure
    assert failure is not None
    assert "mcp.allowed" in failure.reason
    assert str(machine.files["system"]) in failure.advice


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
    assert server.command == "run"
    assert server.args == ("--dir", "my dir", ";", "echo", "a dir; touch x")
    assert server.origin is Origin.USER


@pytest.mark.parametrize(("command", "word"), [("a 'b", "object"), ("  ", "needs one of")])
def test_a_server_command_that_cannot_be_read_is_invalid(
    machine: Machine, command: str, word: str
) -> None:
    machine.write("user", {"mcp": {"serverCommand": command}})
    assert withheld(machine) == {"mcp": ServerStatus.INVALID}
    (problem,) = machine.load().problems
    assert problem.key == "mcp.serverCommand"
    assert word in problem.message


def test_a_server_called_mcp_is_not_replaced_by_the_command(machine: Machine) -> None:
    machine.write("user", {"mcpServers": {"mcp": GOOD}, "mcp": {"serverCommand": "other"}})
    servers = machine.servers()
    assert servers["mcp"].command == "x"
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
        if server.origin is Origin.PROJECT:
            assert server.withheld in {ServerStatus.UNTRUSTED, ServerStatus.INVALID}
            assert not server.trust
        if server.withheld is None:
            assert bool(server.command) != bool(server.url)
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
    assert [server.protocol for server in loaded.servers] == [
        ProtocolEra.HANDSHAKE,
        ProtocolEra.STATELESS,
        ProtocolEra.AUTO,
    ]
    [problem] = messages(loaded)
    assert "gemdeck.protocols.gone: no server has this name" in problem


def test_a_wrong_era_is_reported_with_its_server(machine: Machine) -> None:
    machine.write("user", {"gemdeck": {"protocols": {"git": "modern"}}})
    [problem] = messages(machine.load())
    assert "gemdeck.protocols.git: must be 'auto', 'handshake' or 'stateless'" in problem
