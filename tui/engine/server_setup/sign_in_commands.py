"""Commands to sign in to servers and out of them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.engine import late
from tui.engine.background import TaskSet
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager
from tui.engine.sign_in.sign_in_record import AuthError
from tui.engine.sign_in.sign_ins import SignIns
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.servers import ServerId, Transport
from tui.text import sanitize_line

Command = Callable[[ServerId], Awaitable[str]]


@dataclass(eq=False, repr=False)
class SignInCommands:
    """Signs in to servers and out of them, with the person.

    Attributes:
        servers: The servers.
        context: What their connections share; gets the sign-ins.
        folder: The state folder, or None.
        definitions: Returns the servers as configured.
    """

    servers: ServerManager
    context: ClientContext
    folder: Path | None
    definitions: Callable[[], Sequence[ServerDefinition]]

    def __post_init__(self) -> None:
        self._tasks = TaskSet("a sign-in broke down")
        self._running: set[ServerId] = set()
        shared = self.context
        asks = shared.desk, shared.open_url, late.import_auth_requests
        signs = SignIns(self.folder, *asks, shared.publish, shared.redactor)
        self._sign_ins = shared.sign_ins = signs

    async def aclose(self) -> None:
        """Cancel what waits for the person, and let a token that is on its way arrive."""
        await self._tasks.aclose()
        await self._sign_ins.aclose()

    def begin(self, server: ServerId) -> None:
        """Sign in to a server and connect again; once at a time for each."""
        if server not in self._running:
            self._running.add(server)
            task = self._tasks.start(self._report(server, self.sign_in))
            task.add_done_callback(lambda _: self._running.discard(server))

    def end(self, server: ServerId) -> None:
        """Sign out of a server."""
        self._tasks.start(self._report(server, self.sign_out))

    async def import_gemini(self, server: ServerId) -> str:
        """Take over gemini-cli's sign-in to a server, and connect; return what came of it.

        Raises:
            AuthError: If there is none that could be used.
        """
        one = self._definition(server)
        return await self._ended(server, self._sign_ins.import_gemini(one, Path.home()))

    async def sign_in(self, server: ServerId) -> str:
        """Sign in to a server, and connect to it with the token; return what came of it.

        Raises:
            AuthError: If it did not work.
        """
        return await self._ended(server, self._sign_ins.sign_in(self._definition(server)))

    async def sign_out(self, server: ServerId) -> str:
        """Revoke and forget the tokens of a server; return what came of it.

        Raises:
            AuthError: If they could not be removed.
        """
        return await self._ended(server, self._sign_ins.sign_out(self._definition(server)))

    async def _ended(self, server: ServerId, work: Awaitable[str]) -> str:
        """Connect again after a change of the tokens."""
        words = await work
        self.servers.restart(server)
        return words

    def _definition(self, server: ServerId) -> ServerDefinition:
        found = next((one for one in self.definitions() if one.id == server), None)
        if found is None:
            raise AuthError("is not configured")
        if found.withheld is not None:
            raise AuthError(f"is {found.withheld}, so it is not contacted")
        if found.transport is Transport.STDIO:
            raise AuthError("runs on this computer and needs no sign-in")
        if found.launch.command:
            raise AuthError("gets its headers from headersCommand and needs no sign-in")
        return found

    async def _report(self, server: ServerId, command: Command) -> None:
        """Run a command, and tell what came of it."""
        try:
            notice = Notice(Severity.INFO, await command(server), is_answer=True)
        except AuthError as error:
            words = f"{server} {sanitize_line(error.reason)}."
            notice = Notice(Severity.WARNING, words, sanitize_line(error.advice))
        self.context.publish(NoticeRaised(notice))
