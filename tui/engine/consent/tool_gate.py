"""Keeps from the model what a rule denies and what has changed since the user saw it."""

from collections.abc import Mapping, Sequence

from tui.engine.consent.changes.review import ToolReview
from tui.engine.consent.rules.policy import Policy
from tui.engine.servers.catalog import Tool
from tui.engine.servers.withholding import Withheld
from tui.engine.settings.definitions import ServerDefinition


class ToolGate:
    """Implements `tui.engine.servers.withholding.Gate`.

    Args:
        policy: The rules on tools.
        review: Finds changed tools.
    """

    def __init__(self, policy: Policy, review: ToolReview) -> None:
        self._policy = policy
        self._review = review

    async def prepare(self, definition: ServerDefinition) -> None:
        """Read what is known of a server's tools."""
        await self._review.prepare(definition)

    def withhold(
        self, definition: ServerDefinition, tools: Sequence[Tool]
    ) -> Mapping[str, Withheld]:
        """Say which tools the model must not see. What is denied is not asked about."""
        named = [(tool.name, tool.definition_hash) for tool in tools if tool.is_usable]
        denied = self._policy.hidden(definition, named)
        others = [tool for tool in tools if tool.name not in denied]
        changed = self._review.examine(definition, others)
        return {name: Withheld(reason) for name, reason in denied.items()} | {
            name: Withheld(reason, changed=True) for name, reason in changed.items()
        }
