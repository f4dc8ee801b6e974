"""Finds the mutants of a module: small changes that a test should notice."""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PAIRS: Final = (
    *("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "In", "NotIn", "Is", "IsNot"),
    *("And", "Or", "Add", "Sub"),
)

FLIPS: Final = dict(zip(PAIRS[::2] + PAIRS[1::2], PAIRS[1::2] + PAIRS[::2], strict=True))

UNSEEN: Final = ("decorator_list", "annotation", "returns", "bases")
"""Fields of nodes without behaviour to test."""

FOR_EYES: Final = ("description", "help", "title", "placeholder", "tooltip", "examples")
"""Arguments that only a reader would miss."""

FALSE: Final = ("None", "False", "0", "''", "()", "[]", "{}")
"""What counts as None does in most places, as the text of an expression."""

WHOLE: Final = (1, 100_000)
"""The lines of a module."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Leaving = ast.Return | ast.Raise | ast.Continue | ast.Break
Scopes = tuple[tuple[int, int], ...]
Change = tuple[ast.expr | ast.stmt, str]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change to a module; the first four fields find it again where the code has moved."""

    function: str
    statement: str
    change: str
    number: int
    """Counts the same change to the same statement of the function."""
    path: str
    line: int
    scopes: Scopes
    """First and last lines that run it, the nearest first; on import, those of the code around."""
    start: tuple[int, int]
    end: tuple[int, int]
    text: str
    """What stands between `start` and `end`, lines from one and columns in bytes, instead."""

    def apply(self, source: str) -> str:
        """Give the module's text with the change."""
        lines = source.encode().splitlines(keepends=True)
        first, last = (sum(map(len, lines[: n - 1])) + at for n, at in (self.start, self.end))
        whole = b"".join(lines)
        return (whole[:first] + self.text.encode() + whole[last:]).decode()


def mutants(source: str, path: str) -> list[Mutant]:
    """List the mutants of a module."""
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for (node, text), statement, scopes, name in _walk(ast.parse(source), [], (), ""):
        key = (name, _head(statement), f"{ast.unparse(node)} -> {text}")
        seen[key] += 1
        start = (node.lineno, node.col_offset)
        end = (node.end_lineno or 0, node.end_col_offset or 0)
        found.append(Mutant(*key, seen[key], path, node.lineno, scopes, start, end, text))
    return found


def _walk(
    node: ast.AST, above: list[ast.stmt], scopes: Scopes, name: str
) -> Iterator[tuple[Change, ast.stmt, Scopes, str]]:
    if isinstance(node, ast.stmt):
        within = any(isinstance(outer, Function) for outer in above)
        above = [node, *above]
        around = ((outer.lineno, outer.end_lineno or 0) for outer in above)
        scopes = ((node.lineno, _head_end(node)),) if within else (*around, WHOLE)
    if _is_unseen(node):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield from ((change, above[0], scopes, name) for change in _changes(node))
    if isinstance(node, Function | ast.ClassDef):
        name = f"{name}.{node.name}".strip(".")
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in UNSEEN:
                yield from _walk(child, above, scopes, name)


def _is_unseen(node: ast.AST) -> bool:
    match node:
        # Positions inside of f-strings are wrong before Python 3.12.
        case ast.JoinedStr() | ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assert():
            return True
        case ast.Subscript(value=ast.Name(id="Literal" | "Annotated" | "dict" | "list" | "type")):
            return True
        case ast.Call(func=ast.Name(id="TypeVar" | "NewType" | "cast")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="_log"))):
            return True
        case _:
            return isinstance(node, ast.keyword) and node.arg in FOR_EYES


def _changes(node: ast.expr | ast.stmt) -> Iterator[Change]:
    """Yield what may be replaced in a node, not in those below it, and by what."""
    match node:
        case ast.Compare(ops=[op, *ops]):
            yield node, _with(node, ops=[_flip(op), *ops])
            sides = (node.left, *node.comparators)
            yield from ((n, '""') for n in sides if _is_text(n))
        case ast.BoolOp(op=op) | ast.BinOp(op=ast.Add() | ast.Sub() as op):
            yield node, _with(node, op=_flip(op))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=int(value)):
            yield node, str(not value) if isinstance(value, bool) else str(value + 1)
        case ast.Subscript() if _is_text(node.slice):
            yield node.slice, '""'
        case ast.Slice():
            yield from ((bound, "None") for bound in (node.lower, node.upper) if bound)
        case ast.Call(keywords=keywords):
            for one in keywords:
                if one.arg and one.arg not in FOR_EYES:
                    yield node, _with(node, keywords=[k for k in keywords if k is not one])
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
            if isinstance(node, ast.If) and isinstance(node.body[-1], Leaving) and not node.orelse:
                yield test, "False"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in FALSE:
            yield value, "None"
        case ast.Expr(value=ast.Await() | ast.Call() as value) if not _is_unseen(value):
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign():
            yield node, "pass"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""


def _flip(operator: ast.AST) -> ast.AST:
    flipped: ast.AST = getattr(ast, FLIPS[type(operator).__name__])()
    return flipped


def _with(node: ast.AST, **fields: object) -> str:
    other = copy.copy(node)
    vars(other).update(fields)
    return f"({ast.unparse(other)})"


def _head_end(node: ast.stmt) -> int:
    """Give the last line of a statement without the block in it."""
    block = getattr(node, "body", None)
    return max(node.lineno, block[0].lineno - 1) if block else node.end_lineno or node.lineno


def _head(node: ast.stmt) -> str:
    """Give a statement's text without the blocks in it, however it is laid out."""
    blocks = [f for f in ("body", "orelse", "finalbody", "handlers", "cases") if hasattr(node, f)]
    return _with(node, **{block: [] for block in blocks})[1:-1]
