"""A pane with a composer in which words are completed and earlier messages searched."""

from itertools import count
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.getters import query_one
from textual.timer import Timer

from tui.store.commands import Commands
from tui.store.state import AppState
from tui.ui.bridge import StoreBridge
from tui.ui.panes.tabs import TabbedPane
from tui.ui.widgets.chat.composer import Composer
from tui.ui.widgets.chat.history import MessageHistory
from tui.ui.widgets.chat.welcome import WorkingLine

if TYPE_CHECKING:  # loaded after the first frame
    from tui.model.events import ArgumentCompleted
    from tui.ui.widgets.chat import completion
    from tui.ui.widgets.chat.command_completion import FolderQuery

    Query = FolderQuery | completion.ValueQuery | completion.PathQuery

_NUMBERS: Final = count(1)

SEARCHING: Final = "Type to search your messages: Enter takes one, Ctrl+R the next, Esc ends."


class CompletingPane(TabbedPane):
    """Opens the completions of the composer.

    Attributes:
        popup: Where they are shown.
        working: The line that says what is searched.
        is_filled: Whether these two are there; the first frame is drawn without them.

    Args:
        bridge: Provides what can be completed.
        commands: Asks servers for values.
        history: The messages that are searched.
    """

    composer = query_one(Composer)
    popup: "completion.CompletionPopup"
    working: WorkingLine

    def __init__(self, bridge: StoreBridge, commands: Commands, history: MessageHistory) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._history = history
        self.is_filled = False
        self._query: Query | None = None
        self._asked = ""
        self._asking: Timer | None = None

    @on(events.DescendantBlur)
    def _close_popup(self) -> None:
        if self.is_filled:
            self.offer_completions(None)

    @on(Composer.CompletionKey)
    def _use_popup(self, event: Composer.CompletionKey) -> None:
        event.stop()
        match event.key:
            case "tab" if not self.popup.is_open:
                self.offer_completions(self._bridge.state)
            case "tab":
                self.popup.accept()
            case "search" if not self.composer.searching:
                self.composer.searching = True
                self.working.say_hint(SEARCHING)
                self.offer_completions(self._bridge.state)
            case "up":
                self.popup.turn(-1)
            case _:
                self.popup.turn(1)

    def on_completion_popup_accepted(self, event: "completion.CompletionPopup.Accepted") -> None:
        event.stop()
        self.composer.completing = False
        if self.composer.searching:
            self._end_search()
            self.composer.replace_all(event.completion.text)
        else:
            self.composer.replace_before_cursor(event.start, event.completion.text)
        self.composer.focus()

    def offer_completions(self, state: AppState | None) -> None:
        """Show what completes the word before the cursor; a server's values come later."""
        from tui.ui.widgets.chat import completion  # noqa: PLC0415 - after the first frame
        from tui.ui.widgets.chat.command_completion import complete_command, folder_query  # noqa: PLC0415 - ditto

        self._query = None
        if self._asking is not None:
            self._asking.stop()
        offered = None
        if state is None:
            self._end_search()
        elif self.composer.searching:
            offered = completion.found_messages(self._history.matching(self.composer.message))
        elif self.composer.has_focus:
            before = self.composer.before_cursor
            themes = self.app.available_themes
            offered = complete_command(before, state.servers, themes)
            offered = offered or completion.complete(before, state.servers)
            self._query = (
                folder_query(before)
                or completion.value_query(before, state.servers)
                or completion.path_query(before, offered)
            )
        if self._query is not None:
            self._asking = self.set_timer(completion.COMPLETE_AFTER, self._ask_for_values)
        self._open_popup(offered)

    def _end_search(self) -> None:
        if self.composer.searching:
            self.composer.searching = False
            self.working.say_hint("")

    def _ask_for_values(self) -> None:
        from tui.ui.widgets.chat.command_completion import FolderQuery  # noqa: PLC0415 - after the first frame
        from tui.ui.widgets.chat.completion import PathQuery, ValueQuery  # noqa: PLC0415 - ditto

        self._asked = token = f"composer-{next(_NUMBERS)}"
        match self._query:
            case FolderQuery(typed):
                self._commands.engine.features.complete_folder(token, typed)
            case PathQuery(typed):
                self._commands.engine.features.complete_path(token, typed)
            case ValueQuery() as query:
                self._commands.engine.features.complete(
                    token, query.server, query.prompt, query.argument, query.value, query.context
                )

    def show_values(self, completed: "ArgumentCompleted | None") -> None:
        is_awaited = completed is not None and completed.token == self._asked
        if completed is not None and is_awaited and self._query is not None:
            self._open_popup(self._query.completions(completed.values))

    def _open_popup(self, offered: "completion.CompletionList | None") -> None:
        self.popup.offer(offered)
        self.popup.styles.margin = (0, 0, self.composer.outer_size.height + 1, 0)
        self.composer.completing = offered is not None
