"""The question who answers: the demo, Gemini with a key, or Vertex."""

from enum import IntEnum
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList

from tui.model.chat import BackendKind, ModelView, Severity
from tui.model.events import Notice
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.notices import notices_view
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.widgets.plain import PlainText, fit

MAX_KEY: Final = 256
"""Characters that a pasted key may have."""

MAX_NAME: Final = 128
"""Characters that a project or a location may have."""

TRYING: Final = "One moment…"
"""Stands there while the engine tries what was typed in."""

INTRODUCTION: Final = """\
gemdeck can answer with Gemini, or with an offline demo model that needs no account. \
Your servers and tools work with each of them."""

KEY_HINT: Final = """\
Paste a key from https://aistudio.google.com/apikey and press Enter. It is kept in the \
keyring of this computer; where there is none, in a file that only you can read."""

VERTEX_HINT: Final = """\
Vertex AI uses the Google credentials of this computer, as "gcloud auth application-default \
login" sets them up."""


class Way(IntEnum):
    """The three ways to go on, in the order of the list."""

    DEMO = 0
    KEY = 1
    VERTEX = 2


_CHOICES: Final = {
    Way.DEMO: ("Continue with the demo", "offline, no account"),
    Way.KEY: ("Paste a Gemini API key", "Gemini answers"),
    Way.VERTEX: ("Use Vertex AI", "a Google Cloud project answers"),
}


class WelcomeScreen(ModalScreen[None]):
    """Asks who answers, and stays until it is settled; Esc leaves things as they are.

    Args:
        bridge: Where the outcome of a try comes from.
        commands: What the user asks for goes there.
    """

    CSS_PATH = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(only=("welcome.back",))

    frame = query_one(".dialog", Vertical)
    choices = query_one(OptionList)
    key_form = query_one("#key-form", Vertical)
    vertex_form = query_one("#vertex-form", Vertical)

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._is_trying = False

    def compose(self) -> ComposeResult:
        """Compose the choices and the two forms, which show once chosen."""
        with Vertical(classes="dialog") as frame:
            missing = self._bridge.state.model.needs_setup
            frame.border_title = "No Gemini key was found" if missing else "Who answers?"
            yield PlainText(INTRODUCTION)
            yield OptionList(*map(_choice, Way), markup=False, compact=True)
            with Vertical(id="key-form", classes="form"):
                yield PlainText(KEY_HINT, classes="hint")
                yield Input(
                    placeholder="API key", password=True, max_length=MAX_KEY, id="key", compact=True
                )
            with Vertical(id="vertex-form", classes="form"):
                yield PlainText(VERTEX_HINT, classes="hint")
                yield Input(
                    placeholder="project id", max_length=MAX_NAME, id="project", compact=True
                )
                yield Input("global", max_length=MAX_NAME, id="location", compact=True)
            yield PlainText(classes="problem")

    def on_mount(self) -> None:
        """Put the focus on the demo."""
        self._show_form(None)
        self.choices.highlighted = Way.DEMO
        self.choices.focus()
        self._bridge.watch(self, lambda state: state.model, self._on_model)
        self._bridge.watch(self, notices_view, self._on_notices)

    def action_back(self) -> None:
        """Leave a form; or leave it at the model there is, which is the demo at first."""
        if self.key_form.display or self.vertex_form.display:
            self._show_form(None)
            self.choices.focus()
        elif self._bridge.state.model.needs_setup:
            self._continue_with_demo()
        else:
            self.dismiss()

    def _continue_with_demo(self) -> None:
        self._commands.use_demo()
        self.dismiss()

    def _show_form(self, form: Vertical | None) -> None:
        self._complain("")
        for candidate in (self.key_form, self.vertex_form):
            candidate.display = candidate is form
        keys = "↵ choose  esc demo" if form is None else "↵ save  esc back"
        self.frame.border_subtitle = Content.styled(keys, "$foreground 60%")
        if form is not None:
            form.query_one(Input).focus()

    @on(OptionList.OptionSelected)
    def _on_chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        match Way(event.option_index):
            case Way.DEMO:
                self._continue_with_demo()
            case Way.KEY:
                self._show_form(self.key_form)
            case Way.VERTEX:
                self._show_form(self.vertex_form)

    @on(Input.Submitted, "#key")
    def _on_key_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        key = event.value.strip()
        if not key:
            self._complain("The key is empty.")
            return
        self._try()
        self._commands.use_api_key(key)

    @on(Input.Submitted, "#project, #location")
    def _on_vertex_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        project = self.query_one("#project", Input)
        location = self.query_one("#location", Input)
        for field, name in ((project, "project"), (location, "location")):
            if not field.value.strip():
                self._complain(f"The {name} is empty.")
                field.focus()
                return
        self._try()
        self._commands.use_vertex(project.value.strip(), location.value.strip())

    def _try(self) -> None:
        """Wait for what comes of it: another model, or a notice that says why not."""
        self._is_trying = True
        self._complain(TRYING)

    def _on_model(self, model: ModelView) -> None:
        if self._is_trying and model.backend is not BackendKind.DEMO:
            self.dismiss()

    def _on_notices(self, view: tuple[int, tuple[Notice, ...]]) -> None:
        _, notices = view
        if self._is_trying and notices and notices[-1].severity is Severity.ERROR:
            self._is_trying = False
            self._complain(" ".join(filter(None, (notices[-1].text, notices[-1].advice))))

    def _complain(self, text: str) -> None:
        line = self.query_one(".problem", PlainText)
        line.update(text)
        line.display = bool(text)


def _choice(way: Way) -> Content:
    label, note = _CHOICES[way]
    width = max(len(words) for words, _ in _CHOICES.values())
    return Content.assemble(fit(label, width + 3), (note, "$foreground 60%"))
