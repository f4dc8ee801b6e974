"""The whole program, as its users meet it: in a terminal, by keyboard."""

import json
import os
import random
import re
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.pty.driving import (
    answer,
    assert_gone,
    assert_restored,
    leave,
    progress_in,
    say,
    wait_for_end_of_turn,
    wait_for_question,
    write_editor,
)
from tests.support import warm
from tests.support.terminal import Terminal, processes_of
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.files.paths import state_dir
from tui.ui.widgets.chat.composer import SHOWN

BLUR: Final = "\x1b[O"
"""What a terminal reports as the user turns to another window."""

FOCUS: Final = "\x1b[I"
"""And back."""

RINGS: Final = re.compile(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|(\x07)")
"""Finds the bell, but not where it ends a string for the terminal."""

RESIZES: Final = 25
LONG: Final = "a pasted line\n" * 400

Deck = Callable[..., Terminal]


@pytest.fixture
def deck(tmp_path: Path) -> Deck:
    """Start gemdeck in an empty workspace; the state stays."""
    workspace = tmp_path / "shop"
    workspace.mkdir()

    def start(
        *arguments: str, columns: int = 120, rows: int = 36, env: Mapping[str, str] | None = None
    ) -> Terminal:
        command = warm.deck(*arguments)
        return Terminal(command, columns=columns, rows=rows, cwd=workspace, env=env)

    return start


def rings(terminal: Terminal) -> int:
    return sum(found[1] is not None for found in RINGS.finditer(terminal.raw))


def is_ready(screen: str) -> bool:
    return re.search(r"● notes .* tools", screen) is not None


def test_a_note_is_added_after_a_question_and_kept(deck: Deck) -> None:
    with deck("--demo") as terminal:
        screen = terminal.wait_for("1 ready")
        assert is_ready(screen)
        assert "gemdeck" in screen.splitlines()[0]
        assert "demo" in screen.splitlines()[0]
        assert len(terminal.descendants()) == processes_of(1)
        say(terminal, "add a note: buy milk")
        question = wait_for_question(terminal)
        assert re.search(r"text +buy milk", question)
        assert "notes" in question
        assert "add_note" in question
        answer(terminal, "o")
        assert "add_note" in wait_for_end_of_turn(terminal)
        leave(terminal)
        [session] = re.findall(rb"Resume with: gemdeck --resume (\S+)\r", terminal.raw)
        [saved] = SessionLibrary(state_dir()).sessions()
        assert (saved.id, saved.first) == (session.decode(), "add a note: buy milk")

    with deck("--demo") as terminal:
        terminal.wait_for("resume: add a note: buy milk")
        terminal.press("ctrl+l")
        terminal.wait_for("Added note")
        terminal.press("ctrl+t")
        say(terminal, "hello")
        wait_for_end_of_turn(terminal)
        leave(terminal)
        assert b" (1 more: gemdeck sessions list)\r" in terminal.raw

    with deck("--demo", "-i", "list my notes", columns=80, rows=24) as terminal:
        question = wait_for_question(terminal)
        assert "list_notes" in question
        assert "buy milk" not in question
        answer(terminal, "o")
        terminal.wait_for("buy milk")
        leave(terminal)


def test_a_denied_or_stopped_call_does_not_run_and_only_who_looks_elsewhere_hears_of_a_question(
    deck: Deck,
) -> None:
    with deck("--demo") as terminal:
        terminal.wait_for("1 ready")
        say(terminal, "add a note: never keep this")
        wait_for_question(terminal)
        assert rings(terminal) == 0
        answer(terminal, "d")
        terminal.wait_for("denied")
        say(terminal, "add a note: never keep that")
        wait_for_question(terminal)
        answer(terminal, "x")
        terminal.wait_gone("Esc stop")
        say(terminal, "count_slowly steps=8")  # four seconds, in which all up to the blur comes
        wait_for_question(terminal)
        answer(terminal, "o")
        terminal.type("list my notes")
        terminal.press("enter")
        terminal.wait_for("1 queued")
        terminal.type(BLUR)
        wait_for_question(terminal)
        assert rings(terminal) == 1
        terminal.type(FOCUS)
        for title in ("shop · gemdeck", "◐ shop · running", "◆ shop · waiting for you"):
            assert f"\x1b]2;{title}\x1b\\".encode() in terminal.raw
        answer(terminal, "o")
        screen = terminal.wait_for("Welcome!")  # the oldest note, which is listed last
        _, _, listed = screen.partition("list_notes returned")
        assert "never keep" not in listed
        say(terminal, "list my notes")
        wait_for_question(terminal)
        leave(terminal)


LIGHT: Final = b"48;2;251;250;248"
"""The background of the light theme, as it is drawn."""


def test_the_theme_follows_the_background_of_the_terminal(deck: Deck) -> None:
    with deck("--demo") as terminal:
        terminal.wait_for("1 ready")
        assert b"\x1b]11;?\x1b\\" in terminal.raw
        assert LIGHT not in terminal.raw, "nothing was answered yet"
        terminal.type("\x1b]11;rgb:ffff/ffff/eeee\x1b\\")
        terminal.wait_for(lambda _: LIGHT in terminal.raw)
        light = terminal.raw.count(LIGHT)
        terminal.type("\x1b[?997;1n\x1b[?997;2n")  # as the user changes the terminal's theme
        terminal.wait_for(lambda _: terminal.raw.count(LIGHT) > light)
        terminal.type("typed")
        assert "997" not in terminal.wait_for("> typed")
        leave(terminal)


@pytest.mark.parametrize("environ", [{"TERM": "linux"}, {"STY": "1.pts"}, {"TERM": "screen"}])
def test_a_terminal_that_might_print_it_is_asked_nothing(
    deck: Deck, environ: dict[str, str]
) -> None:
    with deck("--demo", env=environ) as terminal:
        terminal.wait_for("1 ready")
        assert b"\x1b]11;" not in terminal.raw
        assert b"2031" not in terminal.raw


def test_the_tab_shows_how_far_a_call_is_and_that_a_question_waits(deck: Deck) -> None:
    ghostty = {"TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.2.3"}
    with deck("--demo", env=ghostty) as terminal:
        terminal.wait_for("1 ready")
        assert progress_in(terminal) == []
        say(terminal, "count_slowly steps=4")
        wait_for_question(terminal)
        terminal.wait_for(lambda _: progress_in(terminal)[-1:] == ["4;100"])
        answer(terminal, "o")
        wait_for_end_of_turn(terminal)
        terminal.wait_for(lambda _: progress_in(terminal)[-1] == "0;0")
        shown = progress_in(terminal)
        assert "3;0" in shown
        percents = [int(one[2:]) for one in shown if one.startswith("1;")]
        assert percents == sorted(percents)
        assert {25, 50, 75} & {*percents}, "a busy machine may draw some of them together"
        assert {*percents} <= {0, 25, 50, 75, 100}
        say(terminal, "list my notes")
        wait_for_question(terminal)
        leave(terminal)


def test_D18_neither_keys_typed_ahead_nor_odd_bytes_nor_escapes_in_a_paste_do_harm(
    deck: Deck,
) -> None:
    with deck("--demo") as terminal:
        terminal.type("add a note: buy milk\r")  # before the first frame
        assert "buy milk" in wait_for_question(terminal)
        answer(terminal, "escape")
        wait_for_end_of_turn(terminal)
        terminal.type("add a note: buy bread\roooo")
        assert "buy bread" in wait_for_question(terminal)
        answer(terminal, "escape")
        terminal.wait_for(lambda screen: screen.count(" tokens ──") == 2)
        terminal.send(b"\xff\xc3(\x1b[99999999u")
        terminal.type("still here")
        sent = terminal.wait_for("still here").count("You")
        terminal.press("ctrl+c")
        terminal.type("\x1b[200~ERROR \x1b[31mfoo\x1b[0m\rsecond\r\x1b[20")
        terminal.type("1~ after")
        screen = terminal.wait_for("after")
        assert "ERROR foo" in screen
        assert "second" in screen
        assert "[31m" not in screen
        assert screen.count("You") == sent, "nothing was sent"
        leave(terminal)


def test_without_a_key_nothing_opens_and_a_closed_window_leaves_no_server(deck: Deck) -> None:
    with deck(columns=80, rows=24) as terminal:
        terminal.wait_for("enter a Gemini API key")
        terminal.wait_for("1 ready")
        servers = terminal.descendants()
        terminal.hang_up()
        terminal.wait_for_exit()
        assert_gone(servers)


def test_settings_are_edited_in_the_users_editor_and_a_hang_up_restores_the_terminal(
    deck: Deck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = f'{{"mcpServers": {{"own": {{"command": "{sys.executable}", "args": ["-c", "0"]}}}}}}'
    wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    read = f'trap "" INT\ngrep -c mcpServers "$1" >{tmp_path}/read'
    script = f"{read}\n{wait}\necho '{entry}' >\"$1\""
    monkeypatch.setenv("EDITOR", write_editor(tmp_path, script))
    monkeypatch.setenv("GEMINI_API_KEY", "no-key-that-anybody-has")
    with deck(columns=80, rows=24) as terminal:
        terminal.wait_for("No servers yet")
        terminal.press("f2")
        terminal.wait_for("No servers yet")
        terminal.type("e")
        terminal.wait_for(lambda _: (tmp_path / "read").exists())
        terminal.send(b"?\x03?\r")  # for an editor with a window of its own, so for nobody
        (tmp_path / "go").touch()
        terminal.wait_for("own")
        assert (tmp_path / "read").read_text() == "1\n"
        assert "Keys that work here" not in terminal.screen
        terminal.send_signal(signal.SIGHUP)
        assert terminal.wait_for_exit() == 128 + signal.SIGHUP
        assert_restored(terminal)


def test_a_step_in_a_list_writes_its_rows_and_the_details_only(deck: Deck) -> None:
    with deck("--demo") as terminal:
        terminal.wait_for("1 ready")
        terminal.press("f3")
        terminal.wait_for("notes · list_notes")
        written = []
        for key, tool in (("down", "search_notes"), ("up", "list_notes")) * 3:
            before = len(terminal.raw)
            terminal.press(key)
            terminal.wait_for(f"notes · {tool}")
            written.append(len(terminal.raw) - before)
        assert min(written) < 4_000, "18,000 for the whole screen; one may meet another change"
        leave(terminal)


def drafts() -> list[str]:
    """Read the drafts; gemdeck may just be putting another file in the place of one."""
    found = []
    for file in Path(os.environ["GEMDECK_HOME"]).glob("sessions/*/*.draft"):
        with suppress(FileNotFoundError):
            found.append(json.loads(file.read_bytes()))
    return found


def is_kept(text: str) -> bool:
    """Tell whether a text stands in a session."""
    files = Path(os.environ["GEMDECK_HOME"]).glob("sessions/*/*.jsonl")
    return any(json.dumps(text)[1:-1] in file.read_text("utf-8") for file in files)


def test_a_draft_outlives_a_private_run_and_a_kill_which_leaves_no_server(deck: Deck) -> None:
    draft = f"half a thought {LONG}"
    with deck("--demo") as terminal:
        terminal.wait_for("1 ready")
        terminal.type("half a thought ")
        terminal.send(f"\x1b[200~{LONG}\x1b[201~".encode())
        terminal.wait_for(SHOWN)
        terminal.wait_for(lambda _: draft in drafts())
        servers = terminal.descendants()
        terminal.send_signal(signal.SIGKILL)
        terminal.wait_for_exit()
        assert_gone(servers)
    with deck("--demo", "--private") as terminal:  # which takes no draft and keeps none
        terminal.wait_for("1 ready")
        terminal.type("a secret thought")
        terminal.wait_for("> a secret thought")
        leave(terminal)
        assert b"Resume with" not in terminal.raw
    assert drafts() == [draft]
    with deck("--demo") as terminal:
        terminal.wait_for(SHOWN)
        terminal.press("enter")
        terminal.wait_for(lambda _: is_kept(draft.strip()))
        terminal.wait_for(lambda _: not drafts())
        leave(terminal)


def test_D14_a_storm_of_resizes_neither_ends_the_app_nor_leaves_it_torn(deck: Deck) -> None:
    sizes = random.Random(14)
    with deck("--demo") as terminal:
        terminal.wait_for("1 ready")
        for _ in range(RESIZES):
            terminal.resize(sizes.randint(1, 200), sizes.randint(1, 60))
        terminal.resize(1, 1)
        terminal.resize(120, 36)
        assert "Traceback" not in terminal.wait_for("1 ready")
        terminal.type("still here")
        terminal.wait_for("> still here")
        leave(terminal)


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "NO_COLOR": "1"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"TERM": "dumb", "COLORTERM": ""},
    ],
    ids=["neither UTF-8 nor colours", "another encoding", "a dumb terminal"],
)
def test_D19_an_odd_terminal_gets_the_deck(environment: Mapping[str, str], deck: Deck) -> None:
    with deck("--demo", env=environment) as terminal:
        screen = terminal.wait_for("1 ready")
        assert "Traceback" not in screen
        assert re.search("[─━] Chat [─━]", screen)
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0
