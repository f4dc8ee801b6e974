"""Calls that the user makes by hand: their forms, runs, results, and the saved ones."""

from collections.abc import Mapping

from tui.model.chat import EntryId
from tui.model.requests import FormValue
from tui.model.runs import SavedCall, ToolForm, ToolRun
from tui.model.servers import ServerId


class ToolRuns:
    """Runs tools for the user, without the model. Each command returns at once.

    Each run is told of as `ToolRunChanged`, and the saved calls as `SavedCallsChanged`. A call
    that the user composed is not asked about; rules that deny it hold.
    """

    def form(
        self,
        server: ServerId,
        tool: str,
        arguments: str | None = None,
        choices: Mapping[str, str] | None = None,
    ) -> ToolForm:
        """Return the form of a tool, filled in.

        Args:
            server: The server.
            tool: The tool's name as shown.
            arguments: The arguments to show, as JSON; None for the defaults of the schema.
            choices: The values of the fields that choose an alternative, by their keys.

        Raises:
            ArgumentsError: If the arguments are not JSON.
        """
        raise NotImplementedError

    def merge(
        self,
        server: ServerId,
        tool: str,
        values: Mapping[str, FormValue],
        arguments: str,
        choices: Mapping[str, str] | None = None,
    ) -> str:
        """Return the arguments after what was entered, as canonical JSON.

        Args:
            server: The server.
            tool: The tool's name as shown.
            values: What was entered, by the keys of the fields of `form` with the same arguments
                and choices.
            arguments: The arguments that the form showed; what no field shows stays.
            choices: As for `form`.

        Raises:
            ValueError: If a value cannot be read; the message says which, and why.
        """
        raise NotImplementedError

    async def check(self, server: ServerId, tool: str, arguments: str) -> tuple[str, ...]:
        """Return what is wrong with arguments by the tool's input schema, in words."""
        raise NotImplementedError

    def start(self, server: ServerId, tool: str, arguments: str) -> EntryId:
        """Run a tool with these arguments (JSON); what cannot run ends as an error at once."""
        raise NotImplementedError

    def cancel(self, run: EntryId) -> None:
        """Cancel a run, on its server too."""
        raise NotImplementedError

    def send(self, run: ToolRun) -> None:
        """Send a call and its result into the current conversation, as what the user did."""
        raise NotImplementedError

    def save_call(self, server: ServerId, name: str, tool: str, arguments: str) -> None:
        """Save a call under a name, in place of one of that name.

        Raises:
            ValueError: If the name or the arguments cannot be used; the message says why.
        """
        raise NotImplementedError

    def forget_call(self, server: ServerId, name: str) -> None:
        """Forget a saved call."""
        raise NotImplementedError

    def saved(self, server: ServerId, name: str) -> SavedCall | None:
        """Return a saved call."""
        raise NotImplementedError

    def command(self, server: ServerId, tool: str, arguments: str) -> str:
        """Return the command for a shell that makes this very call.

        Args:
            server: The server.
            tool: The tool's name as shown, or ``@`` and the name of a saved call.
            arguments: The arguments, as JSON.
        """
        raise NotImplementedError
