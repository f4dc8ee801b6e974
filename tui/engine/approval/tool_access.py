"""Access to tools: rules, consent, changed tools and records."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tui.engine.approval.gate import Gate
from tui.engine.approval.grants import FILE_NAME as GRANTS_FILE
from tui.engine.approval.grants import GrantBook
from tui.engine.approval.policy import Policy
from tui.engine.approval.tool_review import FOLDER_NAME, PinStore, ToolReview
from tui.engine.background import in_daemon_thread
from tui.engine.bus import EventBus
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk
from tui.engine.files.state_file import private_file
from tui.engine.files.unwritten import WRITE_PATIENCE, write_now
from tui.engine.logs.audit import FILE_NAME as AUDIT_FILE
from tui.engine.logs.audit import AuditLog
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.manager import ServerManager
from tui.engine.options import EngineOptions
from tui.model.consent import Effect, ToolStanding
from tui.model.servers import ServerId
from tui.model.settings import GemdeckSettings
from tui.text import sanitize_line

AUDIT_PATIENCE: Final = 2.0
"""Seconds that the last records get to be written."""


class ToolAccess:
    """Decides which tools the model sees and which calls run. Lives on one event loop.

    Args:
        bus: Takes events, and tells of those that end a question or go on record.
        desk: Asks the user.
        options: What the command line says.
        state: The folder of gemdeck's own state; None keeps nothing.
        problems: Takes sentences for the user, in any thread.
        redactor: Masks secrets in the records.

    Attributes:
        policy: The rules on tools.
        review: Finds tools that changed, and says which ones the model must not see.
        gate: Decides on calls.
        audit: Keeps records of what is decided.
    """

    def __init__(
        self,
        bus: EventBus,
        desk: Desk,
        options: EngineOptions,
        state: Path | None,
        *,
        problems: Callable[[str], None],
        redactor: Redactor,
    ) -> None:
        path = state / AUDIT_FILE if state is not None else None
        self.audit = AuditLog(path, on_problem=problems, redactor=redactor)
        pins = PinStore(state / FOLDER_NAME if state is not None else None, problems)
        grants = private_file(state, GRANTS_FILE, problems)
        folder = os.path.realpath(options.folder)
        self.policy = Policy(GrantBook(grants), folder, bus.publish, allows_all=options.allows_all)
        self.review = ToolReview(desk, bus.publish, pins, self.policy)
        self.gate = Gate(
            desk,
            bus.publish,
            self.policy,
            options.allowed_tools,
            folder=options.folder,
        )
        bus.subscribe(self.gate.heed)
        bus.subscribe(self.audit.heed)

    async def open(self, servers: ServerManager) -> None:
        """Read what is kept, and let these servers follow what is decided."""
        self.policy.on_denials = servers.judge_tools_again
        self.review.on_accepted = servers.judge_tools_again
        await self.policy.open()

    async def aclose(self) -> None:
        """Write what is still to be written."""
        await self.policy.aclose()
        await self.review.aclose()
        await asyncio.to_thread(self.audit.close, AUDIT_PATIENCE)
        await asyncio.wait({in_daemon_thread(write_now)}, timeout=WRITE_PATIENCE)

    def configure(
        self, settings: GemdeckSettings, definitions: Sequence[ServerDefinition], asks: str = ""
    ) -> None:
        """Take the rules of the settings and the servers there are; see `Policy.configure`."""
        self.policy.configure(settings.always_allow, settings.always_deny, definitions, asks)
        self.review.keep_only({definition.id for definition in definitions})

    def standing(self, servers: ServerManager, server: ServerId, tool: str) -> ToolStanding:
        """Return how the rules treat a tool, by its displayed name, even if it is not offered."""
        found = servers.registry.look_up(server, tool)
        if found is None:
            return ToolStanding(server, tool, Effect.DENY, "Its server does not offer it now.")
        view, offered = found
        if view.problem:
            words = f"The model is not offered it: {sanitize_line(view.problem)}."
            return ToolStanding(server, tool, Effect.DENY, words)
        if offered is None:
            return ToolStanding(server, tool, Effect.DENY, "The model is not offered it.")
        verdict = self.policy.judge(offered)
        return ToolStanding(server, tool, verdict.effect, verdict.words)
