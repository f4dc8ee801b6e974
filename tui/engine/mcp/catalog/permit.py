"""The leave to run a call, which only the gate gives."""

from dataclasses import dataclass, field

from tui.engine.mcp.catalog.argument_rules import ArgumentRule
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool, ToolCallError


@dataclass(eq=False, repr=False, slots=True)
class Permit:
    """Leave to run one call, once: what the gate gives and `ServerManager.call_tool` uses up.

    Attributes:
        tool: The tool as it was offered, and so its server and definition.
        arguments: What is sent; nobody changes it.
        shown: The same, complete, as canonical JSON.
        source: Why it may run, such as ``you: once``.
        rule: What has to be so of the arguments still as they are sent, or None.
        request: The parameters of a request that the user wrote, which goes as it is with these
            arguments; None for a call.
    """

    tool: OfferedTool
    arguments: JsonObject
    shown: str
    source: str
    rule: ArgumentRule | None = None
    request: JsonObject | None = None
    _is_used: bool = field(default=False, init=False)

    def use(self) -> None:
        """Use it up; raises `ToolCallError` the second time."""
        if self._is_used:
            raise ToolCallError("This call was approved only once; it was not run again.")
        self._is_used = True

    def check(self) -> None:
        """Look once more where paths lead; raises `ToolCallError` if the rule allows it no more."""
        if self.rule is not None and not self.rule.allows(self.arguments):
            raise ToolCallError("A path leads outside what the rule allows; the call was not run.")
