"""What an opened folder brings: read strictly, judged, and taken up only after a yes.

Reading takes effect in nothing. No reference is expanded, no program looked at beyond where it
lies, and no word counts until the gate, which knows what the user said of this folder with this
content, lets it in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

from tui.engine.settings.definitions import ServerDefinition, SettingsProblem
from tui.engine.settings.dotenv import leads_out, read_dotenv
from tui.engine.settings.expansion import references_in
from tui.engine.settings.places import LayerFile
from tui.engine.settings.scope import counting_keys
from tui.engine.settings.servers import Entry
from tui.engine.settings.source import Source, known_keys, read_source, salvage
from tui.model.servers import ServerId, ServerStatus
from tui.model.settings import (
    MAX_PATTERNS,
    GemdeckSettings,
    McpSettings,
    ServerSettings,
    ToolPattern,
)
from tui.model.trust import FolderTrust, TrustRequest
from tui.text import sanitize_line

DENY_KEY: Final = "alwaysDeny"
"""The key under ``gemdeck`` that forbids tools."""

_WITHOUT_EFFECT: Final = known_keys(ServerSettings) - counting_keys("mcpServers.*")
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProjectRules:
    """What a project forbids, and the limits it lowers.

    Attributes:
        allowed: If not None, only these servers start; lower case, as `mcp.allowed` compares.
        excluded: These do not; likewise.
        always_deny: Tools that never run.
        max_tool_calls: The most calls one turn may make, or None.
        max_result_size: The most characters of one result for the model, or None.
        idle_timeout: The longest silence in seconds, or None.
        sources: Where `allowed` and `excluded` stand, as shown.
    """

    allowed: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()
    always_deny: tuple[ToolPattern, ...] = ()
    max_tool_calls: int | None = None
    max_result_size: int | None = None
    idle_timeout: float | None = None
    source: str = ""

    def words(self) -> tuple[str, ...]:
        """Say in sentences what the rules do."""
        said: list[str] = []
        if self.allowed is not None:
            names = ", ".join(sorted(self.allowed)) or "none at all"
            said.append(f"Only these servers start, your own included: {names}.")
        if self.excluded:
            said.append(f"These servers do not start: {', '.join(sorted(self.excluded))}.")
        said += [f"The tool {p.tool} of {p.server} never runs." for p in self.always_deny]
        if self.max_tool_calls is not None:
            said.append(f"A turn makes at most {self.max_tool_calls} tool calls.")
        if self.max_result_size is not None:
            said.append(f"The model gets at most {self.max_result_size} characters of a result.")
        if self.idle_timeout is not None:
            said.append(f"An answer counts as cut off after {self.idle_timeout:g} s of silence.")
        return tuple(map(sanitize_line, said))


@dataclass(frozen=True, slots=True)
class ProjectOffer:
    """What a folder brings, unexpanded.

    Attributes:
        servers: Its servers; none of them has seen a variable of the user's.
        rules: What it forbids.
        variables: Those variables of its ``.env`` that its servers refer to.
        variables_file: The ``.env``, as shown.
    """

    servers: tuple[ServerDefinition, ...] = ()
    rules: ProjectRules = ProjectRules()
    variables: Mapping[str, str] = field(default_factory=lambda: _NONE, repr=False)
    variables_file: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say yes to: no rule, and no server that could run."""
        runs = any(server.withheld is not ServerStatus.INVALID for server in self.servers)
        return not runs and self.rules == ProjectRules(source=self.rules.source)


@dataclass(frozen=True, slots=True)
class ProjectVerdict:
    """What the user's word means for what a folder brings.

    Attributes:
        trust: The word.
        servers: Those of its servers that may run.
        rules: Whether what it forbids takes effect.
        forbidden: What it forbade when it was trusted last; that holds where `rules` does not.
        refused: Servers of the user's own settings that were refused, see `Newcomers`.
        offer: What it brings; None where its files were not read.
        hash: The hash of that, to tell it from what it brings later.
        question: What to ask the user, with an empty id, or None.
        folder: What tells the folder it is about from another one at its place.
        source: What trust rests on beside the user's own answers, or nothing.
    """

    trust: FolderTrust = FolderTrust.UNTRUSTED
    servers: frozenset[ServerId] = frozenset()
    rules: bool = False
    offer: ProjectOffer | None = None
    hash: str = ""
    question: TrustRequest | None = None
    folder: tuple[object, ...] = ()
    source: str = ""
    forbidden: ProjectRules = ProjectRules()
    refused: Mapping[str, str] = field(default_factory=lambda: _NONE)

    @property
    def standing_rules(self) -> ProjectRules:
        """The rules that take effect: those of now where they are trusted, else those of then."""
        return self.offer.rules if self.offer is not None and self.rules else self.forbidden


class ProjectGate(Protocol):
    """Knows what the user said of the opened folder. Is asked in the thread that reads."""

    @property
    def salt(self) -> bytes:
        """The salt of this installation, for fingerprints."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells this folder from another one at its place."""

    def may_read(self) -> bool:
        """Tell, from the folder's identity alone, whether its files may be read."""

    def judge(self, offer: ProjectOffer | None) -> ProjectVerdict:
        """Tell what of this content may take effect; None where nothing was read."""


class ClosedGate:
    """Lets a folder's files be read and nothing of them take effect."""

    @property
    def salt(self) -> bytes:
        """Give none."""
        return b""

    @property
    def identity(self) -> tuple[object, ...]:
        """Know none."""
        return ()

    def may_read(self) -> bool:
        """Say yes."""
        return True

    def judge(self, offer: ProjectOffer | None) -> ProjectVerdict:
        """Let nothing take effect."""
        return ProjectVerdict(offer=offer)


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The files of a folder.

    Attributes:
        sources: Its settings files, the lowest first.
        dotenv: Its ``.env`` as shown, and the variables in it.
    """

    sources: tuple[Source, ...]
    dotenv: tuple[str, Mapping[str, str]]


def read_project(
    layers: Sequence[LayerFile], folder: Path, home: Path, problems: list[SettingsProblem]
) -> ProjectFiles:
    """Read the settings files of a folder; its ``.env`` only where one of them refers to variables.

    Args:
        layers: The files that may be there.
        folder: The folder.
        home: The user's home.
        problems: Takes what is wrong.
    """
    found = [
        read_source(layer.origin, layer.path, home, problems)
        for layer in layers
        if not leads_out(layer.path, folder, home, problems)
    ]
    sources = tuple(source for source in found if source is not None)
    refers = any(references_in(source.document.content.get("mcpServers")) for source in sources)
    return ProjectFiles(sources, read_dotenv(folder, home, problems) if refers else ("", _NONE))


def project_entries(
    sources: Sequence[Source], problems: list[SettingsProblem]
) -> tuple[Entry, ...]:
    """Give the servers of a folder without the keys that have no effect there."""
    merged: dict[str, Entry] = {}
    for source in sources:
        for name, raw in source.section("mcpServers", problems).items():
            path = ("mcpServers", name)
            merged[name] = Entry(name, _counting(raw, source, path, problems), source, path)
    return tuple(merged.values())


def project_rules(sources: Sequence[Source], problems: list[SettingsProblem]) -> ProjectRules:
    """Read what a folder forbids; the lowest limit counts. References are not expanded here."""
    rules = ProjectRules()
    for source in sources:
        _report_ignored(source, problems)
        mcp = salvage(McpSettings, _counting_part(source, "mcp"), source, ("mcp",), problems)
        raw = _counting_part(source, "gemdeck")
        denied = denied_tools(raw.pop(DENY_KEY, None), source, problems)
        own = salvage(GemdeckSettings, raw, source, ("gemdeck",), problems)
        given = own.model_fields_set
        allowed = rules.allowed
        if _counting_part(source, "mcp").get("allowed") is not None:
            names = frozenset(map(compared, mcp.allowed or ()))
            allowed = names if allowed is None else allowed & names
        rules = ProjectRules(
            allowed,
            rules.excluded | frozenset(map(compared, mcp.excluded)),
            rules.always_deny + denied,
            own.max_tool_calls if "max_tool_calls" in given else rules.max_tool_calls,
            own.max_result_size if "max_result_size" in given else rules.max_result_size,
            own.idle_timeout if "idle_timeout" in given else rules.idle_timeout,
            source.file,
        )
    return rules


def denied_tools(
    raw: object, source: Source, problems: list[SettingsProblem]
) -> tuple[ToolPattern, ...]:
    """Read ``gemdeck.alwaysDeny`` item by item; what is no list of fit length forbids all tools."""
    path = ("gemdeck", DENY_KEY)
    if raw is None:
        return ()
    if not isinstance(raw, list) or len(raw) > MAX_PATTERNS:
        message = f"no tool runs until this is a list of at most {MAX_PATTERNS} rules: [ … ]"
        problems.append(source.problem(path, message))
        return (ToolPattern(),)
    found: tuple[ToolPattern, ...] = ()
    for index, item in enumerate(raw):
        wrong: list[SettingsProblem] = []
        section = salvage(GemdeckSettings, {DENY_KEY: [item]}, source, ("gemdeck",), wrong)
        found += section.always_deny
        line = source.document.line_of((*path, index))
        problems += [replace(problem, line=line) for problem in wrong[:1]]
    return found


def used_variables(
    servers: Sequence[ServerDefinition], variables: Mapping[str, str]
) -> Mapping[str, str]:
    """Give those variables that servers refer to; the others have no effect at all."""
    names = {name for server in servers for name in references_in(dict(server.written))}
    return MappingProxyType({name: variables[name] for name in variables if name in names})


def compared(name: str) -> str:
    """Give a server's name as gemini-cli compares it in the lists of `mcp`."""
    return name.strip().lower()


def _counting_part(source: Source, name: str) -> dict[str, Any]:
    """Give the keys of a section that count in a project's file."""
    value = source.document.content.get(name)
    kept = counting_keys(name)
    return {key: value[key] for key in value if key in kept} if isinstance(value, dict) else {}


def _counting(
    raw: object, source: Source, path: tuple[str, str], problems: list[SettingsProblem]
) -> object:
    """Leave out the keys of an entry that have no effect in a project's file, and say so."""
    if not isinstance(raw, dict):
        return raw
    ignored = [key for key in raw if key in _WITHOUT_EFFECT]
    problems += [
        source.problem((*path, key), "has no effect in a project's file")
        for key in ignored
        if raw[key] not in (None, False, "false")
    ]
    return {key: value for key, value in raw.items() if key not in ignored}


def _report_ignored(source: Source, problems: list[SettingsProblem]) -> None:
    """Say which keys would mean something in the user's file and mean nothing here."""
    content = source.document.content
    ignored: list[tuple[str, ...]] = [("model",)] if content.get("model") is not None else []
    for name, model in (("mcp", McpSettings), ("gemdeck", GemdeckSettings)):
        section = content.get(name)
        without = known_keys(model) - counting_keys(name)
        ignored += (
            [(name, key) for key in section if key in without] if isinstance(section, dict) else []
        )
    if ignored:
        words = ", ".join(".".join(path) for path in ignored)
        message = (
            f"a project's file may only add servers, forbid and lower limits; ignored: {words}"
        )
        problems.append(source.problem(ignored[0], message))
