"""The dialogs that choose: a model, a theme, a log level, a text, servers to import."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from textual.app import App
from textual.content import Content

from tui.model.chat import BackendKind
from tui.model.imports import ImportOffer, ImportState
from tui.model.models import ModelOffer, ModelsListed, ServiceOffer
from tui.model.servers import ServerId
from tui.ui import themes
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import ChoiceDialog, ListDialog
from tui.ui.widgets.lists.filter_list import DialogFilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.plain import count, one_line

T = TypeVar("T")

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of RFC 5424 as MCP spells them, most verbose first."""

MAX_SHOWN: Final = 300
"""Characters of a text that its row shows."""

MAX_SEARCHED: Final = 2_000
"""Characters of a text that are searched."""

GEMINI: Final = BackendKind.GEMINI.value

Take = Callable[[ImportOffer], ImportOffer]
"""Writes a server to the settings, in any thread, and says how it stands then."""


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
            self.head.say("Asking the service…")
            self._models.set_filter("")
            self._list(item.name)
        else:
            from tui.ui.dialogs.model_setup import ModelScreen  # noqa: PLC0415 - on first use

            self.app.switch_screen(ModelScreen(self._bridge, item.name))

    def _show(self, listed: ModelsListed | None) -> None:
        self.head.say("Asking the service…" if listed is None else one_line(listed.failure))
        if listed is not None:
            current = self._bridge.state.model.name
            self._models.service = listed.service if listed.service != GEMINI else ""
            others = (_service(one) for one in listed.services if one.name != listed.service)
            models = (_offer(model, current) for model in listed.models)
            self.listed.set_entries([*others, *models])


class ThemeScreen(ChoiceDialog[str]):
    """Offer gemdeck's themes, then Textual's; the one under the cursor is shown at once.

    Args:
        choose: Changes the theme for good.
    """

    def __init__(self, choose: Callable[[str], None]) -> None:
        self._before = self.app.theme
        names = themes.in_order(self.app.available_themes)
        super().__init__("Theme", [*map(self._entry, names)], choose, self._before)

    def moved(self, item: str | None) -> None:
        self.app.theme = item or self._before

    def action_close(self) -> None:
        """Bring back the theme from before."""
        self.app.theme = self._before
        self.dismiss()

    def _entry(self, name: str) -> ListEntry[str]:
        theme = self.app.available_themes[name]
        kind = "16 colors" if theme.ansi else "dark" if theme.dark else "light"
        note = f"{kind} · current" if name == self._before else kind
        return ListEntry(name, Row("", name, note=note), name)


def log_levels(bridge: StoreBridge, server: ServerId) -> ChoiceDialog[str]:
    """Return the dialog that sets a server's log level."""
    now = bridge.state.log_levels.get(server, "")
    entries = [
        ListEntry(level, Row("", f"{level}  (current)" if level == now else level), level)
        for level in LEVELS
    ]

    use = partial(bridge.commands.engine.features.set_log_level, server)
    return ChoiceDialog(f"Log level of {server}", entries, use, now if now in LEVELS else "info")


def pick(
    title: str, noun: str, offered: Iterable[tuple[str, T]], use: Callable[[T], object]
) -> ListDialog[T]:
    """Return the dialog that picks one of several texts, narrowed by what is typed.

    Args:
        title: What is picked.
        noun: The word for one text.
        offered: The texts and what they stand for, the likeliest first.
        use: What is done with what the picked one stands for.
    """
    entries = [
        ListEntry(item, Row("", one_line(text[:MAX_SHOWN])), text[:MAX_SEARCHED].lower())
        for text, item in offered
    ]
    return ListDialog(title, DialogFilterList(noun, entries=entries), use)


def use_one(
    app: App[Any],
    title: str,
    noun: str,
    offered: Sequence[tuple[str, T]],
    use: Callable[[T], object],
) -> None:
    """Use the only one that is offered, or the one that is picked, as of `pick`."""
    if len(offered) == 1:
        use(offered[0][1])
    else:
        app.push_screen(pick(title, noun, offered, use))


def _offer(model: ModelOffer, current: str) -> ListEntry[ModelOffer | ServiceOffer]:
    facts = [f"context {count(model.context_limit)}"] if model.context_limit else []
    facts += [f"output {count(model.output_limit)}"] if model.output_limit else []
    facts += ["no tools"] if model.tools is False else []
    takes = {"tools": model.tools, "pictures": model.pictures, "thinking": model.thinking}
    facts += [word for word, is_taken in takes.items() if is_taken]
    lead = "●" if model.name == current else " "
    row = Row(lead, one_line(model.name), " · ".join(facts), note=one_line(model.title))
    return ListEntry(model, row, model.name.lower(), model.title.lower())


def _service(service: ServiceOffer) -> ListEntry[ModelOffer | ServiceOffer]:
    lead = "▸" if service.is_ready else " "
    row = Row(lead, service.name, "lists its models", note=service.note)
    return ListEntry(service, row, service.name.lower())


class ImportScreen(ListDialog[ImportOffer]):
    """Offer servers of other clients; nothing is started before it stands in the settings.

    Args:
        offers: The servers; at least one.
        take: Writes one.
    """

    KIND = "choice imports"
    AUTO_FOCUS = "RowList"
    enter = "take over"

    def __init__(self, offers: Sequence[ImportOffer], take: Take) -> None:
        listed = DialogFilterList("server", entries=[*map(_entry, offers)])
        super().__init__("Servers of other clients", listed)
        self._offers = list(offers)
        self._take = take

    async def choose(self, item: ImportOffer) -> None:
        """Take the server over."""
        if item.state is not ImportState.NEW:
            return
        from tui.engine.settings.edits import EditError  # noqa: PLC0415 - with the engine

        try:
            taken = await asyncio.to_thread(self._take, item)
        except EditError as error:
            self.notify(str(error), title="Settings", severity="error", markup=False)
            return
        self._offers[self._offers.index(item)] = taken
        self.listed.set_entries([*map(_entry, self._offers)])

    def moved(self, item: ImportOffer | None) -> None:
        self.tell(None if item is None else Content("\n").join(offer_lines(item)))


def _entry(offer: ImportOffer) -> ListEntry[ImportOffer]:
    row = Row("", offer.server, offer.state.value, note=offer.client)
    return ListEntry(offer, row, f"{offer.server} {offer.file}")


def offer_lines(offer: ImportOffer) -> Iterator[Content]:
    """Say everything that it would run or contact, the warnings first."""
    yield from (Content.styled(f"! {warning}", "$text-warning") for warning in offer.warnings)
    yield from map(Content, offer.notes)
    if offer.file:
        yield _field("from", offer.file)
    for number, word in enumerate(offer.command):
        yield _field("argument" if number else "command", word)
    for label, values in (
        ("address", [offer.address]),
        ("folder", [offer.cwd]),
        ("variable", offer.env),
        ("header", offer.headers),
    ):
        yield from (_field(label, value) for value in values if value)


def _field(label: str, value: str) -> Content:
    return Content.assemble((f"{label:<11}", "$text-muted"), value)
