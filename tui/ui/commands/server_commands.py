"""The commands on servers: ``/mcp``."""

from collections.abc import Sequence
from time import monotonic

from tui.model.input.own_commands import OWN_COMMANDS
from tui.model.input.typed import nearest
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.store.state import AppState
from tui.ui.commands.reports import describe_servers
from tui.ui.commands.usage import CommandGroup, UsageError
from tui.ui.widgets.status import STARTABLE, STOPPABLE


class ServerCommands(CommandGroup):
    """Shows servers and steers them. The name of an extension stands for all its servers."""

    async def run_mcp_list(self, wanted: str) -> None:
        self._report(wanted)

    async def run_mcp_desc(self, wanted: str) -> None:
        self._report(wanted, descriptions=True)

    async def run_mcp_schema(self, wanted: str) -> None:
        self._report(wanted, descriptions=True, schemas=True)

    async def run_mcp_auth(self, name: str) -> None:
        """Sign in to a server; without a name, to the one that needs it."""
        needy = [view for view in self._servers if view.status is ServerStatus.NEEDS_SIGN_IN]
        if name:
            needy = [self.one_server(name)]
        if len(needy) != 1:
            names = ", ".join(view.id for view in needy) or "No server"
            raise UsageError(f"{names} needs a sign-in.", "Type /mcp auth SERVER")
        self._commands.engine.sign_ins.begin(needy[0].id)

    async def run_mcp_logout(self, name: str) -> None:
        self._commands.engine.sign_ins.end(self.one_server(name).id)

    async def run_mcp_refresh(self, _: str) -> None:
        self._commands.engine.servers.restart_all()
        self.say("Restarting all servers.")

    async def run_mcp_restart(self, name: str) -> None:
        views = self._those(name, STOPPABLE | STARTABLE)
        for view in views:
            self._commands.engine.servers.restart(view.id)
        self._say_of("Restarting", views)

    async def run_mcp_start(self, name: str) -> None:
        views = self._those(name, STARTABLE)
        for view in views:
            self._commands.engine.servers.start(view.id)
        self._say_of("Starting", views)

    async def run_mcp_stop(self, name: str) -> None:
        views = self._those(name, STOPPABLE)
        for view in views:
            self._commands.engine.servers.stop(view.id)
        self._say_of("Stopping", views)

    async def run_mcp_enable(self, name: str) -> None:
        views = self._those(name, frozenset({ServerStatus.DISABLED}))
        for view in views:
            self._commands.engine.servers.set_enabled(view.id, enabled=True)
        self._say_of("Enabled", views)

    async def run_mcp_disable(self, name: str) -> None:
        off = {ServerStatus.DISABLED, ServerStatus.INVALID}
        views = self._those(name, frozenset(ServerStatus) - off)
        for view in views:
            self._commands.engine.servers.set_enabled(view.id, enabled=False)
        self._say_of("Disabled", views)

    def one_server(self, name: str) -> ServerView:
        """Return the server with a name.

        Raises:
            UsageError: If there is none.
        """
        return self._named(name)[0]

    def _report(self, wanted: str, *, descriptions: bool = False, schemas: bool = False) -> None:
        """Show the servers with a word in their names, or all."""

        def those(state: AppState) -> tuple[ServerView, ...]:
            word = wanted.casefold()
            return tuple(view for view in state.servers if word in view.id.casefold())

        if wanted and not those(self._bridge.state):
            parts = [part.name for part in OWN_COMMANDS["mcp"].parts]
            word, *after = wanted.split(maxsplit=1)
            if like := nearest(word, parts):
                command = " ".join(("/mcp", like, *after))
                raise UsageError(f"/mcp has no {word}.", f"Did you mean {command}?")
            self._named(wanted)
        self.show(
            "Servers",
            those,
            lambda views: describe_servers(
                views, monotonic(), descriptions=descriptions, schemas=schemas
            ),
        )

    @property
    def _servers(self) -> Sequence[ServerView]:
        return self._bridge.state.servers

    def _named(self, name: str) -> Sequence[ServerView]:
        """Return the server with a name, or those of an extension."""
        for found in (
            [view for view in self._servers if view.id == name],
            [view for view in self._servers if view.id.casefold() == name.casefold()],
            [view for view in self._servers if view.extension == name],
        ):
            if found:
                return found
        like = nearest(name, (view.id for view in self._servers))
        advice = f"Did you mean {like}?" if like else "/mcp lists your servers."
        raise UsageError(f"There is no server {name}.", advice)

    def _those(self, name: str, allowed: frozenset[ServerStatus]) -> Sequence[ServerView]:
        """Return the servers of a name that have one of some statuses."""
        named = self._named(name)
        views = [view for view in named if view.status in allowed]
        if not views:
            view = named[0]
            raise UsageError(f"{view.id} is {view.status}.", _way_out(view.id, view.status))
        return views

    def _say_of(self, done: str, views: Sequence[ServerView]) -> None:
        self.say(f"{done} {', '.join(view.id for view in views)}.")


def _way_out(server: ServerId, status: ServerStatus) -> str:
    match status:
        case ServerStatus.DISABLED:
            return f"/mcp enable {server} lets it run."
        case ServerStatus.UNTRUSTED | ServerStatus.INVALID:
            return f"/mcp list {server} says why."
        case _:
            return ""
