"""Textual's driver, hardened against invalid input and a terminal that goes away."""

import codecs
import io
import os
import re
import selectors
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import Any, Final, TextIO, cast

from rich.cells import cell_len
from textual import events
from textual._compositor import CompositorUpdate
from textual._parser import ParseTimeout
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.keys import Keys
from textual.message import Message

from tui.ui.paste import Keystrokes, Pasted, PasteReader, clean_paste
from tui.ui.terminal.background import ASK, ASK_NO_MORE, read_background
from tui.ui.terminal.drawn import ChangesOnly, Drawn
from tui.ui.terminal.key_forms import in_one_form

TICK: Final = 0.1
"""Seconds before a key that may be the start of a longer sequence counts on its own."""

MIN_RUN: Final = 64
"""Characters that come at once from which they count as pasted: nobody types as fast."""

_RUN: Final = re.compile(rf"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]{{{MIN_RUN},}}")
"""Text without control keys; its line ends are pasted ones, but for the last."""

MAX_SIDE: Final = 4_096
"""Most rows and columns that a terminal may report."""

MAX_ANSWER: Final = 200_000
"""Characters of an answer, such as the clipboard; what comes after them counts as keys."""

MAX_TAIL: Final = 256
"""Characters of an answer that are kept to find its end."""

ANSWER_PATIENCE: Final = 1.0
"""Seconds of silence that end an answer or a sequence."""

QUIT_PATIENCE: Final = 1.5
"""Seconds that the event loop may be held after the key that quits."""

SLOW: Final = 0.25
"""Seconds from which the event loop counts as held until it answers."""

_ANSWER: Final = re.compile(
    r"\x1b(?:\][\dlL]|P[\d!$+=>@|]|_G|\[[?>=](?:[\d;:]*[@-~]|[\d;:]{24}))\Z"
)
"""What only a terminal's answer begins with (OSC, DCS, APC, a long CSI), or is (CSI); modes are
read on."""

_END: Final = re.compile(r"(?:\x07|\x1b\\|\x9c|\x1b\[[^@-~]*[@-~])\Z")

_SIDE_BUTTONS: Final = 128
"""What a mouse adds for the buttons that go back and forward."""

_SEQUENCE: Final = re.compile(r"\x1b\[[ -?]*\Z")
"""A sequence that goes on."""

_NO_KEY: Final = re.compile(r"\x1b\[(?!M|<[\d;]+[Mm]|\?\d+;\d\$y)[0-?]*[ -/]*[@-Z\\-~]")
"""A sequence that is whole; the mouse, and modes, which Textual reads after keys, are none."""

_REST: Final = re.compile(r"\](?:\d+;|[lL])|P[\d!$+=>@|]|_G|\[(?:[?>=<][\d;]|200~)|\[[ -?]*[@-~]\Z")
"""What follows Esc where a slow line cut a sequence after it."""

_CONTROLS: Final = "gemdeck-controls"

_IN_ONE_READ: Final = (
    (re.compile(r"\x1b\x1b[O\[]([A-DFHP-S])"), "\x1b[1;3\\1"),  # Alt: PuTTY, rxvt, Linux console
    (re.compile(r"\x1b\x1b\[(\d+)~"), "\x1b[\\1;3~"),
    (re.compile(r"\\\r\n"), "\x1b[13;2u"),  # Shift+Enter as gemini-cli sets VS Code up
)
"""Keys whose first character is a key, too, and the same in kitty's form."""

_ONE_BYTE: Final = re.compile("[\x8f\x90\x9b-\x9d\x9f]")
"""What may stand for Esc with O, P, [, \\, ] or _ at the start or the end of a sequence."""


def _read_control(error: Any) -> tuple[str, int]:  # noqa: ANN401 - a UnicodeDecodeError
    """Read a control character of one byte as it is; other bytes are replaced, as usual."""
    found = error.object[error.start : error.end].decode("latin-1")
    return (found if _ONE_BYTE.fullmatch(found) else "\ufffd"), error.end


codecs.register_error(_CONTROLS, _read_control)

_UNTITLED: Final = frozenset({"linux", "dumb", ""})
"""Terminals without a title, which might print it."""

_KEEP_TITLE: Final = "\x1b[22;2t"
_OLD_TITLE: Final = "\x1b]2;\x1b\\\x1b[23;2t"
"""Gives the window the title back that it had, or none where a terminal kept none."""

_KEY_FORMS: Final = "\x1b[=4;2u\x1b[?9001l"
"""Asks for the key of a Latin layout, too: Ctrl+C has no Latin letter on a Russian one. Windows'
own form of keys, which another program may have left on, goes off."""

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


def _takes_mouse(*, wanted: bool) -> bool:
    """Tell whether the mouse is ours: with it, GNU screen keeps Esc back until the next key."""
    return wanted and "STY" not in os.environ


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
        with suppress(OSError):
            self._output.write(_DOUBTFUL.sub(_plainly, text))
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._output.flush()

    def fileno(self) -> int:
        return self._output.fileno()


class DeckParser(XTermParser):
    """Textual's parser, which loses no more than the sequence that it cannot read.

    What a terminal answers is no key, nor is a control character within a sequence.
    """

    def parse(self, token_callback: Callable[[Message], None]) -> Generator[Any, str, None]:
        left = ""
        while not self.is_eof:
            begun, left = left, ""
            with suppress(Exception):  # whatever it is that a terminal sends
                answer = yield from self._up_to_answer(super().parse(token_callback), begun)
                left = "\x1b" if answer[-1:] == "\x1b" else ""
                if (reported := read_background(answer)) is not None:
                    token_callback(reported)

    def _up_to_answer(
        self, reader: Generator[Any, str, None], begun: str
    ) -> Generator[Any, str, str]:
        """Give a reader what comes before an answer of the terminal, and skip that.

        Args:
            reader: Reads keys.
            begun: What it gets first, or nothing.

        Returns:
            The end of the answer; Esc at its end broke it off, and begins a key.
        """
        wanted, seen, size = next(reader), begun, 0
        if begun:
            wanted = reader.send(begun)
        while not _ANSWER.search(seen):
            goes_on = _SEQUENCE.search(seen) is not None
            try:
                character = yield self.read1(ANSWER_PATIENCE) if goes_on else wanted
            except ParseTimeout as timeout:
                if goes_on:
                    return ""
                wanted, seen = reader.throw(timeout), ""
                continue
            if goes_on and "\x1b" != character < " ":
                continue
            seen = (seen + character)[-MIN_RUN:]
            wanted = reader.send(character)
        with suppress(ParseTimeout):
            while (size := size + 1) < MAX_ANSWER and not _END.search(seen):
                seen = (seen + (yield self.read1(ANSWER_PATIENCE)))[-MAX_TAIL:]
                if seen[-1] == "\x1b" and (yield self.peek1(ANSWER_PATIENCE)) != "\\":
                    break
        return seen

    def parse_mouse_code(self, code: str) -> Message | None:
        sizes = (*(self.terminal_size or (0,)), *(self.terminal_pixel_size or (0,)))
        self.mouse_pixels &= min(sizes) > 0  # a terminal that knows no pixels means cells
        pressed = self._re_sgr_mouse.match(code)
        if pressed is not None and int(pressed[1]) & _SIDE_BUTTONS:
            return None  # Textual takes them for the others
        return super().parse_mouse_code(code)

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        form = in_one_form(sequence)
        keys = [*super()._sequence_to_key_events(form, alt)] if form else []
        is_none = not form or (not keys and _NO_KEY.fullmatch(sequence) is not None)
        return [events.Key(Keys.Ignore, sequence)] if is_none else keys


class TerminalInput:
    """Turn a terminal's input into messages; any bytes are accepted.

    Args:
        debug: Whether Textual's parser logs keys.
    """

    def __init__(self, *, debug: bool = False) -> None:
        self._parser = DeckParser(debug)
        self._decoder = codecs.getincrementaldecoder("utf-8")(_CONTROLS)
        self._pastes = PasteReader()
        self._escaped = False
        """Whether the last key was Esc because nothing came after it in time."""

    def feed(self, data: bytes) -> Iterator[Message]:
        for part in self._pastes.read(self._decoder.decode(data)):
            yield from self._messages(part)

    def tick(self) -> Iterator[Message]:
        """Yield what has waited too long for its continuation; called every `TICK` seconds."""
        for part in self._pastes.tick():
            yield from self._messages(part)
        for message in self._parser.tick():
            self._escaped = isinstance(message, events.Key) and message.key == "escape"
            yield message

    def _messages(self, part: Keystrokes | Pasted) -> Iterator[Message]:
        match part:
            case Pasted(text):
                yield events.Paste(text)
            case Keystrokes(text):
                text = _ONE_BYTE.sub(lambda found: f"\x1b{chr(ord(found[0]) - 64)}", text)
                if self._escaped and _REST.match(text):
                    text = "\x1b" + text
                self._escaped, at = False, 0
                for form, same in _IN_ONE_READ:
                    text = form.sub(same, text)
                for run in _RUN.finditer(text) if "\x1b" not in text else ():
                    yield from self._keys(text[at : run.start()])
                    pasted = run[0].rstrip("\r")
                    yield events.Paste(clean_paste(pasted))
                    at = run.start() + len(pasted)
                yield from self._keys(text[at:])

    def _keys(self, text: str) -> Iterable[Message]:
        return self._parser.feed(text) if text else ()  # an empty one would be the end of input


class DeckDriver(LinuxDriver):
    """Accept any input, and end cleanly when the terminal goes away."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(*args, **options)
        if self._file is not None:
            self._file.reconfigure(encoding="utf-8")  # whatever the locale: it is a screen
            self._file = cast("io.TextIOWrapper", VanishingOutput(self._file))
        self._drawn = Drawn()
        self._title = ""
        self._progress = ""
        self._asks_background = False
        self._watching = Lock()
        self._mouse = _takes_mouse(wanted=self._mouse)

    def changes(self, update: object) -> object:
        """Return what writes only the changes of an update of the screen."""
        return ChangesOnly(update, self._drawn) if isinstance(update, CompositorUpdate) else update

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

    def set_progress(self, progress: str) -> None:
        """Show in the terminal's tab how far the work is, until the terminal is ours no more.

        Args:
            progress: A state and percent of OSC 9;4, such as ``1;40``; an empty text ends that.
        """
        if progress != self._progress:
            self.write(f"\x1b]9;4;{progress or '0;0'}\x1b\\")
            self._progress = progress

    def follow_background(self) -> None:
        """Ask for the terminal's background, and to be told of changes, where that prints nothing.

        GNU screen passes the question on, and gives the answer to whichever window is current.
        """
        term = os.environ.get("TERM", "")
        is_screen = term.startswith("screen") and "TMUX" not in os.environ
        if term not in _UNTITLED and not is_screen and "STY" not in os.environ:
            self._asks_background = True
            self.write(ASK)

    def use_mouse(self, *, wanted: bool) -> None:
        """Take the mouse, or leave it to the terminal."""
        if self._mouse != (takes := _takes_mouse(wanted=wanted)):
            self._disable_mouse_support()
            self._mouse = takes
            self._enable_mouse_support()
            if self._mouse_pixels:
                self._enable_mouse_pixels()

    def stop_application_mode(self) -> None:
        """Stop, and give the window its title and its tab back until the next start."""
        if self._asks_background:
            self._asks_background = False
            self.write(ASK_NO_MORE)
        title, progress = self._title, self._progress
        self.set_title("")
        self.set_progress("")
        self._title, self._progress = title, progress
        super().stop_application_mode()

    def start_application_mode(self) -> None:
        """Start, and handle size changes on the event loop.

        Textual's own handler reads the size inside the signal handler. After two signals in
        quick succession the older size may be reported last, and stay.
        """
        self._drawn.forget()
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual leaves it so
        self._loop.add_signal_handler(signal.SIGWINCH, self._report_size)
        if self._writer_thread is not None:  # else it is in the background, and goes on later
            self.write(_KEY_FORMS)
            title, self._title = self._title, ""
            progress, self._progress = self._progress, ""
            self.set_title(title)
            self.set_progress(progress)
            app: Any = self._app
            if app.follows_terminal:
                self.follow_background()

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
            reader.join(timeout=1.0)
            self.exit_event = Event()
        super().disable_input()

    def _report_size(self) -> None:
        if not self._in_band_window_resize:
            size = Size(*self._get_terminal_size())
            self.process_message(events.Resize(size, size))

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
            must_end = self.exit_event  # the next reader gets another one
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

    def process_message(self, message: Message) -> None:
        """Pass on what can be; watch that the app takes up the key that quits."""
        if isinstance(message, events.Resize):
            self._drawn.forget()  # of two in quick succession the first may have taken something
            if min(message.size) <= 0 or max(message.size) > MAX_SIDE:
                return
        elif isinstance(message, events.Key) and not message.is_printable:
            app: Any = self._app
            if message.key in app.quit_keys and self._watching.acquire(blocking=False):
                Thread(target=self._watch_quit, args=(app,), daemon=True).start()
        super().process_message(message)

    def _watch_quit(self, app: Any) -> None:  # noqa: ANN401 - a `GemdeckApp`
        """End the process if the event loop is held; once the app ends, until the loop does."""
        held, until = 0.0, monotonic() + 2 * QUIT_PATIENCE
        with suppress(RuntimeError):  # the loop has ended
            while app.is_leaving or monotonic() < until:
                answered, asked = Event(), monotonic()
                self._loop.call_soon_threadsafe(answered.set)
                if not answered.wait(QUIT_PATIENCE - held):
                    app.end_held(self._restore)
                took = monotonic() - asked
                held = held + took if took > SLOW else 0.0
                sleep(SLOW / 2)
        self._watching.release()

    def _restore(self) -> None:
        """Give the terminal back, if it is ours, from another thread than the event loop's."""
        if self._writer_thread is not None and self._writer_thread.is_alive():
            self._disable_mouse_support()  # which Textual does in the main thread alone
            self.stop_application_mode()
            self.close()

    def _read(self) -> bytes | None:
        """Read what is available: empty if the terminal is gone, None if there is nothing yet."""
        try:
            return os.read(self.fileno, 4096)
        except BlockingIOError:
            return None
        except OSError:
            return b""
