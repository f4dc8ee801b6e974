"""Sends what the user typed, with what it names: prompts, resources and files."""

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from tui.engine.chats.conversations import Conversation, Conversations
from tui.engine.chats.feature_commands import FeatureCommands
from tui.engine.chats.history import MAX_RESPONSE_MEDIA, media_problem
from tui.engine.chats.turn import Ask, Message, MessageContent, MessageError, give_back
from tui.engine.files.paths import GEMINI_FOLDER
from tui.engine.mcp.catalog.offered_tool import JsonObject, MediaPart, TextPart, ToolCallError
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.manager import ServerManager
from tui.engine.settings.prohibitions import key_table
from tui.engine.workspace import (
    OutsideError,
    PathReader,
    PathReading,
    UnreadablePathError,
    Workspace,
    WorkspacePath,
)
from tui.model.chat import ConversationId
from tui.model.input.mentions import (
    MAX_MENTIONED,
    Mention,
    PathMention,
    ResourceMention,
    as_sent,
    find_resource,
    mentions,
    typed_mention,
)
from tui.model.input.own_commands import OWN_COMMANDS, SKILL, command_words, find_own_command
from tui.model.input.typed import TypedPrompt, find_prompt, nearest, typed_command, usage
from tui.model.servers import ServerId
from tui.text import clip, counted, noted_for_model, sanitize, sanitize_line

MAX_SHOWN: Final = 100
"""Characters of a name in a notice."""

_SHELL: Final = re.compile(r"!(?:[\w./~]|\s*\Z)")
"""How a command for a shell begins, as gemini-cli has one."""

_LINES: Final = re.compile(r"(?::\d[\d:,-]*|#L\d[\dL-]*)\Z")
"""Which lines of a file are meant; all of it is sent."""

_LIKE_FILE: Final = re.compile(r"\A(?:[\w.*~-]*/)*[\w.*-]+\.[A-Za-z]\w{0,3}\Z")

_AS_TEXT: Final = "Type \\@ for a plain @."


Wanted = Sequence[Mention]
"""Paths, and resources with the URI by which their server knows them."""


class Attachments:
    """Finds and reads what messages mention.

    Args:
        servers: The servers.
        workspace: The opened folders.
    """

    def __init__(self, servers: ServerManager, workspace: Workspace) -> None:
        self._servers, self._workspace = servers, workspace

    def wanted(self, text: str) -> Wanted:
        """Return what a text mentions; of its words after ``@`` any may be a path.

        Raises:
            MessageError: If it names a resource that is not there, or too much.
        """
        wanted = dict.fromkeys(
            replace(one, uri=self._uri(one)) if isinstance(one, ResourceMention) else one
            for one in mentions(text, self._servers.catalogs)
        )
        _check_number(sum(isinstance(one, ResourceMention) for one in wanted))
        return list(wanted)

    async def read(self, wanted: Wanted, text: str, ask: Ask) -> MessageContent:
        """Read what is there; it goes after the text. A word that is no path stays text.

        Args:
            wanted: What to read.
            text: The text as it is sent.
            ask: Called with each server before it is asked.

        Raises:
            MessageError: If something cannot be read or is too large.
        """
        missing = list[str]()
        found = await asyncio.to_thread(lambda: list(self._found(wanted, missing)))
        _check_number(len(found))
        shown = [sanitize(text).strip()]
        parts: list[TextPart | MediaPart | JsonObject] = []
        if text.strip():
            parts.append(TextPart(noted_for_model(text.strip())))
        reader, media_left = PathReader(self._workspace), MAX_RESPONSE_MEDIA
        for one in found:
            if isinstance(one, ResourceMention):
                line, more = await self._read_resource(one, ask)
            else:
                reading = await asyncio.to_thread(_read_path, reader, one)
                line, more = reading.shown, reading.parts
            for part in more:
                if isinstance(part, MediaPart):
                    _check_media(one, part, media_left)
                    media_left -= len(part.data)
            shown.append(line)
            parts += more
        servers = dict.fromkeys(one.server for one in found if isinstance(one, ResourceMention))
        text = "\n\n".join(filter(None, shown))
        return MessageContent(text, tuple(parts), tuple(servers), missing=tuple(missing))

    def _found(
        self, wanted: Wanted, missing: list[str]
    ) -> Iterator[ResourceMention | WorkspacePath]:
        """Leave out the words that are no paths, and paths that were there before. Blocks.

        Words that look like the name of a file are added to `missing`.
        """
        seen: set[ResourceMention | WorkspacePath] = set()
        for one in wanted:
            target = self._path(one) if isinstance(one, PathMention) else one
            if target is not None and target not in seen:
                seen.add(target)
                yield target
            elif target is None and isinstance(one, PathMention):
                missing += _LIKE_FILE.findall(one.trimmed)

    def _path(self, mention: PathMention) -> WorkspacePath | None:
        word = mention.trimmed
        for typed in dict.fromkeys((mention.path, word, _LINES.sub("", word))):
            try:
                if (found := self._workspace.find(typed)) is not None:
                    return found
            except OutsideError as error:
                words = f"@{clip(typed, MAX_SHOWN)} {error}."
                raise MessageError(words, f"{error.advice} {_AS_TEXT}".strip()) from error
        return None

    def _uri(self, mention: ResourceMention) -> str:
        """Return the URI of the resource that a mention names."""
        server, typed = mention.server, mention.uri
        if away := self._servers.away_words(server):
            raise MessageError(away, "Send the message once the server is ready.")
        catalog = self._servers.catalogs[server]
        if uri := find_resource(typed, catalog):
            return uri
        like = nearest(typed, (resource.uri for resource in catalog.resources))
        advice = f"Did you mean @{server}:{like}?" if like else "F5 shows its resources."
        raise MessageError(f"{server} has no resource {clip(typed, MAX_SHOWN)}.", advice)

    async def _read_resource(
        self, one: ResourceMention, ask: Ask
    ) -> tuple[str, Sequence[TextPart | MediaPart]]:
        """Read a resource: a line for the screen, and the parts for the model."""
        ask(one.server)
        try:
            reading = await (await self._servers.awake(one.server)).read_resource(one.uri)
        except ServerCallError as error:
            raise MessageError(f"{one.uri} of {one.server} could not be read: {error}") from error
        if reading.problem:
            words = f"{one.uri} of {one.server} was not sent: {reading.problem}."
            raise MessageError(words, "Send the message without it.")
        size = counted(len(reading.content.text), "character") if reading.content.text else ""
        what = ", ".join(part for part in (size, *reading.content.blobs) if part) or "empty"
        line = f"[{sanitize_line(one.uri)} of {one.server}: {what}] {reading.remark}".strip()
        return line, reading.parts


def _read_path(reader: PathReader, found: WorkspacePath) -> PathReading:
    try:
        return reader.read(found)
    except UnreadablePathError as error:
        name = clip(found.shown or ".", MAX_SHOWN)
        raise MessageError(f"@{name} was not sent: {error}.") from error


def _check_media(source: ResourceMention | WorkspacePath, part: MediaPart, media_left: int) -> None:
    if problem := media_problem(part, media_left):
        name = source.uri if isinstance(source, ResourceMention) else f"@{source.shown}"
        words = f"{clip(name, MAX_SHOWN)} was not sent. {problem}"
        raise MessageError(words, "Send the message without it.")


def _check_number(number: int) -> None:
    if number > MAX_MENTIONED:
        words = f"A message can include at most {MAX_MENTIONED} resources and files."
        raise MessageError(words, "Send several messages.")


class TypedMessages:
    """Sends messages; what they name is fetched once their turn has come.

    Args:
        servers: The servers.
        features: Has the opened folders, and the prompt that was rendered last.
        conversations: Take the messages.
    """

    def __init__(
        self, servers: ServerManager, features: FeatureCommands, conversations: Conversations
    ) -> None:
        self._servers, self._features = servers, features
        self._attachments = Attachments(servers, features.workspace)
        self._conversations = conversations

    def send(self, text: str, key: ConversationId | None = None, *, data: str = "") -> None:
        """Send what the user typed, or give it back if it names what is not there.

        While servers are starting, that is decided in its turn.

        Args:
            text: What was typed.
            key: The conversation; None for the current one.
            data: A text that goes along; names in it count for nothing.
        """
        conversation = self._conversations.get(key)
        if conversation is None or not _joined(data, text).strip():
            return
        if command_words(text)[0] == SKILL:
            conversation.send(Message(text, partial(self._load_skill, conversation, text, data)))
            return
        try:
            is_plain = not self._servers.waiting_for() and self._named(text) is None
        except MessageError as error:
            give_back(conversation.publish, text, error)
        else:
            is_plain = is_plain and self._sent(text) == text
            conversation.send(Message(_joined(data, text)) if is_plain else self._later(text, data))

    def send_rendered(self, token: str) -> None:
        """Send the prompt that was rendered last for the user to look at, if it is this one."""
        if self._features.rendered is not None and self._features.rendered[0] == token:
            self._conversations.current.send(self._features.rendered[1])

    def send_resource(self, server: ServerId, uri: str, words: str) -> None:
        """Send a text with a resource, and with those that it names."""
        conversation = self._conversations.current
        try:
            named = self._named(words)
            if isinstance(named, TypedPrompt):
                reason = "A resource cannot be sent with a prompt."
                raise MessageError(reason, "Send one, then the other.")
        except MessageError as error:
            give_back(conversation.publish, words, error)
        else:
            wanted = list(dict.fromkeys([*(named or ()), ResourceMention(server, uri)]))
            text = f"{words} {typed_mention(uri, server)}".strip()
            read = partial(self._attachments.read, wanted, self._sent(words))
            conversation.send(Message(text, read))

    def _sent(self, text: str) -> str:
        """Return what a text says; without a screen nothing is pasted, and all is as written."""
        return as_sent(text) if self._conversations.attended else text

    async def _load_skill(
        self, conversation: Conversation, text: str, data: str, ask: Ask
    ) -> MessageContent:
        """Load a skill for the user, once its turn has come; what is typed after it goes along."""
        _, typed = command_words(self._sent(text))
        context = conversation.context
        if context is None or not typed:
            raise MessageError(f"Type /{SKILL} SERVER:SKILL")
        skills = context.setup.skills
        name = skills.named(typed)
        try:
            ask(server := skills.find(name)[0].id)
            loaded = await skills.load(name, context.opened, by_user=True)
        except (ToolCallError, ServerCallError) as error:
            raise MessageError(f"{clip(name, MAX_SHOWN)} was not loaded. {error}") from error
        words = _joined(typed.removeprefix(name).strip(), data)
        more = (TextPart(noted_for_model(words)),) if words else ()
        shown = f"{sanitize(text)}\n\n{loaded.display.splitlines()[0]}"
        return MessageContent(shown, (*loaded.parts, *more), (server,))

    def _later(self, text: str, data: str) -> Message:
        """Return a message of which it is decided in its turn what it names."""

        async def fetch(ask: Ask) -> MessageContent:
            named, words = self._named(text), _joined(data, self._sent(text))
            if named is None:
                return MessageContent.of_text(words)
            if not isinstance(named, TypedPrompt):
                return await self._attachments.read(named, words, ask)
            return await self._render(named, text, data, ask)

        return Message(text or data, fetch)

    def _named(self, text: str) -> TypedPrompt | Wanted | None:
        """Return what a text names, or None if it is only a text.

        Raises:
            MessageError: If it names what is not there.
        """
        if (prompt := find_prompt(self._sent(text), self._servers.catalogs.items())) is not None:
            name = prompt.prompt.name
            if prompt.prompt.problem:
                raise MessageError(f"/{name} cannot be sent: {prompt.prompt.problem}.")
            if prompt.asks_help:
                words = prompt.prompt.description or f"This is a prompt of {prompt.server}."
                raise MessageError(clip(words, MAX_SHOWN), f"Type {usage(prompt.prompt)}")
            if missing := prompt.missing:
                typed = typed_command(name, dict.fromkeys(missing, "…"))
                raise MessageError(f"/{name} needs {', '.join(missing)}.", f"Type {typed}")
            return prompt
        name, _ = command_words(text)
        if (own := find_own_command(text)) is not None:
            raise MessageError(f"/{own.words[0]} works only on the screen.")
        if name:
            words = f"There is no command /{clip(name, MAX_SHOWN)}."
            raise MessageError(words, self._advice(name))
        if self._conversations.attended and _SHELL.match(text):
            words = f"gemdeck has no shell: {clip(text, MAX_SHOWN)} was not run."
            raise MessageError(words, "Put a space after the ! to send it as a message.")
        return self._attachments.wanted(text) or None

    def _advice(self, name: str) -> str:
        """Say what else a command could be, or what serves for one of gemini-cli's."""
        if (serving := key_table()["commands"].get(name)) is not None:
            return str(serving)
        own = f"{GEMINI_FOLDER}/commands/{name.replace(':', '/')}.toml"
        if any(os.path.isfile(base / own) for base in (Path.home(), Path.cwd())):  # noqa: PTH113 - never fails
            return f"{own} works only in gemini-cli; here, servers' prompts are commands (F4)."
        catalogs = self._servers.catalogs.values()
        prompts = (prompt.name for catalog in catalogs for prompt in catalog.prompts)
        if like := nearest(name, chain(OWN_COMMANDS, prompts)):
            return f"Did you mean /{like}?"
        if late := ", ".join(self._servers.waiting_for()):
            return f"Prompts of {late} appear once it is ready."
        if not self._conversations.attended:
            return "gemdeck mcp show SERVER lists the prompts of a server."
        return "F4 shows the prompts of your servers."

    async def _render(self, typed: TypedPrompt, text: str, data: str, ask: Ask) -> MessageContent:
        """Let a server render a prompt; what no argument takes goes after it."""
        server, name = typed.server, typed.prompt.name
        ask(server)
        try:
            rendered = await self._servers.render_prompt(server, name, typed.values)
        except ServerCallError as error:
            raise MessageError(f"/{name} of {server} was not sent: {error}") from error
        return MessageContent.of_prompt(text, server, rendered, _joined(typed.rest, data))


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
