"""What the search for sinks knows of the UI: its classes, functions and constants."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
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
