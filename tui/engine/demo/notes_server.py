"""The bundled notes server: an MCP server over stdio, ``python -m tui.engine.demo.notes_server``.

It keeps its notes in SQLite (see `tui.engine.demo.notes`) and shows each kind of thing that a
server can offer: tools that read, write and delete, prompts with completed arguments,
resources and a resource template.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, ParamSpec, TypeVar

from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import (
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    EmbeddedResource,
    InputRequiredResult,
    PromptReference,
    Resource,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

from tui import __version__
from tui.engine.demo.definitions import notes_path
from tui.engine.demo.handshake import LIST_CHANGES, HandshakeCapabilities
from tui.engine.demo.notes import (
    MAX_NOTE_LENGTH,
    MAX_NOTES,
    Note,
    Notebook,
    NotesError,
)

MAX_LISTED: Final = 20
"""Recent notes that are listed as resources."""

MAX_COMPLETIONS: Final = 100
"""Values that one completion may hold, as the spec says."""

DEFAULT_LIMIT: Final = 20
"""Notes that `list_notes` gives when no limit is asked for."""

INSTRUCTIONS: Final = (
    "A small notebook on the user's computer. Notes have a number, a text and tags. Use the "
    "numbers that list_notes and search_notes give when you update or delete a note."
)

STYLES: Final = ("bullets", "paragraph", "haiku")
"""Ways in which `summarize_notes` may ask for its summary."""

MAX_TITLE: Final = 60
"""Longest title of a note's resource, in characters."""

ALL_NOTES: Final = "notes://all"
"""The resource that holds the whole notebook."""

MARKDOWN: Final = "text/markdown"

Text = Annotated[str, Field(description="What the note says", max_length=MAX_NOTE_LENGTH)]
Number = Annotated[int, Field(description="The note's number", ge=1)]
NoteContext = Context[Any, Any]

P = ParamSpec("P")
T = TypeVar("T")


class NoteData(BaseModel):
    """One note in structured output."""

    id: int
    text: str
    tags: list[str]
    created: str
    updated: str


class NoteList(BaseModel):
    """Notes in structured output, newest first; `total` counts those that were left out too."""

    notes: list[NoteData]
    total: int


class NotesServer(MCPServer[Any]):
    """An MCP server whose recent notes are listed as resources."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(
            "gemdeck-notes",
            title="Notes",
            instructions=INSTRUCTIONS,
            version=__version__,
            log_level="WARNING",
            middleware=[HandshakeCapabilities(LIST_CHANGES)],
        )
        self._notebook = notebook

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: NoteContext | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; a refusal of the notebook keeps its own words, without the SDK's prefix."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ToolError):
                raise error.__cause__ from None
            raise

    async def list_resources(self) -> list[Resource]:
        """List the notebook and its most recent notes."""
        notes = await run_sync(self._notebook.recent, None, MAX_LISTED)
        return [*await super().list_resources(), *(_resource(note) for note in notes)]


def build_server(notebook: Notebook) -> NotesServer:
    """Make the server of a notebook."""
    server = NotesServer(notebook)
    _add_reading_tools(server, notebook)
    _add_writing_tools(server, notebook)
    _add_resources(server, notebook)
    _add_prompts(server, notebook)
    _add_completion(server, notebook)
    return server


def _add_reading_tools(server: NotesServer, notebook: Notebook) -> None:
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    @server.tool(title="List notes", annotations=reads)
    def list_notes(
        tag: Annotated[str | None, Field(description="Only notes with this tag")] = None,
        limit: Annotated[int, Field(description="How many at most", ge=1, le=MAX_NOTES)] = (
            DEFAULT_LIMIT
        ),
    ) -> Annotated[CallToolResult, NoteList]:
        """List the notes in the notebook, newest first."""
        return _list_result(_attempt(notebook.recent, tag), limit)

    @server.tool(title="Search notes", annotations=reads)
    def search_notes(
        query: Annotated[str, Field(description="Words that a note must contain", min_length=1)],
    ) -> Annotated[CallToolResult, NoteList]:
        """Find the notes that contain all the given words in their text or tags."""
        return _list_result(_attempt(notebook.search, query), MAX_NOTES)


def _add_writing_tools(server: NotesServer, notebook: Notebook) -> None:
    adds = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    )
    destroys = ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    )

    @server.tool(title="Add a note", annotations=adds)
    async def add_note(
        text: Text,
        ctx: NoteContext,
        tags: Annotated[tuple[str, ...], Field(description="Words to find it by")] = (),
    ) -> Annotated[CallToolResult, NoteData]:
        """Write a new note into the notebook."""
        note = await run_sync(_attempt, notebook.add, text, tags)
        await _announce_list_change(ctx)
        return _note_result("Added", note)

    @server.tool(title="Update a note", annotations=destroys)
    async def update_note(
        id: Number,  # noqa: A002 - the argument's name on the wire
        text: Text,
        ctx: NoteContext,
    ) -> Annotated[CallToolResult, NoteData]:
        """Replace the text of a note; its tags stay."""
        note = await run_sync(_attempt, notebook.update, id, text)
        await ctx.notify_resource_updated(_uri(note.id))
        await _announce_list_change(ctx)
        return _note_result("Updated", note)

    @server.tool(title="Delete a note", annotations=destroys)
    async def delete_note(
        id: Number,  # noqa: A002 - the argument's name on the wire
        ctx: NoteContext,
    ) -> Annotated[CallToolResult, NoteData]:
        """Delete a note for good."""
        note = await run_sync(_attempt, notebook.delete, id)
        await _announce_list_change(ctx)
        return _note_result("Deleted", note)


def _add_resources(server: NotesServer, notebook: Notebook) -> None:
    @server.resource(ALL_NOTES, name="all-notes", title="All notes", mime_type=MARKDOWN)
    def all_notes() -> str:
        """The whole notebook as one Markdown page."""
        return _page(notebook.recent())

    @server.resource("notes://note/{id}", name="note", title="A note", mime_type=MARKDOWN)
    def one_note(id: str) -> str:  # noqa: A002 - the variable of the template
        """One note by its number, as Markdown."""
        try:
            return _markdown(notebook.get(int(id)))
        except (ValueError, NotesError) as error:
            raise ResourceNotFoundError(f"There is no note {id[:20]!r}.") from error


def _add_prompts(server: NotesServer, notebook: Notebook) -> None:
    @server.prompt(title="Summarize my notes")
    def summarize_notes(
        tag: Annotated[str, Field(description="Only notes with this tag")] = "",
        style: Annotated[str, Field(description=f"One of {', '.join(STYLES)}")] = STYLES[0],
    ) -> list[str | EmbeddedResource]:
        """Sum up the notes, all of them or those with one tag."""
        which = f"my notes tagged {tag}" if tag else "my notes"
        form = {"paragraph": "one paragraph", "haiku": "a haiku"}.get(style, "a few bullets")
        notes = _attempt(notebook.recent, tag or None)
        return [f"Summarize {which} as {form}. The notes are attached.", _attached(notes)]

    @server.prompt(title="Plan my day")
    def plan_day(
        focus: Annotated[str, Field(description="What matters most today")],
    ) -> list[str | EmbeddedResource]:
        """Make a plan for today out of the notes."""
        request = (
            f"Plan my day with a focus on {focus}. Use my notes, which are attached: order what "
            "is to do, name at most five steps, and say what can wait."
        )
        return [request, _attached(_attempt(notebook.recent))]


def _add_completion(server: NotesServer, notebook: Notebook) -> None:
    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator] # untyped in the SDK
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,  # noqa: ARG001 - part of the SDK's signature
    ) -> Completion | None:
        match ref, argument.name:
            case PromptReference(name="summarize_notes"), "style":
                values: Sequence[str] = STYLES
            case (PromptReference(name="summarize_notes"), "tag") | (PromptReference(), "focus"):
                values = await run_sync(notebook.tags)
            case ResourceTemplateReference(uri="notes://note/{id}"), "id":
                values = [str(note.id) for note in await run_sync(notebook.recent)]
            case _:
                return None
        typed = argument.value.casefold()
        fitting = [value for value in values if value.startswith(typed)]
        return Completion(
            values=fitting[:MAX_COMPLETIONS],
            total=len(fitting),
            has_more=len(fitting) > MAX_COMPLETIONS,
        )


def _attempt(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something with the notebook.

    Raises:
        ToolError: If the notebook refuses; the text is the notebook's own.
    """
    try:
        return work(*args, **kwargs)
    except NotesError as error:
        raise ToolError(str(error)) from error


async def _announce_list_change(ctx: NoteContext) -> None:
    """Tell clients of either era that the listed resources are others now."""
    await ctx.notify_resource_updated(ALL_NOTES)
    await ctx.notify_resources_changed()
    await ctx.session.send_resource_list_changed()


def _note_result(verb: str, note: Note) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text=f"{verb} note {note.id}: {note.text}{_hashtags(note)}")],
        structured_content=_data(note).model_dump(),
    )


def _list_result(notes: Sequence[Note], limit: int) -> CallToolResult:
    shown = notes[:limit]
    lines = [f"{note.id}. {note.text}{_hashtags(note)}" for note in shown]
    if len(notes) > len(shown):
        lines.append(f"({len(notes) - len(shown)} older notes are not shown.)")
    return CallToolResult(
        content=[TextContent(text="\n".join(lines) or "There are no such notes.")],
        structured_content=NoteList(
            notes=[_data(note) for note in shown], total=len(notes)
        ).model_dump(),
    )


def _data(note: Note) -> NoteData:
    return NoteData(
        id=note.id,
        text=note.text,
        tags=list(note.tags),
        created=note.created,
        updated=note.updated,
    )


def _resource(note: Note) -> Resource:
    title = " ".join(note.text.split())
    return Resource(
        uri=_uri(note.id),
        name=f"note-{note.id}",
        title=title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1] + "…",
        mime_type=MARKDOWN,
        size=len(_markdown(note).encode()),
    )


def _attached(notes: Sequence[Note]) -> EmbeddedResource:
    page = TextResourceContents(uri=ALL_NOTES, mime_type=MARKDOWN, text=_page(notes))
    return EmbeddedResource(resource=page)


def _page(notes: Sequence[Note]) -> str:
    return "\n\n".join(("# Notes", *(_markdown(note, level=2) for note in notes)))


def _markdown(note: Note, level: int = 1) -> str:
    heading = f"{'#' * level} Note {note.id}"
    dates = f"Written {note.created}, changed {note.updated}."
    tags = f" Tags: {', '.join(note.tags)}." if note.tags else ""
    return f"{heading}\n\n{note.text}\n\n_{dates}{tags}_"


def _hashtags(note: Note) -> str:
    return "".join(f" #{tag}" for tag in note.tags)


def _uri(number: int) -> str:
    return f"notes://note/{number}"


def main() -> None:
    """Serve until standard input closes."""
    try:
        notebook = Notebook(notes_path())
    except NotesError as error:
        sys.exit(str(error))
    try:
        build_server(notebook).run("stdio")
    finally:
        notebook.close()


if __name__ == "__main__":
    main()
