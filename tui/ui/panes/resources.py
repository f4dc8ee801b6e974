"""The resources pane: resources and resource templates of all servers."""

from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.content import Content

from tui.model.catalog import Catalog, ResourceTemplateView, ResourceView
from tui.model.input.uri_templates import UriTemplate, UriTemplateError, parse_template
from tui.model.requests import FieldKind, FormField
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.selectors import server as find_server
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.panes import InsertText, SendResource, ShowResource
from tui.ui.panes.browser import BrowserPane
from tui.ui.widgets.lists.filter_list import MAX_SEARCHED, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.describe import describe_resource

Resource = ResourceView | ResourceTemplateView
OwnedResource = tuple[ServerId, Resource]

_LIST_NOTE: Final = "Several values are separated by commas."


def address(resource: Resource) -> str:
    """Return the URI of a resource, or the URI template."""
    return resource.uri if isinstance(resource, ResourceView) else resource.uri_template


def mention(server: ServerId, resource: Resource) -> str:
    """Return the mention of a resource in a message; a template is cut at its first variable."""
    uri = address(resource)
    if isinstance(resource, ResourceView):
        return f"@{server}:{uri} "
    return f"@{server}:{uri.partition('{')[0]}"


class ResourcesPane(BrowserPane[OwnedResource]):
    """Browse resources; Enter reads one."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(
        keymap.Place.RESOURCES, keymap.Place.INSERT
    )
    NOUN = "resource"
    EMPTY = "The files and records of your servers appear here; `F2` shows the servers."

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__(bridge, commands)
        self._asked: dict[OwnedResource, str] = {}

    def on_mount(self) -> None:
        super().on_mount()
        self._bridge.watch(self, lambda state: state.subscriptions, self._on_followed)

    def list_entries(
        self, server: ServerId, catalog: Catalog
    ) -> Iterable[ListEntry[OwnedResource]]:
        offered: tuple[Resource, ...] = (*catalog.resources, *catalog.templates)
        for resource in offered:
            yield ListEntry(
                item=(server, resource),
                row=Row(
                    server,
                    resource.title or resource.name,
                    self._tail(server, resource),
                    note=resource.description[:MAX_SEARCHED],
                ),
                label=f"{server}:{resource.name} {resource.title} {address(resource)}".lower(),
                text=resource.description[:MAX_SEARCHED].lower(),
                group=server,
            )

    def describe(self, item: OwnedResource) -> Content:
        """Describe a resource, and say whether it is watched."""
        described = describe_resource(*item)
        if not self._is_followed(item):
            return described
        watched = Content.styled("watched: a notice tells when it changes", "$text-success")
        return Content("\n").join((described, watched))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable only the keys that apply to the entry under the cursor."""
        item = self.entries.current if self.is_mounted else None
        match action:
            case "watch":
                return item is not None and self._can_follow(item)
            case "send":
                return item is not None and self._uri(item) is not None
            case _:
                return super().check_action(action, parameters)

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

    def show_details(self) -> None:
        super().show_details()
        self.refresh_bindings()

    def action_insert(self) -> None:
        item = self.entries.current
        if item is not None and not item[1].problem:
            self.post_message(InsertText(mention(*item)))

    def action_send(self) -> None:
        item = self.entries.current
        uri = self._uri(item) if item is not None else None
        if item is not None and uri is not None:
            self.post_message(SendResource(item[0], uri))

    def action_watch(self) -> None:
        item = self.entries.current
        uri = self._uri(item) if item is not None else None
        if item is not None and uri is not None and self._can_follow(item):
            self._commands.engine.features.subscribe(
                item[0], uri, subscribed=not self._is_followed(item)
            )

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
        from tui.ui.dialogs.prompt_arguments import ArgumentsScreen  # noqa: PLC0415 - on first use

        fields = [
            FormField(v.name, FieldKind.TEXT, v.name, _LIST_NOTE if v.is_list else "", v.required)
            for v in template.variables
        ]
        screen = ArgumentsScreen(
            self._bridge,
            self._commands,
            item[0],
            resource.uri_template,
            title=resource.title or resource.name,
            about=describe_resource(*item),
            fields=fields,
            verb="read",
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

    def _on_followed(self, _: frozenset[tuple[ServerId, str]]) -> None:
        """Mark the watched resources in the list."""
        self._built = {}
        self._on_catalogs(self._catalogs)
        if self.awake:
            self.show_details()

    def _tail(self, server: ServerId, resource: Resource) -> str:
        if resource.problem:
            return "not offered"
        if isinstance(resource, ResourceTemplateView):
            return "template"
        return "watched" if (server, resource.uri) in self._bridge.state.subscriptions else ""

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
