"""The tools and prompts of all servers under unique names, and their catalogs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tui.engine.mcp.catalog.offer import ServerOffer, Tool
from tui.engine.mcp.catalog.offered_tool import OfferedTool
from tui.engine.mcp.catalog.tool_names import assign_names, assign_prompt_names
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.model.catalog import Catalog, PromptView, ToolId, ToolView
from tui.model.servers import ServerId


@dataclass(frozen=True, slots=True)
class Withheld:
    """Why a tool is withheld; `changed` if the user has not accepted its change yet."""

    reason: str
    changed: bool = False


class ToolVisibility:
    """Decides which tools the model must not see; this base class hides none."""

    async def prepare(self, definition: ServerDefinition) -> None:
        """Get ready to judge a server's tools; awaited before the server is started."""

    def withhold(
        self, definition: ServerDefinition, tools: Sequence[Tool]
    ) -> Mapping[str, Withheld]:
        """Return the tools to withhold from the model, by their names on the server.

        Called with each new offer of a server, before any of it is offered.

        Args:
            definition: The server.
            tools: All its tools, also the unusable ones.
        """
        del definition, tools
        return {}


class Registry:
    """The offers of all servers and the names of their tools and prompts.

    A server's tools keep their names while it is down, so that a restart changes nothing.

    Args:
        is_ready: Whether a server can be called now; if not, its tools are not offered.
        visibility: Decides which tools are withheld from the model.
    """

    def __init__(self, is_ready: Callable[[ServerId], bool], visibility: ToolVisibility) -> None:
        self._is_ready = is_ready
        self._visibility = visibility
        self._withheld: dict[ServerId, Mapping[str, Withheld]] = {}
        self._definitions: dict[ServerId, ServerDefinition] = {}
        self._offers: dict[ServerId, ServerOffer] = {}
        self._catalogs: dict[ServerId, Catalog] = {}
        self._named: dict[tuple[ServerId, str], tuple[Tool, OfferedTool]] = {}
        self._renamed_prompts: dict[ServerId, dict[str, str]] = {}

    def configure(self, definitions: Sequence[ServerDefinition]) -> None:
        """Set the servers, in settings order, and forget the others."""
        self._definitions = {definition.id: definition for definition in definitions}
        self._offers = {s: offer for s, offer in self._offers.items() if s in self._definitions}
        self._withheld = {s: held for s, held in self._withheld.items() if s in self._offers}
        self._named = {}
        self._name_all()

    def update(self, server: ServerId, offer: ServerOffer) -> Mapping[str, str]:
        """Set the current offer of a server.

        Returns:
            The newly renamed prompts of this server: their names here, with its own names.
        """
        before = self._renamed_prompts.get(server, {})
        self._offers[server] = offer
        self._judge(server)
        self._name_all()
        now = self._renamed_prompts.get(server, {})
        return {name: own for name, own in now.items() if name not in before}

    def judge_again(self) -> None:
        """Decide again which tools are withheld, as after a change of the rules."""
        for server in self._offers:
            self._judge(server)
        self._name_all()

    def forget(self, server: ServerId) -> None:
        """Forget the offer of a server, as after a change of its definition."""
        if self._offers.pop(server, None) is not None:
            self._name_all()

    def catalog(self, server: ServerId) -> Catalog:
        return self._catalogs.get(server, Catalog())

    def offered(self) -> tuple[OfferedTool, ...]:
        return tuple(
            tool
            for (server, name), (_, tool) in self._named.items()
            if self._is_ready(server) and name not in self._withheld.get(server, {})
        )

    def current(self, tool: OfferedTool) -> OfferedTool | None:
        """Return the current version of a tool; None if it is gone or withheld."""
        if tool.name in self._withheld.get(tool.server, {}):
            return None
        known = self._named.get((tool.server, tool.name))
        return known[1] if known is not None else None

    def look_up(self, server: ServerId, shown: str) -> tuple[ToolView, OfferedTool | None] | None:
        """Return the view and the offered tool for a name as shown.

        A tool that cannot be offered has only a view; a withheld one has both.
        """
        views = [tool for tool in self.catalog(server).tools if tool.name == shown]
        if not views:
            return None
        view = min(views, key=lambda tool: bool(tool.problem))  # prefer one without a problem
        offered = (tool for _, tool in self._named.values() if tool.server == server)
        return view, next((tool for tool in offered if tool.id == view.id), None)

    def withheld_tool(self, name: str) -> tuple[OfferedTool, str] | None:
        """Return a withheld tool by the name that the model would call it, and the reason."""
        for _, tool in self._named.values():
            held = self._withheld.get(tool.server, {}).get(tool.name)
            if held is not None and tool.id == name:
                return tool, held.reason
        return None

    def own_prompt_name(self, server: ServerId, name: str) -> str:
        """Return the server's own name of a prompt; return any other text unchanged."""
        return self._renamed_prompts.get(server, {}).get(name, name)

    def _judge(self, server: ServerId) -> None:
        definition = self._definitions[server]
        self._withheld[server] = self._visibility.withhold(definition, self._offers[server].tools)

    def _name_all(self) -> None:
        """Assign all names, in settings order."""
        ordered = [(s, self._offers[s]) for s in self._definitions if s in self._offers]
        prompts = self._name_prompts(ordered)
        tools = self._name_tools(ordered)
        self._catalogs = {
            server: Catalog(tools[server], prompts[server], offer.resources, offer.templates)
            for server, offer in ordered
        }

    def _name_prompts(
        self, ordered: list[tuple[ServerId, ServerOffer]]
    ) -> dict[ServerId, tuple[PromptView, ...]]:
        named = assign_prompt_names([(s, [p.name for p in offer.prompts]) for s, offer in ordered])
        views: dict[ServerId, tuple[PromptView, ...]] = {}
        self._renamed_prompts = {}
        for (server, offer), names in zip(ordered, named, strict=True):
            pairs = list(zip(offer.prompts, names, strict=True))
            views[server] = tuple(
                prompt if name == prompt.name else replace(prompt, name=name)
                for prompt, name in pairs
            )
            self._renamed_prompts[server] = {n: p.name for p, n in pairs if n != p.name}
        return views

    def _name_tools(
        self, ordered: list[tuple[ServerId, ServerOffer]]
    ) -> dict[ServerId, tuple[ToolView, ...]]:
        """Name the usable tools first, so that no unusable one takes a name from them.

        Withheld tools keep their names, so that no other tool gets them.
        """
        names = assign_names(
            [(s, [tool.name for tool in offer.tools if tool.is_usable]) for s, offer in ordered]
        )
        labels = assign_names(
            [(s, [label for label, _ in _unusable(offer)]) for s, offer in ordered],
            reserved=names.values(),
        )
        named: dict[tuple[ServerId, str], tuple[Tool, OfferedTool]] = {}
        catalogs: dict[ServerId, tuple[ToolView, ...]] = {}
        for server, offer in ordered:
            shown = {id(tool): labels[server, label] for label, tool in _unusable(offer)}
            views = []
            for tool in offer.tools:
                if tool.is_usable:
                    offered = self._offer(tool, names[server, tool.name], server)
                    named[server, tool.name] = tool, offered
                    views.append(self._shown(offered))
                else:
                    views.append(tool.show(shown[id(tool)]))
            catalogs[server] = tuple(views)
        self._named = named
        return catalogs

    def _shown(self, tool: OfferedTool) -> ToolView:
        """Return the view of a tool, with the reason if it is withheld."""
        withheld = self._withheld.get(tool.server, {}).get(tool.name)
        if withheld is None:
            return tool.view
        return replace(tool.view, problem=withheld.reason, changed=withheld.changed)

    def _offer(self, tool: Tool, tool_id: ToolId, server: ServerId) -> OfferedTool:
        """Return a tool under a name; the previous object if neither has changed."""
        known, offered = self._named.get((server, tool.name), (None, None))
        if offered is not None and known is tool and offered.id == tool_id:
            return offered
        return tool.offer(tool_id, self._definitions[server])


def _unusable(offer: ServerOffer) -> list[tuple[str, Tool]]:
    """Return the unusable tools, each with a label unique on its server."""
    return [
        (f"{tool.name}_{position}", tool)
        for position, tool in enumerate(offer.tools, start=1)
        if not tool.is_usable
    ]
