"""From what was read and what was answered to what runs: one pure function.

Nothing here looks at a file, a clock or a task, so every rule on what may start can be tested
without an engine.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tui.engine.consent.folder_trust import new_servers
from tui.engine.consent.folder_trust.folder_gate import Trust
from tui.engine.consent.folder_trust.new_servers import KnownServer, known_server
from tui.engine.consent.folder_trust.start_folders import StartFolder
from tui.engine.consent.folder_trust.trust_questions import (
    FolderQuestion,
    NewServersQuestion,
    Question,
    StartQuestion,
)
from tui.engine.demo.demo_servers import demo_definitions
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.project import ProjectVerdict
from tui.engine.settings.sections import inheritance_of
from tui.engine.settings.servers.definitions import REVIEW_ADVICE, ServerDefinition
from tui.engine.settings.servers.inheritance import Inheritance
from tui.model.chat import Severity
from tui.model.events import Notice
from tui.model.servers import Failure, Origin, ServerId, ServerStatus
from tui.model.settings import GemdeckSettings, ToolPattern
from tui.model.trust import FolderTrust, TrustAnswer
from tui.text import sanitize_line

_STILL_DENIED: Final = "Prohibitions removed from your settings hold until a restart."
_NEVER: Final = "You chose never to trust this folder, so its own settings were not read."

FolderKey = tuple[object, ...]
"""What tells a folder from another one at the same place."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What was decided in this run, and what it began with.

    Attributes:
        demo: Whether the bundled servers run beside the user's, because the demo answers.
        demo_servers: Whether they run because the user asked for them.
        accepted: The servers of the user's settings that may run; None before the first reading.
        put_off: New servers that the user was asked about and did not accept.
        folders_put_off: Folders about which the user said not now, or never.
        folders_allowed: Folders in which the user's servers may start.
        declined: Hashes of contents of the opened folder that were answered about.
        withdrawals: How often trust in the opened folder was taken back. A reading that knows of
            fewer is older than the last one, so nothing of the folder's starts by it.
        review: The question about the folder that the user asked for, or None.
        reviews_all: Whether to ask even if the answer was never.
        allow: The permissions that the user's settings gave at first.
        deny: What the user's settings denied at any time.
        inheritance: Which variables servers inherited at first.
    """

    demo: bool = False
    demo_servers: bool = False
    accepted: frozenset[KnownServer] | None = None
    put_off: frozenset[KnownServer] = frozenset()
    folders_put_off: frozenset[FolderKey] = frozenset()
    folders_allowed: frozenset[FolderKey] = frozenset()
    declined: frozenset[str] = frozenset()
    withdrawals: int = 0
    review: FolderQuestion | None = None
    reviews_all: bool = False
    allow: frozenset[tuple[str, str]] = frozenset()
    deny: tuple[ToolPattern, ...] = ()
    inheritance: Inheritance = field(default_factory=Inheritance)

    def reading(self, sources: LoadedSettings, trust: Trust) -> "Answers":
        """Take note of settings that were read; the first ones are the user's own word."""
        own = _own_denials(sources)
        gone = tuple(pattern for pattern in self.deny if pattern not in own)
        now = replace(self, deny=(*own, *gone))
        if self.accepted is not None:
            return now
        accepted, put_off = set[KnownServer](), set[KnownServer]()
        for one in filter(new_servers.is_users, sources.servers):
            words = {trust.refused.get(key) for key in new_servers.entry_keys(one, trust.salt)}
            if words == {None}:
                accepted.add(known_server(one))
            elif TrustAnswer.NEVER in words:
                put_off.add(known_server(one))
        return replace(
            now,
            accepted=frozenset(accepted),
            put_off=frozenset(put_off),
            allow=frozenset((rule.server, rule.tool) for rule in sources.gemdeck.always_allow),
            inheritance=inheritance_of(sources.gemdeck),
        )

    def answered(self, question: Question, answer: TrustAnswer) -> "Answers":
        """Take the user's answer to a question. What it says about a folder is kept elsewhere."""
        match question:
            case FolderQuestion(content=content):
                now = replace(self, declined=self.declined | {content}, review=None)
                is_never = answer is TrustAnswer.NEVER
                return now.withdrawn(content, question.folder) if is_never else now
            case NewServersQuestion(servers):
                known = frozenset(map(known_server, servers))
                if answer.allows:
                    return replace(self, accepted=(self.accepted or frozenset()) | known)
                return replace(self, put_off=self.put_off | known)
            case StartQuestion(folder=folder):
                if answer.allows:
                    return replace(self, folders_allowed=self.folders_allowed | {folder.key})
                return replace(self, folders_put_off=self.folders_put_off | {folder.key})

    def withdrawn(self, content: str, *folders: FolderKey) -> "Answers":
        """Take back trust in the opened folder, which brings this content.

        Args:
            content: The hash of that.
            folders: The folders in which servers start.
        """
        return replace(
            self,
            withdrawals=self.withdrawals + 1,
            declined=self.declined | {content},
            review=None,
            folders_allowed=frozenset(),
            folders_put_off=self.folders_put_off.union(folders),
        )

    def kept(self, contents: frozenset[str]) -> "Answers":
        return replace(self, declined=self.declined - contents)

    def reviewing(self, question: FolderQuestion | None) -> "Answers":
        """Let everything be asked about again, the opened folder with this question."""
        content = {question.content} if question is not None else set[str]()
        return replace(
            self,
            review=question,
            reviews_all=True,
            declined=self.declined - content,
            put_off=frozenset(),
            folders_put_off=frozenset(),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to run and to be asked.

    Attributes:
        definitions: All servers; those that must not start yet are withheld.
        rules: The settings with the rules on tools that are in force.
        questions: What to ask the user now.
        notices: What the user should know; each is told once for as long as it stands.
        trust: What the user says of the opened folder.
    """

    definitions: tuple[ServerDefinition, ...]
    rules: GemdeckSettings
    questions: tuple[Question, ...]
    notices: tuple[Notice, ...]
    trust: FolderTrust


def plan(sources: LoadedSettings, trust: Trust, answers: Answers) -> Plan:
    """Say what runs and what is asked.

    Args:
        sources: What the settings files say, the opened folder's as far as it is trusted.
        trust: What the user's earlier answers say.
        answers: What was decided in this run, `reading` of these sources included.
    """
    servers = tuple(_admitted(_narrowed(one, answers), trust, answers) for one in sources.servers)
    definitions = (*servers, *(_bundled(servers) if answers.demo or answers.demo_servers else ()))
    verdict = sources.project
    is_withdrawn = trust.withdrawals < answers.withdrawals
    folder = verdict.trust
    if is_withdrawn and folder is FolderTrust.TRUSTED:
        folder = FolderTrust.UNTRUSTED
    starts = _waiting_to_start(sources, trust, answers)
    questions = tuple(_questions(sources, trust, answers, starts)) if trust.attended else ()
    notices = [] if trust.attended else list(_withheld_here(verdict, starts))
    if set(answers.deny) - set(_own_denials(sources)):
        notices.append(Notice(Severity.INFO, _STILL_DENIED))
    return Plan(definitions, _rules(sources, answers), questions, tuple(notices), folder)


def _admitted(one: ServerDefinition, trust: Trust, answers: Answers) -> ServerDefinition:
    """Give a server as it may run; withheld if it must not yet."""
    accepted = answers.accepted or frozenset()
    if one.withheld is not None:
        return one
    if one.origin is Origin.PROJECT:
        if trust.withdrawals < answers.withdrawals:
            return _untrusted(one, "Comes with this folder, which is no longer trusted.")
        return one
    if new_servers.is_new(one, accepted):
        return new_servers.hold(one, accepted, trust.refused, trust.salt)
    folder = _held_by(one, trust, answers)
    if folder is None:
        return one
    if folder.identity is None:
        return _untrusted(one, f"Its working folder cannot be examined: {folder.shown}.")
    return _untrusted(one, f"Would run code from {folder.shown}, where it may not start yet.")


def _held_by(one: ServerDefinition, trust: Trust, answers: Answers) -> StartFolder | None:
    """Give the first folder whose code a server would run and may not."""
    folders = trust.starts.get(one.id, ())
    return next((place for place in folders if not _may_start(place, trust, answers)), None)


def _narrowed(one: ServerDefinition, answers: Answers) -> ServerDefinition:
    """Let a server inherit no more than when gemdeck started, whatever was written since."""
    return replace(one, inheritance=one.inheritance.narrowed(answers.inheritance))


def _may_start(folder: StartFolder, trust: Trust, answers: Answers) -> bool:
    is_outdated = folder.is_opened and trust.withdrawals < answers.withdrawals
    return (folder.allowed and not is_outdated) or folder.key in answers.folders_allowed


def _untrusted(one: ServerDefinition, reason: str) -> ServerDefinition:
    failure = Failure(sanitize_line(reason), REVIEW_ADVICE)
    return replace(one, withheld=ServerStatus.UNTRUSTED, failure=failure)


def _bundled(servers: Sequence[ServerDefinition]) -> Iterator[ServerDefinition]:
    """Give the demo's servers under names that are still free."""
    taken = {one.id for one in servers}
    for one in demo_definitions():
        yield replace(one, id=ServerId(f"demo-{one.id}")) if one.id in taken else one


def _waiting_to_start(
    sources: LoadedSettings, trust: Trust, answers: Answers
) -> list[StartQuestion]:
    """Give the folders in which servers would start that are not held for another reason."""
    waiting: dict[StartFolder, list[ServerDefinition]] = {}
    for one in sources.servers:
        folder = _held_by(one, trust, answers)
        if folder is not None and not new_servers.is_new(one, answers.accepted or frozenset()):
            waiting.setdefault(folder, []).append(one)
    return [StartQuestion(tuple(servers), folder) for folder, servers in waiting.items()]


def _questions(
    sources: LoadedSettings, trust: Trust, answers: Answers, starts: Sequence[StartQuestion]
) -> Iterator[Question]:
    verdict, folder = sources.project, answers.review
    if folder is None or (
        verdict.trust is not FolderTrust.NEVER and verdict.hash != folder.content
    ):
        folder = None if verdict.hash in answers.declined else folder_question(verdict)
    if folder is not None:
        yield folder
    accepted = answers.accepted or frozenset()
    new = tuple(one for one in sources.servers if new_servers.is_new(one, accepted))
    if not answers.put_off.issuperset(map(known_server, new)):
        yield NewServersQuestion(
            new,
            tuple(new_servers.refusal_key(one, accepted, trust.salt) for one in new),
            tuple(key for one in new for key in new_servers.entry_keys(one, trust.salt)),
            frozenset(known.id for known in accepted),
        )
    for start in starts:
        if folder is not None and start.folder.key == folder.folder:
            continue  # a yes to the folder's content says yes to this as well
        if start.folder.identity is None or start.folder.key in answers.folders_put_off:
            continue
        if answers.reviews_all or not start.folder.never:
            yield start


def folder_question(verdict: ProjectVerdict) -> FolderQuestion | None:
    """Give the question that reading a folder raised, or None."""
    if verdict.question is None or verdict.offer is None:
        return None
    return FolderQuestion(verdict.question, verdict.offer, verdict.folder, verdict.hash)


def _withheld_here(verdict: ProjectVerdict, starts: Sequence[StartQuestion]) -> Iterator[Notice]:
    """Say, if nobody can be asked, what has no effect and why."""
    question = verdict.question
    if verdict.trust is FolderTrust.NEVER:
        yield Notice(Severity.WARNING, _NEVER)
    elif question is not None:
        names = ", ".join(one.server for one in question.servers) or "its rules"
        words = f"This folder is not trusted, so what it brings has no effect: {names}."
        advice = question.refusal or _trust_folder(str(verdict.folder[0]))
        yield Notice(Severity.WARNING, sanitize_line(words), advice)
    for start in starts:
        names = ", ".join(one.id for one in start.servers)
        words = f"Not started, because it would run code from {start.folder.shown}: {names}."
        place = start.folder.identity
        advice = _trust_folder(str(place.path)) if place is not None else ""
        yield Notice(Severity.WARNING, sanitize_line(words), advice)


def _trust_folder(folder: str) -> str:
    """Say how a run without a screen is told to trust this very folder."""
    return sanitize_line(
        f"To let it take effect in this run, add --trust-folder {shlex.quote(folder)}"
    )


def _rules(sources: LoadedSettings, answers: Answers) -> GemdeckSettings:
    """Leave out what the user's settings loosened while gemdeck runs.

    Permissions that came, and prohibitions that went, count from the next start on; what
    tightens counts at once. What the folder forbids is asked about instead.
    """
    settings = sources.gemdeck
    own = _own_denials(sources)
    gone = tuple(pattern for pattern in answers.deny if pattern not in own)
    allow = (rule for rule in settings.always_allow if (rule.server, rule.tool) in answers.allow)
    return settings.model_copy(
        update={"always_allow": tuple(allow), "always_deny": (*settings.always_deny, *gone)}
    )


def _own_denials(sources: LoadedSettings) -> tuple[ToolPattern, ...]:
    """Give what the user's own settings deny; the folder's rules stand behind them."""
    denied = sources.gemdeck.always_deny
    return denied[: len(denied) - len(sources.project.standing_rules.always_deny)]
