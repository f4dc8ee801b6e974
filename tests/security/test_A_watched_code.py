"""What of a folder is watched is said in its question, and a change says which file it was."""

import os
import re
from pathlib import Path

import pytest

from tests.security.folders import Reader, reader
from tests.security.opened import place
from tui.engine.definitions.folder_code import MAX_FILES, MAX_NAMES
from tui.engine.mcp.errors import ServerError
from tui.engine.trust.content import disclose
from tui.model.trust import UNWATCHED, Disclosure, FolderTrust
from tui.ui.questions.trust import trust_lines

__all__ = ["place", "reader"]


def write(reader: Reader, name: str, text: str) -> Path:
    path = reader.place.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def asked(reader: Reader, **entry: object) -> Disclosure:
    reader.place.project({"mcpServers": {"it": entry}})
    [server] = reader.question().servers
    return server


def difference(reader: Reader) -> list[str]:
    lines = reader.question().difference
    changed = (line for line in lines if line.sign.strip())
    return [f"{line.sign} {re.split(':? ?,? content', line.text)[0]}" for line in changed]


def test_A03_what_is_watched_is_shown_and_that_the_rest_is_not(reader: Reader) -> None:
    write(reader, "pkg/__main__.py", "")
    write(reader, "x⟨\n \x1b[31m\u202e.py", "")
    odd = "x⟨\n \x1b[31m\u202e.py"
    server = asked(reader, command="python3", args=["-m", "pkg", odd])
    assert server.files == (r"x⟨\n \u001b[31m\u202e.py", "pkg/__main__.py")
    assert UNWATCHED in [line.text for line in trust_lines(reader.question())]
    own = reader.place.folder / "pkg" / "__main__.py"
    reader.place.user({"mcpServers": {"mine": {"command": "sh", "args": [str(own)]}}})
    mine = reader.server("mine")
    assert disclose(mine, reader.place.folder).files == ("pkg/__main__.py",)
    assert disclose(mine, reader.place.home / "elsewhere").files == (str(own),)
    assert disclose(mine).files == (str(own),)


@pytest.mark.parametrize("many", ["files", "words"])
def test_A17_more_than_is_watched_is_said(reader: Reader, many: str) -> None:
    names = [f"{number}.py" for number in range(MAX_FILES if many == "files" else MAX_NAMES)]
    for name in names if many == "files" else ():
        write(reader, name, "")
    warning = "Names so much that not all files of it are watched."
    assert warning not in asked(reader, command="python3", args=names[:9]).warnings
    assert warning in asked(reader, command="python3", args=[*names, "more"]).warnings


def test_A09_a_change_names_each_file(reader: Reader) -> None:
    write(reader, "server.py", "1")
    write(reader, "pyproject.toml", "")
    reader.place.project({"mcpServers": {"it": {"command": "uv", "args": ["run", "server.py"]}}})
    reader.say_yes()
    write(reader, "server.py", "2")
    assert reader.trust() is FolderTrust.CHANGED
    assert difference(reader) == ["- file server.py", "+ file server.py has changed"]
    write(reader, "server.py", "1")
    assert reader.trust() is FolderTrust.TRUSTED
    write(reader, "uv.toml", "")
    assert difference(reader) == ["+ file uv.toml"]


def test_A22_a_file_that_was_written_over_at_once_and_dated_back_is_noticed(
    reader: Reader,
) -> None:
    script = write(reader, "server.py", "good")
    reader.place.project({"mcpServers": {"it": {"command": "sh", "args": ["server.py"]}}})
    reader.say_yes()
    server, before = reader.server(), script.stat()
    reader.check(server)
    script.write_text("evil")
    os.utime(script, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ServerError, match=r"server\.py"):
        reader.check(server)
