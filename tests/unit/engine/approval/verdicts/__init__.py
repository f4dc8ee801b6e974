"""What gemini-cli says of calls under its restrictions: the cases, and its verdicts as recorded."""

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


def cases() -> Iterator[Case]:
    for row, permission, interactive in product(ROWS, PERMISSIONS, (True, False)):
        yield Case(row, permission, interactive)


def recorded() -> Mapping[str, Mapping[str, str]]:
    """Return the verdicts on the tools by the names of the cases."""
    found: dict[str, dict[str, str]] = json.loads(RECORDED.read_text("ascii"))["verdicts"]
    return found
