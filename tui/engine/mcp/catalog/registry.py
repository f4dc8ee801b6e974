"""The tools and prompts of all servers, each under one set of names, and their catalogs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tui.engine.servers.catalog import ServerOffer, Tool
from tui.engine.servers.names import assign_names, assign_prompt_names
from tui.engine.servers.withholding import Gate, OpenGate, Withheld
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.tools import OfferedTool
from tui.model.catalog import Catalog, PromptView, ToolId, ToolView
from tui.model.servers import ServerId


class Registry:
    """Knows what each server offers, and under which names its tools and prompts go.

    A server's tools keep their names while it is down, so that a restart changes nothing.

    Args:
        is_ready: Whether a server can be called now; only then its tools are offered.
        gate: Says which tools are withheld from the model; none unless given.
    """

    def __init__(self, is_ready: Callable[[ServerId], bool], gate: Gate | None = None) -> None:
        self._is_ready = is_ready
        self._gate = gate or OpenGate()
        self._withheld: dict[ServerId, Mapping[str, Withheld]] = {}
        self._definitions: dict[ServerId, ServerDefinition] = {}
        self._offers: dict[ServerId, ServerOffer] = {}
        self._catalogs: dict[ServerId, Catalog] = {}
        self._named: dict[tuple[ServerId, str], tuple[Tool, OfferedTool]] = {}
        self._renamed_prompts: dict[ServerId, dict[str, str]] = {}

    def configure(self, definitions: Sequence[ServerDefinition]) -> None:
        """Take the servers there are, in settings order; forget the others."""
        self._definitions = {definition.id: definition for definition in definitions}
        self._offers = {s: offer for s, offer in self._offers.items() if s in self._definitions}
        self._withheld = {s: held for s, held in self._withheld.items() if s in self._offers}
        self._named = {}
        self._name_all()

    def update(self, server: ServerId, offer: ServerOffer) -> Mapping[str, str]:
        """Take what a server offers now.

        Returns:
            The prompts of this server that got another name now, each with its own.
        """
        before = self._renamed_prompts.get(server, {})
        self._offers[server] = offer
        self._judge(server)
        self._name_all()
        now = self._renamed_prompts.get(server, {})
        return {name: own for name, own in now.items() if name not in before}

    def judge_again(self) -> None:
        """Ask anew which tools are withheld, as when rules changed or the user accepted some."""
        for server in self._offers:
            self._judge(server)
        self._name_all()

    def forget(self, server: ServerId) -> None:
        """Forget what a server offered, as when its definition changes."""
        if self._offers.pop(server, None) is not None:
            self._name_all()

    def catalog(self, server: ServerId) -> Catalog:
        """Give what is shown of a server's offer."""
        return self._catalogs.get(server, Catalog())

    def offered(self) -> tuple[OfferedTool, ...]:
        """Give the tools of all ready servers, in settings order."""
        return tuple(
            tool
            for (server, name), (_, tool) in self._named.items()
            if self._is_ready(server) and name not in self._withheld.get(server, {})
        )

    def current(self, tool: OfferedTool) -> OfferedTool | None:
        """Give a tool as its server defines it now, whatever its name; none if it is withheld."""
        if tool.name in self._withheld.get(tool.server, {}):
            return None
        known = self._named.get((tool.server, tool.name))
        return known[1] if known is not None else None

    def look_up(self, server: ServerId, shown: str) -> tuple[ToolView, OfferedTool | None] | None:
        """Find a tool of the catalog by its name as shown: what is shown, and what is offered.

        One that cannot be offered has only the former; a withheld one has both.
        """
        view = next((tool for tool in self.catalog(server).tools if tool.name == shown), None)
        if view is None:
            return None
        offered = (tool for _, tool in self._named.values() if tool.server == server)
        return view, next((tool for tool in offered if tool.id == view.id), None)

    def own_prompt_name(self, server: ServerId, name: str) -> str:
        """Give the name by which a server knows a prompt; any other word comes back unchanged."""
        return self._renamed_prompts.get(server, {}).get(name, name)

    def _judge(self, server: ServerId) -> None:
        definition = self._definitions[server]
        self._withheld[server] = self._gate.withhold(definition, self._offers[server].tools)

    def _name_all(self) -> None:
        """Name everything anew, in settings order."""
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
        """Name the usable tools first, so that no other takes a name from them.

        Withheld ones keep their names: nothing else may come to be called so meanwhile.
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
        """Give what is shown of a tool, with the reason where it is withheld."""
        withheld = self._withheld.get(tool.server, {}).get(tool.name)
        if withheld is None:
            return tool.view
        return replace(tool.view, problem=withheld.reason, changed=withheld.changed)

    def _offer(self, tool: Tool, tool_id: ToolId, server: ServerId) -> OfferedTool:
        """Give a tool under a name; where neither changed, what was given before."""
        known, offered = self._named.get((server, tool.name), (None, None))
        if offered is not None and known is tool and offered.id == tool_id:
            return offered
        return tool.offer(tool_id, self._definitions[server])


def _unusable(offer: ServerOffer) -> list[tuple[str, Tool]]:
    """Give the tools that cannot be offered, each with a label unique on its server."""
    return [
        (f"{tool.name}_{position}", tool)
        for position, tool in enumerate(offer.tools, start=1)
        if not tool.is_usable
    ]
