"""Asks whether what a folder brings, or what changed in the user's settings, may run."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from textual.binding import BindingType

from tui.model.trust import DifferenceLine, Disclosure, TrustAnswer, TrustRequest, TrustSubject
from tui.text import counted
from tui.ui.screens.disclosure import DisclosureScreen
from tui.ui.screens.disclosure_answers import DisclosureAnswer
from tui.ui.screens.reading import SCROLLING
from tui.ui.widgets.labelled_text import LABEL_WIDTH, LabelledLine

NOT_NOW: Final = DisclosureAnswer(
    "not-now", "n,d,escape", "run nothing of it for now, and ask again next time", "Not now"
)
TRUST: Final = DisclosureAnswer("trust", "t", "trust exactly this", "Trust", allows=True)
WITH_CHILDREN: Final = DisclosureAnswer(
    "children",
    "c",
    "trust this and all folders in it",
    "Trust with all folders in it",
    "With folders",
    "trust all folders in it",
    allows=True,
    twice=True,
)
NEVER: Final = DisclosureAnswer("never", "v", "never run it, and do not ask again", "Never")

_MEANING: Final = {
    NOT_NOW: TrustAnswer.NOT_NOW,
    TRUST: TrustAnswer.TRUST,
    WITH_CHILDREN: TrustAnswer.TRUST_WITH_CHILDREN,
    NEVER: TrustAnswer.NEVER,
}

_SIGNS: Final = {"+": "$text-success", "-": "$text-error"}

_CHANGES: Final = {"new": "$text-success", "changed": "$text-warning", "gone": "$text-error"}

WARNING_STYLE: Final = "bold $text-warning"
"""How a warning looks, beside the word that it begins with."""


class TrustScreen(DisclosureScreen[TrustRequest]):
    """Lists all that would run or be contacted, the difference first where there is one."""

    BINDING_GROUP_TITLE = "Trust"
    HELP = "Settings that you have not seen want to run programs. Nothing of them has run."
    PREFIX = "trust"
    ANSWERS = (NOT_NOW, TRUST, WITH_CHILDREN, NEVER)
    BINDINGS: ClassVar[list[BindingType]] = [
        *(answer.binding("trust") for answer in ANSWERS),
        *SCROLLING,
    ]

    def title_of(self, request: TrustRequest) -> str:
        """Say whether it is a folder or the user's own settings."""
        match request.subject:
            case TrustSubject.FOLDER if request.refusal:
                return "This folder cannot be trusted"
            case TrustSubject.FOLDER if request.difference:
                return "The settings of this folder changed"
            case TrustSubject.FOLDER:
                return "Do you trust this folder?"
            case TrustSubject.SETTINGS:
                return "Servers in your settings changed"

    def lines_of(self, request: TrustRequest) -> Sequence[LabelledLine]:
        """Lay out the request."""
        return trust_lines(request)

    def offers(self, answer: DisclosureAnswer) -> bool:
        """Offer no trust where it is refused, and none for other folders unless that can be."""
        if answer is WITH_CHILDREN and not self._request.may_include_children:
            return False
        return not (answer.allows and self._request.refusal)

    def give(self, answer: DisclosureAnswer) -> None:
        """Hand the answer over."""
        self._commands.answer_trust(self._request.id, _MEANING[answer])


def trust_lines(request: TrustRequest) -> list[LabelledLine]:
    """Lay out a request for trust, every server and every argument of it."""
    is_folder = request.subject is TrustSubject.FOLDER
    lines = [LabelledLine("folder" if is_folder else "file", request.place, "bold")]
    if request.refusal:
        lines.append(_warning("! refused", request.refusal))
    if request.difference:
        since = "you trusted it" if is_folder else "gemdeck read it"
        lines.append(LabelledLine("changes", f"since {since}", "bold", wraps=True))
        lines += [*difference_lines(request.difference), LabelledLine()]
    lines.append(LabelledLine("", _summary(request), "$foreground 60%", wraps=True))
    for server in request.servers:
        lines += [LabelledLine(), *_server_lines(server)]
    if request.variables:
        lines += [LabelledLine(), *_listed(".env sets", request.variables)]
    if request.rules:
        lines += [LabelledLine(), *_listed("rules", request.rules)]
    return lines


def difference_lines(difference: Iterable[DifferenceLine]) -> Iterator[LabelledLine]:
    """Lay out a difference: the sign stands in the column of the labels."""
    for line in difference:
        style = _SIGNS.get(line.sign, "")
        sign = line.sign if style else ""
        yield LabelledLine(sign.rjust(LABEL_WIDTH - 2), line.text, style, style)


def _warning(label: str, words: str) -> LabelledLine:
    return LabelledLine(label, words, WARNING_STYLE, WARNING_STYLE, wraps=True)


def _summary(request: TrustRequest) -> str:
    brought = sum(server.change != "gone" for server in request.servers)
    parts = [counted(brought, "server")] if brought else []
    if request.variables:
        parts.append(counted(len(request.variables), "variable") + " of .env")
    if request.rules:
        parts.append(counted(len(request.rules), "rule"))
    allowed = "Nothing of it runs." if request.refusal else "Nothing of it runs until you trust it."
    if request.standing and request.difference:
        allowed = "What changed does not run until you trust it; the rest goes on as it was."
    elif request.standing:
        allowed = "It is trusted as it is now."
    elif not parts:
        allowed = "It brings nothing any more. What it forbade holds until you trust the change."
    return f"{', '.join(parts)}. {allowed}" if parts else allowed


def _server_lines(server: Disclosure) -> Iterator[LabelledLine]:
    yield LabelledLine("server", server.server, "bold")
    if server.change:
        tone = _CHANGES.get(server.change, "$text-warning")
        yield LabelledLine("this is", server.change, f"bold {tone}")
    for warning in server.warnings:
        yield _warning("! warning", warning)
    yield LabelledLine("stands in", server.source)
    yield LabelledLine("reached by", server.transport)
    if server.command:
        program = server.program or "nothing: no such program was found"
        yield LabelledLine("command", server.command)
        yield LabelledLine("would run", program)
        yield from _argument_lines(server.args)
    if server.cwd:
        yield LabelledLine("in folder", server.cwd)
    if server.url:
        yield LabelledLine("address", server.url)
    yield from _listed("written", server.written)
    yield from _listed("sends", server.headers, "header ")
    yield from _listed("sets", server.env)
    yield from _listed("reads", server.references, "your variable ")


def _argument_lines(args: Sequence[str]) -> Iterator[LabelledLine]:
    if not args:
        yield LabelledLine("arguments", "none", "$foreground 60%")
        return
    yield LabelledLine("arguments", f"{len(args):,}, one a line", "$foreground 60%")
    for number, argument in enumerate(args, 1):
        yield LabelledLine(f"{number:>{LABEL_WIDTH - 2}}", argument)


def _listed(label: str, names: Sequence[str], before: str = "") -> Iterator[LabelledLine]:
    for number, name in enumerate(names):
        yield LabelledLine("" if number else label, f"{before}{name}")
