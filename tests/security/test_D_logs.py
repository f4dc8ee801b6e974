"""Text from outside in log files: it forges no line and moves no cursor of who reads them."""

import json
import logging
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tui.engine.logs.audit import AuditLog
from tui.engine.logs.log_file import JsonFormatter
from tui.engine.logs.redaction import Redactor

HOSTILE = (
    'x\n{"level": "INFO", "message": "all is well"}\r\n\x1b]0;title\x07\x1b[2J\x9b31m\x90q\x9c'
    "\x7f\x00\u202e\u2028\ud800 \U000e0041"
)


def line_of(message: str, *arguments: object) -> str:
    record = logging.LogRecord(HOSTILE, 30, "f.py", 1, message, arguments, None, HOSTILE, HOSTILE)
    return JsonFormatter(Redactor()).format(record)


def is_harmless(line: str) -> bool:
    """Tell whether a terminal does nothing but show it, in one line."""
    return line.isascii() and line.isprintable()


@given(text=st.text())
@example(text=HOSTILE)
def test_D16_any_record_is_one_line_of_plain_characters(text: str) -> None:
    line = line_of("%s and %r", text, text)
    assert is_harmless(line)
    assert isinstance(json.loads(line)["message"], str)
    assert json.loads(line)["level"] == "WARNING"


def test_D16_the_audit_log_cannot_be_forged(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", on_problem=pytest.fail)
    log.record_trust(HOSTILE, HOSTILE, decision=HOSTILE, source=HOSTILE)
    log.close(5)
    [line] = (tmp_path / "audit.jsonl").read_text("ascii").splitlines()
    assert is_harmless(line)
    assert json.loads(line)["event"] == "trust"
