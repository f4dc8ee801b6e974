"""The shape of the code: sizes, caught exceptions, and what the repository promises."""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = sorted((ROOT / "tui").rglob("*.py"))

MAX_FILE_LINES: Final = 400
"""A file past this has two jobs."""

MAX_FUNCTION_LINES: Final = 50
"""A function past this has two jobs."""

BROAD: Final = frozenset({"Exception", "BaseException"})

COMMANDS: Final = ("python3 -m pip install", "gemdeck", "python3 -m tests")
"""What the README tells a reader to type."""


def long_functions(source: str) -> list[str]:
    """Name the functions of a module that are too long, with their lengths."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                found.append(f"{node.name}: {lines} lines")
    return found


def unexplained_handlers(source: str) -> list[int]:
    """List the lines that catch everything without a comment in the handler's first lines."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    commented = {token.start[0] for token in tokens if is_reason(token)}
    return [
        handler.lineno
        for handler in broad_handlers(ast.parse(source))
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


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_has_one_job_and_explains_what_it_swallows(path: Path) -> None:
    source = path.read_text("utf-8")
    assert len(source.splitlines()) <= MAX_FILE_LINES
    assert long_functions(source) == []
    assert unexplained_handlers(source) == []


def test_a_long_function_is_found() -> None:
    body = "    x = 1\n" * MAX_FUNCTION_LINES
    assert long_functions(f"def short():\n{body[:-10]}") == []
    assert long_functions(f"async def long():\n{body}") == ["long: 51 lines"]


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


def test_the_readme_has_the_commands_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert [command for command in COMMANDS if command not in readme] == []
    assert "python3 -m tests" in script


def test_the_lock_file_of_the_test_servers_names_no_registry() -> None:
    lock = (ROOT / "tests" / "node" / "package-lock.json").read_text("utf-8")
    assert '"resolved"' not in lock
    assert "registry" not in lock
    assert '"integrity"' in lock
