"""Session files as gemdeck writes them."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tui.engine.chats.sessions.library import SessionLibrary, new_id
from tui.engine.chats.sessions.session_file import Record, SessionFile, header, summary
from tui.engine.logs.redaction import Redactor
from tui.model.sessions import SessionId, SessionView

WORK = Path("/work/shop")
"""A folder of sessions; it need not be there."""


@pytest.fixture
def library(tmp_path: Path) -> SessionLibrary:
    return SessionLibrary(tmp_path / "state")


def complain(text: str) -> None:
    raise AssertionError(text)


def content(role: str, *parts: dict[str, Any]) -> Record:
    return {"t": "content", "content": {"role": role, "parts": list(parts)}}


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def call(name: str, id: str = "c1") -> dict[str, Any]:  # noqa: A002
    return {"functionCall": {"name": name, "id": id, "args": {}}}


def response(name: str, id: str = "c1", said: str = "done") -> dict[str, Any]:  # noqa: A002
    return {"functionResponse": {"name": name, "id": id, "response": {"output": said}}}


def turn(number: int, question: str, answer: str) -> list[Record]:
    """The records of one whole turn."""
    return [
        {"t": "user", "id": f"e{number}", "text": question},
        content("user", text(question)),
        {"t": "text", "id": f"e{number + 1}", "text": answer},
        content("model", text(answer)),
        {"t": "usage", **dict.fromkeys(("prompt", "output", "thoughts", "cached"), 5)}
        | {"context": 5, "context_limit": 100},
        {"t": "end"},
    ]


def write(
    library: SessionLibrary,
    folder: Path,
    records: Iterable[Record],
    *,
    first: str = "hello",
    redactor: Redactor | None = None,
    is_whole: bool = True,
    **facts: Any,  # noqa: ANN401 - of a view
) -> SessionView:
    """Write a session and return what a list shows of it."""
    session = facts.pop("id", None) or new_id(time.time())
    place = library.place(folder).name
    view = SessionView(SessionId(session), str(folder), first=first, place=place, **facts)
    file = SessionFile(library.path_of(view), redactor or Redactor(), complain)
    file.write([header(view), *records, *([summary(view)] if is_whole else [])])
    file.close()
    return library.find(view.id)
