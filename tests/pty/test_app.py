"""The whole program, as its users meet it: in a terminal, by keyboard."""

import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests import servers
from tests.support import warm
from tests.support.terminal import Terminal, processes_of

MODES: Final = (b"1049", b"1000", b"1003", b"1006", b"1004", b"2004")
"""Private modes that the app switches on and must switch off again."""

BLUR: Final = "\x1b[O"
"""What a terminal reports as the user turns to another window."""

EXIT_SECONDS: Final = 10.0
"""Longest time for a server to be gone after the app."""

Act = Callable[[Terminal], object]
Deck = Callable[..., AbstractContextManager[Terminal]]


@pytest.fixture
def deck(tmp_path: Path) -> Deck:
    """Start the demo in an empty workspace, with so many servers ready; the state stays."""
    workspace = tmp_path / "shop"
    workspace.mkdir()

    @contextmanager
    def start(columns: int = 120, rows: int = 36, servers: int = 1) -> Iterator[Terminal]:
        command = warm.deck("--demo")
        with Terminal(command, columns=columns, rows=rows, cwd=workspace) as terminal:
            if servers:
                terminal.wait_for(f"{servers} ready")
            yield terminal

    return start


def send(terminal: Terminal, text: str) -> None:
    terminal.type(text)
    terminal.wait_for(f"> {text}")
    terminal.press("enter")


def say(terminal: Terminal, text: str) -> None:
    """Send a message that does not come back."""
    send(terminal, text)
    terminal.wait_gone(f"> {text}")


def answer(terminal: Terminal, key: str) -> None:
    terminal.press(key)
    terminal.wait_gone("A tool wants to run")


def wait_for_question(terminal: Terminal) -> str:
    """Wait until the modal stands and takes an answer, which its last line then says."""
    return terminal.wait_for(
        lambda screen: "A tool wants to run" in screen and "scroll the arguments" in screen
    )


def wait_for_end_of_turn(terminal: Terminal) -> str:
    return terminal.wait_for(lambda screen: re.search(r"── .*tokens ──", screen) is not None)


def assert_restored(terminal: Terminal) -> None:
    raw = terminal.raw
    for mode in MODES:
        assert raw.rindex(b"\x1b[?%bl" % mode) > raw.rindex(b"\x1b[?%bh" % mode), mode
    assert raw.rindex(b"\x1b[?25h") > raw.rindex(b"\x1b[?25l")
    assert terminal.attributes == terminal.attributes_before


def leave(terminal: Terminal) -> None:
    terminal.press("ctrl+q")
    assert terminal.wait_for_exit() == 0


def assert_gone(servers: list[psutil.Process]) -> None:
    left = psutil.wait_procs(servers, timeout=EXIT_SECONDS)[1]
    assert not left, [process.cmdline() for process in left]


def test_a_server_that_does_not_answer_a_typed_prompt_is_seen_and_stopped(
    deck: Deck, tmp_path: Path
) -> None:
    says = tmp_path / "library.json"
    says.write_text(json.dumps({"prompts": {"slow": []}, "silent": ["slow"]}))
    library = Path(servers.__file__).with_name("library.py")
    entry = {"command": sys.executable, "args": [str(library), str(says)]}
    settings = Path.home() / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"mcpServers": {"lib": entry}}))
    with deck(servers=2) as terminal:
        say(terminal, "/slow")
        terminal.wait_for("asking lib")
        say(terminal, "behind")
        terminal.wait_for("1 queued")
        terminal.press("escape")
        terminal.wait_gone("asking lib")
        terminal.wait_for(lambda screen: "> /slow" in screen and "behind" in screen)


def test_the_demo_shows_its_server_ready(deck: Deck) -> None:
    with deck() as terminal:
        screen = terminal.screen
        assert re.search(r"● notes .* tools", screen)
        assert "gemdeck" in screen.splitlines()[0]
        assert "demo" in screen.splitlines()[0]
        assert len(terminal.descendants()) == processes_of(1)


@pytest.mark.parametrize(("columns", "rows"), [(120, 36), (80, 24)])
def test_a_note_is_added_after_a_question_and_kept(deck: Deck, columns: int, rows: int) -> None:
    with deck(columns, rows) as terminal:
        say(terminal, "add a note: buy milk")
        question = wait_for_question(terminal)
        assert re.search(r"text +buy milk", question)
        assert "notes" in question
        assert "add_note" in question
        answer(terminal, "o")
        assert "add_note" in wait_for_end_of_turn(terminal)
        leave(terminal)

    with deck(columns, rows) as terminal:
        say(terminal, "list my notes")
        question = wait_for_question(terminal)
        assert "list_notes" in question
        assert "buy milk" not in question
        answer(terminal, "o")
        terminal.wait_for("buy milk")


def test_a_denied_tool_does_not_run(deck: Deck) -> None:
    with deck() as terminal:
        say(terminal, "add a note: never keep this")
        wait_for_question(terminal)
        answer(terminal, "d")
        terminal.wait_for("denied")
        say(terminal, "list my notes")
        wait_for_question(terminal)
        answer(terminal, "o")
        screen = terminal.wait_for("Welcome!")  # the oldest note, which is listed last
        _, _, listed = screen.partition("list_notes returned")
        assert "never keep this" not in listed


RINGS: Final = re.compile(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|(\x07)")
"""Finds the bell, but not where it ends a string for the terminal."""


def rings(terminal: Terminal) -> int:
    return sum(found[1] is not None for found in RINGS.finditer(terminal.raw))


def test_a_question_rings_only_while_the_user_looks_elsewhere(deck: Deck) -> None:
    with deck() as terminal:
        say(terminal, "add a note: buy milk")
        wait_for_question(terminal)
        assert rings(terminal) == 0
        answer(terminal, "d")
        terminal.wait_for("denied")
        say(terminal, "count_slowly steps=4")
        wait_for_question(terminal)
        answer(terminal, "o")
        terminal.type("list my notes")
        terminal.press("enter")
        terminal.wait_for("1 queued")
        terminal.type(BLUR)
        wait_for_question(terminal)
        assert rings(terminal) == 1


def test_keys_typed_ahead_do_not_answer_the_question(deck: Deck) -> None:
    with deck() as terminal:
        terminal.type("add a note: buy milk\roooo")
        question = wait_for_question(terminal)
        assert "buy milk" in question
        answer(terminal, "escape")
        terminal.wait_for("denied")


def test_a_sentence_typed_before_the_first_frame_is_sent(deck: Deck) -> None:
    with deck(servers=0) as terminal:
        terminal.type("add a note: buy milk\r")
        assert "buy milk" in wait_for_question(terminal)
        answer(terminal, "escape")
        terminal.wait_for("denied")


def test_without_a_key_nothing_opens_and_the_first_words_say_how_to_enter_one(
    tmp_path: Path,
) -> None:
    with Terminal(warm.deck(), columns=80, rows=24, cwd=tmp_path) as terminal:
        terminal.wait_for("F9 enters one")
        terminal.wait_for("1 ready")
        say(terminal, "list my notes")
        wait_for_question(terminal)
        answer(terminal, "escape")
        terminal.wait_for("denied")
        terminal.press("f9")
        terminal.wait_for("The offline demo model answers now")


def test_settings_are_edited_in_the_users_editor_and_count_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    entry = f'{{"mcpServers": {{"own": {{"command": "{sys.executable}", "args": ["-c", "0"]}}}}}}'
    editor.write_text(f'#!/bin/sh\ngrep -c mcpServers "$1" >read\necho \'{entry}\' >"$1"\n')
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.setenv("GEMINI_API_KEY", "no-key-that-anybody-has")
    with Terminal(warm.deck(), columns=80, rows=24, cwd=tmp_path) as terminal:
        terminal.wait_for("There are no servers yet")
        terminal.press("f2")
        terminal.wait_for("No servers yet")
        terminal.type("e")
        terminal.wait_for("own")
        assert (tmp_path / "read").read_text() == "1\n"
        leave(terminal)


def test_commands_reach_the_servers_and_unknown_ones_come_back(deck: Deck) -> None:
    with deck(columns=120, rows=36) as terminal:
        say(terminal, "/mcp stop notes")
        terminal.wait_for("○ notes")
        say(terminal, "/mcp notes")
        terminal.wait_for("discovery    not started")
        terminal.press("escape")
        terminal.wait_gone("discovery")
        send(terminal, "/mcp strat notes")
        terminal.wait_for("Did you mean /mcp start notes?")
        terminal.press("ctrl+c")
        terminal.wait_gone("> /mcp strat")
        say(terminal, "/mcp start notes")
        terminal.wait_for("● notes")
        send(terminal, "/hlep")
        terminal.wait_for("There is no command")
        terminal.wait_for("> /hlep")


def test_a_draft_is_written_in_the_users_editor(
    deck: Deck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(
        f'#!/bin/sh\ncat "$1" >{tmp_path}/read; printf "one\\nwritten elsewhere\\n" >"$1"\n'
    )
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    with deck() as terminal:
        terminal.type("a draft")
        terminal.press("ctrl+g")
        terminal.wait_for("written elsewhere")
        assert (tmp_path / "read").read_text() == "a draft"
        terminal.press("ctrl+c", "ctrl+c")
        terminal.wait_for("Press ^C again to quit")
        terminal.press("ctrl+c")
        assert terminal.wait_for_exit() == 0


def test_bytes_that_are_no_text_do_not_end_the_app(deck: Deck) -> None:
    with deck() as terminal:
        terminal.send(b"\xff\xc3(\x1b[99999999u")
        terminal.type("still here")
        terminal.wait_for("still here")
        leave(terminal)


def test_D18_escapes_in_a_paste_neither_end_it_nor_send_it(deck: Deck) -> None:
    with deck() as terminal:
        terminal.type("\x1b[200~ERROR \x1b[31mfoo\x1b[0m\rsecond\r\x1b[20")
        terminal.type("1~ after")
        screen = terminal.wait_for("after")
        assert "> ERROR foo" in screen
        assert "second" in screen
        assert "You" not in screen, "nothing was sent"
        assert "[31m" not in screen


def test_the_turn_can_be_stopped_from_a_question(deck: Deck) -> None:
    with deck() as terminal:
        say(terminal, "add a note: never keep this")
        wait_for_question(terminal)
        answer(terminal, "x")
        terminal.wait_for(lambda screen: "denied" in screen or "cancelled" in screen)
        terminal.wait_gone("Esc stops")


def test_a_narrow_terminal_shows_one_side_at_a_time(deck: Deck) -> None:
    with deck(80, 24) as terminal:
        assert "● notes" not in terminal.screen
        terminal.press("f2")
        terminal.wait_for(lambda screen: re.search(r"● notes .* tools", screen) is not None)
        terminal.press("f3")
        terminal.wait_gone("● notes")
        terminal.wait_for("add_note")
        terminal.press("f3")
        terminal.wait_gone("add_note")
        terminal.resize(140, 40)
        terminal.wait_for(lambda screen: "● notes" in screen and "add_note" in screen)
        terminal.resize(80, 24)
        terminal.wait_gone("● notes")


def ask(terminal: Terminal) -> None:
    say(terminal, "add a note: buy milk")
    terminal.wait_for("A tool wants to run")


@pytest.mark.parametrize(
    ("begins", "ends", "code"),
    [
        (None, lambda terminal: terminal.send_signal(signal.SIGTERM), 128 + signal.SIGTERM),
        (None, lambda terminal: terminal.send_signal(signal.SIGHUP), 128 + signal.SIGHUP),
        (None, lambda terminal: terminal.press("ctrl+q"), 0),
        (ask, lambda terminal: terminal.press("ctrl+q"), 0),
        (None, lambda terminal: terminal.hang_up(), None),
        (None, lambda terminal: terminal.send_signal(signal.SIGKILL), None),
    ],
    ids=["terminated", "hung up", "left", "left within a question", "window closed", "killed"],
)
def test_whatever_ends_it_leaves_no_server_and_the_terminal_restored(
    deck: Deck, begins: Act | None, ends: Act, code: int | None
) -> None:
    with deck() as terminal:
        servers = terminal.descendants()
        assert len(servers) == processes_of(1)
        if begins is not None:
            begins(terminal)
        ends(terminal)
        ended = terminal.wait_for_exit()
        assert_gone(servers)
        if code is not None:  # else it could do nothing more
            assert ended == code
            assert_restored(terminal)
            assert "Traceback" not in terminal.screen


def test_a_first_message_is_sent_and_the_screen_stays(tmp_path: Path) -> None:
    command = warm.deck("--demo", "-i", "list my notes")
    with Terminal(command, columns=120, rows=36, cwd=tmp_path) as terminal:
        assert "list_notes" in wait_for_question(terminal)
        leave(terminal)
