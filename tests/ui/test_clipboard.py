"""Copies arrive where they can be pasted, and gemdeck says where."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE
from tui.ui.terminal import clipboard
from tui.ui.terminal.clipboard import MAX_SEQUENCE, bring, picture, terminal_takes

KEEPS = 'cat >"$0.kept"'


def programs(folder: Path, **scripts: str) -> dict[str, str]:
    """Put programs on a path of their own; give the variables for it."""
    for name, body in scripts.items():
        program = folder / name.replace("_", "-")
        program.write_text(f"#!{shutil.which('sh')}\nPATH=/usr/bin:/bin\n{body}\n")
        program.chmod(0o755)
    return {"PATH": str(folder)}


DESKTOP, WAYLAND, TMUX = {"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}, {"TMUX": "/tmp/t,1,0"}
FAR = {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}
BOTH = ["the clipboard", "tmux's buffer"]


@pytest.mark.parametrize(
    ("scripts", "environ", "places", "kept"),
    [
        ({"xclip": KEEPS}, DESKTOP, BOTH[:1], "xclip"),
        ({"xsel": KEEPS}, DESKTOP, BOTH[:1], "xsel"),
        ({"xclip": "exit 1", "xsel": KEEPS}, DESKTOP, BOTH[:1], "xsel"),
        ({"wl_copy": KEEPS, "xclip": KEEPS}, {**WAYLAND, **DESKTOP}, BOTH[:1], "wl-copy"),
        ({"wl_copy": KEEPS, "tmux": KEEPS}, {**WAYLAND, **TMUX}, BOTH, "tmux"),
        ({"tmux": f'case "$*" in *-w*) exit 1;; esac; {KEEPS}'}, TMUX, BOTH[1:], "tmux"),
        ({"xclip": KEEPS}, {}, [], ""),
        ({"xclip": "exec sleep 60"}, DESKTOP, [], ""),
        ({"wl_copy": KEEPS}, {**WAYLAND, **FAR}, [], ""),
        ({"xclip": KEEPS}, {"DISPLAY": "localhost:10.0", **FAR}, BOTH[:1], "xclip"),
        ({}, {**DESKTOP, **TMUX}, [], ""),
        # one that stays in the background, as xclip does, with its outputs open
        ({"xclip": f"{KEEPS}; sleep 1 &"}, DESKTOP, BOTH[:1], "xclip"),
    ],
)
def test_a_copy_is_given_to_what_keeps_it_here(
    scripts: dict[str, str],
    environ: dict[str, str],
    places: list[str],
    kept: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    hangs = "exec sleep 60" in scripts.get("xclip", "")
    monkeypatch.setattr(clipboard, "PATIENCE", 0.2 if hangs else PATIENCE)
    text = "größer\n\tals eins\n" * 20_000
    assert bring(text, {**programs(tmp_path, **scripts), **environ}) == places
    if kept:
        assert (tmp_path / f"{kept}.kept").read_text() == text


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 400
GIVES = 'echo "$*" >"$0.asked"; cat "$0.png"'


@pytest.mark.parametrize(
    ("scripts", "environ", "asked"),
    [
        ({"wl_paste": GIVES}, WAYLAND, "--type image/png"),
        ({"xclip": GIVES}, DESKTOP, "-selection clipboard -target image/png -out"),
        ({"wl_paste": "exit 1", "xclip": GIVES}, {**WAYLAND, **DESKTOP}, "-selection"),
        ({"wl_paste": "echo No selection", "xclip": GIVES}, {**WAYLAND, **DESKTOP}, "-selection"),
        ({"wl_paste": GIVES}, {**WAYLAND, **FAR}, ""),
        ({"wl_paste": GIVES}, {}, ""),
        ({"wl_paste": f"{GIVES}; exec cat /dev/zero"}, WAYLAND, ""),
        ({"wl_paste": f"{GIVES}; head -c 6900000 /dev/zero"}, WAYLAND, ""),
        ({"wl_paste": f"{GIVES}; exec sleep 60"}, WAYLAND, ""),
        ({"wl_paste": "exec sleep 60"}, WAYLAND, ""),
        ({}, DESKTOP, ""),
    ],
)
def test_a_picture_is_read_out_of_the_clipboard_within_bounds(
    scripts: dict[str, str],
    environ: dict[str, str],
    asked: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    hangs = any("sleep" in script for script in scripts.values())
    # One that hangs gives something before.
    monkeypatch.setattr(clipboard, "PATIENCE", 0.5 if hangs else PATIENCE)
    for name in ("wl-paste", "xclip"):
        (tmp_path / f"{name}.png").write_bytes(PNG)
    found = picture({**programs(tmp_path, **scripts), **environ})
    assert found == (PNG if asked else b"")
    said = "".join(one.read_text() for one in tmp_path.glob("*.asked"))
    assert said.startswith(asked)


def test_no_program_of_the_opened_folder_gets_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = programs(tmp_path, xclip=KEEPS)
    assert bring("a", {**environ, "PATH": f"{tmp_path}{os.pathsep}.", **DESKTOP}) == []
    programs(tmp_path, xclip=GIVES)
    assert picture({"PATH": f"{tmp_path}{os.pathsep}.", **DESKTOP}) == b""
    assert not [*tmp_path.glob("xclip.*")]


@pytest.mark.parametrize(
    ("environ", "size", "takes"),
    [
        ({"TERM": "xterm-kitty"}, 10, True),
        ({"TERM": "xterm-ghostty"}, MAX_SEQUENCE, True),
        ({"TERM": "foot-extra"}, 10, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, 10, True),
        ({"TERM": "xterm-256color", "WT_SESSION": "1"}, 10, True),
        ({"TERM": "xterm-kitty"}, MAX_SEQUENCE + 1, None),
        ({"TERM": "xterm-256color"}, 10, None),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, 10, None),
        ({"TERM": "tmux-256color", "WT_SESSION": "1", "TMUX": "/run/tmux"}, 10, None),
        ({"TERM": "screen.xterm-256color", "STY": "1.a"}, 10, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, 10, False),
        ({"TERM": "linux"}, 10, False),
        ({"TERM": "dumb"}, 10, False),
    ],
)
def test_what_terminals_take_copies_is_known_or_left_open(
    environ: Mapping[str, str], size: int, takes: bool | None
) -> None:
    assert terminal_takes(size, environ) is takes
