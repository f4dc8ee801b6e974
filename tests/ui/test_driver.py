"""The app takes whatever its terminal sends, and outlives it to end in good order."""

import io
from typing import Final

import pyte
import pytest
from rich.cells import cell_len
from textual import events

from tests.ui.harness import Clock
from tui.ui.driver import MIN_RUN, TerminalInput, VanishingOutput
from tui.ui.paste import MAX_PASTE, PASTE_PATIENCE, Keystrokes, Pasted, PasteReader

GONE: Final = OSError(5, "Input/output error")


class GoneTerminal(io.StringIO):
    def write(self, _text: str) -> int:
        raise GONE

    def flush(self) -> None:
        raise GONE

    def fileno(self) -> int:
        return 2


EMOJI: Final = "⚠️ ℹ️ ⭐️ 1️⃣ ❤️\u200d🔥 👍🏽 ✌🏽 ✌🏽️ 🇺🇦 🏳️\u200d🌈 🕵️\u200d♂️ 🧑🏽\u200d🚀 ㊗️ क्ष é"  # noqa: RUF001


def test_what_a_terminal_takes_is_passed_on() -> None:
    terminal = io.StringIO()
    output = VanishingOutput(terminal)
    assert output.write("frame") == 5
    output.flush()
    output.write("a👍🏽b🇺🇦")
    assert terminal.getvalue() == "framea👍bUA"


def test_a_sign_takes_as_many_cells_in_a_plain_terminal_as_textual_counts() -> None:
    for emoji in EMOJI.split():
        terminal, screen = io.StringIO(), pyte.Screen(20, 1)
        VanishingOutput(terminal).write(f"{emoji}│")
        pyte.Stream(screen).feed(terminal.getvalue())
        assert screen.display[0].rstrip().endswith("│"), ascii(emoji)
        assert screen.cursor.x == cell_len(emoji) + 1, ascii(emoji)


def test_a_joined_sign_that_a_row_cuts_leaves_the_terminals_sequence_whole() -> None:
    terminal = io.StringIO()
    VanishingOutput(terminal).write("\U0001f468\u200d\x1b[0m│")
    assert terminal.getvalue() == "\U0001f468\x1b[0m│"


def test_a_terminal_that_is_gone_stops_nobody() -> None:
    output = VanishingOutput(GoneTerminal())
    assert output.write("frame") == 5
    output.flush()
    assert output.fileno() == 2


HOSTILE_PASTE: Final = (
    "ERROR \x1b[31mfoo\x1b[0m\x1b\r\x1b[200~second\x1b]0;t\x07\x00\r\t\x9b31m\u202eend"
)
CLEANED: Final = "ERROR foo\nsecond\n\t31mend"


def read_all(reader: PasteReader, *reads: str) -> tuple[str, list[str]]:
    """Give the keystrokes as one text, and the pastes."""
    parts = [part for read in reads for part in reader.read(read)]
    keys = "".join(part.text for part in parts if isinstance(part, Keystrokes))
    return keys, [part.text for part in parts if isinstance(part, Pasted)]


def test_a_paste_is_data_to_its_end_however_it_is_cut_into_reads() -> None:
    text = f"ab\x1b[200~{HOSTILE_PASTE}\x1b[201~c\x1b[200~x\x1b[201~"
    for size in (*range(1, 12), len(text)):
        middle = text[4:-13]
        cut = [middle[start : start + size] for start in range(0, len(middle), size)]
        read = read_all(PasteReader(), text[:4], *cut, text[-13:])
        assert read == ("abc", [CLEANED, "x"]), size


def test_a_paste_whose_first_character_came_alone_is_still_a_paste() -> None:
    for reads in (("[200~one\rtwo\x1b[201~b",), ("[2", "00~", "one\rtwo\x1b[201~b")):
        keys, pastes = read_all(PasteReader(), "a\x1b", *reads)
        assert pastes == ["one\ntwo"]
        assert keys == "a\x1b[200~\x1b[201~b", "an empty paste takes the place of the start"


def test_keys_pass_at_once() -> None:
    reader = PasteReader()
    for keys in ("\x1b", "a", "\x1b[A", "\x1b[2~", "\x1b[20~"):
        assert read_all(reader, keys) == (keys, []), keys


def test_a_paste_is_bounded() -> None:
    reader = PasteReader()
    reads = ["\x1b[200~", *["x" * 100_000] * 60, "\x1b[201~a"]
    keys, (pasted,) = read_all(reader, *reads)
    assert keys == "a"
    assert len(pasted) == MAX_PASTE


def test_a_paste_without_an_end_does_not_deafen_the_app_for_ever() -> None:
    clock = Clock()
    reader = PasteReader(clock)
    assert read_all(reader, "\x1b[200~abc") == ("", [])
    clock.advance(PASTE_PATIENCE - 1)
    assert list(reader.tick()) == []
    clock.advance(2)
    assert list(reader.tick()) == [Pasted("abc")]
    assert read_all(reader, "\x11") == ("\x11", [])


def test_a_character_in_two_reads_is_one_key() -> None:
    source = TerminalInput()
    first, second = "é".encode()[:1], "é".encode()[1:]
    (key,) = [*source.feed(first), *source.feed(second)]
    assert isinstance(key, events.Key)
    assert key.character == "é"


def shown(data: str) -> list[str]:
    """Name the messages of one read: keys by their names, pastes by their texts in brackets."""
    found = []
    for message in TerminalInput().feed(data.encode()):
        if isinstance(message, events.Paste):
            found.append(f"[{message.text}]")
        elif isinstance(message, events.Key):
            found.append(message.key)
    return found


LONG: Final = "x" * MIN_RUN


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (LONG, [f"[{LONG}]"]),
        (f"{LONG}\r", [f"[{LONG}]", "enter"]),
        (f"{LONG}\ry\r", [f"[{LONG}\ny]", "enter"]),
        (f"a\x7f{LONG}\x7f", ["a", "backspace", f"[{LONG}]", "backspace"]),
        (LONG[1:], ["x"] * (MIN_RUN - 1)),
        (f"{LONG[1:]}\x1b[A", ["x"] * (MIN_RUN - 1) + ["up"]),
        (f"{LONG}\x1b[A", ["x"] * MIN_RUN + ["up"]),
        (f"\x1b[200~{HOSTILE_PASTE}\x1b[201~", [f"[{CLEANED}]"]),
        ("a\x1b2b\x1b[50;3u", ["a", "alt+2", "b", "alt+2"]),  # in either form of terminals
    ],
)
def test_a_paste_or_more_than_anybody_types_at_once_is_one_message(
    data: str, expected: list[str]
) -> None:
    assert shown(data) == expected
