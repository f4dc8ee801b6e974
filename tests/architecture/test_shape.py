"""The shape of the code: sizes, caught exceptions, and what the repository promises.

The size of the code is a budget: who makes a folder larger edits the table, and says why.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.sources import ROOT, SOURCES, parsed, text
from tests.support.halves import SLOW
from tests.support.measures import Measure
from tests.support.surroundings import CONTRIBUTING, commands, first_words
from tui import __version__

MAX_FILE_LINES: Final = 700
"""A file past this has two jobs; one with a single job rarely has more than 600."""

MAX_FUNCTION_LINES: Final = 80
"""A function past this has two jobs."""

BROAD: Final = frozenset({"Exception", "BaseException"})

POSSESSIVE: Final = re.compile(r"\)(?:[*+?]|\{+[\d,][\w,{]*\}+)\+(?!,)")
"""A group that is repeated possessively, in a pattern; punctuation in brackets goes on."""

MAX_MODULES: Final = 15
"""A folder with more of them is several."""

PUBLIC_CLASS: Final = re.compile(r"^class ([^_]\w*)", re.MULTILINE)

TEST_COMMAND: Final = re.compile(r"^## Test\n\n```sh\n(.+)\n```$", re.MULTILINE)
"""Where the README says how the tests are run."""

README_COMMAND: Final = re.compile(r"^readme_command=\$\((.+)\)$", re.MULTILINE)
"""How `.ci/run` takes the command from there."""


def long_functions(source: str) -> list[str]:
    """Name the functions of a module that are too long, with their lengths."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                found.append(f"{node.name}: {lines} lines")
    return found


def unexplained_handlers(source: str) -> list[int]:
    """List the lines that catch everything without a comment in the handler's first lines."""
    handlers = [*broad_handlers(parsed(source))]
    tokens = tokenize.generate_tokens(io.StringIO(source if handlers else "").readline)
    commented = {token.start[0] for token in tokens if is_reason(token)}
    return [
        handler.lineno
        for handler in handlers
        if not commented & set(range(handler.lineno - 1, handler.body[0].lineno + 1))
    ]


def is_reason(token: tokenize.TokenInfo) -> bool:
    """Tell whether a token is a comment that says more than which lint rule it silences."""
    if token.type != tokenize.COMMENT:
        return False
    words = token.string.lstrip("# ")
    if words.startswith("noqa:"):
        words = words.removeprefix("noqa:").lstrip(" ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,")
    return len(words.strip(" -#:")) > 0


def broad_handlers(tree: ast.Module) -> Iterator[ast.ExceptHandler]:
    """List the handlers that keep everything they catch; clean-up that raises again may."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and not raises_again(node):
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(kind is None or getattr(kind, "id", "") in BROAD for kind in kinds):
                yield node


def raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_a_module_has_one_job_and_explains_what_it_swallows() -> None:
    found = {}
    for path in SOURCES:
        source = text(path)
        lines = len(source.splitlines())
        long = [f"{lines} lines"] if lines > MAX_FILE_LINES else []
        swallows = [f"line {line} swallows unexplained" for line in unexplained_handlers(source)]
        found[str(path.relative_to(ROOT))] = [*long, *long_functions(source), *swallows]
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_a_long_function_is_found() -> None:
    body = "    x = 1\n" * MAX_FUNCTION_LINES
    assert long_functions(f"def short():\n{body[:-10]}") == []
    assert long_functions(f"async def long():\n{body}") == ["long: 81 lines"]


@pytest.mark.parametrize(
    ("handler", "found"),
    [
        ("except ValueError:\n    pass", False),
        ("except Exception:\n    pass", True),
        ("except BaseException as error:\n    log(error)", True),
        ("except BaseException:\n    close()\n    raise", False),
        ("except Exception as error:\n    raise OtherError from error", True),
        ("except (ValueError, Exception):\n    pass", True),
        ("except:\n    pass", True),
        ("except Exception:  # noqa: BLE001\n    pass", True),
        ("except Exception:  # noqa: BLE001 - a plug-in may raise anything\n    pass", False),
        ("except Exception:\n    # A plug-in may raise anything.\n    pass", False),
    ],
)
def test_a_broad_handler_needs_a_reason(handler: str, found: bool) -> None:
    assert bool(unexplained_handlers(f"try:\n    f()\n{handler}\n")) is found


def repeated_names(modules: Iterable[Path]) -> set[str]:
    """Name the modules that stand twice."""
    names = Counter(path.stem for path in modules if path.stem != "__init__")
    return {name for name, count in names.items() if count > 1}


def crowded_folders(modules: Iterable[Path]) -> set[Path]:
    """List the folders with too many modules."""
    counts = Counter(path.parent for path in modules if path.stem != "__init__")
    return {folder for folder, count in counts.items() if count > MAX_MODULES}


def test_a_class_has_a_name_of_its_own() -> None:
    names = Counter(name for path in SOURCES for name in PUBLIC_CLASS.findall(text(path)))
    assert {name for name, count in names.items() if count > 1} == set()


def test_a_module_is_found_by_its_name_and_a_folder_taken_in_at_a_glance() -> None:
    tops = (ROOT / "tui").glob("*/")
    repeated = {top.name: repeated_names(top.rglob("*.py")) for top in tops}
    assert {top: names for top, names in repeated.items() if names} == {}
    assert crowded_folders(SOURCES) == set()


def test_only_the_gate_makes_permits() -> None:
    makers = [path for path in SOURCES if "Permit(" in text(path)]
    assert makers == [ROOT / "tui/engine/approval/gate.py"], "a call would run that nobody allowed"


def test_a_repeated_name_and_a_crowded_folder_are_found() -> None:
    assert repeated_names(map(Path, ("a/b.py", "c/d/b.py", "c/e.py", "c/__init__.py"))) == {"b"}
    many = [Path("a", f"m{number}.py") for number in range(MAX_MODULES)]
    assert crowded_folders([*many, Path("a/__init__.py")]) == set()
    assert crowded_folders([*many, Path("a/one_more.py")]) == {Path("a")}


def test_ci_runs_the_readmes_own_command() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    [command] = TEST_COMMAND.findall(readme)
    assert command.startswith("python3 -m venv --without-pip .venv && python3 -m pip --python ")
    assert command.endswith(' install -e ".[test]" && .venv/bin/python -m tests')
    assert "step python3 -m tests.support.surroundings\n" in script, "tries it elsewhere"
    assert commands("python3")[1] == command
    typed = [commands(program) for program in ("uvx", "pipx", "uv")]
    tests = "uv run --extra test python -m tests"
    assert typed == [["uvx --from . gemdeck"], ["pipx run --spec . gemdeck"], [tests]]
    assert first_words() == ("add a note: buy milk", "o")
    taken = subprocess.run(
        ["/bin/bash", "-c", f"{README_COMMAND.findall(script)[0]}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert taken.stdout.strip() == command


def test_the_release_is_the_newest_one_of_the_changelog() -> None:
    heads = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert next(head for head in heads if head != "Unreleased") == __version__
    assert "Unreleased" not in heads[1:]
    assert commands("uv", CONTRIBUTING) == ["uv build"]


def test_the_hooks_before_a_commit_are_the_steps_of_ci() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    entries = re.findall(r"^ *entry: (.+)$", hooks, re.MULTILINE)
    assert "mypy" in entries
    assert [entry for entry in entries if f"step {entry}" not in script] == []
    assert "repo: local" in hooks
    assert "http" not in hooks


def test_what_is_named_slow_is_there() -> None:
    assert [str(place) for place in SLOW if not place.exists()] == []


def test_the_lock_file_of_the_test_servers_names_no_registry() -> None:
    lock = (ROOT / "tests" / "node" / "package-lock.json").read_text("utf-8")
    assert '"resolved"' not in lock
    assert "registry" not in lock
    assert '"integrity"' in lock


BUDGET: Final = {
    "ui": 14_050,
    "engine/mcp": 9_990,
    "engine/chats": 5_670,
    "cli": 3_190,
    "engine/settings": 2_980,
    "model": 2_730,
    "engine": 1_910,
    "engine/sign_in": 1_720,
    "engine/approval": 1_390,
    "engine/trust": 1_130,
    "engine/files": 1_010,
    "engine/definitions": 870,
    "store": 690,
    "engine/keys": 620,
    "engine/serving": 1_100,
    "engine/logs": 570,
    ".": 560,
    "engine/demo": 440,
    "engine/server_setup": 320,
    "engine/by_hand": 310,
}
"""Code lines of each folder below `tui`: neither blank, nor a comment, nor of a docstring."""

CEILING: Final = 51_116
"""Code lines of all of `tui`."""

SLACK: Final = 30
"""Lines that a folder may be below its budget before the table has to follow."""

PLACE: Final = re.compile(r"`((?:\w+/)*\w+\.(?:py|tcss|md)|(?:\w+/)+)`")
"""A file or a folder in the map of the code."""


def code_lines(source: str) -> int:
    """Count the lines that are code."""
    docstrings = {
        line
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate((line.strip() for line in source.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and number not in docstrings for number, line in lines)


def folder_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "tui").parts[:-1]
    return "/".join(parts[: 2 if parts[:1] == ("engine",) else 1]) or "."


def test_no_group_is_repeated_possessively() -> None:
    """Before Python 3.11.5, `(?:ab)*+` may match an `a` too much; `(?>(?:ab)*)` does not."""
    lines = ((path.name, line) for path in SOURCES for line in text(path).splitlines())
    assert [found for found in lines if POSSESSIVE.search(found[1])] == []


def test_no_folder_is_larger_than_its_budget(measure: Measure) -> None:
    sizes: Counter[str] = Counter()
    for path in SOURCES:
        sizes[folder_of(path)] += code_lines(text(path))
    for folder, lines in sizes.most_common():
        measure(f"tui/{folder}: {lines:,} code lines of {BUDGET.get(folder, 0):,}")
    measure(f"tui: {sizes.total():,} code lines of {CEILING:,}")
    assert sizes.total() <= CEILING
    assert sizes.keys() == BUDGET.keys()
    assert {name: lines for name, lines in sizes.items() if lines > BUDGET[name]} == {}
    assert {name: lines for name, lines in sizes.items() if lines < BUDGET[name] - SLACK} == {}


def test_what_is_no_code_is_not_counted() -> None:
    module = '"""Two\nlines."""\n\n# why\nx = """\ntext\n"""\n'
    function = '\ndef f():\n    """Says."""\n    return x\n'
    assert code_lines(module + function) == 5


def named_places(map_of_code: str) -> Iterator[str]:
    """Give the files and folders that the map of the code names, outside examples."""
    for line in re.sub(r"```.*?```", "", map_of_code, flags=re.DOTALL).splitlines():
        yield from PLACE.findall(line)


def is_there(place: str) -> bool:
    """Tell whether a name from the map leads somewhere; a short one may lie deeper."""
    folders = (ROOT / "tui", ROOT / "tests" / "unit")
    ours = (found for folder in folders for found in folder.rglob(place))
    return (ROOT / place).exists() or any(ours)


def test_whatever_the_map_of_the_code_names_is_there() -> None:
    map_of_code = text(ROOT / "tui" / "README.md")
    places = {place.rstrip("/") for place in named_places(map_of_code)}
    assert len(places) > 50
    assert {place for place in places if not is_there(place)} == set()
    assert not is_there("engine/gone.py")
