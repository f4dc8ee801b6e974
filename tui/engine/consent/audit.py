"""The audit log: what was decided about tools and folders, and which tools ran.

A JSON object a line, in ASCII, appended and never changed. Arguments are not part of it: their
SHA-256 and length tell whether they are those of another record.
"""

import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from tui.engine.line_file import LineFile
from tui.engine.redaction import Redactor
from tui.engine.threads import OrderedWorker
from tui.engine.tools import OfferedTool
from tui.model.chat import EntryId
from tui.text import clip, sanitize_line

FILE_NAME: Final = "audit.jsonl"

MAX_AUDIT_BYTES: Final = 5_000_000
"""Size at which the file is rotated."""

MAX_AUDIT_FILES: Final = 5
"""Rotated files kept."""

MAX_FIELD: Final = 256
"""Longest name, word or source in a record, in characters."""


class RecordTrust(Protocol):
    """Keeps a record of a word on a folder or a settings file; see `AuditLog.record_trust`."""

    def __call__(self, place: str, content: str, *, decision: str, source: str) -> None:
        """Record it; returns at once."""


class AuditLog:
    """Appends to the audit log in a thread of its own; every `record_…` returns at once.

    Several gemdecks may write to one file. Every record has ``time`` (seconds since the epoch),
    ``run`` (eight hexadecimal digits that name the run of gemdeck), ``number`` (counts the
    records of that run from 1, whatever the clock does) and ``event`` (``decision``, ``call``,
    ``trust`` or ``rule``).

    Args:
        path: The file; its folder exists. None records nothing.
        on_problem: Takes a sentence for the user when a record cannot be written, once until
            one could be written again. Is called in the thread that writes.
        redactor: Masks what is secret in names and words.
        clock: Gives seconds since the epoch.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        on_problem: Callable[[str], None],
        redactor: Redactor | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = LineFile(path, MAX_AUDIT_BYTES, MAX_AUDIT_FILES) if path else None
        self._on_problem = on_problem
        self._redactor = redactor or Redactor()
        self._clock = clock
        self._run = os.urandom(4).hex()
        self._numbers = itertools.count(1)
        self._worker = OrderedWorker()
        self._is_failing = False

    def record_decision(
        self, tool: OfferedTool, call: EntryId, arguments: str, *, decision: str, source: str
    ) -> None:
        """Record what was decided about a call.

        Args:
            tool: The tool as it was offered.
            call: The call; the record of how it ended has the same.
            arguments: Its arguments, as JSON, as they were decided about.
            decision: ``allow``, ``deny``, or ``withdrawn`` where the call did not run and nobody
                had decided.
            source: What it rests on, such as ``you: once`` or a file of settings.
        """
        self._append(
            "decision",
            lambda: {
                **self._about(tool, call, arguments),
                "decision": self._words(decision),
                "source": self._words(source),
            },
        )

    def record_call(
        self, tool: OfferedTool, call: EntryId, arguments: str, *, outcome: str, seconds: float
    ) -> None:
        """Record a call that ended.

        Args:
            tool: The tool as it was offered.
            call: The call.
            arguments: The arguments it ran with, as JSON.
            outcome: How it ended: ``ok``, ``error``, ``cancelled`` or another word.
            seconds: How long it took.
        """
        self._append(
            "call",
            lambda: {
                **self._about(tool, call, arguments),
                "outcome": self._words(outcome),
                "seconds": round(seconds, 3),
            },
        )

    def record_trust(self, place: str, content: str, *, decision: str, source: str) -> None:
        """Record what was decided about a folder or a settings file.

        Args:
            place: The folder or file.
            content: A hash (hex) of what it would run; of a folder's it is salted.
            decision: The word, such as ``trust`` or ``never``.
            source: What it rests on, such as ``you`` or ``--trust-folder``.
        """
        self._append(
            "trust",
            lambda: {
                "place": self._words(place),
                "content": clip(content, MAX_FIELD),
                "decision": self._words(decision),
                "source": self._words(source),
            },
        )

    def record_rule(
        self, server: str, tool: str, *, decision: str, fingerprint: str = "", definition: str = ""
    ) -> None:
        """Record what the user decided about a rule or about a tool that changed.

        Args:
            server: The server's name, as shown.
            tool: The tool's name, as shown; ``*`` for all of the server.
            decision: ``revoke``, ``accept change`` or ``refuse change``.
            fingerprint: Which server it is, where that is known.
            definition: The hash of the definition that was shown, where it is about one.
        """
        self._append(
            "rule",
            lambda: {
                "server": self._words(server),
                "fingerprint": clip(fingerprint, MAX_FIELD),
                "tool": self._words(tool),
                "definition": clip(definition, MAX_FIELD),
                "decision": self._words(decision),
            },
        )

    def close(self, patience: float) -> None:
        """Write what waits, for at most `patience` seconds. Blocks."""
        self._worker.close(patience)

    def _about(self, tool: OfferedTool, call: EntryId, arguments: str) -> dict[str, Any]:
        """Say which call of which tool a record is about."""
        data = arguments.encode("utf-8", "surrogatepass")
        return {
            "call": clip(str(call), MAX_FIELD),
            "server": self._words(str(tool.server)),
            "fingerprint": clip(tool.fingerprint, MAX_FIELD),
            "tool": self._words(tool.name),
            "definition": clip(tool.definition_hash, MAX_FIELD),
            "arguments": {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)},
        }

    def _words(self, text: str) -> str:
        return sanitize_line(self._redactor.redact(text), MAX_FIELD)

    def _append(self, event: str, fields: Callable[[], dict[str, Any]]) -> None:
        """Write a record. Its fields are made in the thread: hashing takes a while."""
        if self._file is None:
            return
        head = {
            "time": round(self._clock(), 3),
            "run": self._run,
            "number": next(self._numbers),
            "event": event,
        }
        self._worker.submit(partial(self._write, self._file, head, fields))

    def _write(
        self, file: LineFile, head: dict[str, Any], fields: Callable[[], dict[str, Any]]
    ) -> None:
        try:
            file.append(json.dumps(head | fields()).encode("ascii"))
        except OSError as error:
            if not self._is_failing:
                self._is_failing = True
                reason = sanitize_line(error.strerror or type(error).__name__)
                self._on_problem(
                    f"The audit log cannot be written: {reason}. "
                    "Decisions and calls go unrecorded until it can be."
                )
        else:
            self._is_failing = False
