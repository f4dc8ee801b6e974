"""`gemdeck mcp read`: the bytes of a resource, and nothing else."""

import base64
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.running import Result, library, run, run_process, write_settings
from tests.support import warm
from tests.support.terminal import Terminal
from tui.cli.output import ExitCode

BYTES: Final = bytes(range(256)) * 4_096
TEXT: Final = "\ufeffa\r\n\x1b[31mb\u202e\x00 naïve 🍞"
"""With what a terminal is not shown, and without a newline at its end."""


def text(words: str) -> dict[str, Any]:
    return {"uri": "a://x", "mimeType": "text/plain", "text": words}


def blob(data: bytes) -> dict[str, Any]:
    wrapped = base64.encodebytes(data).decode()
    return {"uri": "a://x", "mimeType": "image/png", "blob": wrapped}


CONTENTS: Final[dict[str, list[dict[str, Any]]]] = {
    "a://text": [text(TEXT)],
    "a://line": [text("one line\n")],
    "a://long": [text("long " * 250_000)],
    "a://empty": [text("")],
    "a://blob": [blob(BYTES)],
    "a://both": [text("one"), {**blob(b"\xff\x00"), "_meta": {"a": 1}, "odd": []}, text("two\n")],
    "a://many": [text(f"{number},") for number in range(150)],
    "a://broken": [{**blob(b""), "blob": "no base64!"}],
}
WHOLE: Final[dict[str, bytes]] = {
    "a://text": TEXT.encode(),
    "a://line": b"one line\n",
    "a://long": b"long " * 250_000,
    "a://empty": b"",
    "a://blob": BYTES,
    "a://both": b"one\xff\x00two\n",
    "a://many": b"".join(b"%d," % number for number in range(150)),
}


@pytest.fixture(autouse=True)
def offer() -> None:
    write_settings({"mcpServers": {"a": library(resources=list(CONTENTS), contents=CONTENTS)}})


async def read(uri: str, *more: str) -> Result:
    return await run("mcp", "read", "a", uri, *more)


def at_terminal(uri: str, *more: str) -> tuple[int, str, bytes]:
    """Give the exit code, what the screen shows, and what was written to it."""
    command = [warm.python(), "-m", "tui", "mcp", "read", "a", uri, *more]
    with Terminal(command, cwd=Path.home(), columns=200) as terminal:
        code = terminal.wait_for_exit()
        return code, terminal.screen.strip(), terminal.raw


async def test_a_pipe_gets_the_bytes_and_nothing_else() -> None:
    for uri, whole in WHOLE.items():
        result = await read(uri)
        assert (result.code, result.stderr) == (ExitCode.OK, ""), uri
        assert result.raw == whole, uri
    real = await run_process("mcp", "read", "a", "a://both")
    assert (real.code, real.raw, real.stderr) == (ExitCode.OK, WHOLE["a://both"], "")


async def test_a_file_gets_the_bytes_in_place_of_what_it_held(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"x" * (len(BYTES) + 1))
    old.chmod(0o644)
    for uri in ("a://text", "a://blob", "a://both", "a://empty"):
        for file in (old, new):
            result = await read(uri, "-o", str(file))
            assert (result.code, result.stdout, result.stderr) == (ExitCode.OK, "", "")
            assert file.read_bytes() == WHOLE[uri]
    assert [file.stat().st_mode & 0o777 for file in (old, new)] == [0o644, 0o600]


async def test_json_has_every_content_or_says_where_the_bytes_are(tmp_path: Path) -> None:
    result = await read("a://both", "--json")
    assert result.json == {"server": "a", "uri": "a://both", "contents": CONTENTS["a://both"]}
    assert result.code == ExitCode.OK
    file = tmp_path / "out"
    result = await read("a://blob", "--json", "-o", str(file))
    where = {"server": "a", "uri": "a://blob", "file": str(file), "bytes": len(BYTES)}
    assert (result.code, result.json) == (ExitCode.OK, where)
    assert file.read_bytes() == BYTES


async def test_what_cannot_be_decoded_or_written_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "old"
    file.write_text("kept")
    wrong, none = "neither text nor valid base64", tmp_path / "none" / "out"
    for words, said in (
        (["a://broken"], wrong),
        (["a://broken", "-o", str(file)], wrong),
        (["a://text", "-o", str(none)], "cannot be written: No such file or directory."),
        (["a://text", "-o", str(tmp_path)], "cannot be written: Is a directory."),
    ):
        result = await read(*words)
        assert (result.code, result.stdout) == (ExitCode.ERROR, ""), words
        assert said in result.stderr
    assert file.read_text() == "kept"


def test_a_full_disk_behind_standard_output_is_an_error() -> None:
    with Path("/dev/full").open("wb") as full:
        options: dict[str, Any] = {"cwd": Path.home(), "stdout": full, "stderr": subprocess.PIPE}
        command = [warm.python(), "-m", "tui", "mcp", "read", "a", "a://line"]
        result = subprocess.run(command, timeout=60, check=False, **options)
    assert result.returncode == ExitCode.ERROR
    assert not [one for one in (b"Traceback", b"Exception ignored") if one in result.stderr]


def test_a_terminal_gets_no_blob_and_text_that_cannot_control_it(tmp_path: Path) -> None:
    code, screen, raw = at_terminal("a://both")
    assert (code, screen) == (ExitCode.USAGE, "gemdeck: a://both is binary: use -o FILE or a pipe.")
    assert raw.count(b"\n") == 1
    file = tmp_path / "out"
    assert at_terminal("a://blob", "-o", str(file)) == (ExitCode.OK, "", b"")
    assert file.read_bytes() == BYTES
    code, screen, raw = at_terminal("a://text")
    assert (code, screen.splitlines()[0]) == (ExitCode.OK, "a")
    assert not [one for one in (b"\x1b", "\u202e".encode(), b"\x00") if one in raw]
    assert at_terminal("a://line")[2] == b"one line\r\n"
    code, _, raw = at_terminal("a://long")
    assert code == ExitCode.OK
    assert b"250,000 more characters are not shown; -o FILE writes all." in raw
