from typing import Any

import pytest
from pydantic import SecretStr

from tests.unit.engine.settings.conftest import Machine, messages
from tui.engine.definitions.definition import shown_target
from tui.model.servers import ServerStatus, Transport
from tui.model.settings import AuthProviderType, ServerSettings


def test_a_stdio_server_has_all_that_its_entry_says(machine: Machine) -> None:
    machine.environ["LEVEL"] = "debug"
    server = machine.server(
        command="npx",
        args=["-y", "pkg", "$LEVEL"],
        env={"L": "${LEVEL}"},
        cwd="sub",
        timeout=5000,
        trust=True,
        description="my\x1b[31m notes",
        includeTools=["read", "write(path)"],
        excludeTools=["write"],
    )
    assert server.transport is Transport.STDIO
    assert (server.launch.command, server.launch.args) == ("npx", ("-y", "pkg", "debug"))
    assert dict(server.launch.env) == {"L": "debug"}
    assert server.launch.cwd == machine.folder / "sub"
    assert server.timeout == 5.0
    assert server.trust
    assert server.description == "my notes"
    assert server.include_tools == frozenset({"read", "write"})
    assert server.exclude_tools == frozenset({"write"})
    assert server.withheld is None
    assert not server.endpoint.sse_fallback
    assert not machine.load().problems


def test_what_is_left_out_has_the_defaults(machine: Machine) -> None:
    server = machine.server(command="x")
    assert (server.timeout, server.trust, server.launch.cwd) == (600.0, False, None)
    assert (server.include_tools, server.exclude_tools) == (None, frozenset())
    assert machine.server(command="x", includeTools=[]).include_tools == frozenset()


def test_the_transport_follows_from_address_and_type(machine: Machine) -> None:
    for entry, transport, fallback in [
        ({"url": "https://h/mcp"}, Transport.HTTP, True),
        ({"url": "https://h/mcp", "type": "http"}, Transport.HTTP, False),
        ({"url": "https://h/mcp", "type": "sse"}, Transport.SSE, False),
        ({"url": "https://h/mcp", "transportType": "sse"}, Transport.SSE, False),
        ({"url": "https://h/mcp", "type": "streamable-http"}, Transport.HTTP, False),
        ({"url": "https://h/mcp", "type": "streamableHttp"}, Transport.HTTP, False),
        ({"httpUrl": "https://h/mcp"}, Transport.HTTP, False),
    ]:
        server = machine.server(**entry)
        assert (server.endpoint.url, server.transport) == ("https://h/mcp", transport), entry
        assert server.endpoint.sse_fallback is fallback, entry
        assert not machine.load().problems, entry


def test_text_is_coerced_as_gemini_cli_does(machine: Machine) -> None:
    server = machine.server(
        command="x", timeout="5000", trust="true", args=[80, 1.5, True], env={"PORT": 80, "A": "b"}
    )
    assert (server.timeout, server.trust) == (5.0, True)
    assert server.launch.args == ("80", "1.5", "true")
    assert dict(server.launch.env) == {"PORT": "80", "A": "b"}


def test_arguments_in_one_text_are_one_argument_and_said_to_be(machine: Machine) -> None:
    for args, words in (("-u x.py", ["single argument"]), ("-u", []), (["-u x.py"], [])):
        server = machine.server(command="x", args=args)
        assert server.launch.args == (args if isinstance(args, str) else args[0],)
        told = [problem.message for problem in machine.load().problems]
        assert len(told) == len(words)
        assert all(word in message for word, message in zip(words, told, strict=True))


def test_null_and_empty_mean_that_a_key_is_not_there(machine: Machine) -> None:
    server = machine.server(command="x", url="", httpUrl=None, args=None, oauth=None)
    assert (server.withheld, server.launch.args) == (None, ())


@pytest.mark.parametrize(("cwd", "expected"), [("~", "."), ("~/a/b", "a/b"), ("/abs", "/abs")])
def test_a_working_folder_may_be_under_the_home(machine: Machine, cwd: str, expected: str) -> None:
    assert machine.server(command="x", cwd=cwd).launch.cwd == machine.home / expected


@pytest.mark.parametrize(
    ("entry", "key", "word"),
    [
        ({}, "", "needs one of command, url and httpUrl"),
        ({"args": ["x"]}, "", "needs one of"),
        ({"tcp": "ws://h"}, "", "tcp is not supported"),
        ({"url": "ftp://h"}, ".url", "must be an address"),
        ({"url": "https://"}, ".url", "must be an address"),
        ({"url": "https://h:99999/"}, ".url", "must be an address"),
        ({"url": "https://h/a b"}, ".url", "must be an address"),
        ({"url": "https://h/\u202ea"}, ".url", "must be an address"),
        ({"url": "https://h/" + "a" * 8_192}, ".url", "must be an address"),
        ({"url": "https://h", "type": "sse", "transportType": "http"}, "", "contradict"),
        ({"command": ["x"]}, ".command", "string"),
        ({"command": "a\0b"}, ".command", "NUL"),
        ({"command": "x", "args": ["a", {}]}, ".args[1]", "string"),
        ({"command": "x", "env": {"A=B": "c"}}, ".env", "variable's name"),
        ({"command": "x", "args": [{}] * 5000}, ".args", "more than 4096"),
        ({"command": "x", "env": dict.fromkeys(map(str, range(5000)))}, ".env", "more than 4096"),
        ({"url": "https://h", "headers": {"A b": "c"}}, ".headers", "header's name"),
        ({"url": "https://h", "headers": {"A": "b\r\nC: d"}}, ".headers", "one line"),
        ({"url": "https://h", "oauth": {"tokenUrl": "x"}}, ".oauth.tokenUrl", "must be an address"),
        ({"url": "https://h", "authProviderType": "google_credentials"}, "", "oauth.scopes"),
        (
            {"url": "https://h", "authProviderType": "service_account_impersonation"},
            "",
            "targetAudience",
        ),
    ],
)
def test_a_bad_entry_is_invalid_and_says_where(
    machine: Machine, entry: dict[str, object], key: str, word: str
) -> None:
    machine.write("user", {"mcpServers": {"good": {"command": "y"}, "bad": entry}})
    loaded = machine.load()
    good, bad = loaded.servers
    assert good.withheld is None
    assert bad.withheld is ServerStatus.INVALID
    assert not bad.trust
    problem = next(problem for problem in loaded.problems if word in problem.message)
    assert problem.key == f"mcpServers.bad{key}"
    assert (problem.file, problem.line, problem.fatal) == ("~/.gemini/settings.json", 1, False)
    assert bad.failure is not None
    assert bad.failure.reason.startswith(f"mcpServers.bad{key}: ")
    assert "~/.gemini/settings.json, line 1" in bad.failure.advice


def test_an_entry_that_is_no_object_is_invalid(machine: Machine) -> None:
    entries = dict(enumerate([None, 5, "npx", ["npx"], True]))
    machine.write("user", {"mcpServers": entries})
    assert [one.withheld for one in machine.servers().values()] == [ServerStatus.INVALID] * 5


def test_a_problem_has_the_line_of_its_key(machine: Machine) -> None:
    machine.write("user", '{\n"mcpServers": {\n// mine\n"a": {"command": "x",\n"timeout": -1}}}')
    (problem,) = machine.load().problems
    assert str(problem).startswith("~/.gemini/settings.json:5: mcpServers.a.timeout: must be")


def test_no_message_quotes_a_value(machine: Machine) -> None:
    machine.environ["S"] = "hunter2 hunter2"
    machine.write(
        "user",
        {
            "mcpServers": {
                "a": {"url": "$S", "type": "$S", "timeout": "$S", "trust": "$S", "args": {"$S": 1}},
                "b": {"command": "x", "url": "https://hunter2/"},
                "c": {"url": "https://h", "oauth": {"clientSecret": ["hunter2"]}},
                "d": {"url": "https://h", "headers": {"A": "hunter2\n"}, "env": ["hunter2"]},
            }
        },
    )
    loaded = machine.load()
    assert len(loaded.problems) >= 7
    assert "hunter2" not in "".join(messages(loaded))
    assert "hunter2" not in "".join(str(server.failure) for server in loaded.servers)


def test_a_slip_that_neither_reaches_nor_restricts_costs_a_warning(machine: Machine) -> None:
    rows: list[tuple[dict[str, object], str, str]] = [
        ({"command": "x", "timeout": 0}, "timeout", "greater than 0"),
        ({"command": "x", "timeout": 1e11}, "timeout", "less than"),
        ({"command": "x", "timeout": "soon"}, "timeout", "number"),
        ({"command": "x", "timeout": True}, "timeout", "number"),
        ({"command": "x", "trust": 1}, "trust", "true or false"),
        ({"command": "x", "trust": "maybe"}, "trust", "true or false"),
        ({"command": "x", "description": 5}, "description", "string"),
        ({"command": "x", "tcp": 5}, "tcp", "string"),
        ({"command": "x", "env": "X=1"}, "env", "must be an object"),
        ({"command": "x", "oauth": True}, "oauth", "must be an object"),
        ({"url": "https://h", "headers": []}, "headers", "must be an object"),
        ({"url": "https://h", "authProviderType": "none"}, "authProviderType", "must be"),
        ({"httpUrl": "https://h", "url": "nonsense"}, "url", "must be an address"),
        ({"url": "https://h", "command": ["x"]}, "command", "string"),
    ]
    for entry, key, word in rows:
        machine.write("user", {"mcpServers": {"a": entry}})
        loaded = machine.load()
        (server,) = loaded.servers
        assert (server.withheld, server.trust, server.timeout) == (None, False, 600.0), entry
        [said] = [one.message for one in loaded.problems if one.key == f"mcpServers.a.{key}"]
        assert word in said, entry
        assert said.endswith("; ignored"), entry


def test_how_to_sign_in_is_part_of_a_definition(machine: Machine) -> None:
    entry = {
        "url": "https://h",
        "oauth": {"clientId": "c", "clientSecret": "hunter2", "issuer": "https://login.example"},
        "authProviderType": "service_account_impersonation",
        "targetAudience": "a",
        "targetServiceAccount": "s",
    }
    machine.write("user", {"mcpServers": {"a": entry}})
    loaded = machine.load()
    assert not loaded.problems
    (server,) = loaded.servers
    assert server.endpoint.sign_in.oauth.client_id == "c"
    assert server.endpoint.sign_in.provider is AuthProviderType.SERVICE_ACCOUNT_IMPERSONATION
    assert (server.endpoint.sign_in.audience, server.endpoint.sign_in.account) == ("a", "s")
    assert "hunter2" in server.secrets
    assert "hunter2" not in repr(server.endpoint.sign_in)


def test_a_list_that_restricts_is_never_left_out_and_what_is_invalid_is_recognised(
    machine: Machine,
) -> None:
    server = machine.server(command="x", timeout=0, excludeTools=[{}])
    assert server.withheld is ServerStatus.INVALID
    server = machine.server(command="npx", args=["-y", "pkg", {}], timeout=-1)
    assert shown_target(server) == "npx -y pkg"


def test_what_has_no_effect_is_named_and_the_server_loads(machine: Machine) -> None:
    entries: list[tuple[dict[str, Any], str]] = [
        ({"command": "x", "type": "http"}, "type"),
        ({"url": "https://h", "type": "stdio"}, "type"),
        ({"httpUrl": "https://h", "transportType": "sse"}, "transportType"),
        ({"command": "x", "tcp": "ws://h"}, "tcp"),
        ({"command": "x", "headersCommand": ["y"]}, "headersCommand"),
        ({"command": "x", "tls": {"caFile": "/ca.pem"}}, "tls"),
    ]
    for entry, key in entries:
        assert machine.server(**entry).withheld is None
        (problem,) = machine.load().problems
        assert problem.key == f"mcpServers.it.{key}", entry
        assert "ignored" in problem.message, entry


def test_what_runs_for_headers_and_certificates_tell_one_server_from_another(
    machine: Machine,
) -> None:
    entries: list[dict[str, Any]] = [
        {},
        {"headersCommand": ["sh", "-c", "x"]},
        {"headersCommand": ["sh", "-c", "y"]},
        {"tls": {"caFile": "/ca.pem"}},
        {"tls": {"caFile": "/other.pem"}},
        {"headers": {"A": "${keyring:a}"}},
        {"headers": {"A": "${keyring:b}"}},
        {"oauth": {"identityTokenFile": "/token"}},
    ]
    found = [machine.server(url="https://h/mcp", **entry) for entry in entries]
    assert len({server.fingerprint for server in found}) == len(entries)
    assert (found[1].launch.command, found[1].launch.args) == ("sh", ("-c", "x"))
    assert found[5].entry.named == frozenset({"a"})
    assert dict(found[5].endpoint.headers) == {"A": "${keyring:a}"}
    assert "${keyring:a}" not in found[5].secrets


def test_the_path_of_a_file_with_a_secret_or_certificate_is_whole(machine: Machine) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"tls": {"caFile": "ca.pem"}}, "tls.caFile: must be an absolute path"),
        ({"tls": {"ca": "/ca.pem"}}, "tls.ca: unknown key"),
        ({"tls": {"keyFile": "/key.pem"}}, "tls: keyFile needs certFile"),
        ({"oauth": {"identityTokenFile": "token"}}, "oauth.identityTokenFile: must be an absolute"),
    ]
    for entry, key in wrong:
        server = machine.server(url="https://h/mcp", **entry)
        assert server.withheld is ServerStatus.INVALID, entry
        assert server.failure is not None
        assert f"mcpServers.it.{key}" in server.failure.reason


def test_a_misspelt_key_is_named_with_its_likely_meaning(machine: Machine) -> None:
    odd: dict[str, object] = {"includeTool": ["a"], "bogus": 1, "serverUrl": "https://h/mcp"}
    server = machine.server(command="x", **odd, oauth={"clientID": "x"})
    assert server.withheld is None
    found = {problem.key: problem.message for problem in machine.load().problems}
    assert found["mcpServers.it.includeTool"].endswith("did you mean includeTools?")
    assert found["mcpServers.it.bogus"] == "unknown key, ignored"
    assert found["mcpServers.it.serverUrl"].endswith("did you mean url?")
    assert found["mcpServers.it.oauth.clientID"].endswith("did you mean clientId?")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        *[
            (key, "mcpServers")
            for key in ("servers", "context_servers", "mcp_servers", "mcpserver")
        ],
        ("gemdek", "gemdeck"),
        ("it", "mcpServers.it"),
    ],
)
def test_sections_of_other_clients_and_misspelt_ones_are_named(
    machine: Machine, key: str, meant: str
) -> None:
    content = {"command": "x"} if key == "it" else {"it": {"command": "x"}}
    machine.write("user", {key: content, "mcp": {}, "general": {"command": 1}})
    [problem] = machine.load().problems
    assert problem.key == key
    assert problem.message == f"unknown key, ignored; did you mean {meant}?"


def test_python_names_of_keys_are_not_keys(machine: Machine) -> None:
    server = machine.server(command="x", include_tools=["a"], exclude_tools=["b"])
    assert server.include_tools is None
    assert not server.exclude_tools


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("disabled", value) for value in (True, "true", "TRUE", 1, "yes")),
        *(("enabled", value) for value in (False, "false", "False ", 0, "no")),
    ],
)
def test_a_server_that_other_clients_turn_off_is_not_started(
    machine: Machine, key: str, value: object
) -> None:
    server = machine.server(command="x", **{key: value})
    odd = [one.message for one in machine.load().problems]
    assert odd == ([] if isinstance(value, bool | str) else ["must be true or false"])
    assert server.withheld is ServerStatus.DISABLED
    assert server.failure is not None
    assert "turned off in its settings entry" in server.failure.reason
    assert "Enable it here" in server.failure.advice
    assert server.may_enable


def test_a_disabled_server_that_the_rules_withhold_too_may_not_be_enabled(machine: Machine) -> None:
    for rules in [{"excluded": ["it"]}, {"allowed": ["other"]}]:
        entry = {"command": "x", "disabled": True}
        machine.write("user", {"mcpServers": {"it": entry}, "mcp": rules})
        server = machine.servers()["it"]
        assert (server.withheld, server.may_enable) == (ServerStatus.DISABLED, False), rules
        assert server.failure is not None, rules
        assert f"mcp.{next(iter(rules))} in ~/.gemini/settings.json" in server.failure.advice
        assert "Enable it here" not in server.failure.advice, rules


def test_what_is_not_disabled_loads_and_what_is_disabled_has_to_be_sound(
    machine: Machine,
) -> None:
    for value in (False, "false", None):
        assert machine.server(command="x", disabled=value).withheld is None
    for value in (True, "true", None):
        assert machine.server(command="x", enabled=value).withheld is None
    assert machine.server(command="x", enabled=True, disabled=True).withheld
    # enabling a disabled server starts it, so it must be fit to start
    assert machine.server(disabled=True).withheld is ServerStatus.INVALID


def test_an_undefined_variable_stays_and_is_reported(machine: Machine) -> None:
    server = machine.server(command="x", args=["$NOPE", "${NOPE}"], env={"A": "${OTHER:-d}"})
    assert server.launch.args == ("$NOPE", "${NOPE}")
    assert dict(server.launch.env) == {"A": "d"}
    (problem,) = machine.load().problems
    assert problem.key == "mcpServers.it.args[0]"
    assert "NOPE is not set" in problem.message


def test_values_that_are_secret_are_known_and_masked(machine: Machine) -> None:
    machine.environ |= {"MY_TOKEN": "from-environment", "PLAIN": "plain-value"}
    server = machine.server(
        command="run",
        args=["from-environment", "in-the-env", "plain-value", "$MY_TOKEN"],
        env={"API_KEY": "in-the-env", "LEVEL": "info-level"},
    )
    assert {"from-environment", "in-the-env"} <= server.secrets
    assert shown_target(server) == "run *** *** plain-value ***"


def test_the_token_of_a_header_is_known_without_its_scheme(machine: Machine) -> None:
    server = machine.server(
        url="https://h/tok-in-header",
        headers={"Authorization": "Bearer tok-in-header"},
        oauth={"clientSecret": "client-secret"},
    )
    assert {"tok-in-header", "client-secret"} <= server.secrets
    assert shown_target(server) == "https://h/***"


def test_bytes_of_the_environment_that_are_no_text_do_no_harm(machine: Machine) -> None:
    machine.environ["BYTES"] = "caf\udce9"
    servers = {"a": {"command": "$BYTES"}, "b": {"url": "https://$BYTES/"}}
    machine.write("user", {"mcpServers": servers, "model": "$BYTES"})
    for server in machine.load().servers:
        shown_target(server).encode()


def test_names_become_clean_and_distinct_ids(machine: Machine) -> None:
    names = ("git", "git ", "\x1b[31mgit", "", " ", "x" * 100)
    machine.write("user", {"mcpServers": {name: {"command": "x"} for name in names}})
    loaded = machine.load()
    ids = [server.id for server in loaded.servers]
    assert ids == ["git", "git (2)", "git (3)", "unnamed", "unnamed (2)", "x" * 63 + "…"]
    withheld = [server.withheld for server in loaded.servers]
    assert withheld == [None, *[ServerStatus.INVALID] * 4, None]
    assert all("\x1b" not in message for message in messages(loaded))


def test_secrets_of_the_schema_do_not_show() -> None:
    secret = {"url": "https://h?k=hunter2", "headers": {"A": "hunter2"}, "env": {"A": "hunter2"}}
    settings = ServerSettings.model_validate({**secret, "oauth": {"clientSecret": "hunter2"}})
    assert settings.oauth is not None
    assert settings.oauth.client_secret == SecretStr("hunter2")
    assert "hunter2" not in repr(settings)


def test_a_relative_opened_folder_still_gives_absolute_folders(machine: Machine) -> None:
    assert machine.server(command="x", cwd="a").launch.cwd == machine.folder.absolute() / "a"
