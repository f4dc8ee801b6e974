"""The list of all keys, in which the user binds others by pressing them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from textual.binding import Binding

from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.keymap import KEYS, Key, Place
from tui.ui.questions.kinds import answer_keys
from tui.ui.questions.own_keys import check_keys
from tui.ui.widgets.lists.filter_list import FilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row


class KeysScreen(ListDialog[Key]):
    """List what keys do everywhere; Enter takes the next key that is pressed for an action.

    Args:
        bridge: Has the user's own keys, and writes the settings.
    """

    KIND = "whole"
    AUTO_FOCUS = "RowList"
    BINDINGS = keymap.bindings("keys.add", "keys.default")
    enter = "new key"

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__("Keys", FilterList("action"))
        self._bridge = bridge
        self._waiting: tuple[Key, Sequence[str]] | None = None
        """The action that gets the next key, and the keys that it keeps."""

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda state: state.keys, self._show)

    def _show(self, own: Mapping[str, str]) -> None:
        places = [*Place]
        every = [key for key in (*KEYS, *answer_keys()) if key.description]
        every.sort(key=lambda key: places.index(key.place))
        self.listed.set_entries([self._entry(key, own.get(key.id, "")) for key in every])

    def _entry(self, key: Key, own: str) -> ListEntry[Key]:
        usual = self._shown(key.keys)
        tail = f"{self._shown(own)} (default {usual})" if own else usual
        row = Row("", key.description, tail, note=key.id)
        label = f"{key.description} {key.id} {tail}".lower()
        return ListEntry(key, row, label, group=key.place.value)

    def _shown(self, keys: str) -> str:
        return ", ".join(self.app.get_key_display(Binding(key, "")) for key in keys.split(","))

    async def choose(self, item: Key) -> None:
        """Give the action under the cursor the next key, in place of those it has."""
        self._wait_for(item)

    def action_add(self) -> None:
        if (key := self.listed.current) is not None:
            self._wait_for(key, *self._bridge.state.keys.get(key.id, key.keys).split(","))

    def _wait_for(self, key: Key, *kept: str) -> None:
        self._waiting = key, kept
        self.head.say(f"Press the new key for “{key.description}”, or Esc to cancel.")

    def take_key(self, pressed: str) -> bool:
        """Take a key that was pressed, if one is waited for; the app asks before all else."""
        if self._waiting is None:
            return False
        key, kept = self._waiting
        if pressed == "escape":
            self._end()
        elif words := self._problem({key.id: (*kept, pressed)}):
            self.head.say(f"{words}. Press another key, or Esc to cancel.")
        else:
            self._end()
            self.run_worker(self._save(key.id, [*kept, pressed]))
        return True

    def _end(self) -> None:
        self._waiting = None
        self.head.say("")

    async def action_default(self) -> None:
        """Give the action under the cursor its default keys again."""
        key = self.listed.current
        if key is None or key.id not in self._bridge.state.keys:
            self.say("This action has its default keys.")
        elif words := self._problem({key.id: ()}):
            self.say(words)
        else:
            await self._save(key.id, None)

    def _problem(self, changed: Mapping[str, Sequence[str]]) -> str:
        """Say why keys cannot be these from now on, or nothing; an action without has its own."""
        own = {name: keys.split(",") for name, keys in self._bridge.state.keys.items()}
        kept = {name: keys for name, keys in {**own, **changed}.items() if keys}
        return next(iter(check_keys(kept).values()), "")

    async def _save(self, name: str, keys: list[str] | None) -> None:
        from tui.engine.files.paths import shown_path  # noqa: PLC0415 - with the engine
        from tui.engine.settings.edits import EditError  # noqa: PLC0415 - loads pydantic

        try:
            path = await self._bridge.commands.running.set_own(keys, "keys", name)
        except EditError as error:
            self.notify(str(error), title="Settings", severity="error", markup=False)
        else:
            self.say(f"Saved to {shown_path(path, Path.home())}.")
