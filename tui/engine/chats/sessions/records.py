"""The lines of a session file, one JSON object each; ``t`` says which kind it is.

``session``: the first line. ``user``, ``text``, ``thought``, ``call``, ``notice``: what the screen
shows; a later line with the same ``id`` adds to a text and replaces anything else, as a ``user``
that is expanded does. ``content`` and ``cut``: the history in wire form, which grows by one content
or keeps its first ``at``.
``resumed``: the ids begin anew. ``back``: the user's messages from number ``to`` on are gone, with
all that came after them. ``compressed``: the history before became a summary. ``draft`` and
``queue``: what the user has not sent. ``usage``: tokens of a request. ``end`` and ``summary``: a
turn is over, and what a list shows. Unknown kinds are skipped.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from tui.engine.files.state_file import STATE_VERSION
from tui.engine.logs.redaction import Redactor
from tui.model.chat import (
    ChatNotice,
    Entry,
    ModelText,
    Thought,
    ToolCall,
    TurnEnd,
    Usage,
    UserMessage,
)
from tui.model.sessions import SessionView

MAX_FIRST: Final = 200
"""Characters of the user's first words in a list."""

Record = dict[str, Any]

_STRUCTURE: Final = frozenset({"t", "id", "role", "name", "mimeType", "status", "thoughtSignature"})
"""Keys whose values are names of the format: masking one would break the record."""

_ANY: Final = frozenset[str]()
"""In a call's arguments every key and value is the model's."""


def header(view: SessionView) -> Record:
    """Return the first line of a session."""
    return {
        "t": "session",
        "version": STATE_VERSION,
        "id": view.id,
        "folder": view.folder,
        "started": view.started,
        "model": view.model,
        "first": view.first,
        "parent": view.parent,
    }


def summary(view: SessionView) -> Record:
    """Return what a list shows of a session."""
    return {
        "t": "summary",
        "title": view.title,
        "first": view.first,
        "model": view.model,
        "tokens": view.tokens,
        "turns": view.turns,
        "parent": view.parent,
    }


def entry(shown: Entry) -> Record:
    """Return the line of a whole entry."""
    match shown:
        case UserMessage(id, text, typed, servers):
            return {"t": "user", "id": id, "text": text, "typed": typed, "servers": [*servers]}
        case ModelText(id, text):
            return {"t": "text", "id": id, "text": text}
        case Thought(id, text):
            return {"t": "thought", "id": id, "text": text}
        case ToolCall():
            return {
                "t": "call",
                "id": shown.id,
                "server": shown.server,
                "tool": shown.tool,
                "arguments": shown.arguments,
                "status": shown.status.name,
                "seconds": shown.seconds,
                "result": shown.result,
            }
        case ChatNotice(id, severity, text, advice):
            return {"t": "notice", "id": id, "status": severity, "text": text, "advice": advice}
        case TurnEnd(id, calls, seconds, tokens):
            return {"t": "took", "id": id, "calls": calls, "seconds": seconds, "tokens": tokens}


def changes(contents: Sequence[Mapping[str, Any]], seen: list[list[Any]]) -> list[Record]:
    """Return how a history differs from what was `seen` of it, which is brought up to it.

    Whoever changes a content gives it another list of parts.
    """
    pairs = enumerate(zip(seen, contents, strict=False))
    differing = (place for place, (parts, content) in pairs if content["parts"] is not parts)
    same = next(differing, min(len(seen), len(contents)))
    cut: list[Record] = [{"t": "cut", "at": same}] if same < len(seen) else []
    new = contents[same:]
    seen[same:] = [content["parts"] for content in new]
    return [*cut, *({"t": "content", "content": copy.deepcopy(content)} for content in new)]


def usage(counts: Usage) -> Record:
    """Return the line of a request's tokens."""
    return {"t": "usage", **asdict(counts)}


def masked(record: Record, redactor: Redactor) -> Record:
    """Return a record with the known secrets masked in its texts.

    A thought signature holds for the exact part only, and media with a secret in them are none:
    the one is dropped, the others become a note.
    """
    shown: Record = _masked(record, redactor, _STRUCTURE)
    return shown


def _masked(value: Any, redactor: Redactor, names: frozenset[str]) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return redactor.redact_known(value)
        case list():
            return [_masked(item, redactor, names) for item in value]
        case {"inlineData": {"data": str(data)} as media} if redactor.redact_known(data) != data:
            return {"text": f"[The {media.get('mimeType')} is not kept: it contains a secret.]"}
        case dict():
            return _masked_object(value, redactor, names)
    return value


def _masked_object(value: Mapping[str, Any], redactor: Redactor, names: frozenset[str]) -> Record:
    shown: Record = {}
    for key, item in value.items():
        if key in names and isinstance(item, str):
            shown[key] = item
            continue
        inner = _ANY if key == "args" else names
        shown[key if names else redactor.redact_known(key)] = _masked(item, redactor, inner)
    if "thoughtSignature" in shown and shown != value:
        del shown["thoughtSignature"]
    return shown
