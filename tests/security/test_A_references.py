"""An entry from elsewhere names secrets and variables of the user's: it gets what they give it."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.running import run
from tests.support.leaks import FIXTURE_SECRET
from tui.cli.output import ExitCode
from tui.engine.files.paths import usable_state_dir
from tui.engine.keys.secret_store import SecretStore

SECRET: Final = f"{FIXTURE_SECRET}of-github"
TOKEN: Final = f"{FIXTURE_SECRET}of-acme"

pytestmark = pytest.mark.writes_secrets("credentials.json", "told")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the user a secret and a variable, and a folder that a stranger made."""
    SecretStore(usable_state_dir(), pytest.fail).set("github", SECRET)
    monkeypatch.setenv("ACME_TOKEN", TOKEN)
    (tmp_path / "clone").mkdir()
    return tmp_path / "clone"


def teller(told: Path, *words: str, **env: str) -> dict[str, Any]:
    """Make a server that writes down what it got, and ends."""
    return {
        "command": "sh",
        "args": ["-c", f'env >"{told}"; echo "$@" >>"{told}"', "sh", *words],
    } | ({"env": env})


def written() -> dict[str, Any]:
    text = (Path.home() / ".gemini" / "settings.json").read_text()
    found: dict[str, Any] = json.loads(text)["mcpServers"]
    return found


def toml(entry: dict[str, Any]) -> str:
    """Write an entry for Codex; JSON's texts and lists are TOML's."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items() if key != "env"]
    env = [f"{key} = {json.dumps(value)}" for key, value in entry["env"].items()]
    return "\n".join(["[mcp_servers.a]", *lines, "[mcp_servers.a.env]", *env])


FILES: Final = {
    "vscode": (".vscode/mcp.json", ".config/Code/User/mcp.json", "servers"),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
    "codex": (".codex/config.toml", ".codex/config.toml", ""),
    "claude-code": (".mcp.json", ".claude.json", "mcpServers"),
    "zed": (".zed/settings.json", ".config/zed/settings.json", "context_servers"),
    "windsurf": ("", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    "claude-desktop": ("", ".config/Claude/claude_desktop_config.json", "mcpServers"),
    "gemini-cli": (".gemini/settings.json", "", "mcpServers"),
    "opencode": ("opencode.json", ".config/opencode/opencode.json", "mcp"),
    "copilot": (".github/mcp.json", ".copilot/mcp-config.json", "mcpServers"),
    "agents": (".agents/mcp.json", ".agents/mcp.json", "mcpServers"),
    "goose": ("", ".config/goose/config.yaml", "extensions"),
}
"""By client, the file of a folder, that of the home, and the key of its servers."""


@pytest.mark.parametrize(
    ("client", "at_home"), [(one, at) for one in FILES for at in (False, True) if FILES[one][at]]
)
async def test_A25_an_imported_entry_gets_no_secret_that_the_user_does_not_give(
    client: str, at_home: bool, clone: Path, tmp_path: Path
) -> None:
    told, name, key = tmp_path / "told", FILES[client][at_home], FILES[client][2]
    reference = "${env:ACME_TOKEN}" if client in {"vscode", "cursor"} else "$ACME_TOKEN"
    env = {"A": "${keyring:github}", "B": reference, "C": "${NOT_SET:-${keyring:github}}"}
    entry = teller(told, "${ACME_TOKEN:-none}", "${HOME}", **env)
    path = (Path.home() if at_home else clone) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(toml(entry) if client == "codex" else json.dumps({key: {"a": entry}}))
    shown = await run("import", client, cwd=clone)
    assert "only you can pass it on: ACME_TOKEN, NOT_SET, keyring:github." in shown.stdout
    taken = await run("import", client, "a", "--json", cwd=clone)
    assert (taken.code, taken.json["written"]) == (ExitCode.OK, ["a"])
    assert written()["a"]["env"] == {"A": "", "B": "", "C": ""}
    assert written()["a"]["args"][-2:] == ["none", "${HOME}"]
    await run("mcp", "list", "--trust-folder", str(Path.home().resolve()))
    assert f"none {Path.home()}" in told.read_text()
    assert FIXTURE_SECRET not in told.read_text()
    again = await run("import", client, "a", cwd=clone)
    assert "a  (there already)" in again.stdout


async def test_A25_what_the_user_gives_is_handed_over_and_nothing_else(
    clone: Path, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    entry = teller(told, A="${keyring:github}", B="$ACME_TOKEN", C="${env:HOME}")
    (clone / ".cursor").mkdir()
    (clone / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"a": entry}}))
    importing = ("import", "cursor", "a", "--give", "keyring:github")
    refused = await run(*importing, "-s", "project", cwd=clone)
    assert (refused.code, "cannot refer to your secrets" in refused.stderr) == (
        ExitCode.USAGE,
        True,
    )
    taken = await run(*importing, cwd=clone)
    assert "only you can pass it on: ACME_TOKEN." in taken.stdout
    assert written()["a"]["env"] == {"A": "${keyring:github}", "B": "", "C": "${HOME}"}
    assert written()["a"]["command"] == "sh"
    await run("mcp", "list", "--trust-folder", str(Path.home().resolve()))
    assert f"A={SECRET}\n" in told.read_text()
    assert TOKEN not in told.read_text()


async def test_A25_an_address_that_needs_what_is_not_given_is_not_written(clone: Path) -> None:
    (clone / ".cursor").mkdir()
    entry = {"url": "https://$ACME_TOKEN.example.com/", "headers": {"A": "${env:ACME_TOKEN}"}}
    (clone / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"a": entry}}))
    taken = await run("import", "--all", "--json", cwd=clone)
    assert taken.json["written"] == []
    [offer] = taken.json["files"][0]["servers"]
    assert (offer["state"], offer["headers"]) == ("cannot be taken over", ["A"])
    assert offer["url"] == entry["url"], "what it is, is shown"
    given = await run("import", "cursor", "a", "--give", "ACME_TOKEN", "--json", cwd=clone)
    assert given.json["written"] == ["a"]
