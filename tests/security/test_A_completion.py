"""What a shell is offered after Tab: nothing of a stranger's folder, and nothing it would run."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from click.shell_completion import get_completion_class

from tests.cli.running import write_settings
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE
from tui.cli.command import offer_plain_words
from tui.cli.main import main
from tui.cli.settings import opened_folder
from tui.engine.reload import read_settings

GEMDECK: Final = Path(sys.executable).with_name("gemdeck")

HOSTILE: Final = (
    *("a$(touch PWNED)", "b`touch PWNED`", "c;touch PWNED", "d|touch PWNED", "e&touch PWNED"),
    *("f x", "g'touch PWNED", 'h"', "i*", "j\\;touch PWNED", "k{x,y}", "l>PWNED", "m~", "n#x"),
    *("o\ntouch PWNED", "p\x1b[2K;x", "q,plain", "r:x", "s=x", "t!x", "u\u202ex", "v\u00e9$HOME"),
)
"""Names of servers, each with a first letter of its own."""

START: Final = {
    "bash": ("--noprofile", "--rcfile", "{home}/rc", "-i"),
    "zsh": ("-d", "-i"),
    "fish": ("--no-config", "-i", "-C", "source {home}/rc"),
}
"""How a shell starts that reads ``rc`` alone; zsh reads the link to it in its folder."""

PROMPT: Final = {
    "bash": "PS1='ready> '\n",
    "zsh": "PS1='ready> '\nautoload -Uz compinit\ncompinit -u -D\n",
    "fish": "function fish_prompt; echo 'ready> '; end\n",
}


def servers(*names: str) -> dict[str, object]:
    return {"mcpServers": {name: {"command": "x"} for name in names}}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a folder as a stranger made it, with servers wherever it can have some."""
    folder = tmp_path / "clone"
    for place in (
        ".mcp.json",
        ".gemini/settings.json",
        ".gemini/extensions/x/gemini-extension.json",
    ):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"name": "x", **servers("theirs", *HOSTILE)}))
    return folder


def has_lines(file: Path, number: int, _: str) -> bool:
    return file.exists() and file.read_text().count("\n") >= number


@pytest.mark.parametrize("shell", [*START])
def test_A24_no_name_of_a_server_is_run_by_a_shell_that_completes_it(
    shell: str, clone: Path, tmp_path: Path
) -> None:
    program = shutil.which(shell)
    if program is None and "CI" not in os.environ:
        pytest.skip(f"{shell} is not installed")
    assert program is not None
    home, ran = Path.home(), tmp_path / "ran"
    write_settings(servers("zoo-1.x", *HOSTILE))
    script = subprocess.check_output([GEMDECK, "completion", shell], text=True)
    (home / "rc").write_text(PROMPT[shell] + script)
    (home / ".zshrc").symlink_to(home / "rc")
    own = tmp_path / "bin" / "gemdeck"
    own.parent.mkdir()
    own.write_text(
        f'#!/bin/sh\n[ -z "$_GEMDECK_COMPLETE" ] || exec {GEMDECK}\nprintf "%s\\n" "$*" >>{ran}\n'
    )
    own.chmod(0o700)
    path = {"PATH": f"{own.parent}:{os.environ['PATH']}", "ZDOTDIR": str(home)}
    words = [word.format(home=home) for word in START[shell]]
    names = [name[0] for name in HOSTILE[:6]]
    typed = ["replay y", "call zo", "call th", *(f"call {name}" for name in names)]
    (clone / "y$(touch PWNED)").touch()
    with Terminal([program, *words], cwd=clone, env=path) as terminal:
        terminal.wait_for("ready>")
        for number, word in enumerate(typed, 1):
            terminal.type(f"gemdeck mcp {word}\t\r")
            terminal.wait_for(partial(has_lines, ran, number))
        terminal.type("exit\r")
        terminal.wait_for_exit()
    done = ["replay y$(touch PWNED)", "call zoo-1.x", *typed[2:]]
    assert [*map(str.strip, ran.read_text().splitlines())] == [f"mcp {words}" for words in done]
    assert not (clone / "PWNED").exists()


AUDITED: Final = """
import sys
seen, folder = [], sys.argv.pop()
def note(event, args):
    if event in ("open", "os.listdir", "os.scandir") and str(args[0]).startswith(folder):
        seen.append(args[0])
sys.addaudithook(note)
from tui.cli import main
try:
    main(prog_name="gemdeck")
finally:
    print("seen", seen, file=sys.stderr)
"""


@pytest.mark.parametrize("words", ["mcp call ", "--profile x mcp show ", "doctor ", "mcp tools "])
def test_A24_no_file_of_the_folder_is_opened_however_large(words: str, clone: Path) -> None:
    write_settings(servers("mine"))
    env = {"COMP_WORDS": f"gemdeck {words}", "COMP_CWORD": str(len(words.split()) + 1)}
    env["_GEMDECK_COMPLETE"] = "bash_complete"
    program = [sys.executable, "-P", "-c", AUDITED, str(clone)]
    done = subprocess.run(
        program,
        cwd=clone,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("plain,mine\n", "seen []\n")


def offered(*words: str) -> list[str]:
    """Complete the last word as bash would ask."""
    offer_plain_words()
    kind = get_completion_class("bash")
    assert kind is not None
    shell = kind(main, {}, "gemdeck", "_GEMDECK_COMPLETE")
    return [one.value for one in shell.get_completions([*words[:-1]], words[-1])]


def test_A24_a_trusted_folder_is_completed_by_what_it_was_trusted_with(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clone)
    write_settings(servers("mine", *HOSTILE))
    assert offered("mcp", "call", "") == ["mine"]
    (clone / ".mcp.json").unlink()
    settings = clone / ".gemini" / "settings.json"
    settings.write_text(json.dumps(servers("ours", "-y", "a b", "x;y")))
    opened = opened_folder()
    opened.trust(read_settings(opened, None).seen, children=False)
    assert offered("mcp", "call", "") == ["mine", "ours"]
    settings.write_text(json.dumps(servers("pulled")))
    assert offered("mcp", "call", "") == ["mine", "ours"]
    opened.never()
    assert offered("mcp", "call", "") == ["mine"]


@pytest.mark.parametrize("typed", ["a\nplain,$(touch PWNED)", "a\r", "\x1b[2K"])
def test_A24_what_was_typed_of_a_path_adds_no_line(typed: str) -> None:
    assert offered("mcp", "replay", typed) == []
    assert offered("mcp", "replay", "a b") == ["a b"]
