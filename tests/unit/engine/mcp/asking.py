"""What tests of servers that ask back share: a user who answers, and a model that answers."""

# ruff: noqa: ANN401 - what is passed on is whatever it was

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from tests.unit.engine.mcp.support import Watcher, eventually, ready, script
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk, ServerRequest
from tui.engine.mcp.context import ClientContext, Generation, GenerationError, Generator, Prompt
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.session.features import Features
from tui.model.events import Event, NoticeRaised, RequestRaised, RequestSettled
from tui.model.requests import PendingRequest, Reply, ReplyAction
from tui.model.servers import ProtocolEra, ServerId

R_ = TypeVar("R_", bound=ServerRequest)
ERAS = [ProtocolEra.HANDSHAKE, ProtocolEra.STATELESS]
handshake = pytest.mark.parametrize("server", [ProtocolEra.HANDSHAKE], indirect=True)
stateless = pytest.mark.parametrize("server", [ProtocolEra.STATELESS], indirect=True)


HELLO = Generation("hello", (), "scripted")


@dataclass
class ScriptedModel:
    """A model that says what a test wants, and remembers what it was asked."""

    answer: Generation | GenerationError = HELLO
    asked: list[Prompt] = field(default_factory=list)
    model: str = "scripted"

    async def generate(self, request: Prompt) -> Generation:
        self.asked.append(request)
        if isinstance(self.answer, GenerationError):
            raise self.answer
        return self.answer


class Stage:
    """Servers that may ask, and a user who sees and answers."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.desk = Desk(self.events.append)
        self.model = ScriptedModel()
        self.opened: list[str] = []
        self.context = ClientContext(
            self.events.append,
            self.desk,
            generator=Generator(lambda: self.model.model, self.model.generate),
            open_url=self.open_url,
        )
        self.manager: ServerManager
        self.watcher: Watcher

    async def open_url(self, url: str) -> bool:
        self.opened.append(url)
        return "nobrowser" not in url

    def pending(self) -> list[PendingRequest]:
        """Give the questions on the screen."""
        pending: dict[str, PendingRequest] = {}
        for event in self.events:
            if isinstance(event, RequestRaised):
                pending[event.request.id] = event.request
            elif isinstance(event, RequestSettled):
                pending.pop(event.request, None)
        return list(pending.values())

    def raised(self) -> int:
        """Count the questions that were ever shown."""
        return len({e.request.id for e in self.events if isinstance(e, RequestRaised)})

    async def asked(self, kind: type[R_]) -> R_:
        """Wait until a question of a kind is on the screen."""
        await eventually(lambda: any(isinstance(r, kind) for r in self.pending()))
        return next(r for r in self.pending() if isinstance(r, kind))

    async def answer(
        self, kind: type[R_], action: ReplyAction = ReplyAction.ACCEPT, **content: Any
    ) -> R_:
        """Wait for a question and answer it."""
        request = await self.asked(kind)
        self.desk.answer(request.id, Reply(action, **content))
        await eventually(lambda: request not in self.pending())
        return request

    async def quiet(self) -> None:
        """Wait until no question is on the screen."""
        await eventually(lambda: not self.pending())

    def notices(self) -> list[str]:
        """Give what the user was told."""
        return [e.notice.text for e in self.events if isinstance(e, NoticeRaised)]

    def features(self, server: str = "asking") -> Features:
        """Give what a server can be asked for."""
        return self.manager.features(ServerId(server))

    async def begin(self, server: str = "asking") -> None:
        """Forget what was before."""
        await self.quiet()
        self.events.clear()
        self.opened.clear()
        self.watcher.events[:] = [self.watcher.last(server)]
        vars(self.model).update(vars(ScriptedModel()))

    @property
    def era(self) -> ProtocolEra:
        """The era that the server is spoken to in."""
        info = self.watcher.last("asking").info
        assert info is not None
        return info.era


def asking(era: ProtocolEra, **more: Any) -> AbstractAsyncContextManager[Stage]:
    """Run the server of `tests/servers/asking.py` in an era."""
    return staged(script("asking", protocol=era), **more)


@asynccontextmanager
async def staged(
    definition: ServerDefinition, stage: Stage | None = None, **more: Any
) -> AsyncIterator[Stage]:
    """Run one server that may ask, until it is ready."""
    stage = stage or Stage()
    async with ready(definition, context=stage.context, **more) as (manager, watcher):
        stage.manager, stage.watcher = manager, watcher
        yield stage
