"""What the question shows of a call: whose it is, what is said of it, and the list of calls."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from textual.content import Content

from tui.model.consent import Decision
from tui.model.requests import ConfirmationRequest
from tui.text import clip
from tui.ui.questions.calls.argument_lines import both_ends
from tui.ui.widgets.chat.tool_call import arguments_line
from tui.ui.widgets.lists.row_list import Row, RowList
from tui.ui.widgets.text.plain import one_line

MAX_CLAIMED: Final = 160
"""Characters of all claims that are shown."""

MUTED: Final = "$foreground-muted"

MAX_NAMES: Final = 40
"""Cells of the names of a tool and its server in the list."""


def facts(request: ConfirmationRequest, *, origin: bool = True) -> Content:
    """Write what the server says of the tool, after where the server comes from."""
    said = clip(one_line(", ".join(request.claims)), MAX_CLAIMED)
    place = f"from {request.origin}" if origin and request.origin else ""
    says = Content.assemble(("server's claim: ", MUTED), said, (" (unverified)", MUTED))
    parts = (Content.styled(place, MUTED), says if said else Content())
    return Content.styled(" · ", MUTED).join(filter(None, parts))


def call_line(request: ConfirmationRequest, width: int) -> Content:
    """Name server and tool in one row of `width` cells."""
    half = max(8, (width - 3) // 2)
    server, tool = (both_ends(name, half) for name in (request.server, request.tool))
    return Content.assemble((server, "bold"), (" · ", MUTED), (tool, "bold"))


def notes_content(request: ConfirmationRequest) -> Content:
    """Write gemdeck's own notes, a line each, as nothing of a server's looks."""
    problem = (f"Not sent yet: {request.problem}",) if request.problem else ()
    lines = (
        Content.assemble(("!", "bold"), f" {one_line(note)}") for note in (*problem, *request.notes)
    )
    return Content("\n").join(lines).stylize("$text-warning")


def server_words(request: ConfirmationRequest) -> Content:
    """Write the server's title and description of the tool."""
    if not request.title and not request.description:
        return Content("The server gives no description of this tool.")
    gap = "  " if request.title and request.description else ""
    return Content.assemble((one_line(request.title), "bold"), gap, request.description)


@dataclass(eq=False, slots=True)
class AskedCall:
    """A call, and what the user has done with it.

    Attributes:
        request: The question about it.
        number: Its number among the calls of this question; it keeps it when others go.
        edit: The arguments as the user changed them, or None.
        shows_edit: Whether these are shown, and so sent, instead of the model's.
        is_seen: Whether what would be sent now was shown to its end.
        is_answered: Whether an answer was given that is not settled yet.
    """

    request: ConfirmationRequest
    number: int = 0
    edit: str | None = None
    shows_edit: bool = False
    is_seen: bool = False
    is_answered: bool = False

    @property
    def arguments(self) -> str:
        """The arguments that an answer is about."""
        edited = self.edit if self.shows_edit else None
        return self.request.arguments if edited is None else edited

    def take(self, request: ConfirmationRequest) -> "AskedCall":
        """Take note of how the request stands; an edit that was refused is still there."""
        if request != self.request:
            self.request = request
            self.shows_edit |= bool(request.problem) and self.edit is not None
            self.is_seen = self.is_answered = False
        return self

    def show_edit(self, edit: str | None) -> None:
        """Show arguments as edited; they are no edit where they are the model's again."""
        self.edit = edit if edit != self.request.arguments else None
        self.shows_edit = self.edit is not None
        self.is_seen = False

    def show_other(self) -> None:
        """Switch between the model's arguments and the edit."""
        self.shows_edit = not self.shows_edit
        self.is_seen = False

    def completed(self, decision: Decision) -> Decision:
        """Add the edit to an answer that allows it."""
        edited = self.edit if self.shows_edit and decision.allows else None
        return replace(decision, arguments=edited)


class CallList(RowList, can_focus=False):
    """Lists the calls that wait, the one in sight marked; a click chooses one."""

    def __init__(self) -> None:
        super().__init__(clicks=1)
        self.display = False

    def show(self, calls: Sequence[AskedCall], shown: AskedCall) -> None:
        """Show the calls; of one alone there is no list."""
        self.display = len(calls) > 1
        rows = [self._row(call, is_shown=call is shown) for call in calls]
        self.set_rows(rows, calls.index(shown))

    def _row(self, call: AskedCall, *, is_shown: bool) -> Row:
        request = call.request
        most = min(MAX_NAMES, self.app.size.width // 2)
        names = both_ends(f"{request.tool} · {request.server}", most)
        words = (
            f"{'▸' if is_shown else ' '} {call.number} {names}  {arguments_line(call.arguments)}"
        )
        state = "answered" if call.is_answered else "✓ seen" if call.is_seen else "not seen"
        return Row("", words, state, faint=not is_shown, tone="good" * call.is_seen)
