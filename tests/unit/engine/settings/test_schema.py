"""The schema of settings, the sample that shows all of it, and a file of gemini-cli's."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.unit.engine.settings.conftest import Machine, messages
from tui.engine.settings.sources.document import parse_document
from tui.model.servers import ServerStatus, Transport
from tui.model.settings import (
    ContextSettings,
    GemdeckSettings,
    McpSettings,
    ModelPrice,
    ModelSettings,
    OAuthSettings,
    PriceSettings,
    ServerSettings,
    ToolPattern,
)

SAMPLE = Path(__file__).parents[4] / "settings.sample.json"
SECTIONS = (
    *(ServerSettings, OAuthSettings, McpSettings, ModelSettings, GemdeckSettings),
    *(ToolPattern, ContextSettings, PriceSettings, ModelPrice),
)
NOT_SUPPORTED = {"tcp"}


def schema_keys() -> set[str]:
    keys = {field.alias or name for model in SECTIONS for name, field in model.model_fields.items()}
    return keys | {"mcpServers", "mcp", "gemdeck", "model", "context"}


def keys_in(value: object) -> Iterator[str]:
    match value:
        case dict():
            for key, item in value.items():
                yield key
                yield from keys_in(item)
        case list():
            for item in value:
                yield from keys_in(item)


@pytest.fixture
def sample() -> str:
    return SAMPLE.read_text(encoding="utf-8")


@pytest.mark.parametrize("model", SECTIONS)
def test_every_key_has_a_description(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_the_sample_holds_every_key(sample: str) -> None:
    assert schema_keys() - NOT_SUPPORTED <= set(keys_in(parse_document(sample).content))
    assert all(f'// "{key}":' in sample for key in NOT_SUPPORTED)


def test_every_key_of_the_sample_has_a_comment(sample: str) -> None:
    lines = sample.splitlines()
    for key in schema_keys():
        numbers = [number for number, line in enumerate(lines) if f'"{key}":' in line]
        assert any("//" in lines[number] or "//" in lines[number - 1] for number in numbers), key


def test_the_sample_loads_without_problems(machine: Machine, sample: str) -> None:
    names = set(
        re.findall(r"\$\{?(\w+)", "\n".join(line.split(" // ")[0] for line in sample.splitlines()))
    )
    machine.environ |= {name: f"/{name.lower()}" for name in names}
    machine.write("user", sample)
    loaded = machine.load()
    assert messages(loaded) == []
    statuses = {str(server.id): server.withheld for server in loaded.servers}
    assert statuses.pop("old") is ServerStatus.DISABLED
    assert set(statuses.values()) == {None}
    assert len(statuses) == 6
    assert {server.transport for server in loaded.servers} == set(Transport)


GEMINI_CLI_FILE = """{
  // my settings
  "ui": { "theme": "GitHub", "hideBanner": true, "footer": { "hideCWD": false } },
  "general": { "vimMode": true, "checkpointing": { "enabled": true }, "preferredEditor": "vim" },
  "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": true } },
  "tools": { "allowed": ["run_shell_command(git)"], "exclude": [] },
  "context": { "fileName": ["AGENTS.md", "GEMINI.md"] },
  "model": { "name": "gemini-3.8-pro", "maxSessionTurns": -1, "compressionThreshold": 0.5 },
  "telemetry": { "enabled": false, "target": "local", "otlpEndpoint": "$OTEL_NOT_SET" },
  "mcp": { "excluded": ["experimental"], "autoAllowInHeadless": true },
  /* servers */
  "mcpServers": {
    "github": {
      "httpUrl": "https://api.githubcopilot.com/mcp/",
      "headers": { "Authorization": "Bearer $GITHUB_TOKEN" },
      "timeout": "30000"
    },
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "$HOME"],
      "env": { "DEBUG": "${MCP_DEBUG:-0}" },
      "cwd": "./",
      "trust": false
    },
    "linear": { "url": "https://mcp.linear.app/sse", "type": "sse", "oauth": { "enabled": true } },
    "python": {
      "command": "python",
      "args": ["-m", "my_mcp_server", "--port", "8080"],
      "excludeTools": ["dangerous"],
      "alwaysAllow": ["read"],
      "disabled": false
    },
    "experimental": { "command": "node", "args": ["server.js"] }
  }
}
"""


def test_a_file_of_gemini_clis_just_works(machine: Machine) -> None:
    machine.environ |= {"GITHUB_TOKEN": "ghp_x", "HOME": "/home/me"}
    machine.write("user", GEMINI_CLI_FILE)
    loaded = machine.load()
    servers = {str(server.id): server for server in loaded.servers}
    assert loaded.gemdeck.model == "gemini-3.8-pro"
    assert list(servers) == ["github", "filesystem", "linear", "python", "experimental"]
    assert servers.pop("experimental").withheld is ServerStatus.DISABLED
    assert all(server.withheld is None for server in servers.values())
    assert dict(servers["github"].headers) == {"Authorization": "Bearer ghp_x"}
    assert servers["github"].timeout == 30.0
    assert servers["filesystem"].args[-1] == "/home/me"
    assert dict(servers["filesystem"].env) == {"DEBUG": "0"}
    assert servers["linear"].transport is Transport.SSE
    assert [problem.key for problem in loaded.problems] == [
        "tools.allowed",
        "mcp.autoAllowInHeadless",
        "mcpServers.python.alwaysAllow",
    ]


def test_every_key_of_a_section_is_camel_case() -> None:
    assert all("_" not in key for key in schema_keys())
