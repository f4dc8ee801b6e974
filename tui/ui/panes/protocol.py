"""The protocol: what is said between gemdeck and its servers, newest last."""

from collections.abc import Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, Final

from textual import on
from textual.app import ComposeResult
from textual.getters import query_one

from tui.model.wire.exchanges import Exchange, exchange, exchanges
from tui.model.wire.frame_filter import ERRORS, parse_filter
from tui.model.wire.frames import Direction, FrameKind, WireFrame
from tui.text import counted
from tui.ui import keymap
from tui.ui.bridge import Delay, StoreBridge
from tui.ui.messages import ShowEntry
from tui.ui.panes.side_part import SidePart
from tui.ui.widgets.key_bar import SaysWhy
from tui.ui.widgets.lists.filter_list import FilterList, Group, ListEntry
from tui.ui.widgets.lists.frame_rows import METHODS, WIDTHS, row_of
from tui.ui.widgets.lists.row_list import Lazy, Row

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.engine.mcp.wire.wire import Wire

TICK: Final = 1.0
"""Seconds after which the time of what is open goes on."""

REST: Final = 100
"""How much longer than it took to show what is said the pane rests after it."""

MAX_REST: Final = 1.0
"""Seconds that it rests at most."""

MAX_NEW: Final = 2_000
"""Frames that are made at once; the rest of more come after a rest, the newest first."""

OURS: Final = (FrameKind.REQUEST, Direction.SENT)
"""What a request of gemdeck's is."""

MAX_COPIED: Final = 10
"""Frames of an exchange whose bodies a key copies."""

EMPTY: Final = "Messages between gemdeck and its servers appear here; `F2` shows the servers."
PROMPT: Final = "/ method:… server:… err >200ms words"

Shown = tuple[Exchange, WireFrame]
"""What a row shows: all of an exchange for its first frame, or one of the others."""

Entry = ListEntry[Shown]


class FrameList(FilterList[Shown]):
    """The exchanges that pass the filter; what belongs to one unfolds under it."""

    def __init__(self) -> None:
        super().__init__("exchange", EMPTY, PROMPT, widest=METHODS)
        self.mark = self._gone = self._probes = 0
        self.note = ""
        self.listed: Sequence[Exchange] = ()
        self._exchanges: Mapping[int, Exchange] = {}
        self._frames: list[Shown | Group] = []
        self._opened: set[int] = set()
        self._follows = self.shows_probes = False
        self._width = 0

    def follow(self, wire: "Wire") -> None:
        """Show the frames as they are now."""
        self._exchanges = exchanges(wire.frames(MAX_NEW), self._exchanges)
        self._gone = wire.gone
        self.set_entries(Lazy([*self._exchanges.values()], self._entry))

    def on_resize(self) -> None:
        width = max(least for least in WIDTHS if self.size.width >= least)
        if width != self._width:
            self._width = width
            self._show(keep=True)

    def _entry(self, one: Exchange, frame: WireFrame | None = None) -> Entry:
        frame = frame or one.head
        number = one.head.number
        is_head, mark = frame is one.head, "▾" if number in self._opened else "▸"
        sign = (mark if one.inner else " ") * is_head
        row = row_of(one if is_head else exchange((frame,)), time(), self._width, sign)
        return ListEntry((one, frame), row, str(frame.number), group=str(number))

    def _find(self, query: str) -> tuple[Sequence[Entry | Group], Sequence[str]]:
        self._follows = self.rows.cursor >= len(self._lines) - 1
        wanted = parse_filter(query)
        found = self._exchanges.items()
        listed = [one for at, one in found if at > self.mark and wanted.admits(one)]
        self.listed = [one for one in listed if self.shows_probes or not one.is_probe]
        probes = [one for one in listed if one.is_probe]
        self._probes = sum(one.head.kind is FrameKind.REQUEST for one in probes)
        self._frames, server = [], ""
        for one in self.listed:
            if not self._width and one.head.server != server:
                server = one.head.server
                row = Row("", server, is_heading=True)
                self._frames.append(Group(f"-{one.head.number}", 0, row))
            self._frames.append((one, one.head))
            if one.head.number in self._opened:
                self._frames += ((one, frame) for frame in one.inner)
        self.shown = Lazy(self.listed, self._entry)
        return Lazy(self._frames, self._line), wanted.words

    def _line(self, shown: Shown | Group) -> Entry | Group:
        return shown if isinstance(shown, Group) else self._entry(*shown)

    def _place_of(self, before: Entry | Group | None) -> int:
        """Stay where the user is, else follow the end."""
        return self._line_of(before.label) if before and not self._follows else len(self._lines)

    def _line_of(self, name: str) -> int:
        """Return the line of a frame or heading, or the first."""
        shown = self._frames
        names = (one.label if isinstance(one, Group) else str(one[1].number) for one in shown)
        return next((i for i, one in enumerate(names) if one == name), 0)

    def _count_line(self) -> str:
        gone = f" · {counted(self._gone, 'message')} dropped" if self._gone else ""
        state = "shown" if self.shows_probes else "hidden"
        probes = f" · {counted(self._probes, 'probe')} {state} (P)" if self._probes else ""
        # first what a narrow pane must show
        return self.note + super()._count_line() + probes + gone

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        if action in ("fold", "toggle_fold") and not self.line.has_focus:
            return "" if self.current and self.current[0].inner else "There is nothing to fold."
        return super().why_not(action, parameters)

    def action_toggle_fold(self) -> None:
        name = self._group_name()
        self._fold(name, int(name or 0) in self._opened)

    def _fold(self, name: str, folds: bool) -> None:
        number = int(name or 0)
        if number in self._exchanges and folds == (number in self._opened):
            self._opened ^= {number}
            self._show()
            self.rows.cursor = self._line_of(name)


class ProtocolPane(SaysWhy, SidePart):
    """Follow what is said, look at it, copy it, and send it again."""

    BINDINGS = keymap.bindings(keymap.Place.PROTOCOL)

    listed = query_one(FrameList)

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__(bridge)
        self._is_seen = self._is_paused = False
        self._delay = Delay(self)
        self._rests_until = 0.0

    def compose(self) -> ComposeResult:
        yield FrameList()

    def on_mount(self) -> None:
        self._bridge.watch(
            self,
            lambda state: (state.wire_revision, state.configured),
            lambda _: self.wake(self._rests_until - time()),
        )

    def on_show(self) -> None:
        self._watch(is_seen=True)

    def on_hide(self) -> None:
        self._watch(is_seen=False)

    def focus_main(self) -> None:
        self.listed.rows.focus()

    def narrow_to(self, to: str) -> None:
        self.listed.mark = 0
        self.listed.line.value = to
        self._say()

    def _watch(self, *, is_seen: bool) -> None:
        self._is_seen = is_seen
        if self._commands.is_attached:
            self._commands.engine.wire.watch(is_watched=is_seen)
        self.wake()

    def wake(self, after: float = 0.0) -> None:
        """Show what was said, some seconds from now; the time of what is open goes on.

        In a flood that is not so often that typing would wait for it.
        """
        self._delay.stop()
        if not self._is_seen or self._is_paused or not self._commands.is_attached:
            return
        if after > 0:
            self._delay.begin(after, self.wake)
            return
        began = time()
        self.listed.follow(self._commands.running.wire)
        self._rests_until = time() + min(MAX_REST, REST * (time() - began))
        if any(one.waits for one in self.listed.listed):
            self.wake(TICK)

    @property
    def _one(self) -> Exchange | None:
        """The exchange under the cursor."""
        at = self.listed.current if self.is_mounted and self.listed.is_mounted else None
        return at[0] if at is not None else None

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        if self._one is None:
            return "No exchange is listed here." if action in {"choose", "use", "export"} else ""
        head = self._one.head
        match parameters:
            case ("command" | "again",) if (head.kind, head.direction) != OURS:
                return "Only requests sent by gemdeck can be repeated."
            case ("call",) if not head.call:
                return "No call in a conversation caused this exchange."
            case _:
                return ""

    def action_label(self, action: str) -> str | None:
        """Return the label of a key that does one thing after another."""
        labels = {
            "pause": "resume" * self._is_paused,
            "mark": "show all" * bool(self.listed.mark),
            "errors": "all" * parse_filter(self.listed.line.value).errors,
        }
        return labels.get(action) or None

    @on(FrameList.Chosen)
    def action_choose(self) -> None:
        from tui.ui.dialogs.exchange import exchange_screen  # noqa: PLC0415 - on first use

        if self._one is not None:
            self.app.push_screen(exchange_screen(self._one, self._commands))

    def action_errors(self) -> None:
        """Let the filter keep only what went wrong, or all again."""
        words = self.listed.line.value.split()
        kept = [word for word in words if word != ERRORS]
        self.listed.set_filter(" ".join(kept if kept != words else [*words, ERRORS]))

    def action_pause(self) -> None:
        """Hold back what is said from now on, or show it."""
        self._is_paused = not self._is_paused
        self._say()

    def action_mark(self) -> None:
        """List only what is said from now on, or all that is kept."""
        last = self._commands.running.wire.last if self._commands.is_attached else 0
        self.listed.mark = 0 if self.listed.mark else last
        self._say()

    def action_probes(self) -> None:
        """Show or hide how the era of the protocol was found out."""
        self.listed.shows_probes = not self.listed.shows_probes
        self._say()

    def _say(self) -> None:
        since = "cleared · " * bool(self.listed.mark)
        self.listed.note = "paused · " * self._is_paused + since
        self.listed.set_filter(self.listed.line.value)
        self.wake()
        self.refresh_bindings()

    def action_use(self, what: str) -> None:
        """Copy it, send it again, or go to its call."""
        if (one := self._one) is None:
            return
        head, engine = one.head, self._commands.running
        match what:
            case "copy":
                numbers = [frame.number for frame in one.frames[:MAX_COPIED]]
                bodies = [body.text.strip() for body in map(engine.wire.body, numbers) if body]
                self._copy("\n".join(filter(None, bodies)) or engine.wire.export(numbers))
            case "command":
                self._copy(engine.wire.command(head.number))
            case "again":
                engine.runs.send_again(head.number)
            case "call":
                self.post_message(ShowEntry(head.conversation, head.call))

    def _copy(self, text: str) -> None:
        if text:
            self.app.copy_to_clipboard(text)
        else:
            self.notify("There is nothing to copy.", timeout=2)

    def action_export(self) -> None:
        numbers = (frame.number for one in self.listed.listed for frame in one.frames)
        self._commands.engine.features.export_frames(sorted(numbers))

    @on(FrameList.Moved)
    def _on_moved(self) -> None:
        self.refresh_bindings()
