"""The tools, prompts and resources panes: a filtered list above the details."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import ClassVar, Final, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.getters import query_one

from tui.model.catalog import Catalog, Off, PromptView, ResourceTemplateView, ResourceView, ToolView
from tui.model.input.uri_templates import UriTemplate, UriTemplateError, parse_template
from tui.model.requests import FieldKind, FormField
from tui.model.servers import ServerId, ServerUsage
from tui.store.selectors import saved_calls
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.text import counted
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.prompt_arguments import ArgumentsScreen
from tui.ui.messages import FillPrompt, InsertText, RunTool, SendResource, ShowResource
from tui.ui.panes.side_part import MARK, Marking, ProfileItem, SidePart
from tui.ui.widgets.chat.completion import mention
from tui.ui.widgets.key_bar import SaysWhy
from tui.ui.widgets.lists.filter_list import MAX_SEARCHED, FilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.describe import describe_prompt, describe_resource, describe_tool
from tui.ui.widgets.text.plain import PlainText, count, moment, one_line

T = TypeVar("T")
Offered = TypeVar("Offered", bound=ToolView | PromptView | ResourceView | ResourceTemplateView)

ENTRY_ACTIONS: Final = frozenset({"choose", "schema", "insert", "switch", "exclude", "mark"})
"""Actions that need an entry."""

COLUMNS_FROM: Final = 60
"""Cells of a pane from which its list has columns."""

BESIDE: Final = 70
"""Cells from which the details stand beside the list."""

Catalogs = tuple[tuple[ServerId, Catalog], ...]

OwnedPrompt = tuple[ServerId, PromptView]

Resource = ResourceView | ResourceTemplateView
OwnedResource = tuple[ServerId, Resource]

_LIST_NOTE: Final = "Separate values with commas."

OwnedTool = tuple[ServerId, ToolView]


def catalogs(state: AppState) -> Catalogs:
    """Select the catalog of every server."""
    return tuple((view.id, view.catalog) for view in state.servers)


def _columns(state: AppState) -> object:
    """Select what the rows of tools depend on beside the catalogs; calls end with a turn."""
    runs = tuple(run.call.status for run in state.runs.values())
    return state.profiles, state.options, state.marks, runs, state.conversation.turn is None


def _entry(
    item: tuple[ServerId, Offered], row: Row, more: str = ""
) -> ListEntry[tuple[ServerId, Offered]]:
    """List an offer of a server with its description; `more` is searched as well."""
    server, offer = item
    note = offer.description[:MAX_SEARCHED]
    label = f"{server}:{offer.name} {offer.title} {more}".lower()
    return ListEntry(item, replace(row, note=note), label, note.lower(), server)


class BrowserPane(SaysWhy, SidePart, Generic[T]):
    """List one kind of offer of all servers."""

    NOUN: ClassVar[str]
    EMPTY: ClassVar[str]
    COLUMNS: ClassVar[tuple[str, ...]] = ()

    entries = query_one(FilterList)
    scroller = query_one(".details", VerticalScroll)
    details = query_one(".details > PlainText", PlainText)

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__(bridge)
        self._catalogs: Catalogs = ()
        self._built: dict[ServerId, tuple[Catalog, list[ListEntry[T]]]] = {}
        self._stale = True

    @abstractmethod
    def list_entries(self, server: ServerId, catalog: Catalog) -> Iterable[ListEntry[T]]:
        """List this pane's kind of offer of one server."""

    @abstractmethod
    def describe(self, item: T) -> Content:
        """Describe an entry for the details below the list."""

    def describe_group(self, server: ServerId, number: int) -> str:  # noqa: ARG002
        """Describe what a server offers of this kind."""
        return counted(number, self.NOUN)

    @abstractmethod
    def choose(self, item: T) -> None:
        """Act on an entry; called for Enter and double clicks."""

    def compose(self) -> ComposeResult:
        yield FilterList[T](self.NOUN, self.EMPTY, widest=16, columns=self.COLUMNS)
        with VerticalScroll(classes="details"):
            yield PlainText()

    def on_mount(self) -> None:
        self._bridge.watch(self, catalogs, self._on_catalogs)

    def on_resize(self) -> None:
        self.set_class(self.size.width >= BESIDE, "-beside")
        shows, rows = self.size.width >= COLUMNS_FROM, self.entries.rows
        if rows.shows_columns is not shows:
            rows.shows_columns = shows
            self._relist(None)

    def focus_main(self) -> None:
        self.entries.rows.focus()

    def narrow_to(self, to: str) -> None:
        self.entries.set_filter(f"{to}:".lower())

    def wake(self) -> None:
        if self._stale:
            self._refill()

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:  # noqa: ARG002
        is_empty = not self.is_mounted or not self.entries.rows.rows
        return f"There is no {self.NOUN} here." if is_empty and action in ENTRY_ACTIONS else ""

    @on(FilterList.Chosen)
    def action_choose(self) -> None:
        """Choose the entry under the cursor, or fold or unfold the server."""
        if (item := self.entries.current) is not None:
            self.choose(item)
        else:
            self.entries.action_toggle_fold()

    def show_details(self) -> None:
        """Describe the entry under the cursor, or say how many its server has."""
        item, group = self.entries.current, self.entries.group
        self.set_class(item is None and group is None, "-nothing")
        if item is not None:
            self.details.update(self.describe(item))
        elif group is not None:
            number = self.describe_group(ServerId(group.label), group.count)
            self.details.update(Content.assemble((one_line(group.label), "bold"), f"\n{number}"))
        self.refresh_bindings()

    def _on_catalogs(self, value: Catalogs) -> None:
        self._catalogs = value
        self._stale = True
        if self.awake:
            self._refill()

    def _relist(self, _: object) -> None:
        """List all anew, since what is marked has changed."""
        self._built = {}
        self._on_catalogs(self._catalogs)

    def _refill(self) -> None:
        """List all offers, reusing the entries of servers whose catalog has not changed."""
        self._stale = False
        before, self._built = self._built, {}
        for server, catalog in self._catalogs:
            if (kept := before.get(server)) is None or kept[0] is not catalog:
                kept = catalog, list(self.list_entries(server, catalog))
            self._built[server] = kept
        self.entries.set_entries(list(chain.from_iterable(e for _, e in self._built.values())))

    @on(FilterList.Moved)
    def _on_moved(self) -> None:
        self.scroller.scroll_home(animate=False)
        self.show_details()


class PromptsPane(BrowserPane[OwnedPrompt]):
    """Browse prompts; Enter asks for the arguments and sends the prompt."""

    BINDINGS = keymap.bindings(keymap.Place.PROMPTS, keymap.Place.INSERT)
    NOUN = "prompt"
    EMPTY = "Prompts from your servers appear here; `F2` shows the servers."

    def list_entries(self, server: ServerId, catalog: Catalog) -> Iterable[ListEntry[OwnedPrompt]]:
        for prompt in catalog.prompts:
            tail = "not offered" if prompt.problem else ""
            yield _entry((server, prompt), Row(server, prompt.name, tail, faint=bool(tail)))

    def describe(self, item: OwnedPrompt) -> Content:
        return describe_prompt(*item)

    def choose(self, item: OwnedPrompt) -> None:
        """Open the form for the prompt's arguments, even without any, then send the prompt."""
        server, prompt = item
        if prompt.problem:
            self.notify(f"The prompt cannot be sent: {prompt.problem}.", markup=False)
        else:
            self.post_message(FillPrompt(server, prompt))

    def action_insert(self) -> None:
        if (item := self.entries.current) is not None and not item[1].problem:
            self.post_message(InsertText(f"/{item[1].name} "))


def address(resource: Resource) -> str:
    """Return the URI of a resource, or the URI template."""
    return resource.uri if isinstance(resource, ResourceView) else resource.uri_template


class ResourcesPane(BrowserPane[OwnedResource]):
    """Browse resources; Enter reads one."""

    BINDINGS = keymap.bindings(keymap.Place.RESOURCES, keymap.Place.INSERT)
    NOUN = "resource"
    EMPTY = "Resources from your servers appear here; `F2` shows the servers."

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__(bridge)
        self._asked: dict[OwnedResource, str] = {}

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda state: state.subscriptions, self._relist)

    def list_entries(
        self, server: ServerId, catalog: Catalog
    ) -> Iterable[ListEntry[OwnedResource]]:
        offered: tuple[Resource, ...] = (*catalog.resources, *catalog.templates)
        for resource in offered:
            name, tail = resource.title or resource.name, self._tail(server, resource)
            yield _entry((server, resource), Row(server, name, tail), address(resource))

    def describe(self, item: OwnedResource) -> Content:
        """Describe a resource, and say whether it is watched."""
        described = describe_resource(*item)
        if not self._is_followed(item):
            return described
        watched = Content.styled("watching: you will be notified of changes", "$text-success")
        return Content("\n").join((described, watched))

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        item = self.entries.current if self.is_mounted else None
        if action not in {"watch", "send"}:
            return super().why_not(action, parameters)
        if item is None:
            return "No resource is selected."
        if self._uri(item) is None:
            return item[1].problem or "Open the template and fill it in first."
        if action == "watch" and not self._can_follow(item):
            return f"{one_line(item[0])} does not report resource changes."
        return ""

    def action_label(self, action: str) -> str | None:
        item = self.entries.current
        if action == "watch" and item is not None and self._is_followed(item):
            return "unwatch"
        return None

    def choose(self, item: OwnedResource) -> None:
        """Read the resource; for a template, ask for its variables first."""
        _, resource = item
        if resource.problem:
            self.notify(f"The resource cannot be read: {resource.problem}.", markup=False)
        elif isinstance(resource, ResourceView):
            self._ask_for(item, resource.uri)
        else:
            self._fill_in(item, resource)

    def action_insert(self) -> None:
        if (item := self.entries.current) is not None and not item[1].problem:
            self.post_message(InsertText(mention(*item).text))

    def action_send(self) -> None:
        if (item := self.entries.current) is not None and (uri := self._uri(item)) is not None:
            self.post_message(SendResource(item[0], uri))

    def action_watch(self) -> None:
        item = self.entries.current
        if item is not None and (uri := self._uri(item)) is not None and self._can_follow(item):
            subscribed = not self._is_followed(item)
            self._commands.engine.features.subscribe(item[0], uri, subscribed=subscribed)

    def open(self, item: OwnedResource) -> None:
        """Choose an entry, wherever the cursor is."""
        self.entries.select(item)
        self.choose(item)

    def _ask_for(self, item: OwnedResource, uri: str) -> None:
        server, resource = item
        self._asked = {item: uri}
        self.show_details()
        self.post_message(ShowResource(server, uri, resource.title or resource.name))

    def _fill_in(self, item: OwnedResource, resource: ResourceTemplateView) -> None:
        try:
            template = parse_template(resource.uri_template)
        except UriTemplateError as error:
            self._show_template_error(error)
            return
        fields = [
            FormField(v.name, FieldKind.TEXT, v.name, _LIST_NOTE * v.is_list, v.required)
            for v in template.variables
        ]
        screen = ArgumentsScreen(
            self._bridge,
            item[0],
            resource.uri_template,
            title=resource.title or resource.name,
            about=describe_resource(*item),
            fields=fields,
        )
        self.app.push_screen(screen, partial(self._read_filled_in, item, template))

    def _read_filled_in(
        self, item: OwnedResource, template: UriTemplate, values: dict[str, str] | None
    ) -> None:
        if values is None:
            return
        try:
            uri = template.expand(values)
        except UriTemplateError as error:
            self._show_template_error(error)
        else:
            self._ask_for(item, uri)

    def _show_template_error(self, error: UriTemplateError) -> None:
        self.notify(f"The template cannot be filled in: {error}.", markup=False)

    def _tail(self, server: ServerId, resource: Resource) -> str:
        if resource.problem:
            return "not offered"
        if isinstance(resource, ResourceTemplateView):
            return "template"
        return "watching" if (server, resource.uri) in self._bridge.state.subscriptions else ""

    def _uri(self, item: OwnedResource) -> str | None:
        """Return the URI of an entry: its own, or its template's as last filled in."""
        resource = item[1]
        if resource.problem:
            return None
        return resource.uri if isinstance(resource, ResourceView) else self._asked.get(item)

    def _is_followed(self, item: OwnedResource) -> bool:
        return (item[0], self._uri(item)) in self._bridge.state.subscriptions

    def _can_follow(self, item: OwnedResource) -> bool:
        view = find_server(self._bridge.state, item[0])
        has_subscriptions = view is not None and view.info is not None and view.info.subscriptions
        return has_subscriptions and self._uri(item) is not None


class ToolsPane(Marking, BrowserPane[OwnedTool]):
    """Browse tools: description, parameters, the server's claims, and what happens on a call."""

    BINDINGS = keymap.bindings(keymap.Place.TOOLS, keymap.Place.MARKS)
    NOUN = "tool"
    EMPTY = "Tools from your servers appear here once one is ready; `F2` shows the servers."
    COLUMNS = ("tokens", "used")
    _with_schema = False

    def on_mount(self) -> None:
        self._bridge.watch(self, _columns, self._relist)
        self._bridge.watch(self, lambda s: (s.grants, s.saved_calls), lambda _: self.show_details())

    def list_entries(self, server: ServerId, catalog: Catalog) -> Iterable[ListEntry[OwnedTool]]:
        here = self._bridge.state
        usage = self._commands.engine.servers.usage(server) or ServerUsage()
        for tool in catalog.tools:
            part = self._commands.engine.models.context_part(server, tool)
            tokens = count(part.rounded) if part is not None else ""
            facts = tokens, moment(usage.last_calls.get(tool.name), "%H:%M", "")
            is_on_demand = tool.id in catalog.excess and not here.options.profile
            is_out = here.leaves_out(server, tool.name)
            held = "not in profile" if is_out else "on demand" * is_on_demand
            state = "not offered" if tool.problem else held
            tail = "changed" if tool.changed else "○ off" if tool.off else state
            is_marked = not here.marks.isdisjoint({(server, ""), (server, tool.name)})
            name = MARK * is_marked + tool.name
            words = "suspicious" if tool.marks and not tool.off else tail
            row = Row(server, name, words, faint=bool(tail), columns=facts)
            yield _entry((server, tool), row)

    @property
    def markable(self) -> ProfileItem | None:
        """The tool under the cursor, or its server."""
        if not self.is_mounted:
            return None
        item, group = self.entries.current, self.entries.group
        if item is not None:
            return item[0], item[1].name
        return None if group is None else (ServerId(group.label), "")

    def describe(self, item: OwnedTool) -> Content:
        saved = [one.name for one in saved_calls(self._bridge.state, item[0], item[1].name)]
        return describe_tool(
            *item,
            schema=self._with_schema,
            standing=self._commands.engine.tool_standing(item[0], item[1].name),
            saved=saved,
            context=self._commands.engine.models.context_part(*item),
        )

    def describe_group(self, server: ServerId, number: int) -> str:
        """Say how many tools are off, and what the server takes of the context."""
        off = dict(self._catalogs)[server].off_words
        part = self._commands.engine.models.context_part(server)
        words = f"\n{part.words}, including its instructions" if part is not None else ""
        return f"{counted(number, self.NOUN)}{off}{words}"

    def _refill(self) -> None:
        tools = chain.from_iterable(catalog.tools for _, catalog in self._catalogs)
        self.entries.remark = Catalog(tuple(tools)).off_words
        super()._refill()

    def action_switch(self) -> None:
        """Switch the tool, or all of the server, off for the model or on, for this session."""
        item, group = self.entries.current, self.entries.group
        switch = self._commands.engine.servers.switch_tools
        if item is not None:
            switch(item[0], item[1].name, off=item[1].off is None)
        elif group is not None:
            tools = dict(self._catalogs)[ServerId(group.label)].tools
            is_any_on = any(not (one.off or one.problem) for one in tools)
            switch(ServerId(group.label), None, off=is_any_on)

    def action_exclude(self) -> None:
        """Let the settings leave the tool out, or no longer."""
        if (item := self.entries.current) is not None:
            off = item[1].off is not Off.SETTINGS
            self._commands.engine.exclude_tool(item[0], item[1].name, off=off)

    def choose(self, item: OwnedTool) -> None:
        server, tool = item
        self.post_message(RunTool(server, tool.name))

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        item: OwnedTool | None = self.entries.current if self.is_mounted else None
        is_changed = item is not None and item[1].changed
        tool = item[1] if item is not None else None
        match action:
            case "switch" if tool is not None and tool.off is Off.SETTINGS:
                return "Off in settings (excludeTools). Press X to turn it on."
            case "switch" | "exclude" if tool is not None and tool.problem and not tool.off:
                return "" if is_changed else "The tool is already hidden from the model."
            case "exclude" if self.is_mounted and self.entries.group is not None:
                return "X excludes one tool; to disable a server, use the servers pane."
            case "review" if not is_changed:
                return "This tool has not changed."
            case "schema" if is_changed:
                return "Review the changed tool first."
            case _:
                return super().why_not(action, parameters)

    def action_review(self) -> None:
        """Ask again about the changes of this tool's server."""
        if (item := self.entries.current) is not None and item[1].changed:
            self._commands.engine.access.review.review(item[0])

    def action_schema(self) -> None:
        self._with_schema = not self._with_schema
        self.show_details()
