"""What the turn loop asks before a tool runs."""

from collections.abc import Sequence
from typing import Protocol

from tui.engine.tools import OfferedTool
from tui.model.chat import EntryId
from tui.model.consent import Decision


class ConsentWithdrawnError(Exception):
    """A question ended without the user's answer; the text says why, in one line.

    It is no denial: the same call may be asked about again.
    """


class Consent(Protocol):
    """Answers whether a call may run: by asking the user, or from rules."""

    async def confirm(
        self, call: EntryId, tool: OfferedTool, arguments: str, offered: Sequence[OfferedTool]
    ) -> Decision:
        """Decide on one call.

        Cancelling the awaiting task withdraws the question.

        Args:
            call: The transcript entry of the call.
            tool: The tool as it was offered to the model.
            arguments: The complete arguments as they are shown, which is canonical JSON of
                the very object that is sent.
            offered: All tools as they were offered to the model with this step; what "always
                this server" covers, and what a pattern's meaning is judged by.

        Returns:
            The decision. A denial's `note` is for the model.

        Raises:
            ConsentWithdrawnError: If nobody could answer.
        """
