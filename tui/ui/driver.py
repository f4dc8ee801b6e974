"""Textual's driver, for a terminal that sends anything and may be gone before the app is."""

import io
import os
import re
import selectors
import signal
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, Final, TextIO, cast

from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message

from tui.ui.paste import Keystrokes, Pasted, PasteReader

READ_BYTES: Final = 4096
"""Most bytes taken from the terminal at once."""

TICK: Final = 0.1
"""Seconds after which a key that could be the beginning of a longer one counts as it is."""

_WILD_REPORT: Final = re.compile(r"\x1b\[[\d;:]*\d{8,}[\d;:]*[u~]")
"""A key report with a number no character has, which the parser does not survive."""

HANGUP_EXIT: Final = 128 + signal.SIGHUP
"""The exit code where the terminal is gone, as after the signal that says so."""


class VanishingOutput(io.TextIOBase):
    """A terminal's output that swallows what is written once the terminal is gone.

    Textual writes from a thread with a bounded queue. An error would end that thread, and the
    next writers would wait for ever for room in the queue.
    """

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def write(self, text: str) -> int:
        """Write, or forget the text where nobody can see it any longer."""
        try:
            return self._output.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Flush, where there is still something to flush to."""
        try:
            self._output.flush()
        except OSError:
            return

    def fileno(self) -> int:
        """Give the descriptor of the terminal."""
        return self._output.fileno()


class TerminalInput:
    """Makes messages of what a terminal sends; no bytes are an error.

    Args:
        debug: Whether Textual's parser keeps a log of keys.
    """

    def __init__(self, *, debug: bool = False) -> None:
        self._debug = debug
        self._parser = XTermParser(debug)
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._pastes = PasteReader()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Take bytes as they were read."""
        for part in self._pastes.read(self._decoder.decode(data)):
            yield from self._messages(part)

    def tick(self) -> Iterator[Message]:
        """Give what waited in vain for more; called every `TICK` seconds."""
        for part in self._pastes.tick():
            yield from self._messages(part)
        yield from self._parser.tick()

    def _messages(self, part: Keystrokes | Pasted) -> Iterator[Message]:
        match part:
            case Pasted(text):
                yield events.Paste(text)
            case Keystrokes(text):
                known = _WILD_REPORT.sub("", text)
                if not known:  # to the parser, nothing is the end of all input
                    return
                try:
                    yield from self._parser.feed(known)
                except (ValueError, OverflowError):  # a key report with a number out of range
                    self._parser = XTermParser(self._debug)


class DeckDriver(LinuxDriver):
    """Reads whatever the terminal sends, and leaves in good order after it was closed."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(*args, **options)
        if self._file is not None:
            self._file = cast("io.TextIOWrapper", VanishingOutput(self._file))

    def start_application_mode(self) -> None:
        """Take the terminal over, and learn of each change of its size from the event loop.

        Textual's own handler reads the size where the signal interrupts it. Of two signals in a
        row the older size may then be told last, and stay.
        """
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual leaves it so
        self._loop.add_signal_handler(signal.SIGWINCH, self._tell_size)

    def _tell_size(self) -> None:
        if not self._in_band_window_resize:
            size = Size(*self._get_terminal_size())
            self.send_message(events.Resize(size, size))

    def _run_input_thread(self) -> None:
        """Read until the driver stops; an error ends the app as any other does."""
        try:
            self.run_input_thread()
        except Exception as error:  # noqa: BLE001 - a thread's error is nobody's to catch but here
            self._app.call_later(self._app._handle_exception, error)

    def run_input_thread(self) -> None:
        """Hand on what the terminal sends, until the driver stops or the terminal is gone."""
        source = TerminalInput(debug=self._debug)
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
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
        """Read what is there; nothing at all where the terminal is gone, None where to wait."""
        try:
            return os.read(self.fileno, READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""
