"""The chat pane: the conversation, the state of the turn, and the composer."""

import os
from functools import partial
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Static, TextArea

from tui.model.chat import ASKING_PHASES, MAIN, ConversationId, EntryId, TurnPhase, UserMessage
from tui.model.servers import ServerId
from tui.store.selectors import last_session, pending_here, waiting_text
from tui.store.selectors import server as find_server
from tui.store.state import AppState, ConversationState, TranscriptState, Unsent
from tui.ui import keymap
from tui.ui.bridge import Delay, StoreBridge
from tui.ui.messages import FillPrompt, RunCommand, ShowResource
from tui.ui.panes.tabs import Tab, asking_elsewhere, shown_tabs, tab_line
from tui.ui.questions.arming import Keyboard
from tui.ui.widgets.chat.composer import Composer, MessageHistory
from tui.ui.widgets.chat.welcome import IDLE, Welcome, Work, WorkingLine
from tui.ui.widgets.key_bar import FRAME

if TYPE_CHECKING:
    from tui.ui.widgets.chat.completion import CompletionPopup
    from tui.ui.widgets.chat.entries import EntryView
    from tui.ui.widgets.chat.transcript import QueuedMessages, Transcript

EDITING: Final = "Enter replaces the earlier message with this one; Esc cancels."

RETURNED: Final = "Your message is back: ↵ send · type to replace"

NOTHING: Final = "Type a message first."


class ChatPane(Vertical):
    """Show a conversation and send messages. It stands still while another is on the screen.

    The tabs stand in its upper border; a click on one shows its conversation.

    The first frame shows the welcome and the composer; `fill` adds the rest.

    Args:
        bridge: Provides the state; its commands mean the conversation on the screen.
        history: The messages sent before.
        keyboard: Tells the questions about links what was typed and clicked before.
        conversation: The one that it shows.
    """

    ALLOW_SELECT = False
    BORDER_TITLE = "Chat"
    BINDINGS = keymap.bindings(keymap.Place.CHAT)

    welcome = query_one(Welcome)
    composer = query_one(Composer)
    transcript: "Transcript"
    queued: "QueuedMessages"
    popup: "CompletionPopup"

    def __init__(
        self,
        bridge: StoreBridge,
        history: MessageHistory,
        keyboard: Keyboard,
        conversation: ConversationId = MAIN,
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = bridge.commands
        self._history = history
        self.is_filled = False
        self.tabs: tuple[Tab, ...] = ()
        self.conversation = conversation
        self._seen = bridge.state.conversations[conversation]
        self.set_class(bridge.state.current == conversation, "-current")
        self._keyboard = keyboard
        self._edited: EntryId | None = None
        self._resting = Delay(self)
        self._focused: Widget | None = None
        self._returned = 0
        self._epoch = self._seen.transcript.epoch

    def compose(self) -> ComposeResult:
        yield Welcome()
        with Horizontal(id="composer-row"):
            yield Static(">", markup=False, id="composer-prompt")
            yield Composer(self._history)

    def on_mount(self) -> None:
        self.composer.suggest = self.welcome.suggestion_after
        self.composer.paste_picture = self.paste_picture
        self._bridge.watch(
            self,
            lambda s: (self._shown(s).model, s.servers if s.configured else None, last_session(s)),
            lambda view: self.welcome.show(*view, self._key("chat.go-on") or "^L"),
        )

    async def fill(self) -> None:
        """Add what the first frame does not show, and follow the state."""
        from tui.ui.widgets.chat.completion import CompletionPopup  # noqa: PLC0415 - after the first frame
        from tui.ui.widgets.chat.transcript import QueuedMessages, Transcript  # noqa: PLC0415 - ditto

        self.transcript, self.working = Transcript(), WorkingLine()
        self.queued = QueuedMessages()
        self.popup = CompletionPopup(self.composer, self._history, self._bridge, self.working)
        self.composer.use_popup = self.popup.press
        self.transcript.display = False
        rest = self.transcript, self.working, self.queued, self.popup
        await self.mount(*rest, after=self.welcome)
        self.is_filled = True
        watch = self._bridge.watch
        watch(self, lambda state: self._shown(state).transcript, self._show_transcript)
        watch(self, self._work, self.working.show)
        watch(self, lambda state: self._shown(state).queued, self._show_queued)
        watch(self, lambda state: self._shown(state).unsent, self._show_unsent)
        watch(self, lambda s: shown_tabs(s) if self._is_shown(s) else self.tabs, self.show_tabs)
        watch(self, lambda s: asking_elsewhere(s) * self._is_shown(s), self._say_elsewhere)

    def _work(self, state: AppState) -> Work:
        """Select what the conversation is doing, if it is on the screen."""
        turn, queued = state.conversation.turn, len(state.conversation.queued)
        if not self._is_shown(state):
            return IDLE
        if turn is None:
            is_starting = bool(queued) and not self._commands.is_ready
            return None, queued, "starting the model" * is_starting, False
        held = waiting_text(state) if turn.phase is TurnPhase.SERVERS else ""
        return turn, queued, held, bool(pending_here(state)) and turn.phase in ASKING_PHASES

    def _is_shown(self, state: AppState) -> bool:
        return state.current == self.conversation

    def _say_elsewhere(self, words: str) -> None:
        self.working.elsewhere = f"◆ {words} ({self._key('app.question')})" if words else ""

    def _key(self, binding: str) -> str:
        return keymap.key_of(self.app, self.screen.active_bindings, binding)

    def _shown(self, state: AppState) -> ConversationState:
        """Return the conversation as it is, or as it was when another came on the screen."""
        if self._is_shown(state):
            self._seen = state.conversation
        return self._seen

    def show_tabs(self, tabs: tuple[Tab, ...]) -> None:
        """Show the tabs, or the title if there are none."""
        self.tabs = tabs
        self.set_class(bool(tabs), "-tabbed")
        line = tab_line(tabs, max(0, self.outer_size.width - FRAME)) if tabs else Content()
        self.border_title = Content.assemble(line) if tabs else Content(self.BORDER_TITLE)

    def on_resize(self) -> None:
        if self.tabs:
            self.show_tabs(self.tabs)
        self.refresh_bindings()  # the hints in the border are cut to its width

    async def action_stop(self) -> None:
        """Close the completions, else stop the running turn, else focus the composer.

        A question that waits comes first: its Esc, pressed once too often, stops nothing.
        """
        if self.popup.close():
            return
        if self._edited is not None:
            self._edited = None
            self.composer.clear_draft()
        elif self._is_busy and self.working.waiting:
            await self.run_action("app.open_question")
        elif self._is_busy:
            self._commands.cancel_turn()
        else:
            self.composer.focus()

    @property
    def _is_busy(self) -> bool:
        """Whether there is something to stop: a turn, or a message that waits for its start."""
        here = self._bridge.state.conversation
        return here.turn is not None or bool(here.queued)

    def interrupt(self) -> bool:
        """Stop the running turn, else clear the message; return whether there was one of them."""
        if not self._is_busy:
            return self.composer.clear_draft()
        self._commands.cancel_turn()
        return True

    def action_send_now(self) -> None:
        self._commands.engine.send_without_waiting()

    def action_give_up(self) -> None:
        self._commands.engine.conversations.current.retry.end(again=False)

    def action_go_on(self) -> None:
        """Go on with what an earlier run left, from an empty conversation."""
        last = last_session(self._bridge.state)
        if last is not None or not self._bridge.state.configured:
            self._commands.resume(last.view.id if last is not None else "")
        else:
            self.notify("No session to resume in this folder. See /sessions.", timeout=3)

    def action_take_back(self) -> None:
        """Take the last message that waits back into the composer; Up brings back the draft."""
        if queued := self._bridge.state.conversation.queued:
            self._take(queued[-1], give_back=True)

    def on_queued_messages_taken(self, event: "QueuedMessages.Taken") -> None:
        self._take(event.text, give_back=event.give_back)

    def _take(self, text: str, *, give_back: bool) -> None:
        if give_back:
            self.composer.clear_draft()
            self.composer.focus()
        self._commands.unqueue(text, give_back=give_back)

    def action_scroll(self, direction: int) -> None:
        page = self.transcript.action_page_up if direction < 0 else self.transcript.action_page_down
        page()

    def action_conversation(self) -> None:
        """Go to the messages that wait, if there are some, else to the newest entry."""
        if self.queued.display and self.composer.has_focus:
            self.queued.focus()
        elif self.transcript.display:
            self.transcript.take_newest()

    def action_label(self, action: str) -> str | None:
        """Name what Esc does, and leave out the way to where the focus is."""
        is_writing = self.composer.has_focus
        match action:
            case "stop" if not self._is_busy:
                return "" if is_writing else "message"
            case "stop" if self.is_filled and self.working.waiting:
                return "question"
            case "conversation" if not is_writing:
                return ""
            case _:
                return None

    def action_to_end(self) -> None:
        self.transcript.go_to_end()

    @on(Composer.Sent)
    def _send(self, event: Composer.Sent) -> None:
        from tui.model.input.mentions import as_sent  # noqa: PLC0415 - on first use
        from tui.model.input.own_commands import find_own_command  # noqa: PLC0415 - on first use

        if not event.text:
            self.working.hint = NOTHING
            return
        if not self._is_shown(self._bridge.state):
            self.composer.put_back(event.text)  # it would go to the other conversation
            return
        if (command := find_own_command(event.text)) is not None:
            self.post_message(RunCommand(command, as_sent(event.text)))
            return
        self.transcript.go_to_end()
        edited, self._edited = self._edited, None
        if edited is not None:
            self._commands.engine.sessions.edit_message(edited, event.text)
        elif not self._opens_form(event.text):
            self._commands.send(event.text)

    def _opens_form(self, text: str) -> bool:
        """Open the form for a prompt that lacks arguments, or for its help; return whether so."""
        from tui.model.input.mentions import as_sent  # noqa: PLC0415 - on first use
        from tui.model.input.typed import find_prompt  # noqa: PLC0415 - on first use

        servers = self._bridge.state.servers
        found = find_prompt(as_sent(text), [(view.id, view.catalog) for view in servers])
        if found is None or found.prompt.problem:
            return False
        if found.asks_help:
            command = f"/{found.prompt.name} "
            self.post_message(FillPrompt(found.server, found.prompt, typed=command))
        elif found.missing and not found.rest:
            self.post_message(FillPrompt(found.server, found.prompt, found.values, text))
        else:
            return False
        return True

    def begin_edit(self, message: UserMessage) -> None:
        """Put an earlier message into the composer; the next one sent takes its place."""
        self.composer.clear_draft()
        self._edited = message.id
        self.composer.replace_all(message.typed)
        self.composer.focus()

    def send_resource(self, server: ServerId, uri: str) -> None:
        """Send a resource with the draft, or insert it into the message if there is none."""
        from tui.model.input.mentions import typed_mention  # noqa: PLC0415 - on first use

        if not (draft := self.composer.message.strip()):
            self.composer.insert_words(typed_mention(uri, server))
            return
        self._history.add(draft)
        self.composer.clear()
        self.transcript.go_to_end()
        self._commands.engine.messages.send_resource(server, uri, draft)

    async def paste_picture(self) -> bool:
        """Mention the picture in the desktop's clipboard; return whether there is one."""
        from tui.engine.background import in_daemon_thread  # noqa: PLC0415 - on first use
        from tui.model.input.mentions import typed_mention  # noqa: PLC0415 - ditto
        from tui.ui.terminal.clipboard import picture  # noqa: PLC0415 - ditto

        if not (data := await in_daemon_thread(partial(picture, os.environ))):
            return False
        keep = partial(self._commands.engine.features.workspace.keep_picture, data)
        try:
            if (path := await in_daemon_thread(keep)) is not None:  # else there is no engine yet
                self.composer.insert_words(typed_mention(path))
        except OSError as error:  # the disk may be full
            self.notify(error.strerror or str(error), severity="error", markup=False)
        return True

    @on(TextArea.Changed)
    @on(TextArea.SelectionChanged)
    def _complete(self) -> None:
        if not self.is_filled:
            return
        if not self.composer.searching:
            returned = RETURNED if self.composer.holds_returned else ""
            self.working.hint = EDITING if self._edited is not None else returned
            self._keep_draft_soon()
        self.popup.complete()

    @on(events.DescendantBlur)
    def _close_popup(self) -> None:
        if self.is_filled:
            self.popup.close()

    def _keep_draft_soon(self) -> None:
        """Save the draft once the typing rests."""
        self._resting.begin(wait=1.0, callback=self.keep_draft)

    def keep_draft(self) -> None:
        """Save the draft now, if it has changed; a command of the screen is none."""
        from tui.model.input.own_commands import find_own_command  # noqa: PLC0415 - on first use

        if not self._resting.is_begun or not self._is_shown(self._bridge.state):
            return
        self._resting.stop()
        text = self.composer.message
        self._commands.keep_draft("" if find_own_command(text) is not None else text)

    @property
    def unfinished(self) -> str:
        """What would be cut short if the conversation were closed, in words, or nothing."""
        here = self._shown(self._bridge.state)
        if here.turn is not None:
            return "A turn is running here."
        if here.queued:
            return "A message is queued here."
        return "There is a draft here." if self.composer.message.strip() else ""

    def leave(self) -> None:
        """Make way for another conversation."""
        self._keyboard.leave_draft()
        focused = self.screen.focused
        self._focused = focused if focused is not None and self in focused.ancestors else None
        self.remove_class("-current", update=False)  # no style depends on it

    def enter(self) -> None:
        """Come on the screen, with the focus where it was."""
        self.add_class("-current", update=False)
        kept, self._focused = self._focused, None
        self.screen.set_focus(kept if kept is not None and kept.is_attached else self.composer)
        if self._resting.is_begun:
            self._keep_draft_soon()

    def on_entry_view_links_requested(self, event: "EntryView.LinksRequested") -> None:
        from tui.ui.dialogs.choices import use_one  # noqa: PLC0415 - on first use

        offered = [(url, url) for url in event.links]
        use_one(self.app, "Links", "link", offered, lambda url: self.follow(url, event.server))

    def follow(self, url: str, named_by: ServerId | None) -> None:
        """Read a resource of the server that named it; ask about any other address."""
        from tui.ui.questions.address import LinkScreen  # noqa: PLC0415 - on first use

        view = None if named_by is None else find_server(self._bridge.state, named_by)
        offered = {one.uri for one in view.catalog.resources} if view is not None else ()
        if named_by is not None and (url in offered or not url.startswith(("http:", "https:"))):
            self.post_message(ShowResource(named_by, url, url))
        else:
            self.app.push_screen(LinkScreen(url, self._commands, keyboard=self._keyboard))

    def on_transcript_view_requested(self, event: "Transcript.ViewRequested") -> None:
        from tui.ui.dialogs.viewer import ViewerScreen  # noqa: PLC0415 - on first use

        self.app.push_screen(ViewerScreen(self._commands, event.title, event.text, event.call))

    def _show_queued(self, texts: tuple[str, ...]) -> None:
        if self.queued.has_focus and not texts:
            self.composer.focus()
        self.queued.show(texts)
        self._show_transcript(self._seen.transcript)

    def _show_transcript(self, transcript: TranscriptState) -> None:
        is_empty = not (transcript.settled or transcript.live or self._seen.queued)
        self.welcome.display = is_empty
        self.transcript.display = not is_empty
        self.transcript.show(transcript)
        if transcript.epoch != self._epoch:  # another session, or none: the draft is now its own
            self._epoch = transcript.epoch
            self._keep_draft_soon()

    def _show_unsent(self, unsent: Unsent) -> None:
        """Restore messages that were not sent without overwriting the draft."""
        new = unsent.texts[max(0, len(unsent.texts) - (unsent.count - self._returned)) :]
        self._returned = unsent.count
        if not new:
            return
        if not self.composer.text.strip():
            self.composer.put_back("\n\n".join(new))
            return
        for text in new:
            self._history.add(text)
        is_one = len(new) == 1
        what = "Your last message was" if is_one else f"{len(new)} messages were"
        words = f"{what} not sent. Press Up to get {'it' if is_one else 'them'} back."
        self.notify(words, severity="warning", markup=False)
