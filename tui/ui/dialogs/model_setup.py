"""The choice of the model service: Gemini at Google or elsewhere, Vertex AI, or the demo."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Input, OptionList

from tui.model.chat import BackendKind, ModelView, Severity
from tui.model.events import Notice
from tui.model.models import ModelOffer, ModelsListed, ServiceOffer
from tui.model.settings_rules import MAX_KEY
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import Dialog, ListDialog
from tui.ui.notices import notices_view
from tui.ui.widgets.lists.filter_list import DialogFilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.plain import PlainText, count, fit, one_line

MAX_NAME: Final = 128
"""Characters of a project or a location."""

OPTIONAL: Final = ("address-key", "service-key")
"""The fields that may stay empty."""

KEY_OF_ADDRESS: Final = "API key; empty for the one stored for this address"

TRYING: Final = "Checking…"
"""Shown while the engine tries the input."""

KEY_HINT: Final = """\
Paste a key from https://aistudio.google.com/apikey and press Enter. gemdeck checks it with \
the service, then stores it in this computer's keyring or, without one, in a file that only you \
can read."""

ADDRESS_HINT: Final = """\
A gateway to the Gemini API: its address up to /v1beta, with https (http only on this \
computer). gemdeck checks it, then stores it with its key, which is sent to no other address."""

SERVICE_HINT: Final = """\
A service with a chat completions API, such as openai, openrouter, anthropic, mistral or one from \
your settings, and one of its models. gemdeck checks it, then stores it; the key goes only there."""

VERTEX_HINT: Final = """\
Vertex AI uses this computer's Google credentials. To set them up, run \
"gcloud auth application-default login"."""


class ServiceChoice(Enum):
    """What can be chosen: how that is called, and a few words on it."""

    KEY = ("Enter a Gemini API key", "Gemini API")
    ADDRESS = ("Use a gateway", "to the Gemini API")
    VERTEX = ("Use Vertex AI", "your Google Cloud project")
    SERVICE = ("Use another service", "OpenAI, OpenRouter, Ollama and others")
    LOCAL = ("Use a local model", "from a service on this computer")
    DEMO = ("Use the demo", "offline, no account")
    MODEL = ("Choose another model", "from this service")
    FORGET = ("Forget the stored key", "with its address, or the project")


_USES: Final[Mapping[ServiceChoice, Callable[..., None]]] = {
    ServiceChoice.KEY: lambda service, key: service.use_api_key(key),
    ServiceChoice.ADDRESS: lambda service, address, key: service.use_address(address, key),
    ServiceChoice.VERTEX: lambda service, project, place: service.use_vertex(project, place),
    ServiceChoice.SERVICE: lambda service, model, key: service.use_service(model, key),
}
"""What is tried with the filled-in lines of each form; the first argument is `ModelChoice`."""


class ModelScreen(Dialog):
    """Let the user choose the model service; closes when the engine has accepted the choice.

    Args:
        bridge: Provides the state, and executes the choice.
        service: A service to fill in the key for, or an empty string.
    """

    BINDINGS = keymap.bindings("welcome.back")

    choices = query_one(OptionList)
    problem = query_one(".problem", PlainText)

    def __init__(self, bridge: StoreBridge, service: str = "") -> None:
        super().__init__("Model")
        self._bridge = bridge
        self._is_trying = False
        self._before = model = bridge.state.model
        self._service = service
        self._offered = [*_offered(bridge.state)]
        self._forms = {
            ServiceChoice.KEY: _form(KEY_HINT, _line("key", "API key", MAX_KEY, password=True)),
            ServiceChoice.ADDRESS: _form(
                ADDRESS_HINT,
                _line("address", "https://…", most=2_048, value=model.address),
                _line("address-key", KEY_OF_ADDRESS, MAX_KEY, password=True),
            ),
            ServiceChoice.VERTEX: _form(
                VERTEX_HINT,
                _line("project", "project id", MAX_NAME),
                _line("location", "", MAX_NAME, "global"),
            ),
            ServiceChoice.SERVICE: _form(
                SERVICE_HINT,
                _line("model", "SERVICE/MODEL", 200, f"{service}/" if service else ""),
                _line("service-key", KEY_OF_ADDRESS, MAX_KEY, password=True),
            ),
        }
        self._chosen: ServiceChoice | None = None

    def compose_body(self) -> ComposeResult:
        yield PlainText(_now(self._before), classes="now")
        yield OptionList(*map(_choice, self._offered), markup=False, compact=True)
        yield from self._forms.values()
        yield PlainText(classes="problem")

    def on_mount(self) -> None:
        self._show_form(ServiceChoice.SERVICE if self._service else None)
        if not self._service:
            self.choices.highlighted = 0
            self.choices.focus()
        if self._before.needs_setup:  # a local model may answer
            self._bridge.commands.engine.models.list_models()
            self._bridge.watch(self, lambda state: state.models, lambda _: self._offer())
        self._bridge.watch(self, lambda state: state.model, self._on_model)
        self._bridge.watch(self, notices_view, self._on_notices)

    def _offer(self) -> None:
        self._offered, at = [*_offered(self._bridge.state)], self.choices.highlighted
        self.choices.clear_options()
        self.choices.add_options(map(_choice, self._offered))
        self.choices.highlighted = at

    def action_label(self, action: str) -> str | None:
        return "close" if action == "close" and self._chosen is None else None

    def action_close(self) -> None:
        """Leave the form, else close."""
        if self._chosen is None:
            self.dismiss()
        else:
            self._show_form(None)
            self.choices.focus()

    def _show_form(self, chosen: ServiceChoice | None) -> None:
        self._chosen = chosen
        self.problem.say("")
        self.choices.display = chosen is None
        for choice, form in self._forms.items():
            form.display = choice is chosen
        self.enter = "choose" if chosen is None else "check"
        self.refresh_bindings()
        if chosen is not None:
            self._forms[chosen].query_one(Input).focus()

    @on(OptionList.OptionSelected)
    def _on_chosen(self, event: OptionList.OptionSelected) -> None:
        match self._offered[event.option_index]:
            case ServiceChoice.MODEL | ServiceChoice.SERVICE | ServiceChoice.LOCAL as choice:
                service = _local(self._bridge.state) if choice is ServiceChoice.LOCAL else ""
                keeps = choice is not ServiceChoice.MODEL
                self.app.switch_screen(ModelsScreen(self._bridge, service, keeps=keeps))
            case ServiceChoice.DEMO:
                self._bridge.commands.choose(lambda service: service.use_demo())
                self.dismiss()
            case ServiceChoice.FORGET:
                self._bridge.commands.choose(lambda service: service.forget_key())
                self.dismiss()
            case choice:
                self._show_form(choice)

    @on(Input.Submitted)
    def _on_submitted(self, event: Input.Submitted) -> None:
        """Try what stands in the form, unless something that it needs is empty."""
        assert self._chosen is not None  # noqa: S101 - only a form that is shown has the keys
        lines = [*self._forms[self._chosen].query(Input)]
        if event.input.id in {"address", "model"}:
            lines[-1].focus()
            return
        for line in lines:
            if not line.value.strip() and line.id not in OPTIONAL:
                verb = "Paste" if line.password else "Type"
                self.problem.say(f"The {line.id} is missing. {verb} one and press Enter.")
                line.focus()
                return
        self._is_trying = True  # until there is another model, or a notice that says why not
        self._before = self._bridge.state.model
        self.problem.say(TRYING)
        use, values = _USES[self._chosen], [line.value.strip() for line in lines]
        self._bridge.commands.choose(lambda service: use(service, *values))

    def _on_model(self, model: ModelView) -> None:
        if self._is_trying and model != self._before:
            self.dismiss()
        self.query_one(".now", PlainText).update(_now(model))

    def _on_notices(self, view: tuple[int, tuple[Notice, ...]]) -> None:
        _, notices = view
        if self._is_trying and notices and notices[-1].severity is Severity.ERROR:
            self._is_trying = False
            self.problem.say(" ".join(filter(None, (notices[-1].text, notices[-1].advice))))


class _Models(DialogFilterList[ModelOffer | ServiceOffer]):
    """Models, and what is typed as the name of one."""

    service = ""

    def _find(self, query: str) -> tuple[Sequence[Any], Sequence[str]]:
        found, words = super()._find(query)
        typed = self.line.value.strip()
        name = f"{self.service}/{typed}" if self.service else typed
        if not typed or any(entry.item.name == name for entry in self._entries):
            return found, words
        own = ModelOffer(name, "as typed")
        self.shown = [*self.shown, ListEntry(own, Row(" ", one_line(name), note=own.title), "")]
        return self.shown, words


class ModelsScreen(ListDialog[ModelOffer | ServiceOffer]):
    """List services, and the models of one with what they take; the chosen one answers then.

    Those that were listed last are shown while the service is asked again.

    Args:
        bridge: Provides the models, and uses the chosen one.
        service: The service whose models are listed first; empty for the one that answers.
        keeps: Whether the choice counts for all conversations, and in later runs.
    """

    def __init__(self, bridge: StoreBridge, service: str = "", *, keeps: bool = False) -> None:
        self._models = _Models("model")
        super().__init__("Models", self._models)
        self._bridge, self._service, self._keeps = bridge, service, keeps

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda state: state.models, self._show)
        self._list(self._service)

    def _list(self, service: str) -> None:
        self._service = service
        self._bridge.commands.engine.models.list_models(service)

    async def choose(self, item: ModelOffer | ServiceOffer) -> None:
        """Use a model, or list those of a service; one without a key asks for it."""
        if isinstance(item, ModelOffer):
            await super().choose(item)
            commands = self._bridge.commands
            if self._keeps and "/" in item.name:
                commands.choose(lambda choice: choice.use_service(item.name))
            else:
                commands.engine.models.use_model(item.name)
        elif item.is_ready or item.is_local:
            self.head.say("Loading models…")
            self._models.set_filter("")
            self._list(item.name)
        else:
            self.app.switch_screen(ModelScreen(self._bridge, item.name))

    def _show(self, listed: ModelsListed | None) -> None:
        self.head.say("Loading models…" if listed is None else one_line(listed.failure))
        if listed is not None:
            current = self._bridge.state.model.name
            self._models.service = listed.service if listed.service != BackendKind.GEMINI else ""
            others = (_service(one) for one in listed.services if one.name != listed.service)
            models = (_offer(model, current) for model in listed.models)
            self.listed.set_entries([*others, *models])


def _offer(model: ModelOffer, current: str) -> ListEntry[ModelOffer | ServiceOffer]:
    lead = "●" if model.name == current else " "
    row = Row(
        lead, one_line(model.name), " · ".join(model.facts(count)), note=one_line(model.title)
    )
    return ListEntry(model, row, model.name.lower(), model.title.lower())


def _service(service: ServiceOffer) -> ListEntry[ModelOffer | ServiceOffer]:
    lead = "▸" if service.is_ready else " "
    row = Row(lead, service.name, "show models", note=service.note)
    return ListEntry(service, row, service.name.lower())


def _form(hint: str, *lines: Input) -> Vertical:
    return Vertical(PlainText(hint, classes="hint"), *lines, classes="form")


def _line(name: str, hint: str, most: int, value: str = "", *, password: bool = False) -> Input:
    return Input(value, placeholder=hint, password=password, max_length=most, id=name, compact=True)


def _local(state: AppState) -> str:
    """Return the first service that answers on this computer, or an empty string."""
    services = state.models.services if state.models is not None else ()
    return next((one.name for one in services if one.is_local and one.is_ready), "")


def _offered(state: AppState) -> Iterator[ServiceChoice]:
    """Give what can be chosen now."""
    model = state.model
    yield from (ServiceChoice.KEY, ServiceChoice.ADDRESS, ServiceChoice.VERTEX)
    yield ServiceChoice.SERVICE
    if _local(state) and model.needs_setup:
        yield ServiceChoice.LOCAL
    yield ServiceChoice.DEMO
    if model.backend is not BackendKind.DEMO:
        yield ServiceChoice.MODEL
    if model.is_kept:
        yield ServiceChoice.FORGET


def _now(model: ModelView) -> str:
    """Say what answers now, and with whose credentials."""
    if model.backend is BackendKind.DEMO:
        missing = " No Gemini API key found." if model.needs_setup else ""
        return f"The offline demo model is active.{missing} Your servers work with every model."
    what = "key" if model.backend is BackendKind.GEMINI else "credentials"
    source = f" · {what}: {model.source}" if model.source else ""
    where = f" at {model.address}" if model.address else ""
    return f"{model.name} · {model.backend}{where}{source}"


def _choice(choice: ServiceChoice) -> Content:
    label, note = choice.value
    width = max(len(one.value[0]) for one in ServiceChoice)
    return Content.assemble(fit(label, width + 3), (note, "$text-muted"))
