"""What comes back of a session file, however it was left."""

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes.gemini_rules import check_request
from tests.support.examples import any_json
from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.sessions.written import (
    WORK,
    call,
    content,
    library,
    response,
    text,
    turn,
    write,
)
from tui.engine.chats.sessions import replay
from tui.engine.chats.sessions.library import SessionError, SessionLibrary
from tui.engine.chats.sessions.replay import INTERRUPTED, SavedSession, read_session
from tui.engine.chats.sessions.session_file import Record, SessionFile, SessionLock, header
from tui.engine.logs.redaction import Redactor
from tui.model.chat import ChatNotice, ModelText, ToolCall, ToolCallStatus, UserMessage
from tui.model.sessions import SessionId, SessionView

__all__ = ["library"]


def read(library: SessionLibrary, records: list[Record]) -> SavedSession:
    return library.read(write(library, WORK, records))


def asking(id: str, question: str) -> list[Record]:  # noqa: A002 - the field of a record
    """The records of a message that was sent."""
    return [{"t": "user", "id": id, "text": question}, content("user", text(question))]


def words(saved: SavedSession) -> list[str]:
    return [e.text for e in saved.entries if isinstance(e, UserMessage | ModelText)]


def test_a_whole_session_comes_back_as_it_was(library: SessionLibrary) -> None:
    saved = read(library, [*turn(1, "one?", "1"), *turn(3, "two?", "2")])
    assert words(saved) == ["one?", "1", "two?", "2"]
    assert saved.contents == [
        {"role": role, "parts": [{"text": said}]}
        for role, said in (("user", "one?"), ("model", "1"), ("user", "two?"), ("model", "2"))
    ]
    ids = [entry.id for entry in saved.entries]
    assert len(set(ids)) == len(ids) == saved.kept == 4
    assert saved.starts == {ids[0]: 0, ids[2]: 2}
    assert (saved.usage.context, saved.remarks, saved.unsent) == (5, [], "")


def test_streamed_pieces_are_joined_and_kept_when_the_process_ends(library: SessionLibrary) -> None:
    pieces = [{"t": "text", "id": "e2", "text": piece} for piece in ("Once upon ", "a time")]
    saved = read(library, [*asking("e1", "a tale"), *pieces])
    assert words(saved) == ["a tale", "Once upon a time"]
    assert isinstance(saved.entries[-1], ChatNotice)
    [_, answer] = saved.contents
    assert (answer["role"], answer["parts"][0]) == ("model", {"text": "Once upon a time"})
    assert saved.unsent == ""


def test_a_message_without_any_answer_comes_back_to_the_user(library: SessionLibrary) -> None:
    waits: list[Record] = [{"t": "queue", "texts": ["three?"]}, {"t": "draft", "text": "fo"}]
    saved = read(library, [*turn(1, "one?", "1"), *asking("e4", "two?"), *waits])
    assert (saved.unsent, len(saved.contents)) == ("two?\n\nthree?\n\nfo", 2)
    sent = read(library, [{"t": "draft", "text": "one? "}, *turn(1, "one?", "1")])
    assert sent.unsent == "", "a draft that was sent is none"


def test_open_calls_are_answered_as_interrupted(library: SessionLibrary) -> None:
    running = {"t": "call", "id": "e2", "server": "s", "tool": "gone", "arguments": "{}"}
    records = [
        *asking("e1", "do it"),
        content("model", call("gone"), call("gone", "c2")),
        running | {"status": "RUNNING", "seconds": None, "result": ""},
    ]
    saved = read(library, records)
    assert [c["role"] for c in saved.contents] == ["user", "model", "user", "model"]
    answers = [part["functionResponse"] for part in saved.contents[2]["parts"]]
    assert [answer["id"] for answer in answers] == ["c1", "c2"]
    assert {answer["response"]["error"] for answer in answers} == {INTERRUPTED}
    shown = next(e for e in saved.entries if isinstance(e, ToolCall))
    assert shown.status is ToolCallStatus.CANCELLED
    assert saved.kept == 2  # the rest is written when the session goes on


def test_no_history_is_sent_that_the_service_would_refuse(library: SessionLibrary) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    odd = [
        content("model", text("an answer to nothing")),
        content("user", response("never-called"), text("hello")),
        content("user", text("again"), {"text": ""}, {"fileData": {"uri": "file:///etc/passwd"}}),
        content("user", picture, {"inlineData": {"mimeType": 5, "data": "aGk="}}),
        content("system", text("obey")),
        content("model", call("one"), call("two", "c2")),
        content("user", response("two", "c2"), text("beside"), {"functionResponse": 3}),
        content("model", {"functionCall": {"name": "a b", "args": []}}, {"thought": True}),
        content("model", {"functionCall": {"name": "half", "args": {"x": "\ud800"}}}),
        content("model", {"functionCall": {"name": "a b", "args": {}}}),
        content("model", {"functionCall": {"name": "list", "args": [1]}}),
        content("model", text("so")),
        {"t": "content", "content": [1, 2]},
    ]
    saved = read(library, odd)
    contents = saved.contents
    assert [contents[place]["role"] for place in (0, -1)] == ["user", "model"]
    assert all(a["role"] != b["role"] for a, b in pairwise(contents))
    assert json.dumps(contents, ensure_ascii=False).encode()
    assert contents[0]["parts"] == [text("hello"), text("again"), picture]
    parts = [part for one in contents for part in one["parts"]]
    called = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    assert called == ["one", "two", "half"]
    answered = [part["functionResponse"] for part in contents[2]["parts"][:2]]
    assert [(a["name"], *a["response"]) for a in answered] == [("one", "error"), ("two", "output")]


def test_responses_go_with_the_calls_of_their_ids(library: SessionLibrary) -> None:
    late = [response("look", "c3", said="3"), response("look", "c1", said="1")]
    records = [
        content("user", text("look")),
        content("model", *(call("look", f"c{number}") for number in (1, 2, 3))),
        content("user", *late),
        content("model", response("look", "c2", said="the model's own"), text("so")),
    ]
    contents = read(library, records).contents
    answers = [part["functionResponse"] for part in contents[2]["parts"]]
    said = [(answer["id"], *answer["response"].values()) for answer in answers]
    assert said == [("c1", "1"), ("c2", INTERRUPTED), ("c3", "3")]
    assert contents[3]["parts"] == [text("so")]


def test_what_makes_no_sense_is_left_out_and_counted(library: SessionLibrary) -> None:
    view = write(library, WORK, turn(1, "one?", "1"))
    path = library.path_of(view)
    junk = [b"[" * 300_000, b"\xff\xfe", b"{}", b"7", b'{"t":"user","id":{},"text":"x"}']
    junk += [b'{"t":"cut","at":-1}', b'{"t":"call","id":"x"}', b'{"t":"text","id":"y","text":7}']
    path.write_bytes(path.read_bytes() + b"\n".join([*junk, b'{"t":"new kind of line"}', b""]))
    saved = library.read(view)
    assert words(saved) == ["one?", "1"]
    assert saved.remarks == ["8 lines of the session were unreadable."]
    cut = write(library, WORK, turn(1, "one?", "1"))
    with library.path_of(cut).open("ab") as file:
        file.write(b'{"t":"user","id":"e9","te')
    saved = library.read(cut)
    assert (words(saved), saved.remarks) == (["one?", "1"], []), "it was cut in its last line"


def test_a_file_of_junk_ends(library: SessionLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MAX_BAD", 100)
    view = write(library, WORK, turn(1, "one?", "1"))
    with library.path_of(view).open("ab") as file:
        file.write(b"junk\n" * 200)
        file.writelines(json.dumps(line).encode() + b"\n" for line in turn(3, "two?", "2"))
    saved = library.read(view)
    assert words(saved) == ["one?", "1"]
    assert saved.remarks == ["The rest was not read.", "101 lines of the session were unreadable."]
    before = library.path_of(view).read_bytes()
    again, lock = library.open(view, Redactor())
    assert lock is None, "what follows would not be read either"
    assert again.remarks[-1] == "New messages go into a new session."
    assert library.path_of(view).read_bytes() == before


def test_a_session_of_another_version_is_not_read(library: SessionLibrary) -> None:
    view = write(library, WORK, turn(1, "one?", "1"))
    path = library.path_of(view)
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":7', 1))
    before = path.read_bytes()
    with pytest.raises(SessionError, match="it was written by another version of gemdeck"):
        library.read(view)
    assert path.read_bytes() == before


def test_too_much_is_left_out(library: SessionLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    huge = write(library, WORK, [*turn(1, "one?", "1"), *turn(3, "two?", "x" * 300_000)])
    long = {"t": "notice", "id": "n", "status": "error", "text": "x" * 5_000, "advice": ""}
    records = [*turn(1, "one?", "1"), long, *turn(3, "two?", "2"), *turn(5, "three?", "3")]
    many = write(library, WORK, records)
    monkeypatch.setattr(replay, "MAX_SESSION", 200 * 1024)
    monkeypatch.setattr(replay, "MAX_RECORD", 4 * 1024)
    saved = library.read(huge)
    assert words(saved)[:3] == ["one?", "1", "two?"]
    assert "Only the first" in " ".join(saved.remarks)
    monkeypatch.setattr(replay, "MAX_ENTRIES", 4)
    saved = library.read(many)
    assert words(saved) == ["one?", "1", "two?", "2"]
    assert saved.remarks == ["3 lines of the session were unreadable."]


def lines_of_turns() -> list[bytes]:
    """The lines of a session with calls, a change of the history and what was not sent."""
    shown = {"t": "call", "id": "e2", "server": "s", "tool": "look", "arguments": "{}"}
    records = [
        header(SessionView(SessionId("x"), "/work")),
        *turn(1, "one?", "1"),
        *asking("e3", "two?"),
        content("model", text("I look."), call("look"), call("look", "c2")),
        shown | {"id": "e4", "status": "OK", "seconds": 1.0, "result": "done"},
        content("user", response("look"), response("look", "c2")),
        *({"t": "queue", "texts": ["later"]}, content("model", text("so")), {"t": "end"}),
        *({"t": "resumed"}, {"t": "cut", "at": 4}, content("model", text("cut"))),
        *({"t": "back", "to": 1}, *turn(1, "three?", "3"), {"t": "compressed"}),
        {"t": "draft", "text": "dra"},
    ]
    return [json.dumps(record).encode() for record in records]


LINES = lines_of_turns()
PLACES = st.integers(0, len(LINES) - 1)
JSON = any_json(st.text(max_size=5)) | st.just(float("nan"))
EDITS = st.one_of(
    st.tuples(st.just("drop"), PLACES),
    st.tuples(st.just("move"), PLACES, PLACES),
    st.tuples(st.just("repeat"), PLACES, PLACES),
    st.tuples(st.just("cut"), PLACES, st.integers(0, 100)),
    st.tuples(st.just("put"), PLACES, st.sampled_from(["content", "parts", "id", "at"]), JSON),
)


def edited(edits: list[tuple[Any, ...]]) -> list[bytes]:
    """The lines after what somebody did to them by hand."""
    lines = [*LINES]
    for how, place, *rest in edits:
        taken = lines[place : place + 1]
        match how, *rest:
            case "drop", *_:
                del lines[place : place + 1]
            case "move", int(to):
                del lines[place : place + 1]
                lines[to:to] = taken
            case "repeat", int(to):
                lines[to:to] = taken
            case "cut", int(at):
                lines[place : place + 1] = [line[:at] for line in taken]
            case "put", str(key), value:
                lines.insert(place, f'{{"t":"content","{key}":{json.dumps(value)}}}'.encode())
    return lines


@example(edits=[("drop", 21), ("drop", 21), ("move", 7, 23)], ends=False)
@given(edits=st.lists(EDITS, max_size=5), ends=st.booleans())
def test_whatever_is_done_to_a_file_what_is_left_can_be_sent(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[Any, ...]], ends: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "edited.jsonl"
    path.write_bytes(b"\n".join(edited(edits)) + b"\n" * ends)
    path.chmod(0o600)
    saved = read_session(path, SessionView(SessionId("x"), "/work"))
    again = {"role": "user", "parts": [{"text": "go on"}]}
    check_request({"contents": [*saved.contents, again]}, {}, needs_signatures=False)
    assert json.dumps(saved.contents, allow_nan=False, ensure_ascii=False).encode()
    assert all(at <= len(saved.contents) for at in saved.starts.values())
    if not edits:
        assert (saved.remarks, words(saved)) == ([], ["one?", "1", "three?", "3"])


def test_text_from_a_file_is_harmless_on_the_screen(library: SessionLibrary) -> None:
    evil = "é\u2028\na\x1b]52;c;!\x07b\u202ec\ud800"
    said = dict.fromkeys(("text", "advice", "brief"), evil)
    notice = {"t": "notice", "id": "e2", "status": "error", **said}
    records = [{"t": "user", "id": "e1", "text": evil}, notice]
    view = write(library, WORK, records, title=evil, first=evil, model=evil)
    data = library.path_of(view).read_bytes()
    assert data.isascii()
    assert b"\x1b" not in data
    assert all(json.loads(line) for line in data.splitlines()), "a record is one line"
    saved = library.read(view)
    shown = [view.title, view.first, view.model, *words(saved), saved.view.title]
    shown += [one.brief for one in saved.entries if isinstance(one, ChatNotice)]
    assert not any(set(said) & set("\x1b\x07\u202e\ud800") for said in shown)


@pytest.mark.parametrize("size", [3, 200])
def test_no_secret_is_written_even_in_pieces(library: SessionLibrary, size: int) -> None:
    secret = f"{FIXTURE_SECRET}abcdefgh"
    redactor = Redactor()
    redactor.register(secret)
    said = f"The key is {secret}, and {secret[:9]} is not."
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    arguments = {"name": secret, secret: [{"id": secret}]}
    signed = {"text": secret, "thoughtSignature": "c2ln"}
    records = [
        *({"t": "text", "id": "e1", "text": piece} for piece in pieces),
        {"t": "done", "id": "e1"},
        content("user", text("go")),
        content("model", {"functionCall": {"name": "f", "args": arguments}}, signed),
    ]
    view = write(library, WORK, records, first=secret, redactor=redactor)
    assert secret not in library.path_of(view).read_text().replace('","', "")
    saved = library.read(view)
    assert words(saved) == [said.replace(secret, "***")]
    [called, other] = saved.contents[1]["parts"]
    assert called["functionCall"] == {"name": "f", "args": {"name": "***", "***": [{"id": "***"}]}}
    assert other == {"text": "***"}  # its signature held for another text


def test_a_session_is_private_and_no_link_or_pipe(library: SessionLibrary, tmp_path: Path) -> None:
    view = write(library, tmp_path, turn(1, "one?", "1"))
    path = library.path_of(view)
    assert path.stat().st_mode & 0o777 == 0o600
    assert {one.stat().st_mode & 0o777 for one in path.parents[:2]} == {0o700}
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SessionError):
        library.read(view)
    with pytest.raises(OSError, match="symbolic link"):
        SessionLock.take(path)
    path.unlink()
    os.mkfifo(path)
    assert library.sessions(tmp_path) == ()
    with pytest.raises(SessionError):
        library.read(view)


def test_a_full_file_says_so_once(library: SessionLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    path = library.path_of(write(library, WORK, []))
    monkeypatch.setattr("tui.engine.chats.sessions.session_file.MAX_SESSION", 100)
    said: list[str] = []
    file = SessionFile(path, Redactor(), said.append)
    file.write(turn(1, "one?", "1"))
    before = file.path.read_bytes()
    file.write(turn(3, "two?", "2"))
    file.close()
    assert (file.path.read_bytes(), len(said)) == (before, 1)
