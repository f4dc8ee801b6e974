"""What gemini-cli says of calls and starts under its restrictions: the cases, and what it said.

Its verdicts are recorded, and so are the keys of its settings.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

RECORDED: Final = Path(__file__).with_name("recorded.json")
TOOLS: Final = ("git.push", "git.pull")
PERMISSIONS: Final = ("none", "trust", "allowed", "yolo", "session", "saved")
"""``trust: true``, an allow list of the settings, ``--yolo``, and "always" for all tools."""


@dataclass(frozen=True)
class Row:
    """Restrictions: keys of the settings, and policies of the user and of an administrator."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    user: str = ""
    admin: str = ""
    mode: str = "default"


def ask(priority: int, more: str = "", name: str = 'mcpName = "git"\ntoolName = "push"') -> str:
    return f'[[rule]]\ndecision = "ask_user"\n{name}\npriority = {priority}\n{more}\n'


ROWS: Final = {
    "nothing": Row(),
    "confirmed tool": Row({"tools": {"confirmationRequired": ["mcp_git_push"]}}),
    "confirmed server": Row({"tools": {"confirmationRequired": ["mcp_git_*"]}}),
    "no always": Row({"security": {"disableAlwaysAllow": True}}),
    "excluded": Row({"tools": {"exclude": ["mcp_git_push"]}}),
    "user asks, 100": Row(user=ask(100)),
    "user asks, 200": Row(user=ask(200)),
    "user asks, 960": Row(user=ask(960)),
    "user asks of all, 199": Row(user=ask(199, name='toolName = "mcp_*"')),
    "user asks by whole name": Row(user=ask(500, name='toolName = "mcp_git_push"')),
    "user asks, arguments": Row(user=ask(500, 'argsPattern = "main"')),
    "user asks, yolo": Row(user=ask(500, 'modes = ["yolo"]')),
    "user asks, plan": Row(user=ask(500, 'modes = ["plan"]')),
    "user asks, subagent": Row(user=ask(500, 'subagent = "coder"')),
    "user asks, headless": Row(user=ask(500, "interactive = false")),
    "user denies, 999": Row(user=ask(999).replace("ask_user", "deny")),
    "plan mode": Row({"general": {"defaultApprovalMode": "plan"}}, mode="plan"),
    "administrator asks, 1": Row(admin=ask(1)),
    "administrator denies, 1": Row(admin=ask(1).replace("ask_user", "deny")),
}


@dataclass(frozen=True)
class Case:
    """Restrictions, a permission, and whether there is a user to ask."""

    row: str
    permission: str
    interactive: bool

    @property
    def name(self) -> str:
        return f"{self.row} | {self.permission} | {'asked' if self.interactive else 'headless'}"


@dataclass(frozen=True)
class Start:
    """A run with ``-p`` and ``--yolo``, whose server comes with an extension.

    Attributes:
        settings: The user's.
        environ: Further variables.
        manifest: Further keys of the extension's manifest.
        installed: What is written down of its installation.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    installed: Mapping[str, str] = field(default_factory=dict)

    def write(self, gemini: Path, server: Mapping[str, object]) -> None:
        """Write its files into a folder ``.gemini``."""
        folder = gemini / "extensions" / "es"
        folder.mkdir(parents=True)
        manifest = {"name": "es", "version": "1.0.0", "mcpServers": {"notes": server}}
        (folder / "gemini-extension.json").write_text(json.dumps({**manifest, **self.manifest}))
        if self.installed:
            file = folder / ".gemini-extension-install.json"
            file.write_text(json.dumps(self.installed))
        security = self.settings.get("security", {})
        auth = {"selectedType": "gemini-api-key", **security.get("auth", {})}
        settings = {**self.settings, "security": {**security, "auth": auth}}
        (gemini / "settings.json").write_text(json.dumps(settings))


def _security(**keys: object) -> Mapping[str, Any]:
    return {"security": keys}


_GIT: Final = {"type": "git", "source": "https://example.com/acme/notes.git"}
STARTS: Final = {
    "nothing": Start(),
    "extension allowed": Start(_security(allowedExtensions=["/acme/"]), installed=_GIT),
    "extension not allowed": Start(_security(allowedExtensions=["/other/"]), installed=_GIT),
    "extension of no source": Start(_security(allowedExtensions=["."])),
    "extension from git": Start(_security(blockGitExtensions=True), installed=_GIT),
    "excluded by its extension": Start(manifest={"excludeTools": ["mcp_notes_add_note"]}),
    "auth enforced": Start(_security(auth={"enforcedType": "oauth-personal"})),
    "no turns": Start({"model": {"maxSessionTurns": 0}}),
    "two turns": Start({"model": {"maxSessionTurns": 2}}),
    "restricted": Start(environ={"GEMINI_RESTRICTED_MODE": "true"}),
    "sandbox": Start({"tools": {"sandbox": "podman"}}),
    "sandbox of the environment": Start(environ={"GEMINI_SANDBOX": "podman"}),
}
"""Without podman. The model calls `add_note` three times, if it has it."""


def cases() -> Iterator[Case]:
    for row, permission, interactive in product(ROWS, PERMISSIONS, (True, False)):
        yield Case(row, permission, interactive)


def recorded(what: str = "verdicts") -> Any:  # noqa: ANN401 - any JSON value
    """Return the verdicts on the tools by the names of the cases, or ``starts`` or ``keys``."""
    return json.loads(RECORDED.read_text("ascii"))[what]
