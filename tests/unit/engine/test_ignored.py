"""Ignore files: what git leaves out we leave out, at a bounded cost and never less than that."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.rows import row
from tui.engine.files import ignored
from tui.engine.files.ignored import MAX_BYTES, MAX_DEPTH, MAX_PATTERN, MAX_PATTERNS, IgnoreRules
from tui.engine.workspace import OutsideError, Workspace

TABLE = [
    *("folder/", "folder/**", "!folder", "folder", "f*/", "**/folder/", "/folder/", "folder//"),
    *("*.log", "build/", "/top", "a/b", "a/*/b", "a/**/b", "**/b", "a/**", "**/a/**/b", "**"),
    *(
        *("!a", "a\n!a", "a*\n!ab", "a/\n!a/b", "*\n!*/\n!b", "\\!a", "\\#a", "#a", "a\\ ", "a "),
        "a  ",
    ),
    *("[ab]", "[!a]", "[^a]b", "[a-c]?", "[]a]", "[a", "[[:alpha:]]", "[![:digit:]]*", "[c-a]"),
    *("[[:no:]]", "a\\", "a\\/", "//a", "a//b", "/", "!", "?", "??", "é", "[é]", "***", "a***b"),
    *("a**/b", "a/**b", "**\\/b", "*a*a*a*b", "a?b/c*", "\ufeffa", "a\r", "a\0b", "\\*", "[\\]]"),
]
"""Patterns, and lines of several, that git reads in its own way."""

PATHS = [
    *("a", "b", "ab", "abc", "a/b", "a/x/b", "a/x/y/b", "x/a", "x/a/b", "top", "x/top", "run.log"),
    *(
        *("x/run.log", "build/out", "!a", "#a", "a ", "]", "1", "é", "a\\", "*", "a\nb", "aaaab"),
        "axb/cc",
    ),
    *("c", "-", "folder", os.fsdecode(b"\xff\xfe"), os.fsdecode(b"x/\xe9a")),
]
PIECES = [
    *("a", "b", "c", "é", ".", "-", " ", "!", "\\", "/", "?", "*", "**", "**/", "/**", "/**/"),
    *("[ab]", "[!a]", "[a-c]", "[", "]", "[[:alpha:]]"),
]
NAMES = st.text("abc-! .*\\[]é\n", min_size=1, max_size=3).filter(lambda name: name.strip("."))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository").resolve()
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "folder").mkdir()
    return root


def git_leaves_out(root: Path, paths: list[str]) -> set[str]:
    """Ask git itself."""
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    command = ["git", "check-ignore", "--no-index", "-z", "-v", "-n", "--stdin"]
    done = subprocess.run(command, input=asked, cwd=root, capture_output=True, check=False)
    said = done.stdout.split(b"\0")
    named = zip(said[2::4], said[3::4], strict=True)
    return {os.fsdecode(path) for rule, path in named if rule and not rule.startswith(b"!")}


def compare(root: Path, text: str, paths: list[str]) -> None:
    (root / ".gitignore").write_bytes(text.encode("utf-8", "surrogateescape") + b"\n")
    rules = IgnoreRules(root)
    ours = {p for p in paths if rules.leaves_out(root / p, is_folder=(root / p).is_dir())}
    assert ours == git_leaves_out(root, paths)


def test_A26_ignore_files_are_read_as_git_reads_them(repository: Path) -> None:
    for text in TABLE:
        with row(text):
            compare(repository, text, PATHS)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join), max_size=3),
    st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), min_size=1, max_size=20),
)
def test_A26_any_patterns_as_in_git(repository: Path, lines: list[str], paths: list[str]) -> None:
    compare(repository, "\n".join(lines), sorted(set(paths)))


def test_A26_a_pattern_costs_its_length_times_the_paths(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    patterns = ["*a" * 120 + "b", "*?" * 120 + "b", "*" + "a" * 200 + "b", "**/a/" * 50 + "b"]
    patterns += ["**/*a*a*b/" * 20 + "b", "**/" + "*/" * 100 + "b", "a*a*a*a*b", "*[!b]" * 50]
    name, deep = "a" * 255, "/".join(["aaa"] * (MAX_DEPTH - 1))

    def spent(lines: list[str]) -> float:
        (root / ".gitignore").write_text("\n".join(lines))
        rules = IgnoreRules(root)
        began = time.process_time()
        for path in (name, deep):
            rules.names(root / path, is_folder=False)
        return time.process_time() - began

    plain = spent(["a" * 250] * 200)
    for pattern in patterns:
        with row(pattern[:40]):
            assert spent([pattern] * 200) < 100 * plain + 2  # backtracking takes ages for one


def test_A26_bounds_hide_rather_than_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path.resolve()
    (root / ".gitignore").write_text("x" * (MAX_PATTERN + 1) + "\n*.log\n")
    rules = IgnoreRules(root)
    assert rules.names(root / "a.log", is_folder=False)
    assert not rules.names(root.joinpath(*"a" * (MAX_DEPTH - 1), "b"), is_folder=False)
    assert rules.names(root.joinpath(*"a" * MAX_DEPTH, "b"), is_folder=False)
    long = "x" * MAX_PATTERN
    for text, hidden, shown in (
        (f"/{long}/y", f"{long}/y", f"{long}/z"),
        (f"sub/x*{long}", "sub/xy", "sub/yx"),
        (f"b[{long}b]", "sub/bb", "sub/abb"),
        (f"*{long}", "sub/a", None),
        (f"#{long}", None, "a"),
        (f"!{long}*\na", "a", "b"),
        ("\n".join(f"x{n}" for n in range(MAX_PATTERNS + 1)), "sub/a", None),
        ("# \n" + "x" * MAX_BYTES, "sub/a", None),
    ):
        with row(text[:20]):
            (root / ".gitignore").write_text(text)
            rules = IgnoreRules(root)
            assert hidden is None or rules.names(root / hidden, is_folder=False)
            assert shown is None or not rules.names(root / shown, is_folder=False)
    (root / ".gitignore").unlink()
    monkeypatch.setattr(ignored, "MAX_FILES", 1)
    rules = IgnoreRules(root)
    for name in "abc":
        (root / name).mkdir()
        (root / name / ".gitignore").write_text("x")
        rules.names(root / name / "y", is_folder=False)
    assert rules.names(root / "d" / "y", is_folder=False)


def test_A26_no_file_of_a_folder_shows_what_our_list_or_the_users_hides(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    hidden = [
        *("node_modules/x.js", ".venv/x.py", "dist/x", ".hg/x", "sub/node_modules/x", "mine.txt")
    ]
    for path in [*hidden, ".env", "sub/id_rsa", "tls.pem", "shown.txt", ".git/info/exclude"]:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("mine.txt\n" if path.endswith("exclude") else "")
    shows = "!*\n!*/\n!node_modules/\n!.env\n!mine.txt\n!.git/\n"
    for name in (".gitignore", ".geminiignore", "sub/.gitignore"):
        (root / name).write_text(shows)
    workspace = Workspace(lambda: (root,))
    assert set(workspace.complete("", 100)) == {
        *(".gitignore", ".geminiignore", "shown.txt", "sub/", "sub/.gitignore")
    }
    with pytest.raises(OutsideError):
        workspace.find("mine.txt")
    assert workspace.find("node_modules/x.js") is not None  # what the user names goes along
