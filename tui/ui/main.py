"""The main screen: servers, chat and side pane between the header and the key bar."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.screen import Screen
from textual.widget import Widget

from tui.model.chat import ConversationId
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.keys.type_ahead import TypeAhead
from tui.ui.notices import Toasts
from tui.ui.panes import (
    FillPrompt,
    InsertText,
    PaneName,
    RunCommand,
    SendResource,
    ShowConversation,
    ShowPane,
    ShowResource,
    ShowServer,
    ShowTool,
)
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.deck import Deck
from tui.ui.panes.servers import ServersPane
from tui.ui.panes.side import FRAME, SidePane
from tui.ui.questions.arming import REPEAT_SECONDS, SecondPress
from tui.ui.widgets.header import DeckHeader
from tui.ui.widgets.key_bar import Hint, KeyBar, hint_line, hints

if TYPE_CHECKING:
    from tui.ui.panes.resources import Resource

BORDER_STEP: Final = 2
"""Columns by which a key moves a border."""


class MainScreen(Screen[None]):
    """Lay the panes out and move between them."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.DECK, keymap.Place.TABS)

    deck = query_one(Deck)
    servers = query_one(ServersPane)
    side = query_one(SidePane)
    keys = query_one(KeyBar)

    def __init__(
        self, bridge: StoreBridge, commands: Commands, deck: Deck, type_ahead: TypeAhead
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._deck = deck
        self._toasts: Toasts | None = None
        self._type_ahead = type_ahead
        self._closing_tab: SecondPress[ConversationId] = SecondPress()

    @property
    def chat(self) -> ChatPane:
        """The pane of the conversation on the screen."""
        return self._deck.chat

    def compose(self) -> ComposeResult:
        yield DeckHeader(self._bridge)
        yield self._deck
        yield KeyBar()

    def on_mount(self) -> None:
        self.deck.resize(self.app.size.width)
        self.chat.composer.focus()
        self._toasts = Toasts(self, self._bridge)
        self.bindings_updated_signal.subscribe(self, lambda _: self._show_hints())

    def on_screen_suspend(self) -> None:
        self.deck.release()
        self.keys.follow(self)

    def on_screen_resume(self) -> None:
        self.keys.follow(self)
        if self._toasts is not None:
            self._toasts.show_held()

    def on_resize(self, event: events.Resize) -> None:
        self.deck.resize(event.size.width)

    @property
    def place(self) -> PaneName:
        """The pane that has the focus, or the chat."""
        pane = self.deck.pane_with_focus()
        if pane is self.side:
            return self.side.active
        return PaneName.SERVERS if pane is self.servers else PaneName.CHAT

    async def open_resource(self, server: ServerId, resource: "Resource") -> None:
        """Go to a resource in its pane, and read it; fill in a template first."""
        await self.show_pane(PaneName.RESOURCES)
        from tui.ui.panes.resources import ResourcesPane  # noqa: PLC0415 - on first use

        self.query_one(ResourcesPane).open((server, resource))

    def _bring(self, pane: Widget, focus: Widget | None = None) -> None:
        """Bring a pane to the front, and focus a widget in it."""
        self.deck.bring(pane)
        if focus is not None:
            # Not `Widget.focus`, which acts later: until then the event of an earlier focus
            # would bring the pane of that one to the front.
            self.set_focus(focus)

    async def action_go(self, name: str) -> None:
        """Go to a pane; from that pane, hide its side, or let the chat stand alone."""
        pane = PaneName(name)
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
        self.deck.toggle_alone()

    def _hide(self, pane: Widget) -> None:
        self.set_focus(self.chat.composer)
        self.deck.hide(pane)

    def action_move_border(self, direction: int) -> None:
        self.deck.move_border(direction * BORDER_STEP)

    async def show_pane(self, name: PaneName, server: ServerId | None = None) -> None:
        """Show and focus a pane, narrowed to a server if it lists what servers offer."""
        match name:
            case PaneName.SERVERS:
                self._bring(self.servers, self.servers.rows)
            case PaneName.CHAT:
                self._bring(self.chat, self.chat.composer)
            case _:
                self._bring(self.side)
                await self.side.show(name, server)

    def show_server(self, server: ServerId) -> None:
        from tui.ui.dialogs.details import ServerDetailsScreen  # noqa: PLC0415 - on first use

        self.app.push_screen(ServerDetailsScreen(self._bridge, server))

    def action_grants(self) -> None:
        from tui.ui.dialogs.grants import GrantsScreen  # noqa: PLC0415 - on first use

        self.app.push_screen(GrantsScreen(self._bridge, self._commands))

    def choose_log_level(self, server: ServerId) -> None:
        from tui.ui.dialogs.choices import log_levels  # noqa: PLC0415 - on first use

        self.app.push_screen(log_levels(self._bridge, self._commands, server))

    def action_last_result(self) -> None:
        self.chat.view_last_result()

    def action_context(self) -> None:
        self.run_command("/context")

    def run_command(self, text: str) -> None:
        """Carry out a command of the screen as if it were typed."""
        from tui.model.input.own_commands import find_own_command  # noqa: PLC0415 - on first use

        if (command := find_own_command(text)) is not None:
            self.post_message(RunCommand(command, text))

    def action_model(self) -> None:
        from tui.ui.dialogs.model_setup import ModelScreen  # noqa: PLC0415 - on first use

        self.app.push_screen(ModelScreen(self._bridge, self._commands))

    def switch(self, command: Callable[[], None]) -> None:
        """Let a command put another conversation on the screen.

        What was typed before it goes to the one that was there, what is typed from now on to the
        other. Under a dialog, which belongs to the one that is there, nothing changes.
        """
        self._type_ahead.hold_for(partial(self._change, command))

    async def _change(self, command: Callable[[], None]) -> None:
        from tui.ui.questions.question import Question  # noqa: PLC0415 - loaded with the first one

        if not all(isinstance(above, Question) for above in self.app.screen_stack[1:]):
            self.notify("Close this dialog first.", severity="warning", markup=False)
            return
        self.chat.keep_draft()
        command()
        await self._deck.follow()
        self._bridge.update()

    @on(ShowConversation)
    def _on_show_conversation(self, event: ShowConversation) -> None:
        event.stop()
        self.show_conversation(event.conversation)

    def show_conversation(self, conversation: ConversationId) -> None:
        self.switch(partial(self._commands.select_conversation, conversation))

    def action_new_tab(self) -> None:
        self.switch(self._commands.new_conversation)

    def action_turn_tab(self, step: int) -> None:
        """Go to the next or the previous tab, round and round."""
        state = self._bridge.state
        keys = [*state.conversations]
        self.show_conversation(keys[(keys.index(state.current) + step) % len(keys)])

    def action_tab(self, number: int) -> None:
        """Go to a tab by its number, if there is one."""
        for key in [*self._bridge.state.conversations][number - 1 : number]:
            self.show_conversation(key)

    def action_close_tab(self) -> None:
        """Close the tab; at the second press if something in it has not come to its end."""
        self._type_ahead.hold_for(self._close_tab)

    async def _close_tab(self) -> None:
        state = self._bridge.state
        if len(state.conversations) == 1:
            self.notify("This is the only conversation. /clear begins a new one.", markup=False)
            return
        unfinished = self.chat.unfinished
        if unfinished and not self._closing_tab.take(state.current):
            self._closing_tab.expect(state.current)
            words = f"{unfinished} Press again to close the tab anyway."
            self.notify(words, severity="warning", timeout=REPEAT_SECONDS, markup=False)
        else:
            await self._change(self._close_conversation)

    def _close_conversation(self) -> None:
        self.chat.composer.clear_draft()  # Up brings it back in the other ones
        self._commands.keep_draft("")
        self._commands.close_conversation()

    def on_descendant_focus(self) -> None:
        """Bring the pane with the focus to the front."""
        pane = self.deck.pane_with_focus()
        if pane is not None:
            self.deck.bring(pane)

    def _show_hints(self) -> None:
        """Show the keys of the focused pane: below the servers, or in the border of another."""
        self.servers.show_keys(self._hints_in(self.servers))
        for pane in (self.chat, self.side):
            line = hint_line(self._hints_in(pane), _border_width(pane))
            pane.border_subtitle = line if line else None

    def _hints_in(self, pane: Widget) -> tuple[Hint, ...]:
        focused = self.focused
        if focused is None or pane not in focused.ancestors:
            return ()
        nodes = [node for node in focused.ancestors_with_self if pane in node.ancestors]
        if pane is self.chat:
            # The composer has room for a message alone.
            nodes = [] if focused is self.chat.composer else [*nodes, pane]
        return hints(self.app, self.active_bindings, nodes)

    @on(InsertText)
    def _on_insert_text(self, event: InsertText) -> None:
        event.stop()
        self._bring(self.chat, self.chat.composer)
        self.chat.composer.insert_words(event.text)

    @on(FillPrompt)
    def _on_fill_prompt(self, event: FillPrompt) -> None:
        """Open the form for the arguments, even without any."""
        from tui.model.requests import FieldKind, FormField  # noqa: PLC0415 - on first use
        from tui.ui.dialogs.prompt_arguments import ArgumentsScreen  # noqa: PLC0415 - ditto
        from tui.ui.widgets.text.describe import describe_prompt  # noqa: PLC0415 - ditto

        event.stop()
        screen = ArgumentsScreen(
            self._bridge,
            self._commands,
            event.server,
            event.prompt.name,
            title=f"/{event.prompt.name}",
            about=describe_prompt(event.server, event.prompt, arguments=False),
            fields=[
                FormField(
                    one.name,
                    FieldKind.TEXT,
                    one.name,
                    one.description,
                    one.required,
                    event.values.get(one.name),
                )
                for one in event.prompt.arguments
            ],
            verb="send",
        )
        self.app.push_screen(screen, partial(self._send_filled, event))

    def _send_filled(self, event: FillPrompt, arguments: dict[str, str] | None) -> None:
        if arguments is not None:
            self._bring(self.chat, self.chat.composer)
            self.chat.send_prompt(event.server, event.prompt.name, arguments)
        elif event.typed:
            self.chat.composer.replace_all(event.typed)

    @on(RunCommand)
    async def _on_run_command(self, event: RunCommand) -> None:
        from tui.ui.commands.runner import CommandRunner  # noqa: PLC0415 - on first use
        from tui.ui.commands.usage import UsageError  # noqa: PLC0415 - ditto

        event.stop()
        try:
            await CommandRunner(self, self._bridge, self._commands).run(event.command)
        except UsageError as error:
            if not self.chat.composer.text:
                self.chat.composer.put_back(event.text)
            words = f"{error} {error.advice}".rstrip()
            self.notify(words, severity="warning", markup=False)

    @on(SendResource)
    def _on_send_resource(self, event: SendResource) -> None:
        event.stop()
        self._bring(self.chat, self.chat.composer)
        self.chat.send_resource(event.server, event.uri)

    @on(ShowResource)
    def _on_show_resource(self, event: ShowResource) -> None:
        event.stop()
        from tui.ui.dialogs.resource import ResourceScreen  # noqa: PLC0415 - on first use

        what = event.server, event.uri, event.name
        self.app.push_screen(ResourceScreen(self._bridge, self._commands, *what, opener=self))

    @on(ShowPane)
    async def _on_show_pane(self, event: ShowPane) -> None:
        event.stop()
        await self.show_pane(event.name, event.server)

    @on(ShowServer)
    def _on_show_server(self, event: ShowServer) -> None:
        event.stop()
        self.show_server(event.server)

    @on(ShowTool)
    def _on_show_tool(self, event: ShowTool) -> None:
        event.stop()
        from tui.ui.dialogs.details import ToolDetailsScreen  # noqa: PLC0415 - on first use

        screen = ToolDetailsScreen(self._bridge, self._commands, event.server, event.tool)
        self.app.push_screen(screen)


def _border_width(pane: Widget) -> int:
    return max(0, pane.outer_size.width - FRAME)
