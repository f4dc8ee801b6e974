"""How much of the results of old calls the state keeps."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tui.model.chat import Entry, ToolCall
from tui.store.state import TranscriptState

MAX_RESULTS: Final = 16 * 1024 * 1024
"""Total characters of results kept whole."""

MAX_OLD_RESULT: Final = 2_000
"""Characters kept of an older result."""

_NOTICE: Final = 100
"""Longest notice about a cut, in characters; a text within this margin is not cut again."""


def clip_old_results(transcript: TranscriptState) -> TranscriptState:
    """Clip the results of older calls above the limit; return the same object otherwise."""
    entries = (*transcript.settled, *transcript.live)
    if sum(len(entry.result) for entry in entries if isinstance(entry, ToolCall)) <= MAX_RESULTS:
        return transcript
    kept = _clipped(reversed(entries))[::-1]
    count = len(transcript.settled)
    return replace(transcript, settled=tuple(kept[:count]), live=tuple(kept[count:]))


def _clipped(newest_first: Iterable[Entry]) -> list[Entry]:
    room = MAX_RESULTS
    kept: list[Entry] = []
    for entry in newest_first:
        if isinstance(entry, ToolCall):
            room -= len(entry.result)
            kept.append(entry if room >= 0 else _cut(entry))
        else:
            kept.append(entry)
    return kept


def _cut(call: ToolCall) -> ToolCall:
    dropped = len(call.result) - MAX_OLD_RESULT
    if dropped <= _NOTICE:
        return call
    notice = f"… [clipped; {dropped:,} characters were dropped]"
    return replace(call, result=f"{call.result[:MAX_OLD_RESULT]}\n{notice}")
