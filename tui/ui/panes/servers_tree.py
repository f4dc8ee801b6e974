"""The server tree with its keys, which manage the server under the cursor."""

from tui.model.servers import ServerStatus, Transport
from tui.store.commands import Commands
from tui.ui.panes import PaneName, ShowPane
from tui.ui.widgets.lists.server_tree import ServerTree
from tui.ui.widgets.status import STARTABLE, STOPPABLE

_S = ServerStatus


class ServersTree(ServerTree):
    """The server tree with its keys wired to the commands."""

    def __init__(self, commands: Commands) -> None:
        super().__init__()
        self._commands = commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Enable only the keys that the status of the server under the cursor allows."""
        view = self.current
        status = view.status if view is not None else None
        match action:
            case "sign_in" | "sign_out":
                is_remote = view is not None and view.transport is not Transport.STDIO
                return (
                    is_remote
                    and (status is _S.READY or action != "sign_out")
                    and (status in STOPPABLE or status in STARTABLE)
                )
            case "start_stop":
                return status in STOPPABLE or status in STARTABLE or status is _S.UNTRUSTED
            case "restart":
                return status in STOPPABLE or status in STARTABLE
            case "toggle_enabled":
                return status is not None and status is not _S.INVALID
            case "log" | "restart_all":
                return status is not None
            case "demo_servers":
                return status is None
            case _:
                return True

    def action_label(self, action: str) -> str | None:
        """Return the label of a key that does one thing or its opposite."""
        status = self.current.status if self.current is not None else None
        match action:
            case "start_stop" if status is _S.UNTRUSTED:
                return "review"
            case "start_stop":
                return "start" if status in STARTABLE else "stop"
            case "toggle_enabled":
                return "enable" if status is _S.DISABLED else "disable"
            case _:
                return None

    def action_restart(self) -> None:
        if self.current is not None:
            self._commands.engine.servers.restart(self.current.id)

    def action_sign_in(self) -> None:
        if self.current is not None:
            self._commands.engine.sign_ins.begin(self.current.id)

    def action_sign_out(self) -> None:
        if self.current is not None:
            self._commands.engine.sign_ins.end(self.current.id)

    def action_restart_all(self) -> None:
        self._commands.engine.servers.restart_all()

    def action_start_stop(self) -> None:
        """Stop the server if it runs, else start it; review it first if it is untrusted."""
        view = self.current
        if view is None:
            return
        if view.status in STOPPABLE:
            self._commands.engine.servers.stop(view.id)
        elif view.status in STARTABLE:
            self._commands.engine.servers.start(view.id)
        elif view.status is _S.UNTRUSTED:
            self.action_review_folder()

    def action_review_folder(self) -> None:
        self._commands.engine.review_folder()

    def action_toggle_enabled(self) -> None:
        view = self.current
        if view is not None and view.status is not _S.INVALID:
            self._commands.engine.servers.set_enabled(view.id, enabled=view.status is _S.DISABLED)

    def action_demo_servers(self) -> None:
        self._commands.engine.start_demo_servers()

    def action_log(self) -> None:
        if self.current is not None:
            self.post_message(ShowPane(PaneName.ACTIVITY, self.current.id))
