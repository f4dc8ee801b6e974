"""Asks whether what a folder brings, or what changed in the settings or in tools, may be used."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tui.model.requests import ANY_WORDING, SkillRequest, ToolChangeRequest, TrustRequest
from tui.model.trust import NO_SANDBOX, UNWATCHED, Disclosure, TrustAnswer, TrustSubject
from tui.text import counted
from tui.ui.questions.answers import ACCEPTED, DECLINED, Answer
from tui.ui.questions.question import Question
from tui.ui.widgets.text.labelled_text import (
    LABEL_WIDTH,
    LabelledLine,
    difference_lines,
    listed,
    warning_line,
)

NOT_NOW: Final = Answer(
    "not-now", "n,d,escape", "Not now", "run nothing now; ask again next time", TrustAnswer.NOT_NOW
)
TRUST: Final = Answer("trust", "t", "Trust", "trust exactly this", TrustAnswer.TRUST)
WITH_CHILDREN: Final = Answer(
    "children",
    "c",
    "Trust it and its subfolders",
    "trust it and its subfolders",
    TrustAnswer.TRUST_WITH_CHILDREN,
    short="Subfolders",
    twice=True,
)
BARE: Final = Answer(
    "bare",
    "s",
    "Trust without a sandbox",
    "trust exactly this, and run its servers with your rights",
    TrustAnswer.TRUST_BARE,
    short="No sandbox",
    twice=True,
)
NEVER: Final = Answer("never", "v", "Never", "never run it, and never ask again", TrustAnswer.NEVER)

_CHANGES: Final = {"new": "$text-success", "changed": "$text-warning", "gone": "$text-error"}

KEEP_AWAY: Final = Answer(
    "keep-away",
    "n,d,escape",
    "Keep hidden",
    "keep them hidden from the model",
    DECLINED,
    short="Keep away",
)
ACCEPT: Final = Answer("accept", "a", "Accept", "let the model use them as they are now", ACCEPTED)
DO_NOT_LOAD: Final = replace(NOT_NOW, words="do not load it")
_ANY_WORDS: Final = "accept them, and later changes that only affect descriptions"
ANY: Final = Answer("any-wording", "w", "Any wording", _ANY_WORDS, ANY_WORDING, twice=True)
LOOK: Final = Answer("read", "r", "Read it", "fetch its text and show it", TrustAnswer.TRUST)
LOAD: Final = Answer(
    "load", "l", "Load", "load it now, and later as long as it does not change", TrustAnswer.TRUST
)


class TrustQuestion(Question[TrustRequest]):
    """Lists all that would run or be contacted, the difference first where there is one."""

    PREFIX = "trust"
    ROWS = ((NOT_NOW, TRUST, WITH_CHILDREN, NEVER), (BARE,))
    SAFE = NOT_NOW

    def title_words(self) -> str:
        """Say whether it is a folder or the user's own settings."""
        request = self.request
        match request.subject:
            case TrustSubject.FOLDER if request.refusal:
                return "Do you trust this folder for this run?"
            case TrustSubject.FOLDER if request.difference:
                return "This folder changed since you trusted it"
            case TrustSubject.FOLDER:
                return "Do you trust this folder?"
            case TrustSubject.SETTINGS:
                return "Servers in your settings changed"

    def lines(self) -> Sequence[LabelledLine]:
        return trust_lines(self.request)

    def offers(self, answer: Answer) -> bool:
        """Offer what goes further only where that can be."""
        request = self.request
        if answer is BARE:
            has_any = any(one.sandbox not in {"", NO_SANDBOX} for one in request.servers)
            return has_any and request.subject is TrustSubject.FOLDER
        return answer is not WITH_CHILDREN or request.may_include_children


def trust_lines(request: TrustRequest) -> list[LabelledLine]:
    """Lay out a request for trust, every server and every argument of it."""
    is_folder = request.subject is not TrustSubject.SETTINGS
    lines = [LabelledLine("folder" if is_folder else "file", request.place, "bold")]
    if request.refusal:
        words = f"{request.refusal} Trust applies to this run only."
        lines.append(warning_line("! this run", words))
    if request.difference:
        since = "you trusted it" if is_folder else "gemdeck read it"
        lines.append(LabelledLine("changes", f"since {since}", "bold"))
        lines += [*difference_lines(request.difference), LabelledLine()]
    lines.append(LabelledLine("", _summary(request), "$text-muted"))
    if any(server.command for server in request.servers):
        lines.append(LabelledLine("", UNWATCHED, "$text-muted"))
    if request.no_sandbox:
        words = f"{request.no_sandbox}: its servers run with your rights."
        lines.append(warning_line("! no sandbox", words))
    for server in request.servers:
        lines += [LabelledLine(), *_server_lines(server)]
    for label, names in (
        (".env sets", request.variables),
        ("rules", request.rules),
        ("to model", request.context),
        ("not used", tuple(f"server {one}: yours has the same name" for one in request.taken)),
        ("start here", request.own),
    ):
        lines += [LabelledLine(), *listed(label, names)] if names else []
    return lines


def _summary(request: TrustRequest) -> str:
    brought = sum(server.change != "gone" for server in request.servers)
    counts = (
        (brought, "server", ""),
        (len(request.variables), ".env variable", ""),
        (len(request.rules), "rule", ""),
        (len(request.context), "instruction file", " for the model"),
    )
    parts = [counted(number, noun) + whose for number, noun, whose in counts if number]
    allowed = "None of this runs until you trust it."
    if request.standing and request.difference:
        allowed = "Changes take effect only after you trust them; the rest works as before."
    elif request.standing:
        allowed = "Trusted in its current state."
    elif not parts and request.difference:
        allowed = (
            "The folder defines nothing now. Its denials stay in force until you trust the change."
        )
    elif not parts:
        allowed = (
            "The folder has no settings. Your own servers run in the folder once you trust it."
        )
    return f"{', '.join(parts)}. {allowed}" if parts else allowed


def _server_lines(server: Disclosure) -> Iterator[LabelledLine]:
    yield LabelledLine("server", server.server, "bold")
    if server.change:
        tone = _CHANGES.get(server.change, "$text-warning")
        yield LabelledLine("status", server.change, f"bold {tone}")
    for warning in server.warnings:
        yield warning_line("! warning", warning)
    yield LabelledLine("defined in", server.source)
    yield LabelledLine("transport", server.transport)
    if server.command:
        program = server.program or "program not found, so nothing runs"
        yield LabelledLine("command", server.command)
        yield LabelledLine("would run", program)
        count = f"{len(server.args):,}, one per line" if server.args else "none"
        yield LabelledLine("arguments", count, "$text-muted")
        for number, argument in enumerate(server.args, 1):
            yield LabelledLine(f"{number:>{LABEL_WIDTH - 2}}", argument)
    if server.sandbox:
        tone = "$text-warning" if server.sandbox == NO_SANDBOX else ""
        yield LabelledLine("sandbox", server.sandbox, tone)
    if server.cwd:
        yield LabelledLine("directory", server.cwd)
    if server.url:
        yield LabelledLine("address", server.url)
    yield from listed("written", server.written)
    yield from listed("sends", server.headers, "header ")
    yield from listed("sets", server.env_values)
    yield from listed("reads", server.references, "your variable ")
    yield from listed("inherits", server.inherited, "your variable ")


class ToolChangeQuestion(Question[ToolChangeRequest]):
    """Lists each changed tool with its difference. What the server wrote stays on the right."""

    PREFIX = "changes"
    ROWS = ((KEEP_AWAY, ACCEPT, ANY),)
    SAFE = KEEP_AWAY

    def title_words(self) -> str:
        """Say how many tools changed or are marked."""
        number = len(self.request.changes)
        did, what = ("offers", "marked tool") if self._is_new else ("changed", "tool")
        return f"A server {did} {f'a {what}' if number == 1 else counted(number, what)}"

    @property
    def _is_new(self) -> bool:
        return all(change.is_new for change in self.request.changes)

    def lines(self) -> Sequence[LabelledLine]:
        """Lay out changed tools, each with what came and what went."""
        grants = "" if self._is_new else "Your earlier grants no longer apply to these tools. "
        words = f"{grants}They stay hidden from the model until you accept."
        lines = [
            LabelledLine("server", self.request.server, "bold"),
            LabelledLine("", words, "$text-muted"),
        ]
        for change in self.request.changes:
            lines += [LabelledLine(), LabelledLine("tool", change.tool, "bold")]
            lines += [warning_line("! marked", mark.words) for mark in change.marks]
            lines += difference_lines(change.difference)
        return lines


class SkillQuestion(Question[SkillRequest]):
    """Shows what a server says of a skill, what changed of it, and then its text."""

    PREFIX = "skill"
    ROWS = ((DO_NOT_LOAD, LOOK, LOAD),)
    SAFE = DO_NOT_LOAD

    def title_words(self) -> str:
        """Say which of the two questions it is."""
        if self.request.text:
            return "Load this skill?"
        return "This skill changed" if self.request.difference else "Review this skill first"

    def lines(self) -> Sequence[LabelledLine]:
        """Lay out the entry, or the text."""
        request = self.request
        lines = [
            LabelledLine("server", request.server, "bold"),
            LabelledLine("skill", request.name, "bold"),
        ]
        lines += [warning_line("! marked", mark.words) for mark in request.marks]
        if request.text:
            words = (
                "Written by the server for the model. It grants nothing: your rules still apply."
            )
            lines += [LabelledLine("", words, "$text-muted"), LabelledLine()]
            return [*lines, *listed("", request.text.split("\n"))]
        lines += listed("", request.description.split("\n"))
        lines += listed("! ignored", request.ignored)
        if request.difference:
            lines.append(LabelledLine("changes", "since you trusted it", "bold"))
            lines += [*difference_lines(request.difference), LabelledLine()]
        words = "No file has been read yet. You will be asked again if one changes."
        lines.append(LabelledLine("", words, "$text-muted"))
        return [*lines, *listed("files", request.files)]

    def offers(self, answer: Answer) -> bool:
        """Offer to read it before it is read, and to load it after."""
        return answer is not (LOOK if self.request.text else LOAD)
