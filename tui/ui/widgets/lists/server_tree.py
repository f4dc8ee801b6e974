"""The server tree. Rows change in place, so that cursor, folding and scroll position stay."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from textwrap import wrap
from time import monotonic
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from tui.model.servers import Failure, ServerId, ServerStatus, ServerView
from tui.text import counted
from tui.ui import keymap
from tui.ui.widgets.status import LOOKS, Tone, is_slow, recovery, status_word
from tui.ui.widgets.text.plain import count, fit, ink, one_line, plain_label

TIMED: Final = frozenset({ServerStatus.RETRYING, ServerStatus.STARTING})
"""Statuses whose rows change with time."""

MIN_NAME: Final = 4
"""Cells of a server's name that are shown however narrow the tree is."""

MAX_REASON_ROWS: Final = 4
"""Rows of a failure's reason, and of its advice."""

MAX_STDERR_ROWS: Final = 3
"""Last lines of standard error shown below a server that failed or retries."""

UNREVIEWED: Final = Failure("Not trusted yet.", "Press t to review what it would run.")
"""Shown below an untrusted server without another reason."""


class RowKind(StrEnum):
    """What a row of the tree shows."""

    SERVER = "server"
    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    RECOVERY = "recovery"
    REASON = "reason"
    ADVICE = "advice"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One row; `number` is for catalog rows, `view` for the rows of servers."""

    kind: RowKind
    server: ServerId
    text: str
    number: int = 0
    view: ServerView | None = None


def child_rows(view: ServerView, width: int, now: float) -> list[TreeRow]:
    """Return the rows below a server, wrapped to `width` cells."""
    failure = view.failure or view.last_failure  # stays visible during retries
    if failure is None and view.status is ServerStatus.UNTRUSTED:
        failure = UNREVIEWED
    reasons = _failure_rows(view, failure, width) if failure is not None else ()
    notes = _wrapped(RowKind.RECOVERY, view, recovery(view, now), width)
    words = one_line(view.last_words) if is_slow(view, now) else ""
    spoken = [TreeRow(RowKind.STDERR, view.id, words)] if words else []
    return [*notes, *reasons, *spoken, *_catalog_rows(view)]


def _wrapped(kind: RowKind, view: ServerView, text: str, width: int) -> Iterator[TreeRow]:
    lines = wrap(
        one_line(text),
        max(10, width),
        max_lines=MAX_REASON_ROWS,
        placeholder="…",
        break_on_hyphens=False,
    )
    return (TreeRow(kind, view.id, line) for line in lines)


def _failure_rows(view: ServerView, failure: Failure, width: int) -> Iterator[TreeRow]:
    yield from _wrapped(RowKind.REASON, view, failure.reason, width)
    yield from _wrapped(RowKind.ADVICE, view, failure.advice, width)
    for line in failure.stderr_tail[-MAX_STDERR_ROWS:]:
        yield TreeRow(RowKind.STDERR, view.id, one_line(line))


def _catalog_rows(view: ServerView) -> Iterator[TreeRow]:
    catalog = view.catalog
    numbers = (
        (RowKind.TOOLS, len(catalog.tools)),
        (RowKind.PROMPTS, len(catalog.prompts)),
        (RowKind.RESOURCES, len(catalog.resources) + len(catalog.templates)),
    )
    if view.status is ServerStatus.READY or any(number for _, number in numbers):
        for kind, number in numbers:
            yield TreeRow(kind, view.id, kind.value, number)


class ServerTree(Tree[TreeRow], inherit_bindings=False):
    """Draw the servers and the rows below them; the pane adds the commands."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.SERVERS)
    ICON_NODE = ICON_NODE_EXPANDED = ""
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"server-tree--{tone}" for tone in Tone}
    DEFAULT_CSS = """
    ServerTree {
        background: transparent;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        &:focus { background-tint: transparent; }
        & > .server-tree--good { color: $success; }
        & > .server-tree--busy { color: $warning; }
        & > .server-tree--bad { color: $error; }
        & > .server-tree--off { color: $foreground 60%; }
    }
    """

    class Moved(Message):
        """The cursor is on another server, or its server changed."""

    def __init__(self) -> None:
        super().__init__(plain_label("servers"))
        self.show_root = self.show_guides = False
        self.guide_depth = 2
        self.auto_expand = False
        self._rows_by_server: dict[ServerId, TreeNode[TreeRow]] = {}
        self._troubled: set[ServerId] = set()
        self._unfolded: set[ServerId] = set()

    @property
    def current(self) -> ServerView | None:
        """The server of the row under the cursor."""
        row = self.cursor_node.data if self.cursor_node is not None else None
        if row is None or row.server not in self._rows_by_server:
            return None
        data = self._rows_by_server[row.server].data
        return data.view if data is not None else None

    def show(self, servers: Sequence[ServerView]) -> None:
        """Draw these servers, updating existing rows in place."""
        if tuple(self._rows_by_server) != tuple(view.id for view in servers):
            self._rebuild(servers)
        for view in servers:
            self._update(self._rows_by_server[view.id], view)
        self.post_message(self.Moved())

    def tick(self) -> None:
        """Show what a second has changed in rows that tell the time."""
        for node in self._rows_by_server.values():
            view = node.data.view if node.data is not None else None
            if view is not None and (view.status in TIMED or view.restarted):
                node.refresh()
                self._fold_by_trouble(node, view)
                self._update_children(node, view)

    def _rebuild(self, servers: Sequence[ServerView]) -> None:
        """Rebuild the tree for another list of servers; the cursor stays on its server."""
        kept = self.current
        present = {view.id for view in servers}
        self._unfolded &= present
        self._troubled &= present
        unfolded = {server for server, node in self._rows_by_server.items() if node.is_expanded}
        self.clear()
        self._rows_by_server = {
            view.id: self.root.add(
                plain_label(view.id),
                TreeRow(RowKind.SERVER, view.id, view.id, view=view),
                expand=view.id in unfolded,
            )
            for view in servers
        }
        self.root.expand()
        if servers:
            wanted = (
                kept.id if kept is not None and kept.id in self._rows_by_server else servers[0].id
            )
            self.call_after_refresh(self.move_cursor, self._rows_by_server[wanted])

    def _update(self, node: TreeNode[TreeRow], view: ServerView) -> None:
        before = node.data.view if node.data is not None else None
        node.data = TreeRow(RowKind.SERVER, view.id, view.id, view=view)
        if before is not view:
            node.refresh()
        self._fold_by_trouble(node, view)
        self._update_children(node, view)

    def _fold_by_trouble(self, node: TreeNode[TreeRow], view: ServerView) -> None:
        """Unfold a server that starts to fail or is slow to start; fold it when it is well.

        A server that came back is well once it no longer says so. In between, the user's own
        folding is kept through all retries. A server stays unfolded if the cursor is on one of
        its rows.
        """
        now = monotonic()
        if view.is_troubled or is_slow(view, now) or recovery(view, now):
            if view.id not in self._troubled and not node.is_expanded:
                self._unfolded.add(view.id)
                node.expand()
            self._troubled.add(view.id)
            return
        self._troubled.discard(view.id)
        if view.id in self._unfolded:
            self._unfolded.discard(view.id)
            if self.cursor_node is None or self.cursor_node.parent is not node:
                node.collapse()

    def _update_children(self, node: TreeNode[TreeRow], view: ServerView) -> None:
        rows = child_rows(view, self.size.width - self.guide_depth, monotonic())
        node.allow_expand = bool(rows)
        children = tuple(node.children)
        for child, row in zip(children, rows, strict=False):
            if child.data != row:
                child.data = row
                child.refresh()
        for row in rows[len(children) :]:
            node.add_leaf(plain_label(row.text), row)
        for child in children[len(rows) :]:
            if child is self.cursor_node:
                self.move_cursor(node)
            child.remove()

    def get_label_width(self, node: TreeNode[TreeRow]) -> int:  # noqa: ARG002
        return 1

    def render_label(self, node: TreeNode[TreeRow], base_style: Style, style: Style) -> Text:
        row = node.data
        if row is None:
            return Text("")
        if row.view is not None:
            return self._server_label(row.view, base_style, style)
        return self._child_label(row, base_style, style)

    def _server_label(self, view: ServerView, base_style: Style, style: Style) -> Text:
        """Draw the name and, on the right, the status; the number of tools if there is room."""
        glyph, tone = LOOKS[view.status]
        width = self.size.width - cell_len(f"{glyph}  ")
        name = one_line(view.id)
        word = status_word(view, monotonic())
        if view.status is ServerStatus.READY:
            full = f"{word}, {counted(len(view.catalog.tools), 'tool')}"
            word = full if cell_len(name) + len(full) <= width else word
        name = fit(name, max(MIN_NAME, width - len(word)))
        fold = Style(meta={"toggle": True})
        mark = self._tone(tone)
        return Text.assemble(
            (f"{glyph} ", base_style + mark + style + mark + fold),
            (name, base_style + style + fold),
            (f" {word}", base_style + style + self._tone(Tone.OFF)),
        )

    def _child_label(self, row: TreeRow, base_style: Style, style: Style) -> Text:
        width = max(4, self.size.width - self.guide_depth)
        match row.kind:
            case RowKind.REASON:
                colour = self._tone(Tone.BAD)
            case RowKind.TOOLS | RowKind.PROMPTS | RowKind.RESOURCES:
                number = count(row.number)
                guide = "└ " if row.kind is RowKind.RESOURCES else "├ "
                return Text.assemble(
                    (guide, base_style + style + self._tone(Tone.OFF)),
                    (fit(row.text, width - 2 - len(number)) + number, base_style + style),
                )
            case _:
                colour = self._tone(Tone.OFF)
        return Text(fit(row.text, width), base_style + style + colour)

    def _tone(self, tone: Tone) -> Style:
        return ink(self, f"server-tree--{tone}")

    def action_toggle_fold(self) -> None:
        node = self._server_node()
        if node is not None and node.is_expanded:
            self.action_fold()
        elif node is not None:
            node.expand()

    def action_fold(self) -> None:
        node = self._server_node()
        if node is not None:
            self.move_cursor(node)
            node.collapse()

    def action_unfold(self) -> None:
        node = self._server_node()
        if node is not None:
            node.expand()

    def _server_node(self) -> TreeNode[TreeRow] | None:
        view = self.current
        return None if view is None else self._rows_by_server[view.id]

    def on_resize(self, _event: events.Resize) -> None:
        for node in self._rows_by_server.values():
            if node.data is not None and node.data.view is not None:
                self._update_children(node, node.data.view)

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[TreeRow]) -> None:
        event.stop()
        self.post_message(self.Moved())
