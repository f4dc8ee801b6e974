"""A session as Markdown or JSON, and a conversation read from such JSON.

What is imported is text: its calls become words of the model, so that nothing in it runs, answers a
question or counts as consent.
"""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.sessions.library import SessionError
from tui.engine.sessions.records import MAX_FIRST, VERSION, entry
from tui.engine.sessions.repair import Wire
from tui.engine.sessions.replay import Replay, SavedSession
from tui.model.bounded_json import JsonError, read_object
from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, TurnEnd, UserMessage
from tui.model.sessions import SessionId, SessionView
from tui.text import for_model, sanitize_line

MAX_IMPORT: Final = 32 * 1024 * 1024
"""Largest file that is imported, in bytes."""

KIND: Final = "gemdeck session"
"""What an export says that it is."""

_MIN_FENCE: Final = 3


def export_text(saved: SavedSession, file: Path) -> str:
    """Return what goes into a file: JSON if its name ends so, else Markdown."""
    return to_json(saved) if file.suffix.lower() == ".json" else to_markdown(saved)


def to_markdown(saved: SavedSession) -> str:
    """Return a session as a Markdown document."""
    view = saved.view
    began = datetime.fromtimestamp(view.started, UTC).isoformat(" ", "minutes")
    facts = [f"- session: {view.id}", f"- began: {began}", f"- model: {view.model or 'unknown'}"]
    head = [f"# {view.name}", "\n".join(facts)]
    return "\n\n".join([*head, *filter(None, map(_paragraph, saved.entries))]) + "\n"


def to_json(saved: SavedSession) -> str:
    """Return a session as JSON in ASCII, which `read_export` takes."""
    view = saved.view
    content = {
        "kind": KIND,
        "version": VERSION,
        "id": view.id,
        "title": view.title,
        "model": view.model,
        "started": view.started,
        "entries": [entry(shown) for shown in saved.entries],
    }
    return json.dumps(content, indent=2) + "\n"


def read_export(path: Path) -> SavedSession:
    """Read a conversation that was exported as JSON; it has no id and no file yet. Blocks.

    Raises:
        SessionError: If the file cannot be read, or is something else.
    """
    try:
        content = read_object(read_regular(path, MAX_IMPORT))
    except OSError as error:
        raise SessionError(f"It cannot be read: {error.strerror}.") from None
    except (UnfitFileError, JsonError) as error:
        raise SessionError(f"It cannot be read: {sanitize_line(str(error))}.") from None
    entries = content.get("entries")
    if content.get("kind") != KIND or not isinstance(entries, list):
        raise SessionError("It is no session that gemdeck exported as JSON.")
    saved = imported(entries)
    title = content.get("title")
    first = next((e.text for e in saved.entries if isinstance(e, UserMessage)), "")
    saved.view = replace(
        saved.view,
        title=sanitize_line(title, MAX_FIRST) if isinstance(title, str) else "",
        first=sanitize_line(first, MAX_FIRST),
    )
    return saved


def write_export(file: Path, text: str) -> Path:
    """Write an export to a new private file and return it. Blocks.

    Raises:
        SessionError: If there is a file of that name, or it cannot be written.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as new:  # noqa: PTH123  (no path)
            new.write(text)
    except OSError as error:
        name = sanitize_line(str(file))
        raise SessionError(f"{name} cannot be written: {error.strerror}.") from None
    return file


def imported(records: Iterable[Any]) -> SavedSession:
    """Return entries with a history that has them as text alone.

    Notices are left out: on the screen they would be gemdeck's own words.
    """
    replay = Replay(SessionView(SessionId(""), ""))
    for record in records:
        replay.take_record(record)
    saved = replay.finish()
    saved.entries = [e for e in saved.entries if not isinstance(e, ChatNotice)]
    saved.unsent, saved.contents, saved.starts = "", [], {}
    for place, shown in enumerate(saved.entries):
        if isinstance(shown, UserMessage):
            saved.entries[place] = UserMessage(shown.id, shown.text)  # what is hidden is not sent
            saved.starts[shown.id] = len(saved.contents)
        _add_text(saved.contents, shown)
    if saved.contents and saved.contents[-1]["role"] == "user":
        saved.contents.append({"role": "model", "parts": [{"text": "[There is no answer.]"}]})
    return saved


def _add_text(contents: list[Wire], shown: Entry) -> None:
    """Add what an entry says to a history, as text."""
    role = "user" if isinstance(shown, UserMessage) else "model"
    text = for_model(_words(shown))[0].strip()
    if not text or (role == "model" and not contents):
        return
    if contents and contents[-1]["role"] == role:
        contents[-1]["parts"].append({"text": f"\n\n{text}"})
    else:
        contents.append({"role": role, "parts": [{"text": text}]})


def _words(shown: Entry) -> str:
    match shown:
        case UserMessage(text=text) | ModelText(text=text):
            return text
        case ToolCall():
            call = f"{shown.server} {shown.tool} with {shown.arguments}"
            return f"[In another run the tool {call} was called. It said: {shown.result}]"
        case Thought() | ChatNotice() | TurnEnd():
            return ""


def _paragraph(shown: Entry) -> str:
    """Return an entry as Markdown; thoughts are left out."""
    match shown:
        case UserMessage(text=text):
            return f"## You\n\n{text}"
        case ModelText(text=text):
            return f"## Model\n\n{text}"
        case ToolCall():
            name = f"{shown.server} · {shown.tool}" if shown.server else shown.tool
            said = f"\n\n{_fenced(shown.result)}" if shown.result else ""
            return f"### {name} ({shown.status.value})\n\n{_fenced(shown.arguments, 'json')}{said}"
        case ChatNotice(text=text, advice=advice):
            return f"> {' '.join(f'{text} {advice}'.split())}"
        case Thought() | TurnEnd():
            return ""


def _fenced(text: str, language: str = "") -> str:
    """Return a code block that no line of the text can end."""
    runs = (len(run) for run in re.findall("`+", text))
    fence = "`" * max(_MIN_FENCE, 1 + max(runs, default=0))
    return f"{fence}{language}\n{text}\n{fence}"
