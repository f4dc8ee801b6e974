"""gemdeck sends nothing home: which hosts its code knows, and which it asks for as it runs."""

import re
from pathlib import Path
from typing import Final

import pytest

import tui
from tests.cli.running import notes_server, run_process, write_settings
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.pty.driving import answer, leave, say, wait_for_end_of_turn, wait_for_question
from tests.support import warm
from tests.support.network import is_local
from tests.support.terminal import Terminal
from tui.engine.keys.services import WELL_KNOWN

HOST: Final = re.compile(r"https?://(?:\{\w+\})?(\w[\w-]*(?:\.[\w-]+)+)")

KNOWN: Final = {
    "generativelanguage.googleapis.com": "Gemini",
    "aiplatform.googleapis.com": "Gemini on Vertex AI",
    "accounts.google.com": "the issuer where a user signs in to a server with Google",
    "www.googleapis.com": "names a scope of that sign-in",
    "stream.invalid": "stands in a request that is never sent",
    **dict.fromkeys(HOST.findall(" ".join(one.url for one in WELL_KNOWN.values())), "a service"),
    **dict.fromkeys(("aistudio.google.com", "github.com", "json-schema.org"), "is text"),
    "html.spec.whatwg.org": "is text",
}
"""The hosts that the code names, and what for: none gets anything unless the user chose it."""

RECORDER: Final = """
import os, sys
def record(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        asked = arguments if event == "socket.getaddrinfo" else arguments[1]
        if isinstance(asked, tuple) and isinstance(asked[0], str):
            with open(os.environ["ASKED"], "a", encoding="utf-8") as file:
                print(asked[0], file=file)
sys.addaudithook(record)
"""
"""Notes each host that a Python process asks for, whichever library asks."""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sitecustomize.py").write_text(RECORDER, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    return tmp_path / "asked"


def hosts(asked: Path) -> set[str]:
    return set(asked.read_text("utf-8").split()) if asked.exists() else set()


def test_the_code_knows_no_host_but_those_of_models_and_sign_ins() -> None:
    folder = Path(tui.__file__).parent
    files = [path for kind in ("*.py", "*.toml") for path in folder.rglob(kind)]
    named = {host for path in files for host in HOST.findall(path.read_text("utf-8"))}
    named = {host for host in named if not is_local(host) and "example" not in host}
    assert named == {host for host in KNOWN if not is_local(host)}


def test_the_demo_asks_for_no_host_at_all(asked: Path) -> None:
    with Terminal(warm.deck("--demo"), cwd=asked.parent) as terminal:
        terminal.wait_for("1 ready")
        say(terminal, "add a note: buy milk")
        wait_for_question(terminal)
        answer(terminal, "o")
        wait_for_end_of_turn(terminal)
        leave(terminal)
    assert hosts(asked) == set()


async def test_a_run_asks_for_its_model_alone(asked: Path, gemini: FakeGemini) -> None:
    write_settings({"mcpServers": {"notes": notes_server()}})
    gemini.steps = [[Call([("add_note", {"text": "milk"})])], [Say("Done.")]]
    await run_process("-p", "add it", "--yolo", gemini=gemini, code=0)
    assert hosts(asked) == {"127.0.0.1"}
