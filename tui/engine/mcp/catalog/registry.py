"""The tools and prompts of all servers: their unique names, and which the model holds."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.offer import MAX_LISTED, RawOffer, ServerOffer, Tool, not_included
from tui.engine.mcp.catalog.offered_tool import (
    OWN_NAMES,
    OfferedTool,
    assign_names,
    assign_prompt_names,
)
from tui.engine.mcp.catalog.skill_entry import Skill
from tui.model.catalog import Catalog, Off, PromptView, ToolId, ToolView
from tui.model.frozen import Frozen
from tui.model.servers import ServerId
from tui.model.settings import EVERYTHING, Profile
from tui.model.settings_rules import DEFAULT_MAX_TOOLS, DEFAULT_TOOL_SHARE

MAX_DECLARED_BYTES: Final = 1_000_000
"""Bytes of all declarations together, however large the model's context is."""

USUAL_CONTEXT: Final = 1_048_576
"""Tokens of a context of unknown size."""

BYTES_PER_TOKEN: Final = 4
"""Bytes of a declaration that count as one token."""

MAX_FOUND: Final = 8
"""Tools that one search finds."""

MIN_SCORE: Final = 0.3
"""Share of the best score that others need to be found, too."""

MAX_QUERY: Final = 500
"""Characters of a query that count."""

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")

Key = tuple[ServerId, str]
"""A server and the tool's name there."""


@dataclass(slots=True)
class Budget:
    """How many tools the model holds at most.

    Attributes:
        max_tools: Their number.
        share: What they may take of its context, in percent.
        context: The size of that, in tokens; 0 if unknown.
    """

    max_tools: int = DEFAULT_MAX_TOOLS
    share: float = DEFAULT_TOOL_SHARE
    context: int = 0

    @property
    def max_bytes(self) -> int:
        tokens = (self.context or USUAL_CONTEXT) * self.share / 100
        return min(MAX_DECLARED_BYTES, int(tokens * BYTES_PER_TOKEN))

    def words(self) -> str:
        return f"{self.max_tools:,} or {self.share:g} % of its context"


class Holding:
    """Decides which tools the model holds.

    If all fit, it holds all. If not, half of the budget is shared among the servers, and the
    other half is for what the model loads, of which the newest stay.

    Args:
        budget: Returns the budget.
    """

    def __init__(self, budget: Callable[[], Budget]) -> None:
        self._budget = budget
        self._loaded: dict[Key, None] = {}

    def load(self, keys: Iterable[Key]) -> None:
        """Let the model hold these from now on."""
        for key in keys:
            self._loaded.pop(key, None)
            self._loaded[key] = None

    def beyond(self, tools: Mapping[ServerId, Sequence[Tool]]) -> frozenset[Key]:
        """Return the tools that the model does not hold."""
        budget = self._budget()
        every = {(server, tool.name): tool for server, own in tools.items() for tool in own}
        count, size = len(every), sum(tool.view.size for tool in every.values())
        if count <= budget.max_tools and size <= budget.max_bytes:
            return frozenset()
        held = set(_shared(tools, budget.max_tools // 2, budget.max_bytes // 2))
        room = budget.max_bytes - sum(every[key].view.size for key in held)
        for key in [key for key in reversed(self._loaded) if key in every]:
            if key not in held and len(held) < budget.max_tools and every[key].view.size <= room:
                held.add(key)
                room -= every[key].view.size
        return frozenset(every.keys() - held)


def _shared(tools: Mapping[ServerId, Sequence[Tool]], left: int, room: int) -> Iterable[Key]:
    """Share a number and a size among servers: what one with few does not need, others get."""
    fewest_first = sorted(tools.items(), key=lambda item: len(item[1]))
    for sharers, (server, own) in zip(range(len(tools), 0, -1), fewest_first, strict=True):
        share, bytes_left = left // sharers, room // sharers
        for tool in own:
            if share and tool.view.size <= bytes_left:
                share, left = share - 1, left - 1
                bytes_left, room = bytes_left - tool.view.size, room - tool.view.size
                yield server, tool.name


def search(query: str, tools: Sequence[OfferedTool]) -> list[OfferedTool]:
    """Return the tools that fit best to a query: words in names count most, rare words more."""
    wanted = set(_words(query[:MAX_QUERY]))
    named = [(set(_words(f"{tool.server} {tool.id} {tool.view.title}")), tool) for tool in tools]
    described = [set(_words(tool.view.description)) for tool in tools]
    pairs = list(zip(named, described, strict=True))
    frequency = Counter(word for (names, _), words in pairs for word in names | words)

    def score(names: set[str], words: set[str]) -> float:
        return sum(
            math.log(1 + len(tools) / (1 + frequency[word])) * weight
            for word in wanted
            if (weight := 3 * (word in names) + (word in words))
        )

    scored = [
        (score(names, words) + 10 * (tool.id.casefold() in query.casefold()), tool)
        for (names, tool), words in pairs
    ]
    scored.sort(key=lambda one: -one[0])
    least = scored[0][0] * MIN_SCORE if scored else 0
    return [tool for points, tool in scored[:MAX_FOUND] if points > 0 and points >= least]


def _words(text: str) -> Iterable[str]:
    """Return the words of a text or a name, without a plural's ``s``."""
    return (found.casefold().removesuffix("s") for found in _WORD.findall(text))


class Withheld(Frozen):
    """Why the model does not get a tool.

    Attributes:
        reason: Why nobody does, or an empty string if the user can run it by hand.
        changed: Whether the user has not accepted its change yet.
        off: Who switched it off, or None.
    """

    reason: str = ""
    changed: bool = False
    off: Off | None = None


class ToolVisibility:
    """Decides which tools the model must not see; this base class hides none."""

    async def prepare(self, definition: ServerDefinition) -> None:
        """Get ready to judge a server's tools; awaited before the server is started."""

    def is_known(self, definition: ServerDefinition, tool: Tool) -> bool:  # noqa: ARG002
        """Return whether a server itself has shown this tool with this very definition.

        Asked about what was kept of it, which teaches nothing.
        """
        return True

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

    A server's tools keep their names while it is down, so that a restart changes nothing. Names
    go in settings order until somebody gets a tool under its name, such as the model or a client.
    From then on the name leads to this tool or to none, until its server leaves the settings.

    Args:
        is_ready: Whether a server can be called now, asleep or not; if not, its tools are not
            offered.
        visibility: Decides which tools are withheld from the model.
        budget: Returns how many tools the model holds at most.
        counts: Whether a server's tools count, which it may offer again soon; by default all do.
    """

    def __init__(
        self,
        is_ready: Callable[[ServerId], bool],
        visibility: ToolVisibility,
        budget: Callable[[], Budget] = Budget,
        counts: Callable[[ServerId], bool] = lambda _: True,
    ) -> None:
        self._is_ready, self._counts, self._visibility = is_ready, counts, visibility
        self._holding = Holding(budget)
        self._beyond = frozenset[Key]()
        self._told = False
        self._withheld: dict[ServerId, Mapping[str, Withheld]] = {}
        self._switched: dict[tuple[ServerId, str], set[str | None]] = {}
        self._definitions: dict[ServerId, ServerDefinition] = {}
        self._offers: dict[ServerId, ServerOffer] = {}
        self._catalogs: dict[ServerId, Catalog] = {}
        self._usable: dict[ServerId, dict[str, Tool]] = {}
        self._ids, self._given = dict[Key, ToolId](), dict[Key, ToolId]()
        self._made: dict[Key, tuple[Tool, OfferedTool]] = {}

    def configure(self, definitions: Sequence[ServerDefinition]) -> None:
        """Set the servers, in settings order, and forget the others."""
        self._definitions = {definition.id: definition for definition in definitions}
        self._offers = {s: offer for s, offer in self._offers.items() if s in self._definitions}
        self._withheld = {s: held for s, held in self._withheld.items() if s in self._offers}
        self._made = {}
        self._given = {k: name for k, name in self._given.items() if k[0] in self._definitions}
        self._name_all()

    def update(self, server: ServerId, offer: ServerOffer) -> None:
        """Set the current offer of a server."""
        self._offers[server] = offer
        self._judge(server)
        self._name_all()
        gone = [key for key in self._given if key[0] == server and key not in self._ids]
        for key in gone[:-MAX_LISTED]:  # the oldest, so that a server cannot add to them for ever
            del self._given[key]

    def judge_again(self) -> None:
        """Decide again which tools are withheld, as after a change of the rules."""
        for server in self._offers:
            self._judge(server)
        self._name_all()

    def switch(self, server: ServerId, tool: str | None, *, off: bool) -> None:
        """Switch a tool off for the model, or on again, for this run.

        It holds for what the server is now, not for another one of its name.

        Args:
            server: The server.
            tool: The tool's name, or None for all that it has and gets.
            off: Whether it is off from now on.
        """
        definition, offer = self._definitions.get(server), self._offers.get(server)
        if definition is None or offer is None:
            return
        switched = self._switched.setdefault((server, definition.fingerprint), set())
        if tool is None:
            switched.clear()
        elif not off and None in switched:
            switched |= {one.name for one in offer.tools}
            switched.remove(None)
        (switched.add if off else switched.discard)(tool)
        self._judge(server)
        self._name_all()

    def is_off(self, tool: OfferedTool) -> bool:
        held = self._withheld.get(tool.server, {}).get(tool.name)
        return held is not None and held.off is not None

    def forget(self, server: ServerId) -> None:
        """Forget the offer of a server, as after a change of its definition."""
        if self._offers.pop(server, None) is not None:
            self._name_all()

    def definition(self, server: ServerId) -> ServerDefinition | None:
        return self._definitions.get(server)

    def catalog(self, server: ServerId) -> Catalog:
        return self._catalogs.get(server, Catalog())

    def listed(self, server: ServerId) -> RawOffer:
        """Return the lists of a server as it wrote them."""
        return self._offers.get(server, ServerOffer()).raw

    def skills(self, server: ServerId) -> Sequence[Skill]:
        return self._offers.get(server, ServerOffer()).skills

    def renew_skill(self, server: ServerId, skill: Skill) -> None:
        """Put a skill, as its server describes it now, in place of the listed one."""
        if (offer := self._offers.get(server)) is not None:
            skills = tuple(skill if one.uri == skill.uri else one for one in offer.skills)
            self._offers[server] = replace(offer, skills=skills)
            self._name_all()

    def offered(self, profile: Profile = EVERYTHING) -> tuple[OfferedTool, ...]:
        """Return the tools that can be called, whether the model holds them or not."""
        return self._callable(frozenset(), profile)

    def held(self, profile: Profile = EVERYTHING) -> tuple[OfferedTool, ...]:
        """Return the tools that the model holds, in a profile as if there were no others."""
        beyond = self._beyond if profile is EVERYTHING else self._excess(profile)
        return self._callable(beyond, profile)

    def _callable(self, without: frozenset[Key], profile: Profile) -> tuple[OfferedTool, ...]:
        ready = {server for server in self._offers if self._is_ready(server)}
        return tuple(
            self._offer(key)
            for key in self._ids
            if key[0] in ready and key not in without and self._is_open(key, profile)
        )

    def load(self, tools: Iterable[OfferedTool]) -> None:
        """Let the model hold these tools from now on, in place of what it loaded first."""
        self._holding.load((tool.server, tool.name) for tool in tools)
        self.count_again()

    def newly_exceeds(self) -> bool:
        """Return whether there are more tools than the model holds, once after there were not."""
        told, self._told = self._told, bool(self._beyond)
        return self._told and not told

    def count_again(self) -> None:
        """Decide again which tools the model holds, as after a server came or went."""
        before, self._beyond = self._beyond, self._excess(EVERYTHING)
        if self._beyond == before:
            return
        excess: dict[ServerId, set[ToolId]] = {}
        for key in self._beyond:
            excess.setdefault(key[0], set()).add(self._ids[key])
        for server, catalog in self._catalogs.items():
            self._catalogs[server] = replace(catalog, excess=frozenset(excess.get(server, ())))

    def _excess(self, profile: Profile) -> frozenset[Key]:
        """Return the tools of a profile that the model does not hold, as there are too many."""
        wanted = {
            server: [one for name, one in tools.items() if self._is_open((server, name), profile)]
            for server, tools in self._usable.items()
            if self._counts(server)
        }
        return self._holding.beyond(wanted)

    def current(self, tool: OfferedTool) -> OfferedTool | None:
        """Return the current version of a tool, off or on; None if it is gone or denied.

        A changed one is for calls that the user composes: the model does not get it.
        """
        key = tool.server, tool.name
        held = self._withheld.get(tool.server, {}).get(tool.name)
        is_denied = held is not None and held.reason and not held.changed
        is_gone = key not in self._ids or is_denied
        return None if is_gone else self._offer(key)

    def look_up(self, server: ServerId, shown: str) -> tuple[ToolView, OfferedTool | None] | None:
        """Return the view and the offered tool for a name as shown.

        A tool that cannot be offered has only a view; a withheld one has both.
        """
        views = [tool for tool in self.catalog(server).tools if tool.name == shown]
        if not views:
            return None
        view = min(views, key=lambda tool: bool(tool.problem))  # prefer one without a problem
        key = next((key for key, tool_id in self._ids.items() if tool_id == view.id), None)
        return view, (self._offer(key) if key is not None else None)

    def withheld_tool(self, name: str) -> tuple[OfferedTool, str] | None:
        """Return a tool that the model does not get by its name for it, and the reason."""
        for server, withheld in self._withheld.items():
            for own, held in withheld.items():
                if self._ids.get((server, own)) == name:
                    return self._offer((server, own)), held.reason or str(held.off)
        return None

    def own_prompt_name(self, server: ServerId, name: str) -> str:
        """Return the server's own name of a prompt; return any other text unchanged."""
        own = (one.own_name for one in self.catalog(server).prompts if one.name == name)
        return next(own, "") or name

    def _judge(self, server: ServerId) -> None:
        """Find out which tools of a server the model does not get."""
        definition, tools = self._definitions[server], self._offers[server].tools
        names = [tool.name for tool in tools if tool.is_usable]
        left_out = not_included(names, definition)
        in_question = [tool for tool in tools if tool.name not in left_out]
        withheld = {**self._visibility.withhold(definition, in_question)}
        switched = self._switched.get((server, definition.fingerprint), set())
        for name in names if switched else ():
            if name in switched or None in switched:
                withheld[name] = replace(withheld.get(name, Withheld()), off=Off.SESSION)
        excluded = Withheld(Off.SETTINGS.value, off=Off.SETTINGS)
        self._withheld[server] = withheld | dict.fromkeys(left_out, excluded)

    def _name_all(self) -> None:
        """Assign all names, in settings order."""
        ordered = [(s, self._offers[s]) for s in self._definitions if s in self._offers]
        prompts = self._name_prompts(ordered)
        tools = self._name_tools(ordered)
        self._catalogs = {
            server: Catalog(
                tools[server],
                prompts[server],
                offer.resources,
                offer.templates,
                skills=tuple(skill.view for skill in offer.skills),
            )
            for server, offer in ordered
        }
        self._beyond = frozenset()
        self.count_again()

    def _name_prompts(
        self, ordered: list[tuple[ServerId, ServerOffer]]
    ) -> dict[ServerId, tuple[PromptView, ...]]:
        named = assign_prompt_names([(s, [p.name for p in offer.prompts]) for s, offer in ordered])
        views: dict[ServerId, tuple[PromptView, ...]] = {}
        for (server, offer), names in zip(ordered, named, strict=True):
            renamed = (
                prompt if name == prompt.name else replace(prompt, name=name, own_name=prompt.name)
                for prompt, name in zip(offer.prompts, names, strict=True)
            )
            views[server] = tuple(sorted(renamed, key=lambda prompt: prompt.name.casefold()))
        return views

    def _name_tools(
        self, ordered: list[tuple[ServerId, ServerOffer]]
    ) -> dict[ServerId, tuple[ToolView, ...]]:
        """Name the usable tools first, so that no unusable one takes a name from them.

        Withheld tools keep their names, so that no other tool gets them.
        """
        self._usable = {
            server: {tool.name: tool for tool in offer.tools if tool.is_usable}
            for server, offer in ordered
        }
        self._ids = names = assign_names([*self._usable.items()], OWN_NAMES, self._given)
        labelled = [
            (s, [_label(tool, n) for n, tool in enumerate(offer.tools) if not tool.is_usable])
            for s, offer in ordered
        ]
        labels = assign_names(labelled, reserved=names.values())
        catalogs: dict[ServerId, tuple[ToolView, ...]] = {}
        for server, offer in ordered:
            withheld = self._withheld.get(server, {})
            views = []
            for number, tool in enumerate(offer.tools):
                if not tool.is_usable:
                    views.append(tool.show(labels[server, _label(tool, number)]))
                    continue
                view = tool.show(names[server, tool.name])
                if (held := withheld.get(tool.name)) is not None:
                    view = replace(view, problem=held.reason, changed=held.changed, off=held.off)
                views.append(view)
            catalogs[server] = tuple(views)
        return catalogs

    def _is_open(self, key: Key, profile: Profile) -> bool:
        """Whether a tool is neither withheld nor left out by a profile."""
        return key[1] not in self._withheld.get(key[0], {}) and profile.includes(*key)

    def _offer(self, key: Key) -> OfferedTool:
        """Return a tool under its name; the previous object if neither has changed."""
        tool, tool_id = self._usable[key[0]][key[1]], self._ids[key]
        self._given[key] = tool_id
        known, offered = self._made.get(key, (None, None))
        if offered is None or known is not tool or offered.id != tool_id:
            offered = tool.offer(tool_id, self._definitions[key[0]])
            self._made[key] = tool, offered
        return offered


def _label(tool: Tool, number: int) -> str:
    """Return a label for an unusable tool, unique on its server."""
    return f"{tool.name}_{number + 1}"
