"""``python3 -m tests.support.random_keys SEED [SECONDS]``: uses gemdeck as nobody does.

The demo runs in a terminal with two real servers and one that fails. Random keys, words, clicks,
pastes, sizes of the terminal and edits of the settings reach it, most of them before the last was
drawn. What it prints: how many there were, and, if gemdeck ended, the last of them and its report.
The same seed gives the same keys, but not the same moments.
"""

import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.support import node
from tests.support.terminal import Terminal

SEQUENCES: Final = (
    *(f"\x1b[{end}" for end in "ABCDHFZ"),
    *(f"\x1b[{number}~" for number in (2, 3, 5, 6, 15, 17, 18, 19, 20, 21, 23, 24)),
    *(f"\x1bO{end}" for end in "PQRS"),
    *(f"\x1b[1;{modifier}{end}" for modifier in (2, 3, 5) for end in "ABCDHF"),
    *(f"\x1b{letter}" for letter in "bdfuw.123"),
    *map(chr, {*range(1, 32)} - {3, 4, 17, 26}),  # not what quits, ends or suspends it
    "\x7f",
)
LETTERS: Final = "abcdefghijklmnoprstuvwxyzAERTDSMNYC0123+-*/ ?.!=&~#,<>"
WORDS: Final = (
    *("/options", "/model", "/mcp", "/help", "/tools", "/new", "/clear", "/sessions", "/context"),
    *("@a", "@every:", "/every:", "/theme", "/profile", "hello", "ä漢👩\u200d👩\u200d👧"),
    *("add a note: x\r", "count slowly to 3\r", "list my notes\r", "echo message=hi\r"),
    *("get-sum a=1 b=2\r", "get-tiny-image\r", "trigger-elicitation-request\r", "x" * 300),
    *("trigger-long-running-operation duration=2\r", "simulate-research-query topic=x\r"),
)
PAUSES: Final = (0.005, 0.02, 0.05, 0.2)


def entry(name: str, **more: object) -> dict[str, object]:
    """Write the entry of a server."""
    command, arguments = node.node_server(name)
    return {"command": command, "args": arguments, **more}


def act(terminal: Terminal, settings: Path, chance: random.Random) -> str:
    """Do one random thing; give what it was."""
    kind = chance.random()
    if kind < 0.004:
        changed = {"memory": entry("memory", timeout=chance.randrange(5_000, 9_000))}
        settings.write_text(json.dumps({"mcpServers": changed}))
        return "an edit of the settings"
    if kind < 0.03:
        size = chance.randrange(20, 180), chance.randrange(6, 50)
        terminal.resize(*size)
        return f"a size of {size}"
    if kind < 0.06:
        place = f"{chance.randrange(1, 100)};{chance.randrange(1, 30)}"
        keys = f"\x1b[<0;{place}M\x1b[<0;{place}m"
    elif kind < 0.08:
        keys = f"\x1b[200~pasted\ntext {'y' * chance.choice([5, 2_000])}\x1b[201~"
    elif kind < 0.25:
        keys = chance.choice(WORDS)
    else:
        keys = chance.choice(SEQUENCES if kind < 0.7 else LETTERS)
    terminal.send(keys.encode())
    return repr(keys[:20])


def main(seed: int, seconds: float) -> bool:
    """Use gemdeck for some seconds; tell whether it is still there."""
    chance, done = random.Random(seed), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        for name in (".gemini", "opened"):
            (home / name).mkdir()
        (home / "opened" / "a.py").write_text("x = 1\n" * 50)
        settings = home / ".gemini" / "settings.json"
        servers = {name: entry(name) for name in ("everything", "memory")}
        settings.write_text(json.dumps({"mcpServers": {**servers, "bad": {"command": "nope"}}}))
        env = {
            **{"HOME": str(home), "GEMDECK_HOME": str(home / "own"), "EDITOR": "true"},
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }
        command = [sys.executable, "-m", "tui", "--demo"]
        size = {"columns": chance.choice([60, 80, 120, 160]), "rows": chance.choice([16, 24, 40])}
        with Terminal(command, cwd=home / "opened", env=env, draw=False, **size) as terminal:
            terminal.seconds_until(b"F1", 60)
            end = time.monotonic() + seconds
            while time.monotonic() < end and terminal.is_running:
                done.append(act(terminal, settings, chance))
                time.sleep(chance.choice(PAUSES))
            is_there = terminal.is_running
        reports = [path.read_text("utf-8") for path in (home / "own").rglob("crash-*.txt")]
    print(f"{len(done)} keys and other things; {'still there' if is_there else 'it ended'}")
    if reports or not is_there:
        print(", ".join(done[-40:]), *reports, sep="\n")
    return is_there


if __name__ == "__main__":
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    node.install()
    sys.exit(not main(int(sys.argv[1]), float(dict(enumerate(sys.argv)).get(2, "60"))))
