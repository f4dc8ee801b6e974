"""A session as Markdown or JSON."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tui.engine.chats.sessions.library import SessionError
from tui.engine.chats.sessions.replay import SavedSession
from tui.engine.chats.sessions.session_file import entry
from tui.engine.files.state_file import STATE_VERSION
from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, TurnEnd, UserMessage
from tui.text import sanitize_line

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
    """Return a session as JSON in ASCII."""
    view = saved.view
    content = {
        "kind": KIND,
        "version": STATE_VERSION,
        "id": view.id,
        "title": view.title,
        "model": view.model,
        "started": view.started,
        "entries": [entry(shown) for shown in saved.entries],
    }
    return json.dumps(content, indent=2) + "\n"


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
