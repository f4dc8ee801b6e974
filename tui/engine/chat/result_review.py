"""The user's look at the results of servers whose settings ask for it, before the model's."""

from tui.engine.desk import Desk, WithdrawnError
from tui.engine.mcp.catalog.offered_tool import MediaPart, OfferedTool, TextPart, ToolResult
from tui.model.chat import ConversationId, EntryId
from tui.model.frozen import dataclass
from tui.model.requests import ResultReview
from tui.text import for_model, sanitize

WITHHELD = "The user read the result and withheld it. Go on without it."
"""What the model gets in place of a result that the user withholds."""

_UNSEEN = "The result is withheld: this server's are shown to the user first, and nobody is there."


@dataclass(frozen=True, slots=True)
class ResultReviewer:
    """Shows results to the user, who passes, trims or withholds them."""

    desk: Desk

    async def review(
        self, call: EntryId, tool: OfferedTool, result: ToolResult, conversation: ConversationId
    ) -> ToolResult:
        """Return what the model gets of a result. Canceling the task withdraws the question."""
        text = "\n".join(part.text for part in result.parts if isinstance(part, TextPart))
        media = tuple(part for part in result.parts if isinstance(part, MediaPart))
        shown = sanitize(text)
        request = ResultReview(
            self.desk.new_id(),
            call,
            tool.server,
            tool.view.name,
            shown,
            tuple(f"{part.mime_type}, {len(part.data) * 3 // 4:,} bytes" for part in media),
            conversation=conversation,
        )
        try:
            reply = await self.desk.ask(request)
        except WithdrawnError:
            return ToolResult((TextPart(_UNSEEN),), _UNSEEN, is_error=True)
        if not reply.allows:
            display = f"[Withheld from the model.]\n{result.display}"
            return ToolResult((TextPart(WITHHELD),), display, is_error=True)
        if reply.text in {None, shown}:
            return result
        kept = for_model(reply.text or "")[0]
        note = TextPart("[The user changed this result.]")
        display = sanitize(f"{note.text}\n{kept}")
        return ToolResult((note, TextPart(kept), *media), display, result.is_error)
