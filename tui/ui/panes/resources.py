"""The resources and resource templates of all servers."""

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui.model.catalog import Catalog, ResourceTemplateView, ResourceView
from tui.model.servers import ServerId
from tui.ui import keymap
from tui.ui.messages import InsertText
from tui.ui.panes.browser import BrowserPane
from tui.ui.widgets.describe import describe_resource
from tui.ui.widgets.filter_list import MAX_SEARCHED, ListEntry
from tui.ui.widgets.row_list import Row

Resource = ResourceView | ResourceTemplateView
OwnedResource = tuple[ServerId, Resource]


def address(resource: Resource) -> str:
    """Give the URI of a resource, or the URI template of a family of them."""
    return resource.uri if isinstance(resource, ResourceView) else resource.uri_template


def mention(server: ServerId, resource: Resource) -> str:
    """Write a resource as it is mentioned in a message; a template ends where it is to fill in."""
    uri = address(resource)
    if isinstance(resource, ResourceView):
        return f"@{server}:{uri} "
    return f"@{server}:{uri.partition('{')[0]}"


class ResourcesPane(BrowserPane[OwnedResource]):
    """Browses resources; Enter mentions one in the message."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.INSERT)
    NOUN = "resources"
    EMPTY = "No resources.\n\nServers that offer files, records or pages list them here."

    def list_entries(
        self, server: ServerId, catalog: Catalog
    ) -> Iterable[ListEntry[OwnedResource]]:
        """List the resources of a server, then its templates."""
        offered: tuple[Resource, ...] = (*catalog.resources, *catalog.templates)
        for resource in offered:
            template = isinstance(resource, ResourceTemplateView)
            yield ListEntry(
                item=(server, resource),
                row=Row(server, resource.title or resource.name, "template" if template else ""),
                label=f"{server}:{resource.name} {resource.title} {address(resource)}".lower(),
                text=resource.description[:MAX_SEARCHED].lower(),
            )

    def describe(self, item: OwnedResource) -> Content:
        """Describe a resource."""
        return describe_resource(*item)

    def choose(self, item: OwnedResource) -> None:
        """Mention the resource in the message."""
        self.post_message(InsertText(mention(*item)))
