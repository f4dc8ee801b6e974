"""No bytes of a terminal end its reader, and no answer of a terminal is a key."""

import os
import random
from collections.abc import Iterator
from functools import partial
from itertools import chain
from threading import Event, Lock, Thread
from typing import Final

import pytest
from textual import events
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from tests.support.waiting import PATIENCE, eventually
from tests.ui.harness import running
from tui.model.events import TerminalSet
from tui.store.store import Store
from tui.ui import driver
from tui.ui.driver import MAX_ANSWER, MAX_SIDE, DeckDriver, TerminalInput
from tui.ui.terminal.background import BackgroundReported
from tui.ui.terminal.drawn import Drawn

NUMBERS: Final = ("", "0", "1", "5", "27", "113", "1114112", "55296", "65535", "9" * 8, "9" * 20)
FINALS: Final = "ABCDEFHIMORPQSTcmnptuy~$^_\\\x07\x11\x1b\x7f\x9b\xff"
PIECES: Final = (
    *(b"\x1b", b"[", b"<", b"?", b";", b":", b"O", b"M", b"\x00", b"\x11", b"\x07", b"\x1b\\"),
    *(b"a", "é漢\U0001f469\u200d".encode(), b"\xf0\x9f", b"\xff", b"\x1b[200~", b"\x1b[201~"),
    *(b"\x1b[48;36;120;0;0t", b"\x1b[48;0;0;800;600t", b"\x1b[48;36;120;720;1200t"),
    *(b"\x1b[<35;20;10M", b"\x1b[<0;0;0m", b"\x1b[M !!", b"\x1b[?2048;1$y", b"\x1b[?2026;9$y"),
    *(b"\x1b]11;rgb:0/0/0", b"\x1bP1+r", b"\x1b_G", b"\x1b[55296u", b"\x1b[27;5;9999999~"),
)


def noise(seed: int) -> bytes:
    """Make up what a terminal could send: pieces of sequences, whole ones, and any bytes."""
    chance = random.Random(seed)

    def piece() -> bytes:
        match chance.randrange(3):
            case 0:
                return chance.choice(PIECES)
            case 1:
                numbers = chance.choices(NUMBERS, k=chance.randrange(6))
                start = chance.choice(("[", "[<", "[?", "[>", "[48;", "]", "P", "O", ""))
                written = f"\x1b{start}{chance.choice(';:').join(numbers)}{chance.choice(FINALS)}"
                return written.encode("latin-1")
            case _:
                return chance.randbytes(chance.randrange(1, 8))

    return b"".join(piece() for _ in range(60))


def cut(data: bytes, *sizes: int) -> Iterator[bytes]:
    """Cut data into reads of these sizes, the last of them again and again."""
    at = 0
    for size in chain(sizes[:-1], iter(partial(int, sizes[-1]), None)):
        if at >= len(data):
            return
        yield data[at : at + size]
        at += size


def read(*data: bytes) -> list[Message]:
    """Give the messages of some reads in quick succession."""
    source = TerminalInput()
    return [message for part in data for message in source.feed(part)]


def keys(*data: bytes) -> list[str]:
    return [message.key for message in read(*data) if isinstance(message, events.Key)]


@pytest.mark.parametrize("size", [1, 3, 7, 4096])
def test_D22_no_bytes_end_the_reader_and_keys_count_after_them(size: int) -> None:
    for seed in range(60):
        source = TerminalInput()
        for part in cut(noise(seed), size):
            list(source.feed(part))
        list(source.feed(b"\x1b[201~\x07" + b"\x1b\\" * 2))
        for _ in range(40):  # what waits for its end, such as an old report of the mouse
            found = [one.key for one in source.feed(b"ab") if isinstance(one, events.Key)]
            if found == ["a", "b"]:
                break
        else:
            raise AssertionError(f"deaf after the noise of {seed}")


@pytest.mark.parametrize("wild", [b"\x1b[99999999u", b"\x1b[1;2;9999999999u", b"\x1b[1114112u"])
def test_D22_what_cannot_be_read_is_lost_alone(wild: bytes) -> None:
    assert keys(b"a" + wild + b"b\x1b[A") == ["a", "b", "up"]


@pytest.mark.parametrize(
    ("report", "column"),
    [
        (b"\x1b[48;36;120;0;0t", 19),
        (b"\x1b[48;36;120;720;0t", 19),
        (b"\x1b[48;36;120;720;1200t", 1),
    ],
)
def test_D22_the_mouse_moves_whatever_size_the_terminal_reports(report: bytes, column: int) -> None:
    messages = read(b"\x1b[48;36;120;" + report + b"t", b"\x1b[<35;20;10M")
    moved = [one for one in messages if isinstance(one, events.MouseMove)]
    assert [one.x // 1 for one in moved] == [column]


@pytest.mark.parametrize("button", [128, 129, 130, 160])
def test_the_buttons_at_the_side_of_a_mouse_press_nothing(button: int) -> None:
    """For Textual they were the left, the middle and the right one, which could answer."""
    sent = (f"\x1b[<{button};20;10{end}".encode() for end in "Mm")
    assert not [one for one in read(*sent) if isinstance(one, events.MouseEvent)]
    assert [one for one in read(b"\x1b[<0;20;10M") if isinstance(one, events.MouseDown)]


class Taking(DeckDriver):
    """The driver without a terminal; it remembers what reaches the app and the terminal."""

    def __init__(self, app: App[int]) -> None:
        self.taken: list[Message] = []
        self.written: list[str] = []
        self._mouse_pixels = False
        self._title = self._progress = ""
        self._drawn = Drawn()
        self._drawn._lines[0][0, 1] = "a"
        super(LinuxDriver, self).__init__(app)
        self._watching = Lock()
        self._watching.acquire()

    def write(self, data: str) -> None:
        self.written.append(data)

    def flush(self) -> None:
        pass

    def send_message(self, message: Message) -> None:
        self.taken.append(message)


async def test_D22_the_app_goes_on_whatever_comes_and_takes_no_impossible_size() -> None:
    async with running(Store()) as deck:
        taking = Taking(deck.app)
        for rows, columns in ((0, 0), (0, 80), (24, 0), (MAX_SIDE + 1, 80), (24, 10**9), (24, 80)):
            for message in read(f"\x1b[48;{rows};{columns};0;0t".encode()):
                taking.process_message(message)
        assert [one.size for one in taking.taken if isinstance(one, events.Resize)] == [(80, 24)]
        assert not taking._drawn._lines, "a terminal that became smaller lost some of it"
        before = deck.app.size
        for seed in range(8):
            taking.taken.clear()
            for message in read(noise(seed).replace(b"\x11", b"")):
                taking.process_message(message)
            for message in taking.taken:
                is_quit = isinstance(message, events.Key) and message.key in {"ctrl+q", "ctrl+d"}
                if not is_quit and not isinstance(message, events.Resize):
                    deck.app.post_message(message)
            await deck.settle()
        assert deck.app.is_running
        assert deck.app.size == before


async def test_D22_what_is_typed_while_the_app_ends_is_dropped() -> None:
    async with running(Store()) as deck:
        app = deck.app
    for event in (events.Key("a", "a"), events.Paste("text")):
        await app.on_event(event)


async def test_a_reader_that_was_not_waited_for_ends_with_its_read() -> None:
    class Stuck(Taking):
        free = Event()

        def _read(self) -> bytes:
            self.free.wait(PATIENCE)
            return b"a"

    class Reader(Thread):
        def join(self, timeout: float | None = None) -> None:
            super().join(timeout and 0.01)

    async with running(Store()) as deck:
        stuck, (stuck.fileno, end) = Stuck(deck.app), os.pipe()
        stuck.exit_event = Event()
        os.write(end, b"a")
        reader = stuck._key_thread = Reader(target=stuck.run_input_thread, daemon=True)
        reader.start()
        stuck.disable_input()
        assert reader.is_alive()
        stuck.free.set()
        await eventually(lambda: not reader.is_alive())
        for one in (stuck.fileno, end):
            os.close(one)


ANSWERS: Final = (
    b"\x1b]11;rgb:1e1e/\x11/1e1e\x07",
    b"\x1b]52;c;\x11\x1b\\",
    b"\x1bP>|tmux\x11 3.3a\x1b\\",
    b"\x1bP1+r544e=787465726d2d323536636f6c6f72\x11787465726d2d\x1b\\",
    b"\x1b_Gi=1;\x11\x1b\\",
    b"\x1b[?62;\x11c",
    b"\x1b[>84;\x11;0c",
    b"\x1b[?64;1;2;6;9;15;16;17;18;21;22;28;\x11;29;42;52c",
    b"\x1b[200~a\x11b\x1b[113;5u\x1b[201~",
)


@pytest.mark.parametrize("answer", ANSWERS)
def test_E46_the_key_that_quits_is_none_within_an_answer_or_a_paste(answer: bytes) -> None:
    for size in (1, 2, 5, len(answer)):
        found = keys(b"\x1b[B", *cut(answer, size), b"\x1b[A")
        assert "ctrl+q" not in found, size
        assert found[-1] == "up"
    assert keys(answer + b"\x11")[-1] == "ctrl+q"
    assert "ctrl+q" not in keys(answer[:-2])


@pytest.mark.parametrize("key", [b"\x11", b"\x1b[113;5u", b"\x1b[27;5;113~", b"\x1b[113;133u"])
def test_E46_the_key_that_quits_is_seen_in_each_form_also_in_two_reads(key: bytes) -> None:
    for size in range(1, len(key) + 1):
        assert keys(b"a", key[:size], key[size:], b"b") == ["a", "ctrl+q", "b"]


def test_an_answer_without_an_end_does_not_deafen_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys(b"\x1b]11;" + b"x" * MAX_ANSWER + b"a\x11")[-2:] == ["a", "ctrl+q"]
    monkeypatch.setattr(driver, "ANSWER_PATIENCE", 0.0)
    source = TerminalInput()
    assert list(source.feed(b"\x1b]11;rgb")) == list(source.tick()) == []
    (key,) = source.feed(b"\x11")
    assert isinstance(key, events.Key)
    assert key.key == "ctrl+q"


@pytest.mark.parametrize("begun", [b"\x1b]11;rgb:00", b"\x1bP>|tm", b"\x1b_Gi=1"])
def test_a_key_that_breaks_an_answer_off_is_that_key(begun: bytes) -> None:
    for key, name in ((b"\x1b[A", "up"), (b"\x1bOP", "f1"), (b"\x1b[113;5u", "ctrl+q")):
        for size in range(1, len(key) + 1):
            assert keys(begun, *cut(key, size), b"b") == [name, "b"]


@pytest.mark.parametrize("letter", "]P_^X")
def test_alt_with_a_letter_swallows_nothing(letter: str) -> None:
    source = TerminalInput()
    assert list(source.feed(f"\x1b{letter}".encode())) == []
    assert keys(f"\x1b{letter}".encode(), b"\x1b[A")[-1] == "up"


KITTY: Final = "sw.kovidgoyal.net/kitty/keyboard-protocol"
XTERM: Final = "xterm's ctlseqs, PC-style keys and modifyOtherKeys"
URXVT: Final = "urxvt(7), key codes"
PUTTY: Final = "PuTTY's manual, 4.4, and anomalyco/opentui#532"
CONSOLE: Final = "console_codes(4), and loadkeys' defaults"

KEYS: Final = (
    # kitty's protocol: NumLock, CapsLock, the keypad, text, alternates, events
    (KITTY, b"\x1b[1;129D", "left", ""),
    (KITTY, b"\x1b[1;65D", "left", ""),
    (KITTY, b"\x1b[3;129~", "delete", ""),
    (KITTY, b"\x1b[1;129P", "f1", ""),
    (KITTY, b"\x1b[P", "f1", ""),
    (KITTY, b"\x1b[13;129u", "enter", ""),
    (KITTY, b"\x1b[57414u", "enter", ""),
    (KITTY, b"\x1b[57417u", "left", ""),
    (KITTY, b"\x1b[57400;129;49u", "1", "1"),
    (KITTY, b"\x1b[57410u", "slash", "/"),
    (KITTY, b"\x1b[13;2u", "shift+enter", ""),
    (KITTY, b"\x1b[13;3u", "alt+enter", ""),
    (KITTY, b"\x1b[13;5u", "ctrl+enter", ""),
    (KITTY, b"\x1b[9;2u", "shift+tab", ""),
    ("earendil-works/pi#411", b"\x1b[127;2u", "backspace", ""),
    ("earendil-works/pi#411", b"\x1b[32;2;32u", "shift+space", " "),
    (KITTY, b"\x1b[97u", "a", "a"),
    (KITTY, b"\x1b[228u", "ä", "ä"),
    (KITTY, b"\x1b[97;2u", "A", "A"),
    (KITTY, b"\x1b[97;65u", "A", "A"),
    (KITTY, b"\x1b[97;66u", "a", "a"),
    (KITTY, b"\x1b[97:65;2;65u", "A", "A"),
    (KITTY, b"\x1b[55:47;2u", "slash", "/"),
    (KITTY, b"\x1b[55;2:1;47u", "slash", "/"),
    (KITTY, b"\x1b[223;2u", "ß", "ß"),
    (KITTY, b"\x1b[0;;228u", "ä", "ä"),
    (KITTY, b"\x1b[97;1:2;97u", "a", "a"),
    (KITTY, b"\x1b[113;3;64u", "at", "@"),
    (KITTY, b"\x1b[49;3u", "alt+1", ""),
    ("openai/codex#35599", b"\x1b[1089::99;5u", "ctrl+c", ""),
    ("anthropics/claude-code#77386", b"\x1b[945::97;5:1u", "ctrl+a", ""),
    ("a layout with other Latin keys", b"\x1b[97::113;5u", "ctrl+a", ""),
    ("contour sends what is typed", b"\x1b[47;2u", "slash", "/"),
    # xterm, in both cursor modes, and with modifyOtherKeys
    (XTERM, b"\x1b[A", "up", ""),
    (XTERM, b"\x1bOA", "up", ""),
    (XTERM, b"\x1b[1;3A", "alt+up", ""),
    (XTERM, b"\x1b[1;5H", "ctrl+home", ""),
    (XTERM, b"\x1bOP", "f1", ""),
    (XTERM, b"\x1bO2P", "shift+f1", ""),
    (XTERM, b"\x1b[27;2;13~", "shift+enter", ""),
    (XTERM, b"\x1b[27;3;13~", "alt+enter", ""),
    (XTERM, b"\x1b[27;5;106~", "ctrl+j", ""),
    (XTERM, b"\x1b[27;5;8~", "ctrl+backspace", ""),
    (XTERM, b"\x1b[27;2;65~", "A", "A"),
    (XTERM, b"\x1b[27;2;64~", "at", "@"),
    (XTERM, b"\x1b[32;2u", "space", " "),
    (XTERM, b"\x1b[Z", "shift+tab", ""),
    (XTERM, b"\x1bOM", "enter", ""),
    (XTERM, b"\x1bOX", "equals_sign", "="),
    (XTERM, b"\x1b5", "alt+5", ""),
    # what terminals are set up to send for Shift+Enter
    ("anthropics/claude-code's terminal setup; Alt+Enter", b"\x1b\r", "alt+enter", ""),
    ("iTerm2's natural text editing", b"\x1b\n", "alt+enter", ""),
    ("google-gemini/gemini-cli#458", b"\\\r\n", "shift+enter", ""),
    # rxvt
    (URXVT, b"\x1b[7~", "home", ""),
    (URXVT, b"\x1b[7^", "ctrl+home", ""),
    (URXVT, b"\x1b[8^", "ctrl+end", ""),
    (URXVT, b"\x1b[5$", "shift+pageup", ""),
    (URXVT, b"\x1b[3@", "ctrl+shift+delete", ""),
    (URXVT, b"\x1b[14^", "ctrl+f4", ""),
    (URXVT, b"\x1bOa", "ctrl+up", ""),
    (URXVT, b"\x1bOb", "ctrl+down", ""),
    (URXVT, b"\x1bOo", "slash", "/"),
    # PuTTY and the Linux console
    (PUTTY, b"\x1b[1~", "home", ""),
    (PUTTY, b"\x1b[11~", "f1", ""),
    (PUTTY, b"\x08", "backspace", "\x08"),
    (PUTTY, b"\x1b\x1b[A", "alt+up", ""),
    (PUTTY, b"\x1b\x1bOD", "alt+left", ""),
    (CONSOLE, b"\x1b\x1b[5~", "alt+pageup", ""),
    (CONSOLE, b"\x1b[[A", "f1", ""),
    (CONSOLE, b"\x1b[4~", "end", ""),
    (CONSOLE, b"\x1b\t", "shift+tab", ""),
)
"""Keys in the forms in which terminals send them: who says so, the bytes, the key, the text."""


@pytest.mark.parametrize(("source", "sent", "key", "text"), KEYS, ids=lambda one: ascii(one)[:40])
def test_a_key_is_itself_in_every_form(source: str, sent: bytes, key: str, text: str) -> None:
    (found,) = (one for one in read(sent) if isinstance(one, events.Key))
    assert (found.key, found.character or "") == (key, text), source
    if not sent.startswith((b"\x1b\x1b", b"\\")):
        assert keys(*cut(sent, 1)) == [key], "in pieces"


REPORTS: Final = (
    b"\x1b]10;rgb:ffff/ffff/ffff\x07",
    b"\x1b]4;1;rgb:cd00/0000/0000\x1b\\",
    b"\x1b]52;c;" + b"QUJD" * 3_000 + b"\x1b\\",
    b"\x1b]lA title\x1b\\",
    b"\x1bP>|XTerm(379)\x1b\\",
    b"\x1bP!|00000000\x1b\\",
    b"\x1bP1$r0m\x1b\\",
    b"\x1bP0+r4d73\x1b\\",
    b"\x1b_Gi=31;OK\x1b\\",
    b'\x1bP@kitty-cmd{"ok": true}\x1b\\',  # laurigates/dotfiles#44
    b"\x1b[?61;4;6;7;14;21;22;23;24;28;32;42;52c",
    b"\x1b[>41;379;0c",
    b"\x1b[?12;40;1R",
    b"\x1b[0n",
    b"\x1b[?997;1n",
    b"\x1b[4;2$y",
    b"\x1b[?69;0$y",
    b"\x1b[?1u",
    b"\x1b[?0;256;0S",
    b"\x1b[4;720;1200t",
    b"\x1b[6;16;8t",
    b"\x1b[8;36;120t",
    # kitty's protocol: released keys, modifiers alone
    b"\x1b[105;1:3u",
    b"\x1b[1;1:3A",
    b"\x1b[57441;2u",
    b"\x1b[57358;65u",
)
"""What terminals say that is no key."""


@pytest.mark.parametrize("report", REPORTS, ids=lambda one: ascii(one)[:40])
def test_a_report_is_no_key_whole_twice_or_in_pieces(
    report: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in (1, 2, 7, len(report)):
        assert keys(b"a", *cut(report * 2, size), b"b", *cut(report, size), b"\r") == [
            *("a", "b", "enter")
        ]
    monkeypatch.setattr("textual.constants.ESCAPE_DELAY", 0.0)
    monkeypatch.setattr(driver, "ANSWER_PATIENCE", 60.0)
    for size in (1, len(report) // 2):  # a line so slow that Esc counts on its own
        source, found = TerminalInput(), list[Message]()
        for part in (report[:size], report[size:]):
            found += (*source.feed(part), *source.tick())
        told = events.CursorPosition | BackgroundReported
        found = [one for one in found if not isinstance(one, told)]
        assert [getattr(one, "key", one) for one in found] == (["escape"] if size == 1 else [])
    assert keys(report, b"x") == ["x"]


@pytest.mark.parametrize("as_text", [False, True])
def test_a_sequence_may_begin_with_one_byte(as_text: bool) -> None:
    """Of terminals that are told to answer so; in UTF-8 it is a character."""

    def begun(first: int, rest: bytes) -> bytes:
        return (chr(first).encode() if as_text else bytes([first])) + rest

    for first, rest, key in ((0x9B, b"A", "up"), (0x8F, b"P", "f1"), (0x9B, b"113;5u", "ctrl+q")):
        sent = begun(first, rest)
        assert keys(b"a", sent, b"b") == keys(b"a", *cut(sent, 1), b"b") == ["a", key, "b"]
    for first, rest in ((0x9D, b"11;rgb:0/0/0"), (0x90, b">|xterm"), (0x9F, b"Gi=1;OK")):
        for end in (b"\x9c", b"\xc2\x9c", b"\x1b\\", b"\x07"):
            sent = begun(first, rest + end)
            assert keys(b"a", sent, b"b") == keys(b"a", *cut(sent, 1), b"b") == ["a", "b"]
    pasted = b"\x1b[200~one" + begun(0x9B, b"201~\r\x11\x1b[201~")
    found = read(pasted)
    assert [type(one) for one in found] == [events.Paste], "its end may be pasted, and ends nothing"
    assert keys(b"\xe2\x9b", b"a")[-1] == "a", "half a character begins no sequence"


@pytest.mark.parametrize("size", [1, 5, 4096])
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"\x1b]11;rgb:1414/1616/1a1a\x1b\\", [True]),
        (b"\x1b]11;rgb:ffff/ffff/dddd\x07", [False]),
        (b"\x1b]11;rgba:ff/FF/dd/ff\x1b\\", [False]),
        (b"\x1b[?997;1n", [True]),
        (b"\x1b[?997;2n", [False]),
        (b"\x1b[?997;3n", []),
        (b"\x1b]11;rgb:ffff/ffff\x1b\\", []),
        (b"\x1b]11;rgb:fffff/0/0\x1b\\", []),
        (b"\x1b]10;rgb:ffff/ffff/dddd\x1b\\", []),
        (b"\x1b]11;rgb:ffff/ffff/dddd\x1bx", []),
    ],
)
def test_the_background_is_read_out_of_an_answer_and_of_no_paste(
    answer: bytes, told: list[bool], size: int
) -> None:
    pasted = b"\x1b[200~", answer, b"\x1b[201~"
    found = read(b"a", *cut(answer, size), b"b", *pasted)
    assert [one.is_dark for one in found if isinstance(one, BackgroundReported)] == told


def test_a_paste_cut_after_its_esc_types_nothing_of_its_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("textual.constants.ESCAPE_DELAY", 0.0)
    source = TerminalInput()
    found = [*source.feed(b"\x1b"), *source.tick(), *source.feed(b"[200~one\rtwo\x1b[201~")]
    assert [getattr(one, "key", "") for one in found] == ["escape", "", ""]
    assert [one.text for one in found if isinstance(one, events.Paste)] == ["", "one\ntwo"]


def test_an_unfinished_sequence_types_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "ANSWER_PATIENCE", 0.0)
    for begun in (b"\x1b[<35;20", b"\x1b[?61;4", b"\x1b[48;36;120", b"\x1b[1;5"):
        source = TerminalInput()
        assert [*source.feed(begun), *source.tick()] == []
        assert [getattr(one, "key", "") for one in source.feed(b"a")] == ["a"]


@pytest.mark.parametrize(
    ("inside_screen", "has", "asked"), [(False, ["h"], ["l", "h"]), (True, [], [])]
)
async def test_the_mouse_is_the_terminals_by_a_setting_and_in_gnu_screen(
    inside_screen: bool, has: list[str], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STY", raising=False)
    if inside_screen:
        monkeypatch.setenv("STY", "1.pts-0.here")
    async with running(Store()) as deck:
        taking = Taking(deck.app)
        taking._mouse = driver._takes_mouse(wanted=True)
        taking._enable_mouse_support()
        with monkeypatch.context() as patch:
            patch.setattr(deck.app, "_driver", taking)
            for mouse in (True, False, True):
                deck.store.dispatch(TerminalSet(bell=True, title=False, keys={}, mouse=mouse))
                await deck.settle()
    modes = [one[-1] for one in taking.written if one.startswith("\x1b[?1000")]
    assert modes == has + asked
