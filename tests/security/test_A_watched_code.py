"""What of a folder is watched is said in its question, and a change says which file it was."""

import os
from pathlib import Path

import pytest

from tests.security.folders import Reader, reader
from tests.security.opened import place
from tui.engine.consent.folder_trust import content
from tui.engine.consent.folder_trust.disclosure import disclose
from tui.engine.mcp.errors import ServerError
from tui.model.trust import Disclosure, FolderTrust

__all__ = ["place", "reader"]

MODULE = {"command": "python3", "args": ["-m", "pkg"]}


def write(reader: Reader, name: str, text: str) -> Path:
    path = reader.place.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def package(reader: Reader, number: int) -> None:
    """Write a package whose files say a number."""
    write(reader, "pkg/__main__.py", "")
    for index in range(8):
        write(reader, f"pkg/part{index}.py", f"{number}")


def asked(reader: Reader, **entry: object) -> Disclosure:
    reader.place.project({"mcpServers": {"it": entry}})
    [server] = reader.question().servers
    return server


def difference(reader: Reader) -> list[str]:
    lines = reader.question().difference
    return [f"{line.sign} {line.text.partition(': content')[0]}" for line in lines]


def test_A03_what_is_watched_and_what_is_not_is_shown(reader: Reader) -> None:
    package(reader, 1)
    write(reader, "x⟨\n \x1b[31m\u202e.py", "")
    odd = "x⟨\n \x1b[31m\u202e.py"
    server = asked(reader, command="python3", args=["-m", "pkg", odd])
    assert server.files == (
        r"pkg/__main__.py",
        r"x⟨\n \u001b[31m\u202e.py",
        "pkg/ (9 files)",
    )
    assert server.unwatched == ("what pkg imports",)
    server = asked(reader, command="python3", args=[odd])
    assert server.unwatched == (r"what x⟨\n \u001b[31m\u202e.py imports",)
    own = reader.place.folder / "pkg" / "__main__.py"
    reader.place.user({"mcpServers": {"mine": {"command": "sh", "args": [str(own)]}}})
    mine = reader.server("mine")
    assert disclose(mine, reader.place.folder).files == ("pkg/__main__.py",)
    assert disclose(mine, reader.place.home / "elsewhere").files == (str(own),)
    assert disclose(mine).files == (str(own),)


def test_A09_a_change_names_the_first_files_of_a_package_and_counts_the_others(
    reader: Reader,
) -> None:
    package(reader, 1)
    reader.place.project({"mcpServers": {"it": MODULE}})
    reader.say_yes()
    write(reader, "pkg/part3.py", "2")
    assert reader.trust() is FolderTrust.CHANGED
    changed = [line for line in difference(reader) if line.startswith("+")]
    assert changed == ["+ file part3.py of pkg/ has changed"]
    package(reader, 2)
    write(reader, "pkg/__main__.py", "2")
    changed = [line for line in difference(reader) if line.startswith("+")]
    named = [f"+ file part{index}.py of pkg/ has changed" for index in range(5)]
    more = "+ and 3 more files of pkg/"
    assert changed == ["+ file pkg/__main__.py has changed", *named, more]
    assert len([line for line in difference(reader) if line.startswith("-")]) == 6
    package(reader, 1)
    write(reader, "pkg/__main__.py", "")
    assert reader.trust() is FolderTrust.TRUSTED
    write(reader, "pkg/new.py", "")
    changed = [line for line in difference(reader) if line[0] in "+-"]
    assert [line.partition(",")[0] for line in changed] == ["+ file new.py of pkg/"]


def test_A09_a_change_in_a_large_package_names_the_package(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "MAX_MEMBERS", 8)
    package(reader, 1)
    reader.place.project({"mcpServers": {"it": MODULE}})
    reader.say_yes()
    write(reader, "pkg/part3.py", "2")
    changed = [line for line in difference(reader) if line.startswith("+")]
    assert changed == ["+ package pkg/ (9 files) has changed"]


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
