"""The log: one private file, one record a line, nothing secret and nothing that acts."""

import json
import logging
import stat
from collections.abc import Iterator
from typing import Any

import pytest

from tui.engine.files.paths import LOG_NAME, log_dir
from tui.engine.logs import log_file
from tui.engine.logs.redaction import Redactor

_log = logging.getLogger("some")


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """Put the root logger back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger(log_file.OWN).setLevel(logging.NOTSET)
    logging.captureWarnings(capture=False)


def records() -> list[dict[str, Any]]:
    """Read the log; every line must be a record."""
    data = (log_dir() / LOG_NAME).read_bytes()
    assert data.endswith(b"\n")
    assert not [byte for byte in data if (byte < 0x20 and byte != 0x0A) or byte > 0x7E]
    return [json.loads(line) for line in data.splitlines()]


def test_every_log_file_is_private_also_after_a_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "MAX_LOG_BYTES", 400)
    log_file.log_to_file()
    for number in range(10):
        _log.warning("line %s of many", number)
    files = [path for path in log_dir().iterdir() if path.suffix != ".lock"]
    assert len(files) > 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert records()[-1]["message"] == "line 9 of many"


def test_a_record_says_when_how_bad_who_and_what() -> None:
    log_file.log_to_file()
    _log.error("broke %s", "down")
    [record] = records()
    assert record.pop("time").endswith("+00:00")
    assert record == {"level": "ERROR", "logger": "some", "message": "broke down"}


def test_an_error_brings_its_stack_without_the_secrets_in_its_text() -> None:
    redactor = Redactor()
    log_file.log_to_file(redactor)
    redactor.register("hunter2hunter2")
    try:
        raise ValueError("bad key hunter2hunter2")
    except ValueError:
        _log.exception("it failed with %s", "hunter2hunter2")
    [record] = records()
    assert record["message"] == "it failed with ***"
    assert record["stack"].endswith("ValueError: bad key ***")
    assert "test_logs.py" in record["stack"]


class Hostile:
    """Fails when it is to be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


def test_what_cannot_be_written_is_dropped_without_a_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_file.log_to_file()
    _log.warning("%d apples", "no number")
    _log.warning(Hostile())
    _log.warning("next")
    assert [record["message"] for record in records()] == ["%d apples", "next"]
    (log_dir() / LOG_NAME).unlink()
    (log_dir() / LOG_NAME).mkdir()
    _log.warning("nowhere to go")
    assert capsys.readouterr() == ("", "")


def test_libraries_speak_only_when_asked_to() -> None:
    log_file.log_to_file()
    logging.getLogger("httpx").info("HTTP Request: GET https://h/?key=1")
    logging.getLogger("mcp.client").debug("payload")
    logging.getLogger("google_genai.models").warning("attention")
    assert [record["message"] for record in records()] == ["attention"]
    log_file.log_to_file(verbose=True)
    logging.getLogger("httpcore2").debug("connect_tcp.started")
    logging.getLogger("asyncio").debug("Using selector")
    logging.getLogger("tui.engine").debug("GET https://h/?key=1")
    assert [record["message"] for record in records()] == ["attention", "GET https://h/?key=***"]
