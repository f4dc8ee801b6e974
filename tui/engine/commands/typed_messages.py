"""Sends what the user typed, with what it names: prompts, resources and files."""

from collections.abc import Mapping
from functools import partial
from itertools import chain

from tui.engine.chats.conversations import Conversations
from tui.engine.chats.message import Message, MessageContent, MessageError, give_back
from tui.engine.commands.attachments import MAX_SHOWN, Ask, Attachments, Resource, Wanted
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.manager import ServerManager
from tui.engine.workspace.workspace import Workspace
from tui.model.catalog import PromptView
from tui.model.chat import ConversationId
from tui.model.input.mentions import typed_mention
from tui.model.input.own_commands import OWN_COMMANDS, command_words
from tui.model.input.typed import (
    TypedPrompt,
    find_prompt,
    nearest,
    typed_command,
    usage,
)
from tui.model.servers import ServerId
from tui.text import clip, for_model, sanitize


class TypedMessages:
    """Sends messages; what they name is fetched once their turn has come.

    Args:
        servers: The servers.
        workspace: The opened folders.
        conversations: Take the messages.
    """

    def __init__(
        self,
        servers: ServerManager,
        workspace: Workspace,
        conversations: Conversations,
    ) -> None:
        self._servers = servers
        self._attachments = Attachments(servers, workspace)
        self._conversations = conversations

    def send(self, text: str, data: str = "", key: ConversationId | None = None) -> None:
        """Send what the user typed, or give it back if it names what is not there.

        While servers are starting, that is decided in its turn.

        Args:
            text: What was typed.
            data: A text that goes along; names in it count for nothing.
            key: The conversation; None for the current one.
        """
        conversation = self._conversations.get(key)
        if conversation is None or not _joined(data, text).strip():
            return
        try:
            is_plain = not self._servers.waiting_for() and self._named(text) is None
        except MessageError as error:
            give_back(conversation.publish, text, error)
        else:
            whole = Message(_joined(data, text)) if is_plain else self._later(text, data)
            conversation.send(whole)

    def send_prompt(self, server: ServerId, prompt: str, values: Mapping[str, str]) -> None:
        typed = TypedPrompt(server, PromptView(prompt), values)
        text = typed_command(prompt, values)
        message = Message(text, partial(self._render, typed, text, ""))
        self._conversations.current.send(message)

    def send_resource(self, server: ServerId, uri: str, words: str) -> None:
        """Send a text with a resource, and with those that it names."""
        conversation = self._conversations.current
        try:
            named = self._named(words)
            if isinstance(named, TypedPrompt):
                raise MessageError(
                    "A resource cannot go with a prompt.", "Send one, then the other."
                )
        except MessageError as error:
            give_back(conversation.publish, words, error)
        else:
            wanted = list(dict.fromkeys([*(named or ()), Resource(server, uri)]))
            text = f"{words} {typed_mention(uri, server)}".strip()
            conversation.send(Message(text, partial(self._attachments.read, wanted, words)))

    def _later(self, text: str, data: str) -> Message:
        """Return a message of which it is decided in its turn what it names."""

        async def fetch(ask: Ask) -> MessageContent:
            named = self._named(text)
            if named is None:
                return MessageContent.of_text(_joined(data, text))
            if not isinstance(named, TypedPrompt):
                return await self._attachments.read(named, _joined(data, text), ask)
            return await self._render(named, text, data, ask)

        return Message(text, fetch)

    def _named(self, text: str) -> TypedPrompt | Wanted | None:
        """Return what a text names, or None if it is only a text.

        Raises:
            MessageError: If it names what is not there.
        """
        if (prompt := find_prompt(text, self._servers.catalogs.items())) is not None:
            name = prompt.prompt.name
            if prompt.prompt.problem:
                raise MessageError(f"/{name} cannot be sent: {prompt.prompt.problem}.")
            if prompt.asks_help:
                words = prompt.prompt.description or f"This is a prompt of {prompt.server}."
                raise MessageError(clip(words, MAX_SHOWN), f"Type {usage(prompt.prompt)}")
            if missing := prompt.missing:
                words = f"/{name} needs {', '.join(missing)}."
                example = typed_command(name, dict.fromkeys(missing, "…"))
                raise MessageError(words, f"Type {example}")
            return prompt
        name, _ = command_words(text)
        if name in OWN_COMMANDS:
            raise MessageError(f"/{name} works on the screen only.")
        if name:
            words = f"There is no command /{clip(name, MAX_SHOWN)}."
            raise MessageError(words, self._advice(name))
        return self._attachments.wanted(text) or None

    def _advice(self, name: str) -> str:
        """Say what else a command could be."""
        catalogs = self._servers.catalogs.values()
        prompts = (prompt.name for catalog in catalogs for prompt in catalog.prompts)
        if like := nearest(name, chain(OWN_COMMANDS, prompts)):
            return f"Did you mean /{like}?"
        if late := ", ".join(self._servers.waiting_for()):
            return f"Prompts of {late} come once it is ready."
        if not self._conversations.attended:
            return "gemdeck mcp show SERVER lists the prompts of a server."
        return "F4 shows the prompts of your servers."

    async def _render(self, typed: TypedPrompt, text: str, data: str, ask: Ask) -> MessageContent:
        """Let a server render a prompt; what no argument takes goes after it."""
        server, name = typed.server, typed.prompt.name
        ask(server)
        try:
            own = self._servers.registry.own_prompt_name(server, name)
            features = self._servers.features(server)
            rendered = await features.get_prompt(own, dict(typed.values))
        except ServerCallError as error:
            raise MessageError(f"/{name} of {server} was not sent: {error}") from error
        more = _joined(typed.rest, data)
        added = (TextPart(for_model(more)[0]),) if more else ()
        shown = _joined(sanitize(text), rendered.shown, sanitize(more))
        return MessageContent(shown, (*rendered.parts, *added), (server,), rendered.before)


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
