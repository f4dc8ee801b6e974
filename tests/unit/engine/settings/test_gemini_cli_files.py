"""Settings files of gemini-cli's users: what gemini-cli 0.61 makes of each, and what gemdeck does.

The outcome of gemini-cli was seen by running it; "-" where it was not.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from tests.unit.engine.settings.conftest import Machine
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.settings.loader import LoadedSettings
from tui.model.servers import ServerStatus, Transport

RUNS, OFF = "runs", ServerStatus.DISABLED.value
UNTRUSTED = ServerStatus.UNTRUSTED.value
EXTENSION = ".gemini/extensions/sky/gemini-extension.json"

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


SKY = {"sky": {"command": "run", "args": ["${extensionPath}${/}s.js"], "env": {"K": "$K"}}}
ALL_SECTIONS = {
    "$schema": "https://example.com/schema.json",
    "general": {"vimMode": True, "checkpointing": {"enabled": True}, "preferredEditor": "vim"},
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": True}},
    "ui": {"theme": "GitHub", "footer": {"hideCWD": False}},
    "hooks": {"BeforeTool": []},
    "telemetry": {"enabled": False, "otlpEndpoint": "$OTEL_NOT_SET"},
    "model": {"name": "gemini-3.8-pro", "maxSessionTurns": -1, "compressionThreshold": 0.5},
}

CASES = (
    Case(
        "duplicate section",
        '{"mcpServers": {"b": {"command": "y"}},\n"mcpServers": {"a": {"command": "x"}}}',
        "last wins, silent",
        warns=("settings.json:2: mcpServers: duplicate key",),
    ),
    Case(
        "first settings",
        with_a(allowMCPServers=["b"], excludeMCPServers=["a"], theme="x", selectedAuthType="y"),
        "ignored, silent",
        warns=("allowMCPServers (now mcp.allowed), excludeMCPServers (now mcp.excluded)",),
    ),
    Case(
        "all sections",
        with_a(**ALL_SECTIONS),
        "ok",
        check=lambda _, loaded: loaded.gemdeck.model == "gemini-3.8-pro",
    ),
    Case(
        "null in env",
        one(env={"N": None, "M": "m"}),
        "warns, connects",
        warns=("a.env.N: must be a valid string; ignored",),
        check=lambda s, _: dict(s["a"].launch.env) == {"M": "m"},
    ),
    Case(
        "list in env",
        one(env={"N": []}),
        "warns, connects",
        warns=("a.env.N: must be a valid string",),
    ),
    Case("type local", one(type="local"), "warns, connects", warns=("a.type: must be ",)),
    Case(
        "type ws of an address",
        servers(a={"url": "https://h/", "type": "ws"}),
        "warns, connects",
        warns=("a.type: must be ",),
        check=lambda s, _: s["a"].transport is Transport.HTTP and s["a"].endpoint.sse_fallback,
    ),
    Case(
        "all three targets",
        one(url="https://h/", httpUrl="https://i/"),
        "httpUrl wins",
        warns=("a.url: ignored because of httpUrl", "a.command: ignored because of httpUrl"),
        check=lambda s, _: (s["a"].endpoint.url, s["a"].launch.command) == ("https://i/", ""),
    ),
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
    Case(
        "excludeTools with arguments",
        one(excludeTools=["echo(rm)"]),
        "excludes nothing",
        check=lambda s, _: bool(s["a"].exclude_tools),
    ),
    Case(
        "tools.core and tools.allowed",
        with_a(
            tools={"core": ["mcp_a_rm"], "allowed": ["mcp_a_rm"]}, mcp={"autoAllowInHeadless": True}
        ),
        "allows",
        warns=(
            *("tools.core: has no effect", "tools.allowed: allows no tool here"),
            "mcp.autoAllowInHeadless: allows no tool here",
        ),
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
        "extension with .env",
        "{}",
        "filled",
        {"sky": RUNS},
        files={
            **extension(mcpServers=SKY, settings=[{"name": "k", "envVar": "K"}]),
            ".gemini/extensions/sky/.env": "K=from-env\nOTHER=no\n",
        },
        check=lambda s, _: dict(s["sky"].launch.env) == {"K": "from-env"},
    ),
    Case(
        "own .env",
        one(args=["$FOO"], env={"BAR": "${FOO}"}),
        "used",
        files={".gemini/.env": "FOO=foo\nGEMINI_API_KEY=k\n"},
        check=lambda s, loaded: (
            (s["a"].launch.args, dict(s["a"].launch.env)) == (("foo",), {"BAR": "foo"})
            and loaded.variables["GEMINI_API_KEY"] == "k"
        ),
    ),
    Case(
        "own .env and the process",
        one(args=["$FOO"]),
        "the process wins",
        files={".gemini/.env": "FOO=foo\n"},
        environ={"FOO": "set"},
        check=lambda s, _: s["a"].launch.args == ("set",),
    ),
    Case(
        ".env of the folder",
        one(args=["${FOO:-none}"]),
        "used after trust",
        files={"shop/.env": "FOO=evil\n"},
        check=lambda s, _: s["a"].launch.args == ("none",),
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
        check=lambda s, _: (
            (s["a"].launch.args, dict(s["a"].launch.env)) == (("$NOPE",), {"K": "a", "P": "$5"})
        ),
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
    said = [str(problem) for problem in loaded.problems if not problem.quiet]
    assert len(said) == len(case.warns), said
    for words in case.warns:
        assert any(words in message for message in said), (words, said)
    assert case.check(found, loaded)
