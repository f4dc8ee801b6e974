"""Things to show in a chat."""

from tui.model.catalog import Catalog, PromptView, ResourceTemplateView, ResourceView
from tui.model.chat import MAIN, EntryId, ModelText, ToolCall, ToolCallStatus, UserMessage
from tui.model.consent import RequestId
from tui.model.requests import ConfirmationRequest
from tui.model.servers import Origin, ServerId, ServerInfo, ServerStatus, ServerView, Transport
from tui.store.state import AppState, ConversationState, TranscriptState
from tui.ui.widgets.chat.completion import complete
from tui.ui.widgets.text.folded_text import FoldedText


def conversation(count: int) -> AppState:
    """Give a state with a settled conversation of `count` entries."""
    entries = tuple(
        UserMessage(EntryId(f"e{number}"), f"question {number}")
        if number % 2 == 0
        else ModelText(EntryId(f"e{number}"), f"**answer** {number}\n\n- one\n- two", complete=True)
        for number in range(count)
    )
    state = ConversationState(TranscriptState(settled=entries))
    return AppState(conversations={MAIN: state})


def call(
    number: int = 0, status: ToolCallStatus = ToolCallStatus.RUNNING, *, arguments: str = "{}"
) -> ToolCall:
    """Give a tool call."""
    return ToolCall(
        EntryId(f"call{number}"), ServerId("git"), "branch_list", arguments, status=status
    )


def request(number: int = 0, arguments: str = '{\n  "message": "hello"\n}') -> ConfirmationRequest:
    """Give a question."""
    return ConfirmationRequest(
        id=RequestId(f"r{number}"),
        call=EntryId("call0"),
        server=ServerId("git"),
        tool=f"commit{number}",
        description="Records changes.",
        arguments=arguments,
        claims=("read-only",),
    )


def notes(
    status: ServerStatus = ServerStatus.READY,
    *,
    completes: bool = False,
    prompts: tuple[PromptView, ...] = (),
    resources: tuple[ResourceView, ...] = (),
    templates: tuple[ResourceTemplateView, ...] = (),
) -> ServerView:
    """Give a server that offers things to complete, and completes their arguments or not."""
    return ServerView(
        ServerId("notes"),
        Origin.USER,
        Transport.STDIO,
        "x",
        status=status,
        catalog=Catalog(prompts=prompts, resources=resources, templates=templates),
        info=ServerInfo("notes", "1", "2025-06-18", completions=completes),
    )


def completed(typed: str, *servers: ServerView) -> list[str]:
    """Give the texts that would complete what was typed."""
    offered = complete(typed, servers)
    return [one.text for one in offered.completions] if offered is not None else []


def rows_of(view: FoldedText) -> list[str]:
    """Give all rows of a text, in sight or not."""
    return [view._row(row).plain for row in range(view.row_count)]
