"""JSON as a tree whose branches are made when they are opened."""

import json
from itertools import islice
from typing import Final

from textual.widgets import Tree

from tui.model.bounded_json import JsonError, read_value
from tui.text import sanitize_line
from tui.ui import keymap
from tui.ui.widgets.text.plain import plain_label

MAX_CHILDREN: Final = 500
"""Values of one list or object that are listed."""

MAX_OPEN: Final = 20
"""Values up to which what a tree holds is unfolded at first."""

_BESIDE: Final = "[Structured content]\n"


def json_in(text: str) -> object:
    """Return the list or object that a result is or has beside its text; None without one."""
    whole = text.strip()
    if not whole.startswith(("{", "[")) or whole.startswith(_BESIDE.strip()):
        whole = text.partition(_BESIDE)[2].strip()
    if not whole or whole.endswith("characters]"):  # the rest of a long one was cut
        return None
    try:
        value = read_value(whole.encode())
    except JsonError:
        return None
    return value if isinstance(value, dict | list) and value else None


class JsonTree(Tree[object]):
    """Show a list or an object; Enter and the arrows fold and unfold."""

    BINDINGS = keymap.bindings(keymap.Place.TREE)

    def __init__(self, value: object) -> None:
        super().__init__(plain_label(_summary(value)), value)
        self.guide_depth = 2

    def on_mount(self) -> None:
        self.root.expand()

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[object]) -> None:
        """List what is in a node when it is unfolded for the first time."""
        node = event.node
        if node.children or not isinstance(node.data, dict | list):
            return
        held = node.data.items() if isinstance(node.data, dict) else enumerate(node.data)
        small = node.is_root and len(node.data) <= MAX_OPEN
        for key, value in islice(held, MAX_CHILDREN):
            label = plain_label(f"{sanitize_line(str(key), limit=80)}  {_summary(value)}")
            if isinstance(value, dict | list) and value:
                child = node.add(label, value)
                if small and len(value) <= MAX_OPEN:
                    child.expand()
            else:
                node.add_leaf(label, value)
        if (more := len(node.data) - MAX_CHILDREN) > 0:
            node.add_leaf(plain_label(f"… {more:,} more in the text view"))

    def action_fold(self) -> None:
        """Fold the node, or go to the one around it."""
        if (node := self.cursor_node) is not None and node.is_expanded and node.allow_expand:
            node.collapse()
        elif node is not None and node.parent is not None:
            self.move_cursor(node.parent)

    def action_unfold(self) -> None:
        if self.cursor_node is not None:
            self.cursor_node.expand()


def _summary(value: object) -> str:
    """Return a value in a line, of a list or an object its size."""
    match value:
        case dict():
            return f"{{{len(value):,}}}"
        case list():
            return f"[{len(value):,}]"
        case str():
            return sanitize_line(value, limit=400) if value.strip() else json.dumps(value)
        case _:
            return json.dumps(value)
