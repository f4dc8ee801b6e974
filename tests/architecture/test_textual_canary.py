"""What we touch below the public surface of Textual is still there.

When one of these fails after an update of Textual, mend the module that is named, and raise the
bounds of textual in pyproject.toml.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from textual._xterm_parser import XTermParser
from textual.events import Key

import tui
import tui.ui
from tests.architecture.sources import parsed, text

TOUCHED: Final[dict[str, dict[str, str]]] = {
    "tui.ui.app": {
        "textual.app.App": "_fatal_error _return_code _exception _clipboard _display _driver"
    },
    "tui.ui.terminal.drawn": {"textual": "_compositor"},
    "tui.ui.attention": {"textual.app.App": "_driver"},
    "tui.ui.bridge": {"textual.timer.Timer": "_skip"},
    "tui.ui.driver": {
        "textual": "_compositor _xterm_parser _parser",
        "textual._xterm_parser.XTermParser": "_sequence_to_key_events",
        "textual.driver.Driver": "_app _loop _debug _mouse",
        "textual.drivers.linux_driver.LinuxDriver": (
            "_file _in_band_window_resize _get_terminal_size _key_thread _writer_thread "
            "_must_signal_resume _run_input_thread _sigcont_application _disable_mouse_support "
            "_mouse_pixels _enable_mouse_support _enable_mouse_pixels"
        ),
        "textual.app.App": "_handle_exception",
    },
    "tui.ui.widgets.chat.composer": {
        "textual.widgets.TextArea": "_on_key _on_paste _validate_selection _cursor_offset"
        " _recompute_cursor_offset"
    },
    "tui.ui.widgets.key_bar": {"textual.app.App": "_keymap"},
    "tui.ui.widgets.forms.json_area": {"textual.widgets.TextArea": "_on_key _on_paste"},
}
"""The private names that each of our modules uses, by the class or package that has them."""

MADE_BY_TEXTUAL: Final = re.compile(r"self\.(_\w+)\b(?=\s*[:=][^=])|def (_[a-z]\w*)\(")


def names_of(kind: type[Any]) -> frozenset[str]:
    """Give the private attributes and methods that a class of Textual itself makes."""
    return names_in(kind.__module__, kind.__qualname__)


@cache
def names_in(module: str, name: str) -> frozenset[str]:
    found = MADE_BY_TEXTUAL.findall(inspect.getsource(attrgetter(name)(sys.modules[module])))
    return frozenset(name for pair in found for name in pair if name and name[:2] != "__")


def has(owner: str, name: str) -> bool:
    """Tell whether a class or package of Textual has a private name."""
    package, _, kind = owner.rpartition(".")
    if kind[:1].isupper():
        return name in names_of(getattr(importlib.import_module(package), kind))
    folder = importlib.import_module(owner).__path__
    return name in {one.name for one in pkgutil.iter_modules(folder)}


def test_textual_still_has_what_we_touch() -> None:
    for owner, names in (pair for touched in TOUCHED.values() for pair in touched.items()):
        assert [name for name in names.split() if not has(owner, name)] == [], owner


def our_modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(tui.ui.__path__, "tui.ui."):
        yield importlib.import_module(found.name)


def private_names(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Give the private attributes that code names, and whether they are those of `self`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self") | ast.Call(), attr=name):
                yield name, True
            case ast.Attribute(attr=name):
                yield name, False
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, True


def touched_by(module: ModuleType) -> set[str]:
    """Find the private names of Textual in one of our modules."""
    assert module.__file__ is not None
    tree = parsed(text(Path(module.__file__)))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual"):
            parts = [*(node.module or "").split("."), *(one.name for one in node.names)]
            found |= {part for part in parts if part.startswith("_")}
    of_other_classes = set().union(*(names_of(kind) for kind in classes_of_textual()))
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            bases = getattr(getattr(module, node.name), "__mro__", ())
            inherited = set().union(*(names_of(one) for one in bases if is_textual(one)))
            for name, is_own in private_names(node):
                if name in (inherited if is_own else of_other_classes - ours()):
                    found.add(name)
    return found


def is_textual(kind: type[Any]) -> bool:
    return kind.__module__.startswith("textual.")


def classes_of_textual() -> Iterator[type[object]]:
    for name in {owner for names in TOUCHED.values() for owner in names}:
        package, _, kind = name.rpartition(".")
        if kind[:1].isupper():
            yield getattr(importlib.import_module(package), kind)


@cache
def ours() -> frozenset[str]:
    """Give the private names that we make ourselves."""
    files = Path(tui.ui.__file__).parent.rglob("*.py")
    pairs = [pair for file in files for pair in MADE_BY_TEXTUAL.findall(text(file))]
    return frozenset(name for pair in pairs for name in pair)


@pytest.mark.slow
def test_nothing_else_private_is_touched() -> None:
    found = {module.__name__: touched_by(module) for module in our_modules()}
    assert {name: names for name, names in found.items() if names} == {
        module: set(" ".join(names.values()).split()) for module, names in TOUCHED.items()
    }, "Name every private name of Textual in TOUCHED; a name of our own must be another one."


MENDED: Final = {
    "\x1b\r": "enter '\\r'",
    "\x1bOb": "ctrl+up None",
    "\x1b[7^": "ctrl+end None",
    "\x1b[5$": "left_square_bracket '[' 5 '5' dollar_sign '$'",
    "\x1b\x1b[A": "escape '\\x1b' up None",
    "\x1b1": "inverted_exclamation_mark '¡'",
    "\x1b[47u": "slash None",
    "\x1b[27;2;13~": "shift+\r '\\r'",
    "\x1b[97:65;2u": "ValueError",
    "\x1b[57441u": "left_shift None",
    "\x1b[0n": "left_square_bracket '[' 0 '0' n 'n'",
    "\x1b]2\x07": "right_square_bracket ']' 2 '2' ctrl+g '\\x07'",
}
"""What Textual's own parser makes of keys and reports for which `tui.ui.driver` and
`tui.ui.terminal.key_forms` have a mend. Once it makes something else of one, that mend may go."""


@pytest.mark.parametrize("sent", MENDED, ids=ascii)
def test_textual_still_needs_the_mend(sent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.constants.ESCAPE_DELAY", 0.0)
    parser, made = XTermParser(), MENDED[sent]
    if made == "ValueError":
        with pytest.raises(ValueError, match="invalid literal"):
            list(parser.feed(sent))
    else:
        found = [one for one in (*parser.feed(sent), *parser.tick()) if isinstance(one, Key)]
        assert " ".join(f"{one.key} {one.character!r}" for one in found) == made
