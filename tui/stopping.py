"""Signals that come while gemdeck is imported: kept until something can answer them.

An import that is cut leaves broken classes, and a run in a script no result.
"""

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Final

NUMBERS: Final = signal.SIGINT, signal.SIGTERM, signal.SIGHUP

_kept: list[int] = []


def hold() -> None:
    """Keep signals that would end the process; a second one ends it all the same.

    Those that are ignored stay so, as below ``nohup``.
    """
    for number in NUMBERS:
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            with suppress(ValueError):  # only the main thread gets signals
                signal.signal(number, _keep)


def release() -> int:
    """Let signals raise `KeyboardInterrupt` from now on; return the one that was kept, or 0."""
    for number in NUMBERS:
        if signal.getsignal(number) is _keep:
            signal.signal(number, signal.default_int_handler)
    return _kept.pop() if _kept else 0


def _keep(number: int, _frame: FrameType | None) -> None:
    if _kept:
        os._exit(128 + number)
    _kept.append(number)
