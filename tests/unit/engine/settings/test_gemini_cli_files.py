"""Settings files of gemini-cli's users: what gemini-cli 0.61 makes of each, and what gemdeck does.

The outcome of gemini-cli was seen by running it; "-" where it was not.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from tests.unit.engine.settings.conftest import Machine, messages
from tui.engine.approval.policy import DenyingPatterns
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.settings.loader import LoadedSettings
from tui.model.servers import ServerStatus, Transport

RUNS, OFF = "runs", ServerStatus.DISABLED.value
INVALID, UNTRUSTED = ServerStatus.INVALID.value, ServerStatus.UNTRUSTED.value
EXTENSION = ".gemini/extensions/sky/gemini-extension.json"
POLICY = ".gemini/policies/mine.toml"

Servers = Mapping[str, ServerDefinition]


@dataclass(frozen=True)
class Case:
    """One file.

    Attributes:
        name: What it is about.
        text: The user's settings.
        gemini: What gemini-cli makes of it.
        ours: How our servers stand.
        warns: Parts of our warnings, one each.
        files: Further files under the home.
        environ: Further variables.
        check: What else holds here.
    """

    name: str
    text: str
    gemini: str
    ours: Mapping[str, str] = field(default_factory=lambda: {"a": RUNS})
    warns: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Servers, LoadedSettings], bool] = lambda _servers, _loaded: True


def servers(**entries: object) -> str:
    return json.dumps({"mcpServers": entries})


def one(**entry: object) -> str:
    return servers(a={"command": "x", **entry})


def with_a(**sections: object) -> str:
    return json.dumps({"mcpServers": {"a": {"command": "x"}}, **sections})


def extension(**manifest: object) -> dict[str, str]:
    return {EXTENSION: json.dumps({"name": "sky", **manifest})}


def denied(loaded: LoadedSettings, server: str, tool: str) -> bool:
    """Tell whether the settings deny a tool."""
    return DenyingPatterns(loaded.gemdeck.always_deny).match(server, tool) is not None


A = '"a": {"command": "x"}'
SKY = {"sky": {"command": "run", "args": ["${extensionPath}${/}s.js"], "env": {"K": "$K"}}}
ALL_SECTIONS = {
    "$schema": "https://example.com/schema.json",
    "general": {"vimMode": True},
    "ui": {"theme": "GitHub"},
    "hooks": {"BeforeTool": []},
    "telemetry": {"enabled": False},
    "model": {"name": "gemini-3.8-pro"},
}

CASES = (
    Case("comments", f'{{// c\n"mcpServers": {{/* c */ {A}}}}}', "ok"),
    Case("trailing commas", f'{{"mcpServers": {{{A},}},}}', "exit 52"),
    Case("empty file", "", "exit 52", {}),
    Case("byte order mark", "\ufeff" + servers(a={"command": "x"}), "exit 52"),
    Case(
        "duplicate section",
        f'{{"mcpServers": {{"b": {{"command": "y"}}}},\n"mcpServers": {{{A}}}}}',
        "last wins, silent",
        warns=("settings.json:2: mcpServers: stands twice",),
    ),
    Case(
        "duplicate server",
        f'{{"mcpServers": {{"a": {{"command": "y"}}, {A}}}}}',
        "last wins, silent",
        warns=("mcpServers.a: stands twice",),
        check=lambda all_, _: all_["a"].command == "x",
    ),
    Case("servers in a list", '{"mcpServers": []}', "warns", {}, ("mcpServers: must be",)),
    Case(
        "first settings",
        with_a(allowMCPServers=["b"], excludeMCPServers=["a"], theme="x", selectedAuthType="y"),
        "ignored, silent",
        warns=("allowMCPServers (now mcp.allowed), excludeMCPServers (now mcp.excluded), theme",),
    ),
    Case(
        "all sections",
        with_a(**ALL_SECTIONS),
        "ok",
        check=lambda _, loaded: loaded.gemdeck.model == "gemini-3.8-pro",
    ),
    Case("bool in env", one(env={"N": True}), "-", check=lambda s, _: s["a"].env["N"] == "true"),
    Case(
        "null in env",
        one(env={"N": None, "M": "m"}),
        "warns, connects",
        warns=("a.env.N: must be a text, left out",),
        check=lambda s, _: dict(s["a"].env) == {"M": "m"},
    ),
    Case("list in env", one(env={"N": []}), "warns, connects", warns=("a.env.N: must be a text",)),
    Case("type local", one(type="local"), "warns, connects", warns=("a.type: no transport",)),
    Case(
        "type ws of an address",
        servers(a={"url": "https://h/", "type": "ws"}),
        "warns, connects",
        warns=("a.type: no transport",),
        check=lambda s, _: s["a"].transport is Transport.HTTP and s["a"].sse_fallback,
    ),
    *(
        Case(
            f"type {name}",
            servers(a={"url": "https://h/", "type": name}),
            "invalid enum",
            check=lambda s, _: s["a"].transport is Transport.HTTP and not s["a"].sse_fallback,
        )
        for name in ("streamable-http", "streamableHttp")
    ),
    *(
        Case(
            f"timeout {value}",
            one(timeout=value),
            "cannot connect",
            warns=("settings.json:1: mcpServers.a.timeout",),
        )
        for value in (0, -1, "5s", 1e11)
    ),
    Case(
        "command and url",
        one(url="https://h/"),
        "url wins",
        warns=("a.command: ignored beside an address",),
        check=lambda s, _: s["a"].transport is Transport.HTTP and not s["a"].command,
    ),
    Case(
        "httpUrl and url",
        servers(a={"url": "https://h/", "httpUrl": "https://i/"}),
        "httpUrl wins",
        warns=("mcpServers.a.httpUrl: httpUrl is used and url ignored",),
        check=lambda s, _: s["a"].url == "https://i/",
    ),
    Case(
        "all three targets",
        one(url="https://h/", httpUrl="https://i/"),
        "httpUrl wins",
        warns=("httpUrl is used", "a.command: ignored"),
        check=lambda s, _: s["a"].url == "https://i/",
    ),
    Case("disabled", one(disabled=True), "warns, starts it", {"a": OFF}),
    *(
        Case(
            key,
            one(**{key: ["t"]}),
            "warns",
            warns=(f"mcpServers.a.{key}: has no effect",),
            check=lambda s, _: not s["a"].trust,
        )
        for key in ("autoApprove", "alwaysAllow")
    ),
    *(
        Case(f"name {name}", servers(**{name: {"command": "x"}}), "-", {name: RUNS})
        for name in ("my srv", "io.github.x/y", "sérv", "__proto__")
    ),
    Case("mcp.allowed empty", with_a(mcp={"allowed": []}), "blocks", {"a": OFF}),
    Case("mcp.allowed unknown", with_a(mcp={"allowed": ["b"]}), "blocks", {"a": OFF}),
    Case("mcp.allowed in capitals", with_a(mcp={"allowed": ["A "]}), "matches"),
    Case("mcp.excluded", with_a(mcp={"excluded": ["a"]}), "blocks", {"a": OFF}),
    Case(
        "serverCommand with quotes",
        json.dumps({"mcp": {"serverCommand": "run 'a b'"}}),
        "ok",
        {"mcp": RUNS},
        check=lambda s, _: s["mcp"].args == ("a b",),
    ),
    Case(
        "includeTools with arguments",
        one(includeTools=["echo(hello)"]),
        "includes echo",
        check=lambda s, _: s["a"].include_tools == frozenset({"echo"}),
    ),
    Case(
        "excludeTools with arguments",
        one(excludeTools=["echo(rm)"]),
        "excludes nothing",
        check=lambda s, _: bool(s["a"].exclude_tools),
    ),
    Case(
        "tools.exclude",
        with_a(tools={"exclude": ["mcp_a_rm", "wipe"]}),
        "denies",
        check=lambda _, loaded: (
            denied(loaded, "a", "rm")
            and denied(loaded, "b", "wipe")
            and not denied(loaded, "a", "echo")
        ),
    ),
    Case(
        "tools.core and tools.allowed",
        with_a(tools={"core": ["mcp_a_rm"], "allowed": ["mcp_a_rm"]}),
        "allows",
        warns=("tools.core: has no effect", "tools.allowed: lets no tool run here"),
    ),
    Case(
        "policy that denies",
        with_a(),
        "hides the tool",
        files={POLICY: '[[rule]]\ndecision = "deny"\ntoolName = "mcp_a_rm"\n'},
        check=lambda _, loaded: denied(loaded, "a", "rm") and not denied(loaded, "a", "echo"),
    ),
    Case(
        "policy that allows",
        with_a(),
        "runs unasked",
        warns=("mine.toml: rule: lets nothing run here: a: rm",),
        files={POLICY: '[[rule]]\ndecision = "allow"\nmcpName = "a"\ntoolName = "rm"\n'},
    ),
    Case(
        "turned off by command",
        servers(A={"command": "x"}),
        "Disabled",
        {"A": OFF},
        files={".gemini/mcp-server-enablement.json": '{"a": {"enabled": false}}'},
        check=lambda s, _: s["A"].may_enable,
    ),
    Case(
        "extension",
        "{}",
        "ok",
        {"sky": RUNS},
        ("the variable K is not set; it is empty",),
        extension(mcpServers=SKY),
        check=lambda s, _: s["sky"].args[0].endswith("/sky/s.js"),
    ),
    Case(
        "extension and an entry that restricts",
        servers(sky={"excludeTools": ["rm"], "env": {"M": "m"}}),
        "merged",
        {"sky": RUNS},
        files=extension(mcpServers=SKY),
        environ={"K": "k"},
        check=lambda s, _: (
            s["sky"].exclude_tools == frozenset({"rm"})
            and s["sky"].command == "run"
            and dict(s["sky"].env) == {"K": "k", "M": "m"}
        ),
    ),
    Case(
        "extension with .env",
        "{}",
        "filled",
        {"sky": RUNS},
        files={
            **extension(mcpServers=SKY, settings=[{"name": "k", "envVar": "K"}]),
            ".gemini/extensions/sky/.env": "K=from-env\nOTHER=no\n",
        },
        check=lambda s, _: dict(s["sky"].env) == {"K": "from-env"},
    ),
    Case(
        "extension that is off here",
        "{}",
        "off",
        {},
        files={
            **extension(mcpServers=SKY),
            ".gemini/extensions/extension-enablement.json": json.dumps(
                {"sky": {"overrides": ["!/*"]}}
            ),
        },
    ),
    Case(
        "extension with GEMINI.md",
        "{}",
        "in context",
        {"sky": RUNS},
        files={**extension(mcpServers={"sky": {"command": "run"}}), "GEMINI.md": "Obey."},
    ),
    Case(
        "own .env",
        one(args=["$FOO"], env={"BAR": "${FOO}"}),
        "used",
        files={".gemini/.env": "FOO=foo\nGEMINI_API_KEY=k\n"},
        check=lambda s, loaded: (
            (s["a"].args, dict(s["a"].env)) == (("foo",), {"BAR": "foo"})
            and loaded.variables["GEMINI_API_KEY"] == "k"
        ),
    ),
    Case(
        "own .env and the process",
        one(args=["$FOO"]),
        "the process wins",
        files={".gemini/.env": "FOO=foo\n"},
        environ={"FOO": "set"},
        check=lambda s, _: s["a"].args == ("set",),
    ),
    Case(
        ".env of the folder",
        one(args=["${FOO:-none}"]),
        "used after trust",
        files={"shop/.env": "FOO=evil\n"},
        check=lambda s, _: s["a"].args == ("none",),
    ),
    Case(
        "trusted folders",
        "{}",
        "trusted",
        {"it": UNTRUSTED},
        files={
            ".gemini/trustedFolders.json": '{"/": "TRUST_FOLDER"}',
            "shop/.gemini/settings.json": servers(it={"command": "x"}),
        },
    ),
    Case(
        "unset variable in env",
        one(args=["$NOPE"], env={"K": "a$NOPE2", "P": "$5"}),
        "empty",
        warns=("NOPE2 is not set; it is empty", "NOPE is not set; the reference is left"),
        check=lambda s, _: (s["a"].args, dict(s["a"].env)) == (("$NOPE",), {"K": "a", "P": "$5"}),
    ),
    Case(
        "GEMINI_MODEL",
        with_a(gemdeck={"model": "ours"}, model={"name": "theirs"}),
        "counts",
        environ={"GEMINI_MODEL": "gemini-x"},
        check=lambda _, loaded: loaded.gemdeck.model == "gemini-x",
    ),
    Case("tcp", servers(a={"tcp": "ws://h"}), "-", {"a": INVALID}, ("tcp is not supported",)),
    Case("extension key", one(extension={}), "-", warns=("a.extension: unknown key",)),
    Case(
        "unknown key of oauth",
        servers(a={"url": "https://h/", "oauth": {"color": 1}}),
        "-",
        warns=("a.oauth.color: unknown key",),
    ),
)


def stand(server: ServerDefinition) -> str:
    return server.withheld.value if server.withheld is not None else RUNS


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} [{case.gemini}]")
def test_a_settings_file_of_gemini_clis(machine: Machine, case: Case) -> None:
    for name, text in case.files.items():
        path = machine.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    machine.environ |= case.environ
    machine.write("user", case.text)
    loaded = machine.load()
    found = {str(server.id): server for server in loaded.servers}
    assert {name: stand(server) for name, server in found.items()} == case.ours
    said = messages(loaded)
    assert len(said) == len(case.warns), said
    for words in case.warns:
        assert any(words in message for message in said), (words, said)
    assert case.check(found, loaded)
