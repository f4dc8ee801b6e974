"""Finds places in the UI where a bare string reaches a widget that would read it as markup.

Textual parses a plain `str` in most text sinks: text of a server could then crash the app or
carry a live action. The rule is that a sink takes a literal, a `Content`, a `rich.text.Text`, or
`markup=False`. What this analysis cannot show to be one of these, it reports: wrap it.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ALL: Final = -1
"""Stands for every positional argument."""

Sink = tuple[tuple[int, ...], tuple[str, ...]]
"""The positions and keywords of the arguments that are parsed."""

CONSTRUCTORS: Final[dict[str, Sink]] = {
    **dict.fromkeys(("Static", "Label"), ((0,), ("content",))),
    "Link": ((0,), ("text",)),
    **dict.fromkeys(("Button", "Checkbox", "RadioButton"), ((0,), ("label", "tooltip"))),
    **dict.fromkeys(("Option", "Selection"), ((0,), ("prompt",))),
    **dict.fromkeys(("OptionList", "SelectionList", "TabbedContent"), ((ALL,), ())),
    "Select": ((0,), ("options", "prompt")),
    "Collapsible": ((), ("title",)),
    "TabPane": ((0,), ("title",)),
    **dict.fromkeys(("Tab", "Placeholder", "Tree"), ((0,), ("label",))),
    "Hit": ((1,), ("match_display", "help")),
    "DiscoveryHit": ((0,), ("display", "help")),
    "SystemCommand": ((0, 1), ("title", "help")),
}
"""Classes of Textual whose constructors parse text, and those whose text the palette parses."""


@dataclass
class ClassInfo:
    """What is known of one class of the UI."""

    bases: tuple[str, ...] = ()
    has_init: bool = False
    literal: bool = False
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass
class Index:
    """Classes, functions and constants of all analysed modules, by their bare names."""

    classes: dict[str, ClassInfo] = field(default_factory=dict)
    returns: dict[str, list[ast.expr | None]] = field(default_factory=dict)
    constants: dict[str, list[ast.expr]] = field(default_factory=dict)

    def add(self, tree: ast.Module) -> None:
        """Take a module in."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = _class_info(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.returns.setdefault(node.name, []).append(node.returns)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    name = last_name(target)
                    if name.isupper():
                        self.constants.setdefault(name, []).append(node.value)

    def ancestry(self, name: str) -> Iterator[str]:
        """Name a class and all its bases."""
        yield name
        for base in self.classes.get(name, ClassInfo()).bases:
            yield from self.ancestry(base)

    def is_literal(self, name: str) -> bool:
        """Tell whether a class passes ``markup=False`` to its base."""
        return any(self.classes.get(base, ClassInfo()).literal for base in self.ancestry(name))

    def constructor(self, name: str) -> Sink | None:
        """Find what the constructor of a class parses, where it is that of Textual's class."""
        for base in self.ancestry(name):
            if base not in self.classes:
                if base in CONSTRUCTORS:
                    return CONSTRUCTORS[base]
            elif self.classes[base].has_init:
                return None
        return None


def _class_info(node: ast.ClassDef) -> ClassInfo:
    info = ClassInfo(bases=tuple(last_name(base) for base in node.bases))
    for child in ast.walk(node):
        match child:
            case ast.FunctionDef(name="__init__"):
                info.has_init = True
            case ast.Call(func=ast.Attribute(attr="__init__"), keywords=keywords):
                info.literal |= any(
                    keyword.arg == "markup"
                    and isinstance(keyword.value, ast.Constant)
                    and keyword.value.value is False
                    for keyword in keywords
                )
            case ast.AnnAssign(target=target, annotation=annotation):
                info.attributes[last_name(target)] = last_name(annotation)
            case ast.Assign(targets=[target], value=ast.Call() as value):
                info.attributes.setdefault(last_name(target), made_type(value))
    return info


def made_type(call: ast.Call) -> str:
    """Name the class that a call gives: of a constructor, or of ``query_one`` and its kin."""
    if last_name(call.func) in {"query_one", "query_exactly_one", "child_by_type", "app"}:
        return last_name(call.args[-1]) if call.args else ""
    name = last_name(call.func)
    return name if name[:1].isupper() or name[:1] == "_" else ""


def last_name(node: ast.AST) -> str:
    """Give the last part of a dotted name; nothing for what has none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return last_name(function)
        case ast.Subscript(value=value):
            return last_name(value)
    return ""


UPDATED: Final = frozenset(CONSTRUCTORS) | {"RichLog"}
"""Classes whose `update` takes text."""

METHODS: Final[dict[str, Sink]] = {
    "notify": ((0,), ("message",)),
    "update": ((0,), ("content",)),
    "add": ((0,), ("label",)),
    "add_leaf": ((0,), ("label",)),
    "set_label": ((0,), ("label",)),
    "add_row": ((ALL,), ("label",)),
    "add_column": ((0,), ("label",)),
    "update_cell": ((2,), ("value",)),
    "update_cell_at": ((1,), ("value",)),
    "add_option": ((0,), ("option",)),
    "replace_option_prompt": ((1,), ("prompt",)),
    "with_tooltip": ((0,), ("tooltip",)),
    "render_str": ((0,), ("text_content",)),
    "from_markup": ((0,), ("markup",)),
    "from_text": ((0,), ("markup_content_or_str",)),
}
"""Methods that parse text. `from_markup` on outside text is the fault itself."""

ATTRIBUTES: Final = frozenset({"border_title", "border_subtitle", "tooltip", "label"})
"""Attributes of widgets that parse what is assigned to them."""

TREE_NODES: Final = ("root", "node", "tree", "branch", "parent")
"""How variables that hold tree nodes end; `add` of anything else is that of a set."""

SAFE_TYPES: Final = frozenset(
    {
        *("Content", "Text", "Widget", "ConsoleRenderable", "Strip", "Segment", "Style"),
        *("int", "float", "bool", "None", "list", "tuple", "Iterable", "Iterator", "Sequence"),
    }
)
"""Names an annotation may consist of for its value to be safe in a sink."""

SAFE_CALLS: Final = frozenset(
    {"Content", "Text", "int", "len", "Syntax", "Pretty", "list", "tuple"}
)
"""Calls whose value is safe, whatever they are given; `list` and `tuple` are looked into."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One string that may be parsed: where, and the source of the argument."""

    path: str
    line: int
    sink: str
    argument: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.sink} parses {self.argument}"


def find_violations(sources: Iterable[tuple[str, str]]) -> list[Violation]:
    """Analyse modules, given as (path, source), that may refer to each other."""
    trees = [(path, ast.parse(source)) for path, source in sources]
    index = Index()
    for _, tree in trees:
        index.add(tree)
    found: list[Violation] = []
    for path, tree in trees:
        checker = _Checker(path, index)
        checker.visit(tree)
        found += checker.violations
    return found


def python_sources(folder: Path) -> list[tuple[str, str]]:
    """Read all modules under a folder."""
    paths = sorted(folder.rglob("*.py"))
    return [(str(path.relative_to(folder)), path.read_text("utf-8")) for path in paths]


class _Checker(ast.NodeVisitor):
    """Walks one module and remembers in which class and function it is."""

    def __init__(self, path: str, index: Index) -> None:
        self.violations: list[Violation] = []
        self._path = path
        self._index = index
        self._class = ""
        self._looked_at: set[str] = set()
        self._functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._class = self._class, node.name
        self.generic_visit(node)
        self._class = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._functions.append(node)
        if node.name == "render" and self._class:
            for child in ast.walk(node):
                if isinstance(child, ast.Return) and child.value is not None:
                    self._require(child.value, "render()")
        self.generic_visit(node)
        self._functions.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr in ATTRIBUTES:
                self._require(node.value, f".{target.attr}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        markup = keywords.get("markup")
        if isinstance(markup, ast.Constant) and markup.value is True:
            self._report(markup, "markup=True")
        name = last_name(node.func)
        sink = self._sink(node)
        if sink is not None:
            if isinstance(markup, ast.Constant) and markup.value is False:
                sink = ((), ())
            positions, names = sink
            taken = list(node.args) if ALL in positions else []
            taken += [node.args[at] for at in positions if 0 <= at < len(node.args)]
            taken += [keywords[key] for key in names if key in keywords]
            for argument in taken:
                self._require(argument, name)
        self.generic_visit(node)

    def _sink(self, node: ast.Call) -> Sink | None:
        """Find which arguments of a call are parsed."""
        function = node.func
        if isinstance(function, ast.Name):
            return self._index.constructor(function.id)
        if not isinstance(function, ast.Attribute):
            return None
        receiver, name = function.value, function.attr
        if name == "__init__" and last_name(receiver) == "super":
            bases = self._index.classes.get(self._class, ClassInfo()).bases
            return next(filter(None, map(self._index.constructor, bases)), None)
        if name == "add" and not last_name(receiver).lower().endswith(TREE_NODES):
            return None
        if name == "update":
            kind = self._type_of(receiver)
            ancestry = set(self._index.ancestry(kind)) if kind else set()
            if kind and (self._index.is_literal(kind) or not ancestry & UPDATED):
                return None
        return METHODS.get(name)

    def _type_of(self, receiver: ast.expr) -> str:
        """Name the class of a receiver, or give nothing where that cannot be seen."""
        match receiver:
            case ast.Name(id="self"):
                return self._class
            case ast.Name(id=name):
                values = self._assigned(name)
                return self._type_of(values[0]) if len(values) == 1 else ""
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                for base in self._index.ancestry(self._class):
                    info = self._index.classes.get(base, ClassInfo())
                    if attribute in info.attributes:
                        return info.attributes[attribute]
                return ""
            case ast.Call():
                return made_type(receiver)
        return ""

    def _require(self, argument: ast.expr, sink: str) -> None:
        if not self._is_safe(argument):
            self._report(argument, sink)

    def _report(self, argument: ast.expr, sink: str) -> None:
        source = " ".join(ast.unparse(argument).split())
        self.violations.append(Violation(self._path, argument.lineno, sink, source))

    def _is_safe(self, value: ast.expr) -> bool:
        match value:
            case ast.Constant():
                return True
            case ast.Call():
                return self._is_safe_call(value)
            case ast.Name(id=name):
                return self._is_safe_name(name)
            case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name.isupper() and self._is_safe_constant(name)
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_safe(body) and self._is_safe(orelse)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return all(map(self._is_safe, elements))
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return self._is_safe(element)
            case ast.Dict(values=values):
                return all(map(self._is_safe, values))
            case ast.Starred(value=inner) | ast.NamedExpr(value=inner):
                return self._is_safe(inner)
        return False

    def _is_safe_call(self, call: ast.Call) -> bool:
        name = last_name(call.func)
        if isinstance(call.func, ast.Name) and name in {"list", "tuple"}:
            return all(map(self._is_safe, call.args))
        if isinstance(call.func, ast.Name) and (
            name in SAFE_CALLS or self._index.constructor(name) or name in self._index.classes
        ):
            return True
        if isinstance(call.func, ast.Attribute):
            receiver = call.func.value
            if last_name(receiver) in {"Content", "Text"}:
                return True
            if self._is_content(receiver):
                return True
        returns = self._index.returns.get(name, [])
        return bool(returns) and all(map(_is_safe_annotation, returns))

    def _is_content(self, value: ast.expr) -> bool:
        """Tell whether a value is safe and no string, so that what its methods give is safe."""
        match value:
            case ast.Call():
                return self._is_safe_call(value)
            case ast.Name(id=name):
                values = self._assigned(name)
                if name in self._looked_at:
                    return True
                self._looked_at.add(name)
                found = bool(values) and all(map(self._is_content, values))
                self._looked_at.discard(name)
                return found or (not values and self._is_safe_name(name) and not name.isupper())
        return False

    def _is_safe_name(self, name: str) -> bool:
        for function in reversed(self._functions):
            arguments = function.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if argument.arg == name:
                    return _is_safe_annotation(argument.annotation)
        values = self._assigned(name)
        if values:
            if name in self._looked_at:
                return True
            self._looked_at.add(name)
            safe = all(map(self._is_safe, values))
            self._looked_at.discard(name)
            return safe
        return name.isupper() and self._is_safe_constant(name)

    def _is_safe_constant(self, name: str) -> bool:
        values = self._index.constants.get(name.lstrip("_"), self._index.constants.get(name, []))
        return bool(values) and all(map(self._is_safe, values))

    def _assigned(self, name: str) -> list[ast.expr]:
        """List what the enclosing function assigns to a name."""
        if not self._functions:
            return []
        values: list[ast.expr] = []
        for node in ast.walk(self._functions[-1]):
            match node:
                case ast.Assign(targets=targets, value=value):
                    values += [value for target in targets if last_name(target) == name]
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                    values += [value] if target == name else []
                case ast.AugAssign(target=ast.Name(id=target), value=value):
                    values += [value] if target == name else []
                case ast.withitem(optional_vars=ast.Name(id=target), context_expr=value):
                    values += [value] if target == name else []
        return values


def _is_safe_annotation(annotation: ast.expr | None) -> bool:
    """Tell whether everything an annotation names is safe in a sink."""
    if annotation is None:
        return False
    names = {last_name(node) for node in ast.walk(annotation)} - {""}
    constants = {str(node.value) for node in ast.walk(annotation) if isinstance(node, ast.Constant)}
    return names | constants <= SAFE_TYPES
