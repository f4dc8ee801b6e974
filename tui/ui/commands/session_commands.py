"""The commands on conversations: sessions, branches, exports."""

from functools import partial

from tui.model.chat import UserMessage
from tui.model.sessions import SessionId
from tui.store.selectors import entries
from tui.ui.commands.server_commands import ServerCommands
from tui.ui.commands.usage import UsageError
from tui.ui.panes.tabs import tabs_of


class SessionRunner(ServerCommands):
    """Opens, names, exports and branches conversations."""

    async def run_tab(self, number: str) -> None:
        """Go to a tab by its number, or choose one, or a new one."""
        keys = [*self._bridge.state.conversations]
        if not number:
            self._choose_tab()
        elif number.isdecimal() and 1 <= int(number) <= len(keys):
            self._deck.show_conversation(keys[int(number) - 1])
        else:
            raise UsageError(f"There is no tab {number}.", "/tab shows all.")

    def _choose_tab(self) -> None:
        from tui.ui.dialogs.choices import pick  # noqa: PLC0415 - on first use

        tabs = tabs_of(self._bridge.state)
        offered = [(tab.whole, partial(self._deck.show_conversation, tab.key)) for tab in tabs]
        offered += [("a new tab", partial(self._deck.action_new_tab))]
        self._deck.app.push_screen(pick("Tabs", "tab", offered, lambda go: go()))

    async def run_close(self, _: str) -> None:
        self._deck.action_close_tab()

    async def run_sessions(self, query: str) -> None:
        """List the sessions, narrowed to what is typed."""
        from tui.ui.dialogs.sessions import SessionsScreen  # noqa: PLC0415 - on first use

        def open_beside(session: SessionId) -> None:
            self._deck.switch(partial(self._commands.engine.sessions.resume_beside, session))

        self._deck.app.push_screen(
            SessionsScreen(self._bridge, self._commands, query, open_beside=open_beside)
        )

    async def run_resume(self, session: str) -> None:
        """Go on with a session, or choose one."""
        if session:
            self._commands.engine.sessions.resume(session)
        else:
            await self.run_sessions("")

    async def run_export(self, path: str) -> None:
        self._commands.engine.sessions.export("", path)

    async def run_edit(self, _: str) -> None:
        """Choose an earlier message, and put it into the composer to send another in its place."""
        from tui.ui.dialogs.choices import pick  # noqa: PLC0415 - on first use

        offered = [(message.typed, message) for message in self._messages()[::-1]]
        edit = self._deck.chat.begin_edit
        self._deck.app.push_screen(pick("Edit a message", "message", offered, edit))

    async def run_retry(self, model: str) -> None:
        """Send the last message again in its own place, perhaps to another model.

        Raises:
            UsageError: If there is none, or a turn runs.
        """
        last = self._messages()[-1]
        if self._bridge.state.conversation.turn is not None:
            raise UsageError("A turn is running.", "Stop it first (Esc).")
        if model:
            self._commands.engine.model.retry(last.id, last.typed, model)
        else:
            self._commands.engine.sessions.edit_message(last.id, last.typed)

    def _messages(self) -> list[UserMessage]:
        """Return the user's messages.

        Raises:
            UsageError: If there is none.
        """
        found = [one for one in entries(self._bridge.state) if isinstance(one, UserMessage)]
        if not found:
            raise UsageError("There is no message yet.")
        return found
