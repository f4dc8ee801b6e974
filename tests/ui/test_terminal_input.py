"""No bytes of a terminal end its reader, and no answer of a terminal is a key."""

import random
from collections.abc import Iterator
from functools import partial
from itertools import chain
from threading import Lock
from typing import Final

import pytest
from textual import events
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from tests.ui.harness import running
from tui.store.store import Store
from tui.ui import driver
from tui.ui.driver import MAX_ANSWER, MAX_SIDE, DeckDriver, TerminalInput

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


class Taking(DeckDriver):
    """The driver without a terminal; it remembers what reaches the app."""

    def __init__(self, app: App[int]) -> None:
        self.taken: list[Message] = []
        super(LinuxDriver, self).__init__(app)
        self._watching = Lock()
        self._watching.acquire()

    def write(self, data: str) -> None:
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
