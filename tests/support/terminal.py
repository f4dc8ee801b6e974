"""A real terminal for a program: a pty, a screen that is drawn from its output, and a keyboard.

The program runs as the leader of its own session with the pty as controlling terminal, so that
closing the terminal hangs it up and resizing it signals it, as with any terminal emulator.
"""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import psutil
import pyte

from tests.support.waiting import PATIENCE

MAX_RAW_BYTES: Final = 32_000_000
"""Output kept of one program; what writes more than this is broken, or a long run: see `forget`."""

KEYS: Final[Mapping[str, str]] = {
    **{"enter": "\r", "escape": "\x1b", "tab": "\t", "shift+tab": "\x1b[Z", "backspace": "\x7f"},
    **{"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D"},
    **{"pageup": "\x1b[5~", "pagedown": "\x1b[6~", "home": "\x1b[H", "end": "\x1b[F"},
    "delete": "\x1b[3~",
    **{f"f{number}": f"\x1bO{letter}" for number, letter in enumerate("PQRS", 1)},
    **{f"f{number}": f"\x1b[{code}~" for number, code in enumerate((15, 17, 18, 19, 20), 5)},
}
"""What xterm sends for named keys."""

_KIND: Final = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TERM_PROGRAM": ""}

_TAKE_TERMINAL: Final = (
    "import fcntl, os, sys, termios\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)
"""Runs first in the new session; a `preexec_fn` would fork this process, which has threads."""

_UNKNOWN_TO_PYTE: Final = re.compile(rb"\x1b\[[<=>][0-9;]*[a-zA-Z]")
_INCOMPLETE: Final = re.compile(rb"\x1b(?:\[[<=>]?[0-9;]*)?\Z")
_POLL: Final = 0.02
_QUIET: Final = 0.1


def processes_of(servers: int) -> int:
    """Count the processes of stdio servers: on Linux with a reaper each, and the zygote."""
    return 2 * servers + 1 if sys.platform == "linux" else servers


class Terminal:
    """Runs a program in a terminal of its own.

    Args:
        command: The program as an absolute path, and its arguments.
        columns: Width of the terminal in cells.
        rows: Its height.
        env: Variables besides those of the test's own environment.
        cwd: Where the program starts.
        draw: Whether to keep a screen; without one the output is read as fast as it comes.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 36,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        draw: bool = True,
    ) -> None:
        self.draws = draw
        """Whether a screen is kept."""
        self._arrivals: list[tuple[int, float]] = []
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = threading.Condition()
        self._shown: str | None = None
        self._raw = bytearray()
        self._pending = b""
        self._master: int | None
        self._master, self._slave = os.openpty()
        self._set_size(columns, rows)
        self.attributes_before = termios.tcgetattr(self._slave)
        """The terminal's attributes as the program found them; see `attributes`."""
        self.started_at = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _TAKE_TERMINAL, *command],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            cwd=cwd,
            env={**os.environ, **_KIND, **(env or {})},
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program, if it still runs, and give the terminal back."""
        if self._process.poll() is None:
            for process in [*self.descendants(), psutil.Process(self.pid)]:
                _kill(process)
        self._process.wait()
        self.hang_up()
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._process.pid

    @property
    def raw(self) -> bytes:
        """All that the program has written, byte for byte."""
        with self._changed:
            return bytes(self._raw)

    @property
    def screen(self) -> str:
        """What the screen shows, a line a row, without white space at the ends."""
        with self._changed:
            return self._text()

    @property
    def attributes(self) -> list[Any]:
        """The terminal's attributes now, as `termios.tcgetattr` gives them."""
        return termios.tcgetattr(self._slave)

    @attributes.setter
    def attributes(self, value: list[Any]) -> None:
        termios.tcsetattr(self._slave, termios.TCSANOW, value)

    def forget(self) -> None:
        """Drop the output kept so far; what a program writes in minutes has no limit."""
        with self._changed:
            self._raw.clear()
            self._arrivals.clear()

    def descendants(self) -> list[psutil.Process]:
        """List the processes the program has started, and theirs."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def type(self, text: str) -> None:
        """Send text as if typed."""
        self.send(text.encode())

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._master is None:
            raise ValueError("The terminal was hung up.")
        while data:
            data = data[os.write(self._master, data) :]

    def press(self, *keys: str) -> None:
        """Press keys by name: those of `KEYS`, ``ctrl+a`` to ``ctrl+z``, or one character."""
        self.type("".join(_key(name) for name in keys))

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal; the kernel tells the program."""
        with self._changed:
            self._screen.resize(rows, columns)
            self._shown = None
        self._set_size(columns, rows)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone."""
        self._process.send_signal(number)

    def hang_up(self) -> None:
        """Close the terminal, as when its window is closed: the program gets SIGHUP."""
        with self._changed:
            master, self._master = self._master, None
        self._reader.join()
        if master is not None:
            os.close(master)

    def wait_for(self, wanted: str | Callable[[str], bool], timeout: float = PATIENCE) -> str:
        """Wait until the screen shows a text, or fulfils a condition.

        Returns:
            The screen at that moment.

        Raises:
            AssertionError: If it does not come in time, or the program ends before, or writes so
                much that no more is read; the message holds the screen.
        """
        deadline = time.monotonic() + timeout
        ended = False
        with self._changed:
            while True:
                text = self._text()
                if wanted in text if isinstance(wanted, str) else wanted(text):
                    return text
                is_full = len(self._raw) > MAX_RAW_BYTES
                if ended or is_full or time.monotonic() > deadline:
                    reason = "before the program ended" if ended else f"within {timeout} s"
                    reason = f"in {MAX_RAW_BYTES} bytes of output" if is_full else reason
                    raise AssertionError(f"{wanted!r} did not come {reason}:\n{text}")
                if not self._changed.wait(_QUIET):
                    ended = self._process.poll() is not None and not self._readable()

    def seconds_until(self, output: bytes, timeout: float = PATIENCE) -> float:
        """Wait until the program has written `output`; give the seconds from start to then.

        Raises:
            AssertionError: If it does not come in time.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while (found := self._raw.find(output)) < 0:
                left = deadline - time.monotonic()
                assert left > 0, f"{output!r} was not written within {timeout} s"
                self._changed.wait(left)
            end = found + len(output)
            arrived = next(moment for length, moment in self._arrivals if length >= end)
        return arrived - self.started_at

    def wait_gone(self, unwanted: str, timeout: float = PATIENCE) -> str:
        """Wait until the screen no longer shows a text; see `wait_for`."""
        return self.wait_for(lambda screen: unwanted not in screen, timeout)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_for_exit(self, timeout: float = PATIENCE) -> int:
        """Wait until the program has ended and all its output was read.

        Returns:
            Its exit status, or the negative number of the signal that ended it.
        """
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            message = f"The program still runs after {timeout} s.\n{self.screen}"
            raise AssertionError(message) from error
        self._drain()
        return status

    def _text(self) -> str:
        """Give the screen as text, which takes milliseconds where it was drawn on since."""
        if self._shown is None:
            self._shown = "\n".join(line.rstrip() for line in self._screen.display)
        return self._shown

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        """Draw what the program writes until the terminal is hung up."""
        while True:
            ready = self._readable(_POLL)
            with self._changed:
                if self._master is None:
                    return
                if not ready:
                    continue
                try:
                    data = os.read(self._master, 65_536)
                except OSError:
                    return
                self._raw += data
                self._arrivals.append((len(self._raw), time.monotonic()))
                if self.draws:
                    self._draw(data)
                self._changed.notify_all()
                if len(self._raw) > MAX_RAW_BYTES:
                    return

    def _draw(self, data: bytes) -> None:
        """Feed the screen, but for the private sequences that pyte would print as text."""
        data = _UNKNOWN_TO_PYTE.sub(b"", self._pending + data)
        incomplete = _INCOMPLETE.search(data)
        cut = incomplete.start() if incomplete else len(data)
        self._pending = data[cut:]
        self._stream.feed(data[:cut])
        self._shown = None

    def _readable(self, timeout: float = 0.0) -> bool:
        master = self._master
        return master is not None and bool(select.select([master], [], [], timeout)[0])

    def _drain(self) -> None:
        """Wait until the reader has had all that the program wrote before it ended."""
        while self._reader.is_alive():
            with self._changed:
                if not self._readable():
                    return
            time.sleep(_POLL)


def _key(name: str) -> str:
    if name.startswith("ctrl+") and len(name) == len("ctrl+x"):
        return chr(ord(name[-1]) & 0x1F)
    return name if len(name) == 1 else KEYS[name]


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


_SEQUENCE: Final = re.compile(
    rb"\x1b\](?P<osc>\d*)[^\x07\x1b]*(?:\x07|\x1b\\)"
    rb"|\x1b\[(?P<csi>[<=>?]?)(?P<params>[0-9;:]*)(?P<final>[ -/]*[@-~])"
    rb"|\x1b(?P<string>[PX^_])[^\x1b]*\x1b\\"
    rb"|\x1b(?P<other>[ -/]*[0-OQ-WYZ\\`-~])"
    rb"|(?P<control>[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f])"
)


def escape_kinds(raw: bytes) -> frozenset[str]:
    """Name the kinds of escape sequences and control characters in a program's output.

    Positions, sizes and colours are left out; the numbers of private modes and of operating
    system commands stay, because there the number is the meaning: ``CSI H``, ``CSI ?1049h``,
    ``OSC 52``, ``C0 07``.
    """
    kinds = set()
    for match in _SEQUENCE.finditer(raw):
        if match["osc"] is not None:
            kinds.add(f"OSC {match['osc'].decode()}")
        elif match["final"] is not None:
            parameters = match["params"].decode() if match["csi"] else ""
            kinds.add(f"CSI {match['csi'].decode()}{parameters}{match['final'].decode()}")
        elif match["string"] is not None:
            kinds.add(f"ESC {match['string'].decode()} string")
        elif match["other"] is not None:
            kinds.add(f"ESC {match['other'].decode()}")
        else:
            kinds.add(f"C0 {match['control'][0]:02x}")
    text = _SEQUENCE.sub(b"", raw).decode("utf-8", "replace")
    kinds.update(f"C1 {ord(character):02x}" for character in text if "\x80" <= character <= "\x9f")
    if "\x1b" in text:
        kinds.add("unterminated")
    return frozenset(kinds)
