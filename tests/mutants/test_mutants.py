"""Mutants of a toy: what is changed, which tests meet it, and the same mutants after a move."""

import ast
import json
from pathlib import Path
from textwrap import dedent, indent
from typing import Final

import pytest

from tests.mutants import runner
from tests.mutants.__main__ import SAVED, find, main
from tests.mutants.changes import mutants

SUMS: Final = '''\
"""Sums."""
from typing import Final
LIMIT: Final = 3


def total(items: list[int], *, start: int = 0) -> int:
    """Add up to some."""
    if len(items) > LIMIT:
        raise ValueError(f"more than {LIMIT + 1}")
    for item in items[1:]:
        start += item
    return start


def never() -> bool:
    return not LIMIT
'''

TESTS: Final = """\
import subprocess
import sys

from tui import sums

def test_total():
    assert sums.total([5, 3]) == 3

def test_in_a_process():
    code = "from tui.sums import total; total([1, 2, 3, 4])"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, cwd="/")
    assert b"ValueError" in done.stderr
"""


def changes(source: str) -> list[str]:
    found = mutants(dedent(source), "one.py")
    for mutant in found:
        changed = mutant.apply(dedent(source))
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(dedent(source)))
    return [mutant.change for mutant in found]


def test_every_change_stands_once() -> None:
    assert changes(SUMS) == [
        *("3 -> 4", "0 -> 1"),
        *("len(items) > LIMIT -> (not (len(items) > LIMIT))", "len(items) > LIMIT -> False"),
        *("len(items) > LIMIT -> (len(items) >= LIMIT)", "1 -> None", "1 -> 2"),
        *("start += item -> pass", "start -> None"),
        *("not LIMIT -> None", "not LIMIT -> (LIMIT)"),
    ]


def test_what_no_test_could_notice_stays() -> None:
    for source in [
        "@frozen(slots=True)\nclass One:\n    '''Two.'''\n    kind: Literal['a', 1]",
        "_log.debug('one', extra=1)",
        "import one\n__all__ = ['one']",
        "one = option('--one', help='two')",
        "def one() -> None:\n    return None",
    ]:
        assert changes(source) == []


def test_text_beside_wide_letters_is_changed_in_its_place() -> None:
    [mutant] = mutants("é = 'ü' + one(two=3)  # ö", "one.py")[1:2]
    assert mutant.apply("é = 'ü' + one(two=3)  # ö") == "é = 'ü' + (one())  # ö"


def test_a_mutant_is_found_where_its_code_went() -> None:
    [old] = [m for m in mutants(SUMS, "tui/sums.py") if m.change == "start += item -> pass"]
    saved = {name: getattr(old, name) for name in SAVED}
    inner = "class Sums:\n" + indent(SUMS, "    ")
    places = ((SUMS, "tui/sums.py"), (SUMS, "a.py"), (inner, "b.py"))
    here, there, within = (mutants(source, path) for source, path in places)
    assert find([*there, *within, *here], saved) == old
    found = [find(every, saved) for every in ([*within, *there], within, mutants("", "c.py"))]
    moved = [one and (one.path, one.line) for one in found]
    assert moved == [("a.py", 11), ("b.py", 12), None]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_tests_of_a_line_decide_and_a_killed_one_may_not_live_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "HEAVY", runner.PLUGINS)
    root, saved = tmp_path / "toy", tmp_path / "saved.json"
    files = {"tui/__init__.py": "", "tui/sums.py": SUMS, "tests/test_it.py": TESTS}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert main(["--map", "tests"], root) == 0

    assert main(["tui/sums.py", "--save", str(saved)], root) == 0

    results = {one["change"]: one for one in json.loads(saved.read_text())}
    assert results["start += item -> pass"]["killer"] == "tests/test_it.py::test_total"
    assert results["len(items) > LIMIT -> False"]["killer"] == "tests/test_it.py::test_in_a_process"
    assert results["len(items) > LIMIT -> (len(items) >= LIMIT)"]["result"] == "survived"
    assert results["not LIMIT -> None"]["result"] == "no test"
    assert (root / "tui/sums.py").read_text() == SUMS
    assert "8 of 11 died (73%)" in capfd.readouterr().out

    (root / "tests/test_it.py").write_text(TESTS.replace("== 3", "!= 99"))
    (root / "tui/sums.py").write_text(f"import os\n\n{SUMS.replace('= 3', '= 9 // 3')}")
    assert main(["--again", str(saved)], root) == 1
    told = capfd.readouterr().out
    assert "LIVES AGAIN: tui/sums.py:13 total\n    start += item -> pass\n    survived" in told
    assert "LIVES AGAIN: tui/sums.py:10 total\n    len(items) > LIMIT -> False" not in told
    assert told.endswith("1 gone\n")
