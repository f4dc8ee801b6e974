"""The demo: an offline model, which says that it is not a language model, and its server."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tui.engine.chats.backends.backend import ModelChunk, ModelRequest, ModelTraits, WireContent
from tui.engine.chats.sessions.library import fenced
from tui.engine.definitions.definition import Entry, Launch, ServerDefinition
from tui.engine.definitions.fingerprint import server_fingerprint
from tui.engine.files.paths import state_dir
from tui.engine.mcp.catalog.offered_tool import STRUCTURED
from tui.model.bounded_json import json_or_text
from tui.model.chat import BackendKind, Usage
from tui.model.models import ModelOffer
from tui.model.servers import Origin, ServerId, Transport
from tui.text import clip, clip_middle

DEMO_MODEL: Final = "demo"
NOTES_DB_VARIABLE: Final = "GEMDECK_NOTES_DB"
CALL_TIMEOUT: Final = 600.0  # seconds
WORD_PACE: Final = 0.01  # seconds between two words of an answer
MAX_STREAM_SECONDS: Final = 2.5  # for a whole answer
CHARACTERS_PER_TOKEN: Final = 4  # roughly
MAX_LISTED: Final = 8  # tools
MAX_NAME: Final = 100  # characters of a tool
MAX_QUOTED: Final = 4_000  # characters of a result
INTRODUCTION: Final = (
    "I am the demo: a small offline model. I know a few sentences and the names of the tools, "
    "and understand nothing else."
)
HELP: Final = """Try one of these:

- `add a note: buy milk`
- `list my notes`
- `search notes for basil`
- `delete note 2`
- `count slowly to 10`
- the name of a tool with its arguments, such as `count_slowly steps=10`"""

_SCRIPT: Final = (
    ("add_note", r"(?:(?:add|take|write) (?:a )?note|remember)\b:?\s*(?P<text>[^\s:].*)"),
    ("list_notes", r"(?:list|show)(?: all)?(?: my| the)? notes[.!]?"),
    ("search_notes", r"(?:search|find)(?: my| the)? notes?(?: for| about)?\b(?P<query>.+)"),
    ("delete_note", r"(?:delete|remove)(?: the)? note (?P<id>\d{1,9})[.!]?"),
    ("count_slowly", r"count(?: slowly)?(?: to (?P<steps>\d{1,9}))?[.!]?"),
)
_ARGUMENT: Final = re.compile(r'(\w[\w.-]*)=("[^"]*"|\S+)')
_DENIALS: Final = ("Denied: ", "The user has denied ")
_WORDS: Final = re.compile(r"\s*\S+\s*")


def demo_server() -> ServerDefinition:
    """Return the bundled server, which keeps its notes in a file of the state folder."""
    notes = os.environ.get(NOTES_DB_VARIABLE) or str(state_dir() / "demo" / "notes.db")
    definition = ServerDefinition(
        id=ServerId("notes"),
        transport=Transport.STDIO,
        entry=Entry(Origin.DEMO, "gemdeck"),
        launch=Launch(
            sys.executable,
            ("-I", "-S", str(Path(__file__).with_name("notes_server.py"))),
            MappingProxyType({NOTES_DB_VARIABLE: notes}),
            program=sys.executable,
        ),
        timeout=CALL_TIMEOUT,
        description="A small notebook on this computer, and a slow task to watch.",
    )
    # nothing in it is secret, so its fingerprint needs no salt
    return replace(definition, fingerprint=server_fingerprint(definition, b""))


class DemoBackend:
    """A `ModelBackend` that needs no key and no network."""

    @property
    def kind(self) -> BackendKind:
        return BackendKind.DEMO

    @property
    def model(self) -> str:
        return DEMO_MODEL

    @property
    def traits(self) -> ModelTraits:
        return ModelTraits()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream one step: text in small pieces, then a call, then the usage."""
        full_text, call = next_step(request)
        text = full_text
        if request.max_output_tokens is not None:
            text = full_text[: request.max_output_tokens * CHARACTERS_PER_TOKEN]
        words = _WORDS.findall(text)
        pause = min(WORD_PACE, MAX_STREAM_SECONDS / max(len(words), 1))
        for word in words:
            yield ModelChunk(parts=({"text": word},))
            await asyncio.sleep(pause)
        if call is not None:
            yield ModelChunk(parts=({"functionCall": call},))
        asked = [request.system_instruction, list(request.contents), list(request.declarations)]
        yield ModelChunk(
            finish_reason="STOP" if text == full_text else "MAX_TOKENS",
            usage=Usage(prompt := _tokens(asked), _tokens([text, call]), context=prompt),
        )

    async def models(self) -> Sequence[ModelOffer]:
        return (ModelOffer(DEMO_MODEL, "offline"),)

    async def count(self, request: ModelRequest) -> int:  # noqa: ARG002
        """Leave it to be estimated."""
        return 0

    async def check(self) -> None:
        """Accept nothing and refuse nothing: there is no service."""

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


def next_step(request: ModelRequest) -> tuple[str, dict[str, Any] | None]:
    """Return the text and the call of the next step, from the conversation alone.

    A message leads to at most one call. A result is reported and leads to no further call.
    """
    contents = request.contents or ({},)
    if responses := _of_kind(contents[-1], "functionResponse"):
        return "\n\n".join(map(_report, responses)), None
    names = [str(one["name"]) for one in request.declarations]
    is_first = all(content.get("role") != "model" for content in contents)
    introduction = f"{INTRODUCTION}\n\n" if is_first else ""
    # what is attached to a message comes behind its own text
    wanted = _read(next(iter(_of_kind(contents[-1], "text")), ""), names)
    if wanted is None:
        return f"{introduction}{HELP}\n\n{_offered(names)}", None
    made = sum(len(_of_kind(content, "functionCall")) for content in contents)
    return introduction, {"id": f"demo-{made + 1}", "name": wanted[0], "args": wanted[1]}


def _read(message: str, names: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """Return the offered tool and the arguments that a message asks for."""
    first, _, rest = message.strip().partition(" ")
    if first in names:
        return first, {key: json_or_text(text) for key, text in _ARGUMENT.findall(rest)}
    for tool, pattern in _SCRIPT:
        name = next((one for one in names if one.rpartition("__")[2] == tool), None)
        found = re.fullmatch(f"(?:please )?{pattern}", message.strip(), re.I | re.S)
        if name and found:
            texts = {key: text.strip() for key, text in found.groupdict().items() if text}
            return name, {k: int(t) if k in {"id", "steps"} else t for k, t in texts.items()}
    return None


def _report(response: Mapping[str, Any]) -> str:
    """Describe the result of a call."""
    name, body = _code(str(response.get("name"))), response.get("response") or {}
    failed = "error" in body
    text = str(body["error"] if failed else body.get("output", ""))
    text = text.partition(f"\n{STRUCTURED}\n")[0]
    if failed and text.startswith(_DENIALS):
        return f"{name} was not allowed, so it did not run."
    said = f"{name} {'failed' if failed else 'returned'}"
    return said + (f":\n\n{_quote(text)}" if text.strip() else " without any text.")


def _offered(names: Sequence[str]) -> str:
    if not names:
        return "There are no tools right now: no server is ready, or none offers any."
    more = f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
    return f"Available tools: {', '.join(map(_code, names[:MAX_LISTED]))}{more}."


def _code(text: str) -> str:
    """Format a server's text as Markdown code, which is shown literally."""
    return f"`{clip(' '.join(text.replace('`', chr(39)).split()), MAX_NAME)}`"


def _quote(text: str) -> str:
    """Quote a tool's result."""
    return fenced(clip_middle(text.strip("\n"), MAX_QUOTED * 3 // 4, MAX_QUOTED // 4), "text")


def _of_kind(content: WireContent, kind: str) -> list[Any]:
    """Return the values of all parts of one kind."""
    return [part[kind] for part in content.get("parts", ()) if part.get(kind)]


def _tokens(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str)) // CHARACTERS_PER_TOKEN
