"""What a message brings along: resources of servers, and files and folders of the workspace."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tui.engine.chats.history import MAX_RESPONSE_MEDIA, media_problem
from tui.engine.chats.message import MessageContent, MessageError
from tui.engine.mcp.catalog.offered_tool import JsonObject, MediaPart, TextPart
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.manager import ServerManager
from tui.engine.workspace.reading import PathReader, PathReading, UnreadablePathError
from tui.engine.workspace.workspace import OutsideError, Workspace, WorkspacePath
from tui.model.frozen import dataclass
from tui.model.input.mentions import (
    MAX_MENTIONED,
    PathMention,
    ResourceMention,
    find_resource,
    mentions,
)
from tui.model.input.typed import nearest
from tui.model.servers import ServerId
from tui.text import clip, for_model, sanitize, sanitize_line

MAX_SHOWN: Final = 100
"""Characters of a name in a notice."""

_AS_TEXT: Final = "Write \\@ for an @ that is only text."

Ask = Callable[[ServerId], None]


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as its server knows it."""

    server: ServerId
    uri: str


Wanted = Sequence[Resource | PathMention]


class Attachments:
    """Finds and reads what messages mention.

    Args:
        servers: The servers.
        workspace: The opened folders.
    """

    def __init__(self, servers: ServerManager, workspace: Workspace) -> None:
        self._servers = servers
        self._workspace = workspace

    def wanted(self, text: str) -> Wanted:
        """Return what a text mentions; of its words after ``@`` any may be a path.

        Raises:
            MessageError: If it names a resource that is not there, or too much.
        """
        found = mentions(text, self._servers.catalogs)
        wanted = dict.fromkeys(
            Resource(one.server, self._uri(one)) if isinstance(one, ResourceMention) else one
            for one in found
        )
        _check_number(sum(isinstance(one, Resource) for one in wanted))
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
        found = await asyncio.to_thread(lambda: list(self._found(wanted)))
        _check_number(len(found))
        shown = [sanitize(text).strip()]
        parts: list[TextPart | MediaPart | JsonObject] = []
        if text.strip():
            parts.append(TextPart(for_model(text.strip())[0]))
        reader, media_left = PathReader(self._workspace), MAX_RESPONSE_MEDIA
        for one in found:
            if isinstance(one, Resource):
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
        servers = dict.fromkeys(one.server for one in found if isinstance(one, Resource))
        return MessageContent("\n\n".join(filter(None, shown)), tuple(parts), tuple(servers))

    def _found(self, wanted: Wanted) -> Iterator[Resource | WorkspacePath]:
        """Leave out the words that are no paths, and paths that were there before. Blocks."""
        seen: set[Resource | WorkspacePath] = set()
        for one in wanted:
            target = self._path(one) if isinstance(one, PathMention) else one
            if target is not None and target not in seen:
                seen.add(target)
                yield target

    def _path(self, mention: PathMention) -> WorkspacePath | None:
        for typed in dict.fromkeys((mention.path, mention.trimmed)):
            try:
                if (found := self._workspace.find(typed)) is not None:
                    return found
            except OutsideError as error:
                raise MessageError(f"@{clip(typed, MAX_SHOWN)} {error}.", _AS_TEXT) from error
        return None

    def _uri(self, mention: ResourceMention) -> str:
        """Return the URI of the resource that a mention names."""
        server, typed = mention.server, mention.uri
        try:
            self._servers.features(server)
        except ServerCallError as error:
            raise MessageError(str(error), "Send the message once it is ready.") from error
        catalog = self._servers.catalogs[server]
        if uri := find_resource(typed, catalog):
            return uri
        like = nearest(typed, (resource.uri for resource in catalog.resources))
        raise MessageError(
            f"{server} has no resource {clip(typed, MAX_SHOWN)}.",
            f"Did you mean @{server}:{like}?" if like else "F5 shows its resources.",
        )

    async def _read_resource(
        self, one: Resource, ask: Ask
    ) -> tuple[str, Sequence[TextPart | MediaPart]]:
        """Read a resource: a line for the screen, and the parts for the model."""
        ask(one.server)
        try:
            reading = await self._servers.features(one.server).read_resource(one.uri)
        except ServerCallError as error:
            raise MessageError(f"{one.uri} of {one.server} could not be read: {error}") from error
        if reading.problem:
            words = f"{one.uri} of {one.server} was not sent: {reading.problem}."
            raise MessageError(words, "Send the message without it.")
        size = f"{len(reading.content.text):,} characters" if reading.content.text else ""
        what = ", ".join(part for part in (size, *reading.content.blobs) if part) or "empty"
        line = f"[{sanitize_line(one.uri)} of {one.server}: {what}] {reading.remark}".strip()
        return line, reading.parts


def _read_path(reader: PathReader, found: WorkspacePath) -> PathReading:
    try:
        return reader.read(found)
    except UnreadablePathError as error:
        raise MessageError(f"@{clip(found.shown, MAX_SHOWN)} was not sent: {error}.") from error


def _check_media(source: Resource | WorkspacePath, part: MediaPart, media_left: int) -> None:
    if problem := media_problem(part, media_left):
        name = source.uri if isinstance(source, Resource) else f"@{source.shown}"
        words = f"{clip(name, MAX_SHOWN)} was not sent. {problem}"
        raise MessageError(words, "Send the message without it.")


def _check_number(number: int) -> None:
    if number > MAX_MENTIONED:
        words = f"A message can bring {MAX_MENTIONED} resources and files along, not more."
        raise MessageError(words, "Send several messages.")
