"""The tools of all servers under one set of names, and the catalogs that show them."""

from collections.abc import Callable, Sequence

from tui.engine.servers.catalog import ServerOffer, Tool
from tui.engine.servers.names import assign_names, without_model_prefix
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.tools import OfferedTool
from tui.model.catalog import Catalog
from tui.model.servers import ServerId


class Registry:
    """Knows what each server offers, and which name leads to which tool.

    A server's tools keep their names while it is down, so that a restart changes nothing.

    Args:
        is_ready: Whether a server can be called now; only then its tools are offered.
    """

    def __init__(self, is_ready: Callable[[ServerId], bool]) -> None:
        self._is_ready = is_ready
        self._definitions: dict[ServerId, ServerDefinition] = {}
        self._offers: dict[ServerId, ServerOffer] = {}
        self._catalogs: dict[ServerId, Catalog] = {}
        self._tools: dict[str, OfferedTool] = {}
        self._by_origin: dict[tuple[ServerId, str], OfferedTool] = {}

    def configure(self, definitions: Sequence[ServerDefinition]) -> None:
        """Take the servers there are, in settings order; forget the others."""
        self._definitions = {definition.id: definition for definition in definitions}
        self._offers = {s: offer for s, offer in self._offers.items() if s in self._definitions}
        self._name_tools()

    def update(self, server: ServerId, offer: ServerOffer) -> None:
        """Take what a server offers now."""
        self._offers[server] = offer
        self._name_tools()

    def forget(self, server: ServerId) -> None:
        """Forget what a server offered, as when its definition changes."""
        if self._offers.pop(server, None) is not None:
            self._name_tools()

    def catalog(self, server: ServerId) -> Catalog:
        """Give what is shown of a server's offer."""
        return self._catalogs.get(server, Catalog())

    def offered(self) -> tuple[OfferedTool, ...]:
        """Give the tools of all ready servers, in settings order."""
        return tuple(tool for tool in self._tools.values() if self._is_ready(tool.server))

    def find(self, name: str) -> OfferedTool | None:
        """Find a tool of a ready server by its name, a prefix that models add set aside."""
        tool = self._tools.get(name) or self._tools.get(without_model_prefix(name))
        return tool if tool is not None and self._is_ready(tool.server) else None

    def current(self, tool: OfferedTool) -> OfferedTool | None:
        """Give a tool as its server defines it now, whatever its name became."""
        return self._by_origin.get((tool.server, tool.name))

    def _name_tools(self) -> None:
        """Name all tools anew: usable ones first, so that no other takes a name from them."""
        ordered = [(s, self._offers[s]) for s in self._definitions if s in self._offers]
        names = assign_names(
            [(s, [tool.name for tool in offer.tools if tool.is_usable]) for s, offer in ordered]
        )
        labels = assign_names(
            [(s, [label for label, _ in _unusable(offer)]) for s, offer in ordered],
            reserved=names.values(),
        )
        self._tools = {}
        self._catalogs = {}
        for server, offer in ordered:
            shown = {id(tool): labels[server, label] for label, tool in _unusable(offer)}
            views = []
            for tool in offer.tools:
                tool_id = names[server, tool.name] if tool.is_usable else shown[id(tool)]
                views.append(tool.show(tool_id))
                if tool.is_usable:
                    self._tools[tool_id] = tool.offer(tool_id, self._definitions[server])
            self._catalogs[server] = Catalog(
                tuple(views), offer.prompts, offer.resources, offer.templates
            )
        self._by_origin = {(tool.server, tool.name): tool for tool in self._tools.values()}


def _unusable(offer: ServerOffer) -> list[tuple[str, Tool]]:
    """Give the tools that cannot be offered, each with a label unique on its server."""
    return [
        (f"{tool.name}_{position}", tool)
        for position, tool in enumerate(offer.tools, start=1)
        if not tool.is_usable
    ]
