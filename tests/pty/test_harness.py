"""The terminal harness itself, with a small Textual app and with small scripts."""

import signal
import sys
import termios
from pathlib import Path

import psutil
import pytest

from tests.support.terminal import Terminal, escape_kinds

APP = """
import subprocess, sys
from textual.app import App
from textual.widgets import Footer, Header, Input, Static

class Small(App):
    TITLE = "small app"

    def compose(self):
        yield Header()
        yield Input(placeholder="say something")
        yield Static("", id="said", markup=False)
        yield Footer()

    def on_mount(self):
        self.child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

    def on_input_submitted(self, event):
        self.query_one("#said").update(f"you said {event.value} at {self.size.width}")

    def on_unmount(self):
        self.child.kill()
        self.child.wait()

Small().run()
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    script = tmp_path / "small.py"
    script.write_text(APP)
    return script


def test_an_app_is_typed_to_resized_and_quit(small: Path) -> None:
    with Terminal([sys.executable, str(small)], columns=80, rows=24) as terminal:
        terminal.wait_for("small app")
        terminal.wait_for("say something")
        assert len(terminal.descendants()) == 1
        terminal.type("hällo\r")
        terminal.wait_for("you said hällo at 80")
        terminal.resize(100, 30)
        terminal.wait_for("small app")
        terminal.press("x", "enter")
        terminal.wait_for("at 100")
        assert terminal.attributes[3] & termios.ICANON == 0
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0
        assert terminal.attributes == terminal.attributes_before
        assert terminal.raw.index(b"\x1b[?1049h") < terminal.raw.rindex(b"\x1b[?1049l")
        kinds = escape_kinds(terminal.raw)
        assert {"CSI H", "CSI m", "CSI ?1049h", "CSI ?25l"} <= kinds
        assert {kind for kind in kinds if not kind.startswith("CSI")} == {"OSC 22"}, "the pointer"


def test_closing_the_terminal_hangs_the_program_up_and_a_signal_reaches_it() -> None:
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGHUP, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    for is_hung_up, code in ((True, 7), (False, -signal.SIGTERM)):
        with Terminal([sys.executable, "-c", script]) as terminal:
            terminal.wait_for("ready")
            if is_hung_up:
                terminal.hang_up()
            else:
                terminal.send_signal(signal.SIGTERM)
            assert terminal.wait_for_exit() == code


def test_what_does_not_come_fails_with_the_screen_and_at_once_where_the_program_ended() -> None:
    with Terminal([sys.executable, "-c", "print('something else'); input()"]) as terminal:
        terminal.wait_for("something")
        with pytest.raises(AssertionError, match="something else"):
            terminal.wait_for("never", timeout=0.1)
        terminal.press("enter")
        with pytest.raises(AssertionError, match="before the program ended"):
            terminal.wait_for("never", timeout=60)


def test_a_program_that_does_not_end_is_killed_with_its_children() -> None:
    script = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print('forked', flush=True)\n"
        "time.sleep(60)\n"
    )
    with Terminal([sys.executable, "-c", script]) as terminal:
        terminal.wait_for("forked")
        children = terminal.descendants()
        with pytest.raises(AssertionError, match="still runs"):
            terminal.wait_for_exit(timeout=0.1)
    assert not psutil.wait_procs(children, timeout=5)[1]


def test_harmful_sequences_are_told_apart() -> None:
    raw = (
        "\x1b[1;31mred\x1b[0m\x1b[10;20H\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x1b\\\x1b[?1049h"
        "\x1bPq\x1b\\\x9b2J\x07\x1b(B\n\r\t✓ ü"
    ).encode()
    assert escape_kinds(raw) == {
        "CSI m",
        "CSI H",
        "OSC 52",
        "OSC 0",
        "CSI ?1049h",
        "ESC P string",
        "C1 9b",
        "C0 07",
        "ESC (B",
    }
    assert escape_kinds(b"\x1b]0;never ends") == {"unterminated"}
