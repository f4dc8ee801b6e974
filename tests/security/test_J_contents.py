"""Whatever a state file contains, gemdeck starts, and what it cannot use it sets aside."""

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tui.engine.engine import Engine, EngineOptions
from tui.engine.files.atomic import write_private
from tui.engine.files.paths import state_dir
from tui.engine.files.preferences import append_message, load_look, load_messages
from tui.engine.files.state_file import StateFile
from tui.model.chat import Severity
from tui.model.events import Event, NoticeRaised
from tui.model.servers import ServerId

FILES: Final = (
    *("messages.jsonl", "ui.json", "eras.json", "disabled-servers.json", "trust.json"),
    *("start-folders.json", "grants.json", "salt.json", "audit.jsonl", "credentials.json"),
    *("logs/gemdeck.log", "demo/notes.db"),
)

DEEP: Final = 100_000

SMALL: Final = {
    "nothing": b"",
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep in a value": b'{"version": 1, "folders": %b, "eras": %b}'
    % ((b"[" * 900 + b"]" * 900,) * 2),
    "a long line": b'"' + b"x" * (7 << 20) + b'"\n',
    "no UTF-8": b'{"version": 1, "theme": "\xff\xfe"}\n"\xff\xfe"\n',
    "zeros": b"\0" * 5_000,
    "keys twice": b'{"version": 1, "theme": "a", "theme": "b", "folders": [], "folders": {}}',
    "half a character": b'{"version": 1, "theme": "\\ud800"}\n"\\ud800"\n',
    "many digits": b"9" * 10_000,
    "a number as the version": b'{"version": 1e999}',
    "a list": b"[]",
}
"""What a start meets, each in another file."""

CONTENTS: Final = {
    **SMALL,
    "too many bytes": b" " * (17 << 20),
    "too many values": b'{"version": 1, "folders": [' + b"{}," * 1_000_000 + b"{}]}",
    "as many values as can be": b'{"version": 1, "folders": [' + b"{}," * 190_000 + b"{}]}",
}

VALUES: Final[tuple[object, ...]] = (
    *(None, True, 0, -1, 1.5, 10**900, 1e308),
    *("", "x", "\0", "/a\0b", "file:%00", "file:%ff", [], [None], [[]], [{}], {}, {"x": None}),
)
"""What may stand where something else belongs."""

FOLDER: Final = {"path": "/", "dev": 1, "ino": 2, "uid": 0, "when": 1.0, "children": True}

ENTRIES: Final[dict[str, dict[str, Any]]] = {
    "trust.json": {
        **FOLDER,
        "state": "trusted",
        "hashes": ["h"],
        "inherited": False,
        "content": {"hash": "h", "rules": "", "rule_lines": [], "servers": [], "forbidden": {}},
    },
    "start-folders.json": {**FOLDER, "answer": "never"},
    "grants.json": {
        **{"effect": "allow", "server": "f", "tool": '"t"', "definition": "d"},
        **{"scope": "EVERYWHERE", "folder": "", "arguments": [["a", "1"]]},
        **{"label": ["a", "b"], "words": "w", "granted": 1.0, "used": 2.0},
    },
    "disabled-servers.json": {"origin": "user", "server": "x"},
    "eras.json": {"era": "handshake", "time": 1.0},
    **{name: {} for name in ("ui.json", "salt.json", "credentials.json")},
}
"""A valid entry of each file."""

KEYS: Final = (
    *("folders", "refused", "grants", "disabled", "eras", "theme", "salt", "gemini-api-key"),
    "entries",
)


def odd_entries(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Put every value in the place of every field."""
    return [{**entry, field: value} for field in entry for value in VALUES]


def all_odd_entries(name: str) -> bytes:
    odd = odd_entries(ENTRIES[name])
    named = {str(number): entry for number, entry in enumerate(odd)}
    refused = {str(number): value for number, value in enumerate(VALUES)}
    lists = dict.fromkeys(("folders", "grants", "disabled"), odd)
    return json.dumps({"version": 1, **lists, "eras": named, "refused": refused}).encode()


async def check_a_start(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Start the engine, change something in every file, and start it again."""
    events: list[Event] = []
    options = EngineOptions(
        folder, demo=True, attended=True, follow_settings=False, server_patience=0
    )
    for enabled in (False, True):
        load_look(state_dir())
        async with Engine(options, events.append) as engine:
            await engine.start()
            await engine.wait_ready()
            assert not engine.servers.waiting_for()
            engine.servers.set_enabled(ServerId("mine"), enabled=enabled)
            engine.forget_folder()
    notices = [event.notice for event in events if isinstance(event, NoticeRaised)]
    assert [n.text for n in notices if n.severity is Severity.ERROR] == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.fixture
def write(home: Path) -> Callable[[str, bytes], None]:
    """Write a state file; a server of the user's makes each of them matter."""
    (home / ".gemini").mkdir()
    settings = {"mcpServers": {"mine": {"command": sys.executable, "args": ["-c", ""]}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))

    def write_one(name: str, data: bytes) -> None:
        path = state_dir() / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)

    return write_one


@pytest.mark.parametrize("name", CONTENTS)
def test_J05_what_a_state_file_may_not_contain_is_set_aside(name: str, tmp_path: Path) -> None:
    told, path = list[str](), tmp_path / "state.json"
    write_private(path, CONTENTS[name])
    is_read = StateFile(path, on_problem=told.append).load() is not None
    assert is_read is (name == "as many values as can be")
    assert [aside.read_bytes() for aside in tmp_path.iterdir() if ".corrupt-" in aside.name] == (
        [] if is_read else [CONTENTS[name]]
    )
    assert len(told) == (not is_read)
    write_private(tmp_path / "messages.jsonl", CONTENTS[name])
    load_messages(tmp_path)
    append_message(tmp_path, "hello")
    assert load_messages(tmp_path)[-1] == "hello"


async def test_J05_no_content_of_a_state_file_stops_a_start(
    write: Callable[[str, bytes], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, content in zip(FILES, SMALL.values(), strict=True):
        write(name, content)
    await check_a_start(tmp_path, caplog)


async def test_J05_no_value_of_a_wrong_type_stops_a_start(
    write: Callable[[str, bytes], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ENTRIES:
        write(name, all_odd_entries(name))
    await check_a_start(tmp_path, caplog)
    values: tuple[object, ...] = (None, 10**900, [[]], {"x": None})
    for value in values:
        for name in ENTRIES:
            write(name, json.dumps({"version": 1, **dict.fromkeys(KEYS, value)}).encode())
        await check_a_start(tmp_path, caplog)
    assert not list(state_dir().glob("*.corrupt-*"))
