"""The audit log: decisions about tools and folders, and the tools that ran.

A JSON object a line, in ASCII, appended and never changed. Arguments are not part of it: their
SHA-256 and length tell whether they are those of another record.
"""

import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tui.engine.background import OrderedWorker
from tui.engine.files.line_file import LineFile
from tui.engine.logs.redaction import Redactor
from tui.model.chat import EntryId, ToolCallStatus
from tui.model.consent import ToolRuleChanged
from tui.model.events import Event, TaskKept, ToolCallChanged, ToolCallDecided
from tui.text import clip, sanitize_line

FILE_NAME: Final = "audit.jsonl"

MAX_AUDIT_BYTES: Final = 5_000_000
"""Size at which the file is rotated."""

MAX_AUDIT_FILES: Final = 5
"""Rotated files kept."""

GOING_ON: Final = {ToolCallStatus.ASKING, ToolCallStatus.RUNNING, ToolCallStatus.RUNS_ON}
"""Statuses after which a call may still end."""

MAX_FIELD: Final = 256
"""Longest name, word or source in a record, in characters."""

_IDENTIFIERS: Final = frozenset({"call", "fingerprint", "definition", "content"})
"""Fields with identifiers and hashes, which look like secrets and are none."""


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
        self._allowed: dict[EntryId, dict[str, str]] = {}

    def heed(self, event: Event) -> None:
        """Record decisions, calls and changes of rules. Other events are ignored."""
        match event:
            case ToolCallDecided(decision=decision):
                about = event.said()
                if not event.caller:
                    del about["caller"]  # the chat, as in most records
                self._append("decision", **about)
                if decision == "allow":
                    del about["decision"], about["source"]
                    self._allowed[event.call] = about
            case TaskKept(call=call, task=task) if task:  # which an earlier run may have begun
                names = ("call", "server", "fingerprint", "tool")
                self._allowed.setdefault(call, {name: getattr(event, name) for name in names})
            case ToolCallChanged(seconds=None, status=status):
                if status not in GOING_ON:
                    self._allowed.pop(event.call, None)
            case ToolCallChanged() if about := self._allowed.pop(event.call, {}):
                if event.status is ToolCallStatus.RUNS_ON:
                    self._allowed[event.call] = about  # its end comes later
                took = round(event.seconds or 0.0, 3)
                self._append("call", **about, outcome=event.status.value, seconds=took)
            case ToolRuleChanged():
                self._append("rule", **event.said())

    def record_trust(self, place: str, content: str, *, decision: str, source: str) -> None:
        """Record what was decided about a folder or a settings file.

        Args:
            place: The folder or file.
            content: A hash (hex) of what it would run; of a folder's it is salted.
            decision: The word, such as ``trust`` or ``never``.
            source: What it rests on, such as ``you`` or ``--trust-folder``.
        """
        self._append("trust", place=place, content=content, decision=decision, source=source)

    def close(self, patience: float) -> None:
        """Write what waits, for at most `patience` seconds. Blocks."""
        self._worker.close(patience)

    def _append(self, kind: str, **fields: str | float) -> None:
        """Write a record. Its fields are made in the thread: hashing takes a while."""
        if self._file is None:
            return
        now, number = round(self._clock(), 3), next(self._numbers)
        head = {"time": now, "run": self._run, "number": number, "event": kind}
        self._worker.submit(partial(self._write, self._file, head, fields))

    def _write(
        self, file: LineFile, head: Mapping[str, object], fields: Mapping[str, str | float]
    ) -> None:
        record = {**head, **{name: self._field(name, value) for name, value in fields.items()}}
        file.keep(json.dumps(record).encode("ascii"), self._on_problem)

    def _field(self, name: str, value: str | float) -> object:
        """Return a field as it is written."""
        if not isinstance(value, str):
            return value
        if name == "arguments":
            data = value.encode("utf-8", "surrogatepass")
            return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        if name in _IDENTIFIERS:
            return clip(value, MAX_FIELD)
        return sanitize_line(self._redactor.redact(value), MAX_FIELD)
