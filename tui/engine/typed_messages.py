"""Sends what the user typed; prompts after ``/`` and resources after ``@`` come from servers."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from tui.engine.bus import Publish
from tui.engine.chat.turn import Message
from tui.engine.feature_commands import FeatureCommands
from tui.engine.mcp.manager import ServerManager
from tui.engine.tasks import TaskSet
from tui.model.catalog import PromptView
from tui.model.chat import NO_TURN, Severity, TurnOutcome
from tui.model.events import Notice, NoticeRaised, TurnFinished
from tui.model.servers import ServerId
from tui.model.typed import (
    command_name,
    missing_arguments,
    nearest,
    references,
    typed_arguments,
)
from tui.text import clip, sanitize_line

MAX_SHOWN: Final = 100
"""Characters of an unknown command that a notice repeats."""


class TypedMessages:
    """Sends typed messages in their order.

    Args:
        servers: The servers.
        features: Renders prompts and reads resources.
        send: Sends a message to the model.
        publish: Takes notices, and messages that come back.
    """

    def __init__(
        self,
        servers: ServerManager,
        features: FeatureCommands,
        send: Callable[[Message], None],
        publish: Publish,
    ) -> None:
        self._servers = servers
        self._features = features
        self._deliver = send
        self._publish = publish
        self._tasks = TaskSet("a message could not be sent")
        self._last: asyncio.Task[None] | None = None

    def send(self, text: str) -> None:
        """Send a message after those sent before."""
        if not self._tasks and not command_name(text) and not references(text):
            self._say(text)
        else:
            self._last = self._tasks.start(self._try_to_send(text, self._last))

    async def wait(self) -> None:
        """Wait until all messages have been sent or come back."""
        await self._tasks.wait()

    async def aclose(self) -> None:
        await self._tasks.aclose()

    async def _try_to_send(self, text: str, before: asyncio.Task[None] | None) -> None:
        try:
            await self._send(text, before)
        except Exception as error:
            self._return(text, f"The message failed unexpectedly ({type(error).__name__}).")
            raise

    async def _send(self, text: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        if name := command_name(text):
            await self._send_prompt(name, text)
            return
        wanted = [(ServerId(server), uri) for server, uri in references(text)]
        if late := [server for server, _ in wanted if server in self._servers.waiting_for()]:
            self._return(
                text, f"{late[0]} is still starting.", "Send the message once it is ready."
            )
        elif not (found := [one for one in wanted if self._offers(*one)]):
            self._say(text)
        elif not await self._features.deliver_resources(found, text):
            self._give_back(text)

    async def _send_prompt(self, name: str, text: str) -> None:
        prompts = self._prompts()
        if name not in prompts:
            self._return(text, f"There is no command /{clip(name, MAX_SHOWN)}.", self._advice(name))
            return
        server, prompt = prompts[name]
        values = typed_arguments(text, prompt.arguments)
        if prompt.problem:
            self._return(text, f"/{name} cannot be sent: {prompt.problem}.")
        elif missing := missing_arguments(values, prompt.arguments):
            example = " ".join(f'--{one}="…"' for one in missing)
            self._return(text, f"/{name} needs {', '.join(missing)}.", f"Type /{name} {example}")
        elif not await self._features.deliver_prompt(server, name, values):
            self._give_back(text)

    def _advice(self, name: str) -> str:
        """Say what else a command could be."""
        if like := nearest(name, self._prompts()):
            return f"Did you mean /{like}?"
        if late := ", ".join(self._servers.waiting_for()):
            return f"Prompts of {late} come once it is ready."
        return "F4 shows the prompts of your servers."

    def _prompts(self) -> Mapping[str, tuple[ServerId, PromptView]]:
        return {
            prompt.name: (server, prompt)
            for server, catalog in self._servers.catalogs.items()
            for prompt in catalog.prompts
        }

    def _offers(self, server: ServerId, uri: str) -> bool:
        """Whether a server lists a resource, or has templates by which it may have it."""
        catalog = self._servers.catalogs.get(server)
        if catalog is None:
            return False
        return bool(catalog.templates) or any(r.uri == uri for r in catalog.resources)

    def _say(self, text: str) -> None:
        """Send a text to the model as it is."""
        message = Message.of_text(text)
        if message.shown.strip():
            self._deliver(message)

    def _return(self, text: str, words: str, advice: str = "") -> None:
        """Give a message back that was not sent, and say why."""
        notice = Notice(Severity.ERROR, sanitize_line(words), sanitize_line(advice))
        self._publish(NoticeRaised(notice))
        self._give_back(text)

    def _give_back(self, text: str) -> None:
        """Let the text return to the message box."""
        self._publish(TurnFinished(NO_TURN, TurnOutcome.FAILED, text))
