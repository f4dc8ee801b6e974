"""The main screen: servers, chat and side pane between the header and the key bar.

What is typed while something opens on it is typed into it once it stands.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from textual import events, on
from textual.app import App, ComposeResult
from textual.getters import query_one
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget

from tui.model.chat import ConversationId, EntryId, ToolCall, order_of
from tui.model.servers import ServerId
from tui.store.selectors import entries
from tui.ui import keymap, messages
from tui.ui.bridge import StoreBridge
from tui.ui.messages import PaneName
from tui.ui.notices import Toasts
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.row import PaneRow
from tui.ui.panes.servers import ServersPane
from tui.ui.panes.side import TABS, VIEWS, SidePane
from tui.ui.questions.arming import REPEAT_SECONDS, SecondPress
from tui.ui.widgets.header import DeckHeader
from tui.ui.widgets.key_bar import FRAME, OF_SERVER, KeyBar, SaysWhy, hint_line, hints

BORDER_STEP: Final = 2
"""Columns by which a key moves a border."""


class TypeAhead:
    """Keeps keys and pastes for what is not on the screen yet.

    Args:
        app: The running app, which gets all that is typed.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._kept: deque[events.Key | events.Paste] = deque()
        self._holds = True  # until the first frame, which has nothing to type into

    def keeps(self, event: events.Event) -> bool:
        """Keep an event if it was typed and cannot be typed yet; return whether it is so."""
        if not self._holds or not isinstance(event, events.Key | events.Paste):
            return False
        if event.is_forwarded:
            return False  # it was typed before, and comes back from a widget
        self._kept.append(event)
        return True

    def begin(self) -> None:
        """Type what came before the first frame.

        Until the terminal was ours it turned Enter into a line feed; the last one sends.
        """
        if self._kept and isinstance(last := self._kept[-1], events.Key) and last.key == "ctrl+j":
            self._kept[-1] = events.Key("enter", "\r")
        self._app.call_later(self._type)

    def hold_for(self, change: Callable[[], Awaitable[object]]) -> None:
        """Change what is on the screen between what was typed before this and what is typed next.

        What was typed may still be on its way through the queues of the widget with the focus and
        those around it, in each of which it can come to stand twice.
        """
        self._holds = True
        focused = self._app.focused
        around = [self._app] if focused is None else focused.ancestors_with_self
        queues = iter([queue for queue in around for _ in range(2)])
        self._app.call_later(self._pass_on, queues, change)

    async def _pass_on(
        self, queues: Iterator[MessagePump], change: Callable[[], Awaitable[object]]
    ) -> None:
        """Go through the queues, each behind what is in it; then make the change."""
        for queue in queues:
            if queue.call_later(self._pass_on, queues, change):
                return
        try:
            await change()
        finally:
            await self._type()

    async def _type(self) -> None:
        self._holds = False
        while self._kept and not self._holds:
            await self._app.on_event(self._kept.popleft())


class MainScreen(SaysWhy, Screen[None]):
    """Lay the panes out and move between them.

    Args:
        bridge: Provides the state, and calls the engine.
        panes: The panes.
        type_ahead: Keeps what is typed while another conversation comes on the screen.
        own_keys: The user's own keys by binding id, as they are now.
    """

    AUTO_FOCUS = ""
    BINDINGS = keymap.bindings(keymap.Place.DECK, keymap.Place.TABS)

    servers = query_one(ServersPane)
    side = query_one(SidePane)
    keys = query_one(KeyBar)

    def __init__(
        self,
        bridge: StoreBridge,
        panes: PaneRow,
        type_ahead: TypeAhead,
        own_keys: Mapping[str, str],
    ) -> None:
        super().__init__()
        self.bridge = bridge
        self.commands = bridge.commands
        self.panes = panes
        self.own_keys = own_keys
        self.drafts: dict[tuple[ServerId, str], str] = {}
        """What was typed into the forms of tools, as JSON; the oldest go first."""
        self._toasts: Toasts | None = None
        self._type_ahead = type_ahead
        self._closing_tab: SecondPress[ConversationId] = SecondPress()

    @property
    def chat(self) -> ChatPane:
        """The pane of the conversation on the screen."""
        return self.panes.chat

    def compose(self) -> ComposeResult:
        yield DeckHeader(self.bridge)
        yield self.panes
        yield KeyBar()

    def on_mount(self) -> None:
        self.panes.resize(self.app.size.width)
        self.chat.composer.focus()
        self._toasts = Toasts(self, self.bridge)
        self.bindings_updated_signal.subscribe(self, lambda _: self._show_hints())
        self.bridge.watch(
            self,
            lambda state: (state.current, state.conversation.turn is None),
            lambda _: self.refresh_bindings(),
        )

    def on_screen_suspend(self) -> None:
        self.panes.release()
        self.keys.follow(self)

    def on_screen_resume(self) -> None:
        self.keys.follow(self)
        if self._toasts is not None:
            self._toasts.show_held()
            # The focus goes with that of the terminal, and comes back only to the screen on top.
            self.set_focus(self.focused or self.chat.composer)

    def on_resize(self, event: events.Resize) -> None:
        self.panes.resize(event.size.width)

    @property
    def place(self) -> PaneName:
        """The pane that has the focus, or the chat."""
        pane = self.panes.pane_with_focus()
        if pane is self.side:
            return self.side.active
        return PaneName.SERVERS if pane is self.servers else PaneName.CHAT

    def bring_composer(self) -> None:
        """Bring the conversation on the screen to the front, and focus its composer."""
        self._bring(self.chat, self.chat.composer)

    def _bring(self, pane: Widget, focus: Widget | None = None) -> None:
        """Bring a pane to the front, and focus a widget in it."""
        self.panes.bring(pane)
        if focus is not None:
            # Not `Widget.focus`, which acts later: until then the event of an earlier focus
            # would bring the pane of that one to the front.
            self.set_focus(focus)

    async def action_go(self, name: str) -> None:
        """Go to a pane; from that pane, hide its side, or let the chat stand alone."""
        pane = self.side.activity if name == PaneName.ACTIVITY else PaneName(name)
        if pane is PaneName.CHAT and self.chat.composer.has_focus:
            self.chat_alone()
        elif pane is PaneName.SERVERS and self.servers.has_focus_within:
            self._hide(self.servers)
        elif pane is self.side.active and self.side.has_focus_within:
            self._hide(self.side)
        else:
            await self.show_pane(pane)

    def chat_alone(self) -> None:
        """Show the chat alone, or again beside the other panes."""
        self.set_focus(self.chat.composer)
        self.panes.toggle_alone()

    def _hide(self, pane: Widget) -> None:
        self.set_focus(self.chat.composer)
        self.panes.hide(pane)

    def action_move_border(self, direction: int) -> None:
        self.panes.move_border(direction * BORDER_STEP)

    async def show_pane(self, name: PaneName, to: str | None = None) -> None:
        """Show and focus a pane; one at the side narrowed to a server, the protocol by a filter."""
        match name:
            case PaneName.SERVERS:
                self._bring(self.servers, self.servers.rows)
            case PaneName.CHAT:
                self.bring_composer()
            case _:
                self._bring(self.side)
                await self.side.show(name, to)
                if name is PaneName.ACTIVITY and to is not None:
                    self.commands.tell("mcp logs", to)

    async def action_show(self, name: str) -> None:
        await self.show_pane(PaneName(name))

    async def action_show_frames(self, call: str) -> None:
        """Show what was said for a call in the conversation on the screen."""
        await self.show_pane(PaneName.PROTOCOL, f"call:{self.chat.conversation}/{call}")

    def action_use_task(self, what: str, call: str) -> None:
        """Cancel the task of a call, or let the turn go on without it."""
        tasks = self.commands.engine.servers.tasks
        use = tasks.cancel if what == "cancel" else tasks.leave
        use(self.chat.conversation, EntryId(call))

    def action_widen(self) -> None:
        """Give the protocol the full width, or share it again."""
        self.side.is_wide = not self.side.is_wide
        self._bring(self.side)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        state = self.bridge.state
        match action, parameters:
            case "last_result", _:
                has_run = self._last_result() or state.runs
                return "" if has_run else "No tool has run here yet."
            case "turn_tab", _ if len(state.conversations) == 1:
                return "This is the only tab."
            case "tab", (int(number),) if number > len(state.conversations):
                return f"There is no tab {number}."
            case "move_border", _ if len(self.panes.folded) > len(TABS):
                return "No border to move: no pane is open beside the chat."
            case _:
                return ""

    def action_label(self, action: str) -> str | None:
        """Name what the key of the pane with the focus does."""
        return "hide" if action == f"go('{self.place}')" != "go('chat')" else None

    def _last_result(self) -> ToolCall | None:
        calls = (one for one in reversed(entries(self.bridge.state)) if isinstance(one, ToolCall))
        return next((one for one in calls if one.result), None)

    def action_last_result(self) -> None:
        """Show what the newest call gave, by the model or by hand."""
        call, runs = self._last_result(), self.bridge.state.runs
        run = [*runs.values()][-1] if runs else None
        if run is not None and (call is None or order_of(call.id) < order_of(run.call.id)):
            self.post_message(messages.ShowRun(run))
        elif call is not None:
            self.chat.transcript.view_result(call)

    def action_run_command(self, text: str) -> None:
        """Carry out a command of the screen as if it were typed."""
        from tui.model.input.own_commands import find_own_command  # noqa: PLC0415 - on first use

        if (command := find_own_command(text)) is not None:
            self.post_message(messages.RunCommand(command, text))

    def choose_theme(self, theme: str) -> None:
        """Change the theme, and keep it for later runs."""
        app: Any = self.app
        app.use_theme(theme)
        self.panes.preferences.save(theme)

    def switch(self, command: Callable[[], object]) -> None:
        """Let a command put another conversation on the screen.

        What was typed before it goes to the one that was there, what is typed from now on to the
        other. Under a dialog, which belongs to the one that is there, nothing changes.
        """
        self._type_ahead.hold_for(partial(self._change, command))

    async def _change(self, command: Callable[[], object]) -> None:
        from tui.ui.questions.question import Question  # noqa: PLC0415 - loaded with the first one

        if not all(isinstance(above, Question) for above in self.app.screen_stack[1:]):
            self.notify("Close this dialog first.", severity="warning", markup=False)
            return
        self.chat.keep_draft()
        command()
        await self.panes.follow()
        self.bridge.update()

    def show_conversation(self, conversation: ConversationId) -> None:
        self.switch(partial(self.commands.engine.conversations.select, conversation))

    def show_entry(self, conversation: ConversationId, entry: EntryId) -> None:
        """Show an entry of a conversation, if that is open and the entry still in it."""

        async def show() -> None:
            if conversation != self.bridge.state.current:
                await self._change(partial(self.commands.engine.conversations.select, conversation))
            self._bring(self.chat, self.chat.transcript)
            self.call_after_refresh(self.chat.transcript.select, entry)

        if conversation in self.bridge.state.conversations:
            self._type_ahead.hold_for(show)
        else:
            self.notify("That conversation is closed.", markup=False)

    def action_new_tab(self) -> None:
        self.switch(self.commands.engine.conversations.open)

    def action_turn_tab(self, step: int) -> None:
        """Go to the next or the previous tab, round and round."""
        state = self.bridge.state
        keys = [*state.conversations]
        self.show_conversation(keys[(keys.index(state.current) + step) % len(keys)])

    def action_tab(self, number: int) -> None:
        """Go to a tab by its number."""
        self.show_conversation([*self.bridge.state.conversations][number - 1])

    def action_close_tab(self) -> None:
        """Close the tab; at the second press if something in it has not come to its end."""
        self._type_ahead.hold_for(self._close_tab)

    async def _close_tab(self) -> None:
        state = self.bridge.state
        if len(state.conversations) == 1:
            self.notify("This is the only tab. /clear starts a new conversation.", markup=False)
            return
        unfinished = self.chat.unfinished
        if unfinished and not self._closing_tab.is_again(state.current):
            words = f"{unfinished} Press again to close the tab anyway."
            self.notify(words, severity="warning", timeout=REPEAT_SECONDS, markup=False)
        else:
            await self._change(self._close_conversation)

    def _close_conversation(self) -> None:
        self.chat.composer.clear_draft()  # Up brings it back in the other ones
        self.commands.keep_draft("")
        self.commands.engine.conversations.close()

    def on_descendant_focus(self) -> None:
        """Bring the pane with the focus to the front."""
        if (pane := self.panes.pane_with_focus()) is not None:
            self.panes.bring(pane)

    def _show_hints(self) -> None:
        """Show the keys of a server below it, and in borders those of panes."""
        found = hints(self.app, self.active_bindings, (self.focused or self, self))
        self.servers.show_keys([hint for hint in found if hint.id in OF_SERVER])
        panes: dict[Widget, Sequence[PaneName]] = {self.chat: self.panes.folded}
        panes[self.servers] = [PaneName.SERVERS]
        if self.side.active not in VIEWS:  # which have other words there
            panes[self.side] = [self.side.active]
        for pane, names in panes.items():
            shown = [hint for hint in found if hint.id.removeprefix("deck.") in names]
            width = pane.outer_size.width - FRAME
            pane.border_subtitle = hint_line(shown, width) if shown and width > 0 else None

    @on(messages.Asks)
    async def _do(self, asked: messages.Asks) -> None:
        """Do what a widget asks for."""
        asked.stop()
        match asked:
            case messages.InsertText():
                self.bring_composer()
                self.chat.composer.insert_words(asked.text)
            case messages.ShowSent():
                self.bring_composer()
                self.chat.action_to_end()
            case messages.SendResource():
                self.bring_composer()
                self.chat.send_resource(asked.server, asked.uri)
            case messages.ShowConversation():
                self.show_conversation(asked.conversation)
            case messages.ShowEntry():
                self.show_entry(asked.conversation, asked.entry)
            case messages.ShowPane():
                await self.show_pane(asked.name, asked.server)
