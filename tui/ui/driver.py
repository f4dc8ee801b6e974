"""Textual's driver, for a terminal that may be gone before the app is."""

import io
from typing import Any, TextIO, cast

from textual.drivers.linux_driver import LinuxDriver


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


class DeckDriver(LinuxDriver):
    """Lets the app leave in good order after its terminal was closed."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(*args, **options)
        if self._file is not None:
            self._file = cast("io.TextIOWrapper", VanishingOutput(self._file))
