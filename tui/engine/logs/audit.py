"""The audit log: decisions about tools and folders, and the tools that ran.

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
from typing import Any, Final

from tui.engine.background import OrderedWorker
from tui.engine.files.line_file import LineFile
from tui.engine.logs.redaction import Redactor
from tui.model.chat import EntryId, ToolCallStatus
from tui.model.consent import ToolRuleChanged
from tui.model.events import Event, ToolCallChanged, ToolCallDecided
from tui.text import clip, sanitize_line

FILE_NAME: Final = "audit.jsonl"

MAX_AUDIT_BYTES: Final = 5_000_000
"""Size at which the file is rotated."""

MAX_AUDIT_FILES: Final = 5
"""Rotated files kept."""

MAX_FIELD: Final = 256
"""Longest name, word or source in a record, in characters."""


class AuditLog:
    """Appends the decisions and calls among the engine's events to the audit log, in a thread.

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
        self._allowed: dict[EntryId, ToolCallDecided] = {}

    def heed(self, event: Event) -> None:
        """Record decisions, calls and changes of rules. Other events are ignored."""
        match event:
            case ToolCallDecided():
                if event.decision == "allow":
                    self._allowed[event.call] = event
                self._append("decision", partial(self._decision, event))
            case ToolCallChanged(seconds=None, status=status):
                if status not in {ToolCallStatus.ASKING, ToolCallStatus.RUNNING}:
                    self._allowed.pop(event.call, None)
            case ToolCallChanged() if decided := self._allowed.pop(event.call, None):
                self._append("call", partial(self._call, decided, event))
            case ToolRuleChanged():
                self._append("rule", partial(self._rule, event))

    def _decision(self, event: ToolCallDecided) -> dict[str, Any]:
        return {
            **self._about(event),
            "decision": self._words(event.decision),
            "source": self._words(event.source),
        }

    def _call(self, decided: ToolCallDecided, ended: ToolCallChanged) -> dict[str, Any]:
        return {
            **self._about(decided),
            "outcome": self._words(ended.status.value),
            "seconds": round(ended.seconds or 0.0, 3),
        }

    def _rule(self, event: ToolRuleChanged) -> dict[str, Any]:
        return {
            "server": self._words(event.server),
            "fingerprint": clip(event.fingerprint, MAX_FIELD),
            "tool": self._words(event.tool),
            "definition": clip(event.definition, MAX_FIELD),
            "decision": self._words(event.decision),
        }

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

    def close(self, patience: float) -> None:
        """Write what waits, for at most `patience` seconds. Blocks."""
        self._worker.close(patience)

    def _about(self, event: ToolCallDecided) -> dict[str, Any]:
        """Return the fields that identify a call and its tool."""
        data = event.arguments.encode("utf-8", "surrogatepass")
        return {
            "call": clip(str(event.call), MAX_FIELD),
            "server": self._words(str(event.server)),
            "fingerprint": clip(event.fingerprint, MAX_FIELD),
            "tool": self._words(event.tool),
            "definition": clip(event.definition, MAX_FIELD),
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
        file.keep(json.dumps(head | fields()).encode("ascii"), self._on_problem)
