"""The choice of the model service: Gemini at Google or elsewhere, Vertex AI, or the demo."""

from collections.abc import Iterator
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
from tui.ui.dialogs.list_dialog import DIALOG_STYLES
from tui.ui.notices import notices_view
from tui.ui.widgets.key_bar import key_hints
from tui.ui.widgets.text.plain import PlainText, fit

MAX_KEY: Final = 256
"""Characters of a pasted API key."""

MAX_ADDRESS: Final = 2_048
"""Characters of an address."""

MAX_NAME: Final = 128
"""Characters of a project or a location."""

TRYING: Final = "Checking…"
"""Shown while the engine tries the input."""

KEY_HINT: Final = """\
Paste a key from https://aistudio.google.com/apikey and press Enter. It is checked with the \
service, then stored in this computer's keyring or, if there is none, in a file that only you \
can read."""

ADDRESS_HINT: Final = """\
A gateway to the Gemini API: the part of its address before /v1beta, with https, or http on this \
computer. It is checked, then kept with its key, which goes to no other address."""

VERTEX_HINT: Final = """\
Vertex AI uses this computer's Google credentials. To set them up, run \
"gcloud auth application-default login"."""


class ServiceChoice(IntEnum):
    """The choices, in the order of the list."""

    KEY = 0
    ADDRESS = 1
    VERTEX = 2
    DEMO = 3
    FORGET = 4
    MODEL = 5


_CHOICES: Final = {
    ServiceChoice.KEY: ("Enter a Gemini API key", "Gemini API"),
    ServiceChoice.ADDRESS: ("Use another address", "a gateway to the Gemini API"),
    ServiceChoice.VERTEX: ("Use Vertex AI", "your Google Cloud project"),
    ServiceChoice.DEMO: ("Use the demo", "offline, no account"),
    ServiceChoice.MODEL: ("Choose another model", "of this service"),
    ServiceChoice.FORGET: ("Forget what is stored", "the key with its address, or the project"),
}


class ModelScreen(ModalScreen[None]):
    """Let the user choose the model service; closes when the engine has accepted the choice.

    Args:
        bridge: Provides the state.
        commands: Executes the choice.
    """

    CSS_PATH = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(only=("welcome.back",))

    frame = query_one(".dialog", Vertical)
    choices = query_one(OptionList)
    key_form = query_one("#key-form", Vertical)
    address_form = query_one("#address-form", Vertical)
    vertex_form = query_one("#vertex-form", Vertical)

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._is_trying = False
        self._before = bridge.state.model

    def compose(self) -> ComposeResult:
        model = self._bridge.state.model
        self._offered = offered = [*_offered(model)]
        with Vertical(classes="dialog") as frame:
            frame.border_title = "Model"
            yield PlainText(_now(model))
            yield OptionList(*map(_choice, offered), markup=False, compact=True)
            with Vertical(id="key-form", classes="form"):
                yield PlainText(KEY_HINT, classes="hint")
                yield Input(
                    placeholder="API key", password=True, max_length=MAX_KEY, id="key", compact=True
                )
            with Vertical(id="address-form", classes="form"):
                yield PlainText(ADDRESS_HINT, classes="hint")
                yield Input(
                    model.address,
                    placeholder="https://…",
                    max_length=MAX_ADDRESS,
                    id="address",
                    compact=True,
                )
                yield Input(
                    placeholder="API key; empty for the one kept for this address",
                    password=True,
                    max_length=MAX_KEY,
                    id="address-key",
                    compact=True,
                )
            with Vertical(id="vertex-form", classes="form"):
                yield PlainText(VERTEX_HINT, classes="hint")
                yield Input(
                    placeholder="project id", max_length=MAX_NAME, id="project", compact=True
                )
                yield Input("global", max_length=MAX_NAME, id="location", compact=True)
            yield PlainText(classes="problem")

    def on_mount(self) -> None:
        self._show_form(None)
        self.choices.highlighted = ServiceChoice.KEY
        self.choices.focus()
        self._bridge.watch(self, lambda state: state.model, self._on_model)
        self._bridge.watch(self, notices_view, self._on_notices)

    def action_back(self) -> None:
        """Leave the form, else close."""
        if any(form.display for form in self._forms):
            self._show_form(None)
            self.choices.focus()
        else:
            self.dismiss()

    @property
    def _forms(self) -> tuple[Vertical, ...]:
        return self.key_form, self.address_form, self.vertex_form

    def _show_form(self, form: Vertical | None) -> None:
        self._show_problem("")
        self.choices.display = form is None
        for candidate in self._forms:
            candidate.display = candidate is form
        enter, escape = ("choose", "close") if form is None else ("check", "back")
        self.frame.border_subtitle = key_hints(("↵", enter), ("Esc", escape))
        if form is not None:
            form.query_one(Input).focus()

    @on(OptionList.OptionSelected)
    def _on_chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        match self._offered[event.option_index]:
            case ServiceChoice.MODEL:
                from tui.ui.dialogs.choices import ModelsScreen  # noqa: PLC0415 - on first use

                self.app.switch_screen(ModelsScreen(self._bridge, self._commands))
            case ServiceChoice.DEMO:
                self._commands.choose(lambda models: models.use_demo())
                self.dismiss()
            case ServiceChoice.FORGET:
                self._commands.choose(lambda models: models.forget_key())
                self.dismiss()
            case ServiceChoice.KEY:
                self._show_form(self.key_form)
            case ServiceChoice.ADDRESS:
                self._show_form(self.address_form)
            case ServiceChoice.VERTEX:
                self._show_form(self.vertex_form)

    @on(Input.Submitted, "#key")
    def _on_key_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        key = event.value.strip()
        if not key:
            self._show_problem("The key is empty. Paste one and press Enter.")
            return
        self._try()
        self._commands.choose(lambda models: models.use_api_key(key))

    @on(Input.Submitted, "#address")
    def _on_address_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one("#address-key", Input).focus()

    @on(Input.Submitted, "#address-key")
    def _on_address_key_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if address := self._filled("address"):
            self._try()
            key = event.value.strip()
            self._commands.choose(lambda models: models.use_address(address, key))

    @on(Input.Submitted, "#project, #location")
    def _on_vertex_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if (project := self._filled("project")) and (location := self._filled("location")):
            self._try()
            self._commands.choose(lambda models: models.use_vertex(project, location))

    def _filled(self, name: str) -> str:
        """Return what stands in a field; an empty one is asked for."""
        field = self.query_one(f"#{name}", Input)
        if not (value := field.value.strip()):
            self._show_problem(f"The {name} is empty. Type one and press Enter.")
            field.focus()
        return value

    def _try(self) -> None:
        """Wait for the outcome: another model, or a notice that says why not."""
        self._is_trying = True
        self._before = self._bridge.state.model
        self._show_problem(TRYING)

    def _on_model(self, model: ModelView) -> None:
        if self._is_trying and model != self._before:
            self.dismiss()

    def _on_notices(self, view: tuple[int, tuple[Notice, ...]]) -> None:
        _, notices = view
        if self._is_trying and notices and notices[-1].severity is Severity.ERROR:
            self._is_trying = False
            self._show_problem(" ".join(filter(None, (notices[-1].text, notices[-1].advice))))

    def _show_problem(self, text: str) -> None:
        line = self.query_one(".problem", PlainText)
        line.update(text)
        line.display = bool(text)


def _offered(model: ModelView) -> Iterator[ServiceChoice]:
    """Give what can be chosen now."""
    yield from (ServiceChoice.KEY, ServiceChoice.ADDRESS, ServiceChoice.VERTEX, ServiceChoice.DEMO)
    if model.backend is not BackendKind.DEMO:
        yield ServiceChoice.MODEL
    if model.is_kept:
        yield ServiceChoice.FORGET


def _now(model: ModelView) -> str:
    """Say what answers now, and with whose credentials."""
    if model.backend is BackendKind.DEMO:
        missing = " No Gemini API key was found." if model.needs_setup else ""
        return f"The offline demo model answers now.{missing} Your servers work with every model."
    source = f", with credentials from {model.source}" if model.source else ""
    where = f" at {model.address}" if model.address else ""
    return f"{model.name} ({model.backend}{where}) answers now{source}."


def _choice(choice: ServiceChoice) -> Content:
    label, note = _CHOICES[choice]
    width = max(len(text) for text, _ in _CHOICES.values())
    return Content.assemble(fit(label, width + 3), (note, "$text-muted"))
