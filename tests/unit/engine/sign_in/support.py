"""What tests of signing in share: a person who says yes, and servers that want a sign-in."""

# ruff: noqa: ANN401 - what is passed on is whatever it was

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.servers.authority import Authority, GuardedServer, walk_through
from tests.servers.web import free_port
from tests.unit.engine.mcp.network.support import WEB, define
from tests.unit.engine.mcp.support import Watcher, call, running
from tui.engine.definitions.definition import ServerDefinition, SignInSettings
from tui.engine.desk import Desk
from tui.engine.late import import_auth_requests
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager
from tui.engine.sign_in.sign_in_record import SignInRecord
from tui.engine.sign_in.sign_ins import SignIns, TokenSession
from tui.model.events import Event, RequestRaised
from tui.model.requests import Reply, ReplyAction, SignInRequest
from tui.model.servers import Failure
from tui.model.servers import ServerStatus as S
from tui.model.settings import OAuthSettings


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")


def oauth(**settings: object) -> SignInSettings:
    """Give what an entry says of OAuth; the browser comes back to a free port."""
    where = {"redirect_uri": f"http://localhost:{free_port()}/oauth/callback"}
    return SignInSettings(OAuthSettings.model_validate({**where, **settings}))


@dataclass
class Person:
    """Somebody at the screen.

    Attributes:
        asked: The questions that came, oldest first.
        opened: The addresses that the browser was sent to.
        reply: What the person answers; None waits.
        browser: What the browser does with an address; returns whether there is one.
    """

    asked: list[SignInRequest] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    reply: Callable[[SignInRequest], Reply | None] = lambda _: Reply(ReplyAction.ACCEPT)
    browser: Callable[[str], Awaitable[object]] = walk_through
    events: list[Event] = field(default_factory=list)
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.desk = Desk(self.hear)

    def hear(self, event: Event) -> None:
        """Answer a question once."""
        self.events.append(event)
        if isinstance(event, RequestRaised) and isinstance(event.request, SignInRequest):
            is_again = any(one.id == event.request.id for one in self.asked)
            self.asked.append(event.request)
            reply = self.reply(event.request)
            if reply is not None and not is_again:
                self.desk.answer(event.request.id, reply)

    def was_asked(self, times: int) -> bool:
        """Tell whether as many questions came; one that comes again counts."""
        return len(self.asked) == times

    async def open_url(self, url: str) -> bool:
        """Let the browser open an address."""
        self.opened.append(url)
        return await self.browser(url) is not False


@dataclass
class Deck:
    """One gemdeck with one server."""

    person: Person
    manager: ServerManager
    watcher: Watcher
    sign_ins: SignIns
    definition: ServerDefinition

    async def sign_in(self) -> str:
        """Sign in and connect again."""
        words = await self.sign_ins.sign_in(self.definition)
        self.manager.restart(WEB)
        return words

    async def connect(self) -> str:
        """Sign in once the server wants it, until it is ready."""
        await self.watcher.until(WEB, S.STARTING, S.NEEDS_SIGN_IN)
        words = await self.sign_in()
        await self.ready()
        return words

    async def ready(self) -> None:
        """Wait until the server is ready."""
        await self.watcher.until(WEB, S.STARTING, S.READY)

    async def fails(self, status: S) -> Failure:
        """Wait until the server does not get ready, and give why."""
        return await self.watcher.fails(WEB, S.STARTING, status)

    async def echo(self) -> str:
        """Call the server."""
        return (await call(self.manager, "echo", {"text": "hi"})).display

    @property
    def session(self) -> TokenSession:
        """What signs the requests of the server."""
        return token_session(self.sign_ins, self.definition)


def make_sign_ins(person: Person, folder: Path | None, of: ClientContext | None = None) -> SignIns:
    """Give the sign-ins of a run."""
    redactor = (of or ClientContext()).redactor
    of_person = person.desk, person.open_url, import_auth_requests, person.hear
    return SignIns(folder, *of_person, redactor)


@dataclass
class SignedIn:
    """Somebody has signed in to a server.

    Attributes:
        record: What came of it.
        due: The same once its time is over.
    """

    server: GuardedServer
    definition: ServerDefinition
    sign_ins: SignIns
    session: TokenSession
    record: SignInRecord
    due: SignInRecord = field(init=False)

    def __post_init__(self) -> None:
        self.due = self.record.model_copy(update={"expires_at": 1.0})

    @property
    def authority(self) -> Authority:
        return self.server.authority

    @property
    def kept(self) -> SignInRecord | None:
        """What is kept now."""
        return self.sign_ins.store.find(self.definition)


@asynccontextmanager
async def signed_in(folder: Path, context: ClientContext | None = None) -> AsyncIterator[SignedIn]:
    """Sign in to a server, with what is kept in a folder."""
    async with guarded() as server:
        definition = define(server.url, sign_in=oauth())
        sign_ins = make_sign_ins(Person(), folder, context)
        await sign_ins.sign_in(definition)
        session = token_session(sign_ins, definition)
        record = await session.record()
        assert record is not None
        yield SignedIn(server, definition, sign_ins, session, record)
        await sign_ins.aclose()


def token_session(sign_ins: SignIns, definition: ServerDefinition) -> TokenSession:
    """Give the session of a server that has a token of its own."""
    session = sign_ins.credentials(definition)
    assert isinstance(session, TokenSession)
    return session


@asynccontextmanager
async def deck(
    url: str, person: Person, folder: Path | None = None, **more: Any
) -> AsyncIterator[Deck]:
    """Run gemdeck with one server."""
    definition = define(url, **{"sign_in": oauth(), **more})
    watcher = Watcher()
    context = ClientContext(watcher, desk=person.desk)
    context.sign_ins = sign_ins = make_sign_ins(person, folder, context)
    try:
        async with running(definition, context=context) as (manager, seen):
            yield Deck(person, manager, seen, sign_ins, definition)
    finally:
        await sign_ins.aclose()


@asynccontextmanager
async def unsigned(
    person: Person | None = None, folder: Path | None = None, **settings: Any
) -> AsyncIterator[tuple[GuardedServer, SignIns, ServerDefinition]]:
    """Run a guarded server that nobody has signed in to, without a gemdeck around it."""
    async with guarded() as server:
        sign_ins = make_sign_ins(person or Person(), folder)
        yield server, sign_ins, define(server.url, sign_in=oauth(**settings))
        await sign_ins.aclose()


@asynccontextmanager
async def connected(
    folder: Path | None = None, **more: Any
) -> AsyncIterator[tuple[GuardedServer, Deck]]:
    """Run gemdeck with a guarded server that somebody has signed in to."""
    async with guarded(**more) as server, deck(server.url, Person(), folder) as one:
        await one.connect()
        yield server, one


@asynccontextmanager
async def guarded(**more: Any) -> AsyncIterator[GuardedServer]:
    """Run an authorization server and an MCP server that wants its tokens."""
    async with Authority() as authority, GuardedServer(authority=authority, **more) as server:
        yield server
