"""The bundled notes server: an MCP server over stdio, ``python -m tui.engine.demo.notes_server``.

It offers tools that read, write and delete, prompts with argument completion, resources and a
resource template.
"""
# ruff: noqa: A002 - parameter names are part of the tools' interface

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from pydantic import Field

from tui import __version__
from tui.engine.demo.demo_servers import notes_path
from tui.engine.demo.notes import MAX_NOTE_LENGTH, MAX_NOTES, Note, Notebook, NotesError
from tui.text import clip

MAX_LISTED: Final = 20  # recent notes among the resources
MAX_COMPLETIONS: Final = 100  # as the spec says
MAX_TITLE: Final = 60  # characters
STYLES: Final = ("bullets", "paragraph", "haiku")
ALL_NOTES: Final = "notes://all"
MARKDOWN: Final = "text/markdown"
INSTRUCTIONS: Final = (
    "A small notebook on the user's computer. Notes have a number, a text and tags. Use the "
    "numbers that list_notes and search_notes give when you update or delete a note."
)

Text = Annotated[str, Field(description="Text of the note", max_length=MAX_NOTE_LENGTH)]
Number = Annotated[int, Field(description="Number of the note", ge=1)]
NoteContext = Context[Any, Any]
NoteResult = Annotated[types.CallToolResult, Note]


@dataclass(frozen=True)
class NoteList:
    """Notes in structured output, newest first; `total` includes omitted ones."""

    notes: list[Note]
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
            middleware=[announce_list_changes],
        )
        self._notebook = notebook

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: NoteContext | None = None
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Call a tool; a `NotesError` is reported without the SDK's prefix."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, NotesError):
                raise ToolError(str(error.__cause__)) from error
            raise

    async def list_resources(self) -> list[types.Resource]:
        """List the notebook and its most recent notes."""
        notes = await run_sync(self._notebook.recent)
        return [*await super().list_resources(), *map(_resource, notes[:MAX_LISTED])]


async def announce_list_changes(
    ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Announce list changes of resources to older clients, which the SDK omits."""
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(result, dict):
        result["capabilities"]["resources"]["listChanged"] = True
    return result


def build_server(notebook: Notebook) -> NotesServer:
    """Create the server of a notebook."""
    server = NotesServer(notebook)
    _add_reading_tools(server, notebook)
    _add_writing_tools(server, notebook)
    _add_resources(server, notebook)
    _add_prompts(server, notebook)
    _add_completion(server, notebook)
    return server


def _add_reading_tools(server: NotesServer, notebook: Notebook) -> None:
    reads = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    @server.tool(title="List notes", annotations=reads)
    def list_notes(
        tag: Annotated[str | None, Field(description="Only notes with this tag")] = None,
        limit: Annotated[int, Field(description="Most notes to list", ge=1, le=MAX_NOTES)] = 20,
    ) -> Annotated[types.CallToolResult, NoteList]:
        """List the notes in the notebook, newest first."""
        return _list_result(notebook.recent(tag), limit)

    @server.tool(title="Search notes", annotations=reads)
    def search_notes(
        query: Annotated[str, Field(description="Words the note must contain", min_length=1)],
    ) -> Annotated[types.CallToolResult, NoteList]:
        """Find the notes that contain all the given words in their text or tags."""
        return _list_result(notebook.search(query), MAX_NOTES)


def _add_writing_tools(server: NotesServer, notebook: Notebook) -> None:
    writes = types.ToolAnnotations(read_only_hint=False, open_world_hint=False)
    adds = writes.model_copy(update={"destructive_hint": False, "idempotent_hint": False})
    destroys = writes.model_copy(update={"destructive_hint": True, "idempotent_hint": True})

    @server.tool(title="Add a note", annotations=adds)
    async def add_note(
        text: Text,
        ctx: NoteContext,
        tags: Annotated[tuple[str, ...], Field(description="Tags of the note")] = (),
    ) -> NoteResult:
        """Add a note to the notebook."""
        note = await run_sync(notebook.add, text, tags)
        await _announce_list_change(ctx)
        return _note_result("Added", note)

    @server.tool(title="Update a note", annotations=destroys)
    async def update_note(id: Number, text: Text, ctx: NoteContext) -> NoteResult:
        """Replace the text of a note; its tags stay."""
        note = await run_sync(notebook.update, id, text)
        await ctx.notify_resource_updated(_uri(note.id))
        await _announce_list_change(ctx)
        return _note_result("Updated", note)

    @server.tool(title="Delete a note", annotations=destroys)
    async def delete_note(id: Number, ctx: NoteContext) -> NoteResult:
        """Delete a note permanently."""
        note = await run_sync(notebook.delete, id)
        await _announce_list_change(ctx)
        return _note_result("Deleted", note)


def _add_resources(server: NotesServer, notebook: Notebook) -> None:
    @server.resource(ALL_NOTES, name="all-notes", title="All notes", mime_type=MARKDOWN)
    def all_notes() -> str:
        """The whole notebook as one Markdown page."""
        return _page(notebook.recent())

    @server.resource("notes://note/{id}", name="note", title="A note", mime_type=MARKDOWN)
    def one_note(id: str) -> str:
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
    ) -> list[str | types.EmbeddedResource]:
        """Summarize all notes or those with one tag."""
        which = f"my notes tagged {tag}" if tag else "my notes"
        form = {"paragraph": "one paragraph", "haiku": "a haiku"}.get(style, "a few bullets")
        notes = notebook.recent(tag or None)
        return [f"Summarize {which} as {form}. The notes are attached.", _attached(notes)]

    @server.prompt(title="Plan my day")
    def plan_day(
        focus: Annotated[str, Field(description="Today's focus")],
    ) -> list[str | types.EmbeddedResource]:
        """Plan the day from the notes."""
        request = (
            f"Plan my day with a focus on {focus}. Use my notes, which are attached: order what "
            "there is to do, name at most five steps, and say what can wait."
        )
        return [request, _attached(notebook.recent())]


def _add_completion(server: NotesServer, notebook: Notebook) -> None:
    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator] # untyped in the SDK
    async def complete(
        ref: types.PromptReference | types.ResourceTemplateReference,
        argument: types.CompletionArgument,
        context: types.CompletionContext | None,  # noqa: ARG001 - part of the SDK's signature
    ) -> types.Completion | None:
        match ref, argument.name:
            case types.PromptReference(name="summarize_notes"), "style":
                values: Sequence[str] = STYLES
            case types.PromptReference(), "tag" | "focus":
                values = await run_sync(notebook.tags)
            case types.ResourceTemplateReference(uri="notes://note/{id}"), "id":
                values = [str(note.id) for note in await run_sync(notebook.recent)]
            case _:
                return None
        typed = argument.value.casefold()
        fitting = [value for value in values if value.startswith(typed)]
        return types.Completion(
            values=fitting[:MAX_COMPLETIONS],
            total=len(fitting),
            has_more=len(fitting) > MAX_COMPLETIONS,
        )


async def _announce_list_change(ctx: NoteContext) -> None:
    """Notify clients of either protocol era that the listed resources have changed."""
    await ctx.notify_resource_updated(ALL_NOTES)
    await ctx.notify_resources_changed()
    await ctx.session.send_resource_list_changed()


def _note_result(verb: str, note: Note) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=f"{verb} note {note.id}: {note.text}{_hashtags(note)}")],
        structured_content=asdict(note),
    )


def _list_result(notes: Sequence[Note], limit: int) -> types.CallToolResult:
    shown = notes[:limit]
    lines = [f"{note.id}. {note.text}{_hashtags(note)}" for note in shown]
    if len(notes) > len(shown):
        lines.append(f"({len(notes) - len(shown)} older notes are not shown.)")
    return types.CallToolResult(
        content=[types.TextContent(text="\n".join(lines) or "There are no such notes.")],
        structured_content=asdict(NoteList(list(shown), len(notes))),
    )


def _resource(note: Note) -> types.Resource:
    return types.Resource(
        uri=_uri(note.id),
        name=f"note-{note.id}",
        title=clip(" ".join(note.text.split()), MAX_TITLE),
        mime_type=MARKDOWN,
        size=len(_markdown(note).encode()),
    )


def _attached(notes: Sequence[Note]) -> types.EmbeddedResource:
    page = types.TextResourceContents(uri=ALL_NOTES, mime_type=MARKDOWN, text=_page(notes))
    return types.EmbeddedResource(resource=page)


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
    with closing(notebook):
        build_server(notebook).run("stdio")


if __name__ == "__main__":
    main()
