"""No program that the opened folder brings is run in the place of the system's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.cli.running import run_process, write_settings
from tests.servers.web import free_port
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.sign_in.support import guarded

OPENER = "open" if sys.platform == "darwin" else "xdg-open"


def add_program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Open a folder that ``PATH`` leads to before all others, in each way that there is."""
    folder = tmp_path / "opened"
    folder.mkdir()
    entries = ["", ".", "bin", str(folder), str(folder / "bin"), str(tmp_path / "own")]
    monkeypatch.setenv("PATH", ":".join([*entries, os.environ["PATH"]]))
    return folder


def shadow(opened: Path, own: Path, name: str, script: str) -> None:
    """Put a program among the user's own, and traps of its name into the opened folder."""
    add_program(own, name, script)
    add_program(opened, name, f'echo "$0" >>{opened}/trapped')
    add_program(opened / "bin", name, f'echo "$0" >>{opened}/trapped')


@pytest.mark.writes_secrets("sign-ins.json")
async def test_a_sign_in_opens_the_users_browser(opened: Path, tmp_path: Path) -> None:
    own, seen = tmp_path / "own", tmp_path / "seen"
    shadow(opened, own, OPENER, 'gemdeck-test-browser "$1"')
    shadow(opened, own, "gemdeck-test-browser", f'echo "$1" >{seen}.part; mv {seen}.part {seen}')
    async with guarded() as server:
        back = f"http://localhost:{free_port()}/oauth/callback"
        oauth = {"redirectUri": back}
        write_settings({"mcpServers": {"web": {"httpUrl": server.url, "oauth": oauth}}})
        with anyio.fail_after(PATIENCE):
            command = [sys.executable, "-P", "-m", "tui", "mcp", "auth", "web", "--yes"]
            async with await anyio.open_process(
                command, stdin=subprocess.DEVNULL, stdout=None, stderr=None, cwd=opened
            ) as process:
                await eventually(lambda: seen.exists() or (opened / "trapped").exists())
                process.terminate()
    assert not (opened / "trapped").exists(), (opened / "trapped").read_text()
    assert seen.read_text().startswith("http://127.0.0.1:")


@pytest.mark.parametrize(("editor", "name"), [("", "nano"), ("gemdeck-test-edit -w", None)])
def test_a_draft_opens_in_the_users_editor(
    editor: str, name: str | None, opened: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)
    script = f'echo "$@" >{tmp_path}/seen; for file; do :; done; echo "edited" >"$file"'
    shadow(opened, tmp_path / "own", name or editor.split(maxsplit=1)[0], script)
    command = [sys.executable, "-P", "-m", "tui", "--demo"]
    with Terminal(command, cwd=opened) as terminal:
        terminal.wait_for("1 ready")
        terminal.type("a draft")
        terminal.press("ctrl+g")
        terminal.wait_for(lambda _: (tmp_path / "seen").exists() or (opened / "trapped").exists())
        assert not (opened / "trapped").exists(), (opened / "trapped").read_text()
        terminal.wait_for("> edited")
        terminal.press("ctrl+q")
        assert terminal.wait_for_exit() == 0
    arguments = (tmp_path / "seen").read_text().split()
    assert arguments[0] == ("+1" if name else "-w")


async def test_googles_credentials_ask_the_users_gcloud(opened: Path, tmp_path: Path) -> None:
    shadow(opened, tmp_path / "own", "gcloud", f"echo >{tmp_path}/seen; exit 1")
    credentials = {
        **{"type": "authorized_user", "client_id": "a", "client_secret": "b"},
        **{"refresh_token": "c", "token_uri": "http://127.0.0.1:1/"},
    }
    folder = Path.home() / ".config" / "gcloud"
    folder.mkdir(parents=True)
    (folder / "application_default_credentials.json").write_text(json.dumps(credentials))
    place = {"GOOGLE_CLOUD_LOCATION": "global", "GOOGLE_CLOUD_PROJECT": "any"}
    env = {"GOOGLE_GENAI_USE_VERTEXAI": "true", **place}
    result = await run_process("-p", "hello", env=env, cwd=opened)
    assert not (opened / "trapped").exists(), (opened / "trapped").read_text()
    assert (tmp_path / "seen").exists(), result.stderr
