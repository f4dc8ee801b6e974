"""Textual's driver, hardened against invalid input and a terminal that goes away."""

import io
import os
import re
import selectors
import signal
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from threading import Event
from typing import Any, Final, TextIO, cast

from rich.cells import cell_len
from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message

from tui.ui.paste import Keystrokes, Pasted, PasteReader, clean_paste

READ_BYTES: Final = 4096
"""Bytes read from the terminal at once."""

TICK: Final = 0.1
"""Seconds before a key that may be the start of a longer sequence counts on its own."""

READER_PATIENCE: Final = 1.0
"""Seconds that the reader of the terminal gets to end."""

MIN_RUN: Final = 64
"""Characters that come at once from which they count as pasted: nobody types as fast."""

_RUN: Final = re.compile(rf"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]{{{MIN_RUN},}}")
"""Text without control keys; its line ends are pasted ones, but for the last."""

_WILD_REPORT: Final = re.compile(r"\x1b\[[\d;:]*\d{8,}[\d;:]*[u~]")
"""A key report with a number that is no character; Textual's parser fails on it."""

_ALT_DIGIT: Final = re.compile(r"\x1b([1-9])")
"""Alt with a digit, for which Textual's parser gives what a Mac's keyboard has there, such as ™."""

_UNTITLED: Final = frozenset({"linux", "dumb", ""})
"""Terminals without a title, which might print it."""

_KEEP_TITLE: Final = "\x1b[22;2t"
_OLD_TITLE: Final = "\x1b]2;\x1b\\\x1b[23;2t"
"""Gives the window the title back that it had, or none where a terminal kept none."""

HANGUP_EXIT: Final = 128 + signal.SIGHUP
"""The exit code after the terminal went away, as after the signal."""


_REGION: Final = 0x1F1E6
"""The first of the 26 letters that make flags."""

_DOUBTFUL: Final = re.compile(
    "[\U0001f1e6-\U0001f1ff]|"
    "(.)(?=[\ufe0f\u200d\U0001f3fb-\U0001f3ff])"  # for speed
    "(?:\ufe0f\u20e3?|[\U0001f3fb-\U0001f3ff]|\u200d(?:[^\\w\\s\0-\x1f]|(?=\x1b|$)))+"
)
"""Signs on whose width terminals disagree: flags, and what is drawn as an emoji, has a skin tone
or is joined."""


def _plainly(found: re.Match[str]) -> str:
    """Draw the first sign alone, as wide as Textual counts all of them; of a flag its letters."""
    if found[1] is None:
        return chr(ord(found[0]) - _REGION + ord("A"))
    return found[1] + " " * (cell_len(found[0]) - cell_len(found[1]))


class VanishingOutput(io.TextIOBase):
    """A terminal's output that drops writes once the terminal is gone.

    Signs on whose width terminals disagree are written plainly, as wide as Textual counts them.

    Textual writes from a thread with a bounded queue. An error would end that thread, and later
    writers would wait forever for room in the queue.
    """

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def write(self, text: str) -> int:
        """Write, or drop the text if the terminal is gone."""
        try:
            return self._output.write(_DOUBTFUL.sub(_plainly, text))
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            self._output.flush()
        except OSError:
            return

    def fileno(self) -> int:
        return self._output.fileno()


class TerminalInput:
    """Turn a terminal's input into messages; any bytes are accepted.

    Args:
        debug: Whether Textual's parser logs keys.
    """

    def __init__(self, *, debug: bool = False) -> None:
        self._debug = debug
        self._parser = XTermParser(debug)
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._pastes = PasteReader()

    def feed(self, data: bytes) -> Iterator[Message]:
        for part in self._pastes.read(self._decoder.decode(data)):
            yield from self._messages(part)

    def tick(self) -> Iterator[Message]:
        """Yield what has waited too long for its continuation; called every `TICK` seconds."""
        for part in self._pastes.tick():
            yield from self._messages(part)
        yield from self._parser.tick()

    def _messages(self, part: Keystrokes | Pasted) -> Iterator[Message]:
        match part:
            case Pasted(text):
                yield events.Paste(text)
            case Keystrokes(text):
                known = _WILD_REPORT.sub("", text)
                at = 0
                for run in _RUN.finditer(known) if "\x1b" not in known else ():
                    yield from self._keys(known[at : run.start()])
                    pasted = run[0].rstrip("\r")
                    yield events.Paste(clean_paste(pasted))
                    at = run.start() + len(pasted)
                yield from self._keys(known[at:])

    def _keys(self, text: str) -> Iterator[Message]:
        at = 0
        for found in _ALT_DIGIT.finditer(text):
            yield from self._parsed(text[at : found.start()])
            yield events.Key(f"alt+{found[1]}", None)
            at = found.end()
        yield from self._parsed(text[at:])

    def _parsed(self, text: str) -> Iterator[Message]:
        if not text:  # the parser takes an empty string for the end of input
            return
        try:
            yield from self._parser.feed(text)
        except (ValueError, OverflowError):  # a key report with a number out of range
            self._parser = XTermParser(self._debug)


class DeckDriver(LinuxDriver):
    """Accept any input, and end cleanly when the terminal goes away."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(*args, **options)
        if self._file is not None:
            self._file = cast("io.TextIOWrapper", VanishingOutput(self._file))
        self._title = ""

    def set_title(self, title: str) -> None:
        """Give the terminal's window a title until it is ours no more; an empty one ends that.

        Args:
            title: One line without control characters.
        """
        if os.environ.get("TERM", "") in _UNTITLED or title == self._title:
            return
        before = "" if self._title else _KEEP_TITLE
        self.write(f"{before}\x1b]2;{title}\x1b\\" if title else _OLD_TITLE)
        self._title = title

    def stop_application_mode(self) -> None:
        """Stop, and give the window its title back until the next start."""
        title = self._title
        self.set_title("")
        self._title = title
        super().stop_application_mode()

    def start_application_mode(self) -> None:
        """Start, and handle size changes on the event loop.

        Textual's own handler reads the size inside the signal handler. After two signals in
        quick succession the older size may be reported last, and stay.
        """
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual leaves it so
        self._loop.add_signal_handler(signal.SIGWINCH, self._report_size)
        if self._writer_thread is not None:  # else it is in the background, and goes on later
            title, self._title = self._title, ""
            self.set_title(title)

    def _sigcont_application(self, *_: object) -> None:
        """Go on after the process was stopped.

        SIGSTOP, unlike SIGTSTP, leaves the screen as it is. Textual's own handler would start a
        second reader, which nobody ends, and take our attributes for those of the terminal.
        """
        if self._must_signal_resume:  # after SIGTSTP
            self.resume_application_mode()
            return
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._begin_anew)

    def _begin_anew(self) -> None:
        """Set the terminal up again: whoever had it meanwhile may have changed it."""
        if self._key_thread is not None:  # it is read: no editor has it, and the app goes on
            self.suspend_application_mode()
            self.resume_application_mode()

    def disable_input(self) -> None:
        """Stop reading; a read whose key another program has taken is not waited for."""
        reader, self._key_thread = self._key_thread, None
        if reader is not None:
            self.exit_event.set()
            reader.join(READER_PATIENCE)
            self.exit_event = Event()
        super().disable_input()

    def _report_size(self) -> None:
        if not self._in_band_window_resize:
            size = Size(*self._get_terminal_size())
            self.send_message(events.Resize(size, size))

    def _run_input_thread(self) -> None:
        """Read until the driver stops; an error ends the app like any other."""
        try:
            self.run_input_thread()
        except Exception as error:  # noqa: BLE001 - nobody else sees a thread's error
            self._app.call_later(self._app._handle_exception, error)

    def run_input_thread(self) -> None:
        """Process input until the driver stops or the terminal is gone."""
        source = TerminalInput(debug=self._debug)
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            must_end = self.exit_event
            while not must_end.is_set():
                if selector.select(TICK):
                    data = self._read()
                    if data == b"":
                        self._app.call_later(self._app.exit, None, HANGUP_EXIT)
                        return
                    for message in source.feed(data or b""):
                        self.process_message(message)
                for message in source.tick():
                    self.process_message(message)

    def _read(self) -> bytes | None:
        """Read what is available: empty if the terminal is gone, None if there is nothing yet."""
        try:
            return os.read(self.fileno, READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""
