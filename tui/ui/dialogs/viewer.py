"""Shows a text in full; of a tool's result also its pictures, and structured content as a tree."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget

from tui.model.chat import Picture, ToolCall
from tui.store.commands import Commands
from tui.text import counted
from tui.ui import keymap
from tui.ui.dialogs.choices import use_picture
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.widgets.text.blocks import TextPage
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.json_tree import JsonTree, json_in
from tui.ui.widgets.text.picture import PictureView, draws_pictures


class ViewerScreen(Dialog):
    """Show a long text in full.

    Args:
        title: The title of the frame.
        text: The text.
        call: The call whose result it is.
        commands: Open and save its pictures.
    """

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.VIEWER)

    KIND = "viewer"

    def __init__(
        self,
        title: str,
        text: str,
        call: ToolCall | None = None,
        commands: Commands | None = None,
    ) -> None:
        lines = counted(text.count("\n") + 1, "line")
        super().__init__(title, f"{lines} · {counted(len(text), 'character')}")
        self._text = text
        self._commands = commands
        self._pictures: tuple[Picture, ...] = call.pictures if call is not None else ()
        self._views: list[tuple[str, Callable[[], Widget]]] = [("text", lambda: FoldedText(text))]
        if (value := json_in(call.result if call is not None else "")) is not None:
            self._views.insert(0, ("tree", lambda: JsonTree(value)))

    def compose_body(self) -> ComposeResult:
        self.begin_with_picture()
        yield self._views[0][1]()

    def begin_with_picture(self) -> None:
        """Show the pictures first, where there are any and they can be drawn."""
        if self._pictures and draws_pictures(self.app):
            self._views.insert(0, ("picture", lambda: TextPage(PictureView(self._pictures))))

    @property
    def body(self) -> Widget:
        """What holds the view."""
        return self.frame

    async def action_switch(self) -> None:
        """Show it in the next way."""
        self._views.append(self._views.pop(0))
        await self.show_view()

    async def show_view(self) -> None:
        """Show the first of the ways."""
        await self.body.remove_children()
        await self.body.mount(self._views[0][1]())
        self.body.children[0].focus()
        self.refresh_bindings()

    def action_use(self, what: str) -> None:
        """Open or save the picture, or the one that is picked."""
        if self._commands is None:
            return
        features = self._commands.engine.features
        use = features.open_picture if what == "open" else features.save_picture
        use_picture(self, self._pictures, use)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._text)
        self.notify("Copied.", timeout=2)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Offer what there is."""
        return {"use": bool(self._pictures), "switch": len(self._views) > 1}.get(action, True)

    def action_label(self, action: str) -> str | None:
        return self._views[1][0] if action == "switch" else None
