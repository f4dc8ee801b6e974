"""The gate: every call passes it, by the rules, the command line or the user's answer.

`ToolAccess` holds all that decides about tools: rules, consent, changed tools and records.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from tui.engine.approval.grants import FILE_NAME as GRANTS_FILE
from tui.engine.approval.grants import GrantBook
from tui.engine.approval.inquiry import (
    Denial,
    Edit,
    Inquiry,
    Look,
    UnusableEditError,
    call_notes,
    decided,
    look_at_files,
    of_its_server,
    origin_words,
    read_only_with,
)
from tui.engine.approval.policy import Policy, Verdict, names_tool
from tui.engine.approval.tool_review import FOLDER_NAME, PinStore, ToolReview
from tui.engine.background import in_daemon_thread
from tui.engine.bus import EventBus, Publish
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk, WithdrawnError
from tui.engine.files.state_file import private_file
from tui.engine.files.unwritten import WRITE_PATIENCE, write_now
from tui.engine.logs.audit import FILE_NAME as AUDIT_FILE
from tui.engine.logs.audit import AuditLog
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.catalog.argument_rules import ArgumentRule
from tui.engine.mcp.catalog.offered_tool import OfferedTool, OwnTool
from tui.engine.mcp.catalog.permit import Permit
from tui.engine.mcp.manager import ServerManager
from tui.engine.options import EngineOptions
from tui.engine.settings.prohibitions import HookRule, Permission
from tui.model.catalog import Catalog
from tui.model.chat import ToolCallStatus
from tui.model.consent import Choice, Decision, Effect, RequestId, ToolStanding
from tui.model.events import CatalogChanged, Event, ServerStatusChanged, ToolCallChanged
from tui.model.requests import ConfirmationRequest
from tui.model.servers import UNDECIDED, USABLE, ServerId
from tui.model.sessions import ConversationClosed
from tui.model.settings import GemdeckSettings
from tui.text import sanitize, sanitize_line

MAX_NOTE: Final = 4_000
"""Longest reason for a denial passed to the model, in characters."""

COMPARING_SECONDS: Final = 1.0
"""Longest wait for a file that a call's arguments are compared with."""

_DENIED_BY_RULE: Final = "One of the user's rules forbids this tool."
_DENIED_BEFORE: Final = Denial(
    source="you: denied the same call before",
    note="The user has already denied this exact call. Do not request it again.",
)
_DENIED_REST: Final = Denial(
    source="you: deny this and all further calls of this turn",
    note="The user denied all further calls of this turn. Answer with what you have.",
)
NOBODY_TO_ASK: Final = "nobody to ask"
"""The source of a denial for want of a user, or its beginning, before a rule that says to ask."""

_NOBODY: Final = Denial(
    source=NOBODY_TO_ASK,
    note="This run has no user to ask, and the tool is not on the list of allowed tools.",
)

_NO_DECK: Final = Denial(
    source=NOBODY_TO_ASK,
    note="No rule allows this call. The user can open gemdeck in this folder, which shows such "
    "calls for approval, or allow the tool with gemdeck.alwaysAllow in their settings.",
)

AUDIT_PATIENCE: Final = 2.0
"""Seconds that the last records get to be written."""


class _CoveredError(WithdrawnError):
    """The answer to another question settles this one."""

    def __init__(self, outcome: Permit | Denial) -> None:
        super().__init__(outcome.source)
        self.outcome = outcome


class Gate:
    """Decides on calls: only it gives a `Permit`. Lives on one event loop.

    What the rules allow or deny is not asked about.

    Args:
        desk: Asks the user.
        publish: Takes `ToolCallChanged` when a call is asked about, and `ToolCallDecided`.
        policy: The rules.
        folder: The opened folder, with whose files arguments are compared; None compares nothing.
        allowed: Patterns of tools that run unasked; see `allowed_tools`.
    """

    def __init__(
        self,
        desk: Desk,
        publish: Publish,
        policy: Policy,
        allowed: Collection[str] = (),
        *,
        folder: Path | None = None,
    ) -> None:
        self._desk, self._publish, self._policy = desk, publish, policy
        self._allowed, self._folder = tuple(allowed), folder
        self._in_order = asyncio.Lock()
        self._waiting: dict[RequestId, Inquiry] = {}

    async def decide(self, inquiry: Inquiry) -> Permit | Denial:
        """Decide on one call. Canceling the awaiting task withdraws the question.

        A tool of gemdeck's own that asks no server and changes nothing is free unless denied.

        Raises:
            WithdrawnError: If nobody could decide. It is no denial.
        """
        if isinstance(tool := inquiry.tool, OwnTool) and tool.is_free:
            verdict = self._policy.judge(tool.source or tool)
            if verdict.effect is not Effect.DENY:
                return _permit(inquiry, "it changes nothing")
            self._tell(inquiry, inquiry.shown, "deny", verdict.source)
            return Denial(verdict.source, _DENIED_BY_RULE)
        try:
            outcome = await self._decide(inquiry)
        except (WithdrawnError, asyncio.CancelledError) as error:
            why = str(error) if isinstance(error, WithdrawnError) else "the turn was stopped"
            self._tell(inquiry, inquiry.shown, "withdrawn", why)
            raise
        if isinstance(outcome, Permit):
            self._tell(inquiry, outcome.shown, "allow", outcome.source)
        else:
            self._tell(inquiry, inquiry.shown, "deny", outcome.source)
        return outcome

    def heed(self, event: Event) -> None:
        """Withdraw the questions that an event makes obsolete; an answer would be too late."""
        for request, inquiry in self._waiting.items():
            if reason := _why_gone(inquiry, event):
                self._desk.withdraw(request, WithdrawnError(reason))

    async def _decide(self, inquiry: Inquiry) -> Permit | Denial:
        await self._policy.refresh()
        if (known := self._settled_before(inquiry)) is not None:
            return known
        if not self._desk.attended:
            words = self._policy.asking_words(inquiry.tool, Permission.SETTINGS)
            nobody = _NOBODY if inquiry.turn.caller is None else _NO_DECK
            return replace(nobody, source=f"{NOBODY_TO_ASK}: {words}") if words else nobody
        async with self._in_order:  # questions come in the order of their calls
            change, paths, unclear = await self._look_at_files(inquiry)
        if (known := self._settled_before(inquiry)) is not None:
            return known
        request = self._request(inquiry)
        notes = (*unclear, *request.notes)
        return await self._ask(inquiry, replace(request, change=change, paths=paths, notes=notes))

    def _settled_before(self, inquiry: Inquiry) -> Permit | Denial | None:
        if inquiry.turn.has_denied(inquiry.tool, inquiry.shown):
            return _DENIED_BEFORE
        return self._settled(inquiry)

    async def _look_at_files(self, inquiry: Inquiry) -> Look:
        """Compare the arguments with a file and find paths in them, unless that takes too long."""
        if inquiry.may_name_files:
            start = self._policy.start_of(inquiry.tool.server)
            look = partial(look_at_files, self._folder, start, inquiry.arguments)
            with suppress(TimeoutError):
                return await asyncio.wait_for(in_daemon_thread(look), COMPARING_SECONDS)
        return None, (), ()

    def _settled(self, inquiry: Inquiry) -> Permit | Denial | None:
        """Settle a call by rules and earlier answers, if they do."""
        verdict = self._judge(inquiry)
        if verdict.effect is Effect.DENY:
            return Denial(verdict.source, _DENIED_BY_RULE)
        if inquiry.by_user:
            return _permit(inquiry, "you: composed this call")
        if inquiry.turn.denies_rest:
            return _DENIED_REST
        if inquiry.tool.caution or (inquiry.is_loop and self._desk.attended):
            return None
        if verdict.effect is Effect.ALLOW:
            self._policy.used(verdict)
            return _permit(inquiry, verdict.source, verdict.rule)
        own, servers = inquiry.tool, self._policy.origins
        is_named = self._allowed and names_tool(self._allowed, own.server, own.name, servers)
        is_asked = verdict.grant or self._policy.asking_words(own, Permission.SETTINGS)
        if (own.basis or is_named) and not is_asked:  # a grant here is a rule that says to ask
            return _permit(inquiry, own.basis or "--allowed-tools")
        return None

    def _judge(self, inquiry: Inquiry) -> Verdict:
        """Judge a call by the rules, once for each state of them."""
        if inquiry.verdict is None or inquiry.rules != self._policy.state:
            inquiry.rules = self._policy.state
            inquiry.verdict = self._policy.judge(inquiry.tool, inquiry.arguments)
        return inquiry.verdict

    async def _ask(self, inquiry: Inquiry, request: ConfirmationRequest) -> Permit | Denial:
        edit: Edit | None = None

        async def read_edit(decision: Decision) -> ConfirmationRequest | None:
            nonlocal edit, request
            edit = None
            if decision.arguments is not None:
                try:
                    edit = await inquiry.read_edit(decision.arguments)
                except UnusableEditError as error:
                    problem = sanitize_line(str(error)) or "the arguments cannot be used"
                    request = replace(request, problem=problem, refusals=request.refusals + 1)
                    return request
            return None

        key = inquiry.turn.conversation
        self._publish(ToolCallChanged(inquiry.call, ToolCallStatus.ASKING, conversation=key))
        self._waiting[request.id] = inquiry
        try:
            decision = await self._desk.ask(request, read_edit)
        except _CoveredError as covered:
            return self._under_rules(inquiry, covered.outcome)
        finally:
            del self._waiting[request.id]
        outcome = self._act_on(decision, inquiry, edit)
        for other, waiting in self._waiting.items():
            if known := self._settled(waiting):
                self._desk.withdraw(other, _CoveredError(known))
        return self._under_rules(inquiry, outcome)

    def _request(self, inquiry: Inquiry) -> ConfirmationRequest:
        tool = inquiry.tool
        return ConfirmationRequest(
            id=self._desk.new_id(),
            call=inquiry.call,
            server=tool.server,
            tool=tool.view.name,
            title=tool.view.title,
            description=tool.view.description,
            arguments=inquiry.shown,
            claims=tool.view.claims,
            notes=tuple(call_notes(inquiry, self._policy)),
            not_lasting=tool.caution
            or self._policy.asking_words(tool, Permission.GRANTS)
            or ("" if tool.bound_to else _unknown_later(inquiry)),
            caller=inquiry.turn.caller_words,
            origin=origin_words(tool.server, self._policy),
            read_only=len(read_only_with(inquiry)),
            conversation=inquiry.turn.conversation,
        )

    def _act_on(self, decision: Decision, inquiry: Inquiry, edit: Edit | None) -> Permit | Denial:
        """Do what an answer says of this call and of later ones."""
        choice = decision.choice
        source, note = f"you: {choice.value}", sanitize(decision.note, MAX_NOTE)
        wide = {
            Choice.ALWAYS_TOOL: [inquiry.tool],
            Choice.ALWAYS_THESE: [inquiry.tool] if decision.conditions else [],
            Choice.ALWAYS_SERVER: [inquiry.tool, *of_its_server(inquiry)],
            Choice.ALWAYS_READ_ONLY: read_only_with(inquiry),
        }
        if tools := wide.get(choice):
            words = " for ".join(filter(None, (choice.value, inquiry.turn.caller_words)))
            self._policy.allow(tools, decision.scope, words, decision.conditions)
            source += f", {decision.scope.value}"
        if choice is Choice.DENY_REST_OF_TURN:
            inquiry.turn.denies_rest = True
            for one in self._waiting.values():  # each call of another client has its own turn
                if caller := one.turn.caller_words:
                    one.turn.denies_rest |= caller == inquiry.turn.caller_words
            note = f"{note} {_DENIED_REST.note}".strip()
        if not choice.allows:
            inquiry.turn.denied.append(inquiry)
            return Denial(source, note, bool(decision.note))
        if edit is None or edit.shown == inquiry.shown:
            return _permit(inquiry, source)
        return Permit(inquiry.tool, edit.arguments, edit.shown, source)

    def _under_rules(self, inquiry: Inquiry, outcome: Permit | Denial) -> Permit | Denial:
        """Apply rules that were added meanwhile or that match the edited arguments."""
        if isinstance(outcome, Denial):
            return outcome
        if outcome.arguments is inquiry.arguments and not inquiry.may_name_files:
            verdict = self._judge(inquiry)
        else:  # links may have been bent while the question stood
            verdict = self._policy.judge(outcome.tool, outcome.arguments)
        if verdict.effect is Effect.DENY:
            return Denial(verdict.source, _DENIED_BY_RULE)
        if verdict.effect is Effect.ALLOW:  # by what was just answered
            self._policy.used(verdict)
        return outcome

    def _tell(self, inquiry: Inquiry, arguments: str, decision: str, source: str) -> None:
        caller = inquiry.turn.caller_words
        self._publish(decided(inquiry.call, inquiry.tool, arguments, decision, source, caller))


def _permit(inquiry: Inquiry, source: str, rule: ArgumentRule | None = None) -> Permit:
    """Let a call run as it was asked for."""
    return Permit(inquiry.tool, inquiry.arguments, inquiry.shown, source, rule)


def _unknown_later(inquiry: Inquiry) -> str:
    if inquiry.tool.fingerprint:
        return "this client has no token; gemdeck mcp serve --print gives it one"
    return "this server cannot be recognized later"


def _why_gone(inquiry: Inquiry, event: Event) -> str:
    """Return why an event makes the question about a call obsolete; empty if it does not."""
    tool = inquiry.tool
    match event:
        case ConversationClosed(inquiry.turn.conversation):
            return "The conversation was closed before you answered."
        case ServerStatusChanged(tool.server, status) if status not in USABLE | UNDECIDED:
            return "The server disconnected before you answered."
        case CatalogChanged(tool.server, catalog) if not _is_listed(tool, catalog):
            return "The tool changed or was removed before you answered."
        case _:
            return ""


def _is_listed(tool: OfferedTool, catalog: Catalog) -> bool:
    """Return whether a tool is still offered unchanged, whatever its name for the model."""
    return isinstance(tool, OwnTool) or any(
        view.name == tool.view.name and replace(view, id=tool.view.id) == tool.view
        for view in catalog.tools
    )


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
        ignores_hooks: Whether nothing is asked because of a project's hooks.
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
        self.ignores_hooks = False
        self.audit = AuditLog(state and state / AUDIT_FILE, on_problem=problems, redactor=redactor)
        pins = PinStore(state and state / FOLDER_NAME, problems)
        grants = private_file(state, GRANTS_FILE, problems)
        folder = os.path.realpath(options.folder)
        self.policy = Policy(GrantBook(grants), folder, bus.publish, allows_all=options.allows_all)
        self.review = ToolReview(desk, bus.publish, pins, self.policy)
        allowed, opened = options.allowed_tools, options.folder
        self.gate = Gate(desk, bus.publish, self.policy, allowed, folder=opened)
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
        lifted = HookRule if self.ignores_hooks else ()
        denied = [rule for rule in settings.always_deny if not isinstance(rule, lifted)]
        self.policy.configure(settings.always_allow, denied, definitions, asks)
        self.review.keep_only({definition.id for definition in definitions})
        self.review.withholds_marked = settings.withhold_marked

    def standing(self, servers: ServerManager, server: ServerId, tool: str) -> ToolStanding:
        """Return how the rules treat a tool, by its displayed name, even if it is not offered."""
        view, offered = servers.registry.look_up(server, tool) or (None, None)
        words = "The server does not offer this tool now."
        if view is not None and (reason := view.problem or view.off):
            words = f"Hidden from the model: {sanitize_line(reason)}."
        elif offered is not None:
            verdict = self.policy.judge(offered)
            return ToolStanding(verdict.effect, verdict.words)
        elif view is not None:
            words = "Not offered to the model."
        return ToolStanding(Effect.DENY, words)
