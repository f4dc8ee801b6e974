"""Turn entries of ``mcpServers`` into validated definitions."""

import copy
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from tui.engine.definitions.definition import (
    REVIEW_ADVICE,
    Endpoint,
    Entry,
    Inheritance,
    Launch,
    Sandbox,
    ServerDefinition,
    SettingsProblem,
    SignInSettings,
    preview_of,
)
from tui.engine.definitions.expansion import (
    KEYRING,
    Expansion,
    KeyPath,
    references_in,
    secret_names,
)
from tui.engine.definitions.fingerprint import Identifier, Installation
from tui.engine.definitions.programs import fetches
from tui.engine.logs.redaction import is_secret_variable
from tui.engine.settings.sources.source import (
    MAX_ENTRY_PROBLEMS,
    MAX_SERVERS,
    Source,
    expansion_problems,
    known_keys,
    validation_problems,
)
from tui.model.bounded_json import as_list, as_object, as_texts
from tui.model.frozen import Frozen
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.model.settings import OAUTH_SECRETS, OAuthSettings, SandboxSettings, ServerSettings
from tui.text import sanitize_line

MAX_NAME: Final = 64
"""Longest name of a server, in characters."""

_TARGETS: Final = ("command", "url", "httpUrl", "tcp")

_TARGET_ORDER: Final = ("httpUrl", "url", "command")
_SPARE: Final = frozenset(
    {"authProviderType", "description", "tcp", "timeout", "transportType", "trust", "type"}
)
"""Keys without which a server is reached all the same, and may do no more."""

_NO_OBJECT: Final = frozenset({"dict_type", "model_type"})
"""Errors of a value that must be an object; gemini-cli goes on without it."""

KNOWN: Final = known_keys(ServerSettings)
SWITCHES: Final = {"disabled": "false", "enabled": "true"}
"""Keys by which other clients turn a server off, unless they have this value."""
RENAMED: Final = {
    **{"serverUrl": "url", "transport": "type", "disabledTools": "excludeTools"},
    "environment": "env",  # opencode
    **{"cmd": "command", "uri": "url", "envs": "env", "available_tools": "includeTools"},  # goose
}
"""Keys that clients spell otherwise, and ours."""
KNOWN_OAUTH: Final = known_keys(OAuthSettings)
_GRANTS: Final = frozenset(
    {"alwaysAllow", "alwaysAllowed", "autoApprove", "autoApproved", "autoAllow", "allowedTools"}
)
"""Keys by which other clients let tools run unasked."""

MAX_DESCRIPTION: Final = 500
"""Longest description of a server, in characters."""

_EMPTY: Final[Mapping[str, object]] = MappingProxyType({})
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_BLANKABLE: Final = frozenset({"env", "headers"})
"""Keys below which a variable that is not set is empty, as in gemini-cli."""


class RawEntry(Frozen):
    """One server's entry in a file.

    Attributes:
        name: Its raw name.
        raw: Its value.
        source: The file.
        path: Its key in that file.
        changes: The user's entry that changes it, for an extension's server.
    """

    name: str
    raw: object = field(repr=False)
    source: Source
    path: KeyPath
    changes: "RawEntry | None" = None

    @property
    def project(self) -> bool:
        return self.source.origin is Origin.PROJECT

    def changed_by(self, changes: "RawEntry") -> "RawEntry":
        """Return an extension's entry with the user's changes, merged as gemini-cli does."""
        raw, own = self.raw, changes.raw
        if not isinstance(raw, dict) or not isinstance(own, dict):
            return changes
        merged = {**raw, **own}
        if isinstance(env := raw.get("env"), dict) and isinstance(own.get("env"), dict):
            merged["env"] = {**env, **own["env"]}
        excluded, excluded_too = _names(raw.get("excludeTools")), _names(own.get("excludeTools"))
        if excluded is not None and excluded_too is not None:
            merged["excludeTools"] = [*excluded, *excluded_too]
        included, included_too = _names(raw.get("includeTools")), _names(own.get("includeTools"))
        if included is not None and included_too is not None:
            both = set(map(tool_name, included))
            merged["includeTools"] = [name for name in included_too if tool_name(name) in both]
        return replace(self, raw=merged, changes=changes)

    def problem(self, message: str, *keys: str | int) -> SettingsProblem:
        """Make a problem with a key, in the file where that key stands."""
        match self.changes:
            case RawEntry(raw=dict() as own) as changes if keys and keys[0] in own:
                return changes.problem(message, *keys)
        return self.source.problem((*self.path, *keys), message)


def reaches(raw: object) -> bool:
    """Return whether an entry says how to reach its server, or is none."""
    return not isinstance(raw, dict) or any(raw.get(key) for key in _TARGETS)


def _names(value: object) -> list[str] | None:
    """Return a list of names; None where it is none, or none is given."""
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return None
    return value


def is_gemdeck(raw: object) -> bool:
    """Return whether a client's entry starts gemdeck, to be served by it."""
    entry = as_object(raw)
    words = [str(entry.get("command", "")), *map(str, as_list(entry.get("args")))]
    served = zip(words, words[1:], words[2:], strict=False)
    return any(Path(one).name == "gemdeck" and rest == ["mcp", "serve"] for one, *rest in served)


def server_entries(sources: Iterable[Source]) -> Iterable[RawEntry]:
    """Merge the servers of files, lowest layer first: a higher layer replaces a whole entry.

    Those that are gemdeck itself are for gemini-cli, whose settings these are as well.
    """
    merged: dict[str, RawEntry] = {}
    for source in sources:
        found = source.section("mcpServers")
        names = list(found)
        for name in (one for one in names[:MAX_SERVERS] if not is_gemdeck(found[one])):
            merged[name] = RawEntry(name, found[name], source, ("mcpServers", name))
        if rest := names[MAX_SERVERS:]:
            named = ", ".join(map(server_id, rest[:MAX_ENTRY_PROBLEMS]))
            more = len(rest) - MAX_ENTRY_PROBLEMS
            words = f"only the first {MAX_SERVERS} servers are used; ignored: {named}"
            source.note(("mcpServers", rest[0]), words + (f" and {more} more" if more > 0 else ""))
    return merged.values()


def server_id(name: str) -> ServerId:
    """Return the id for a raw name; empty if nothing of the name can be displayed."""
    return ServerId(sanitize_line(name, MAX_NAME))


def tool_name(entry: str) -> str:
    """Take ``tool(…)`` for the tool, as gemini-cli does in `includeTools`."""
    return entry.partition("(")[0] or entry


def known_part(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that mean something."""
    known = {key: value for key, value in raw.items() if key in KNOWN}
    if isinstance(oauth := known.get("oauth"), dict):
        known["oauth"] = {key: value for key, value in oauth.items() if key in KNOWN_OAUTH}
    return known


def salvaged(raw: Mapping[str, Any]) -> tuple[ServerSettings, list[tuple[KeyPath, str]]]:
    """Validate an entry without what is wrong and neither reaches nor restricts the server.

    Returns:
        The settings, and what was left out, with the reasons.

    Raises:
        ValidationError: If anything else is wrong.
    """
    try:
        return ServerSettings.model_validate(raw), []
    except ValidationError as error:
        given = (at for at, key in enumerate(_TARGET_ORDER) if raw.get(key))
        spare = _SPARE.union(_TARGET_ORDER[next(given, len(_TARGET_ORDER)) + 1 :])
        kept: dict[Any, Any] = {key: copy.copy(raw[key]) for key in raw}
        for details in error.errors(include_url=False):
            key, *below = details["loc"] or ("",)
            if key in spare or (details["type"] in _NO_OBJECT and not below):
                kept.pop(key, None)
            elif key in _BLANKABLE and details["type"] == "string_type":
                kept[key].pop(below[0], None)
            else:
                raise
        return ServerSettings.model_validate(kept), validation_problems(error)


def words_on(key: str, known: frozenset[str]) -> str:
    """Say what is wrong with a key that is not known."""
    if key in _GRANTS:
        return "has no effect; use gemdeck.alwaysAllow, or choose `always` when asked"
    near = difflib.get_close_matches(key[:MAX_NAME], known, n=1, cutoff=0.75)
    near = [RENAMED[key]] if RENAMED.get(key) in known else near
    return f"unknown key, ignored; did you mean {near[0]}?" if near else "unknown key, ignored"


KINDS: Final = {
    "httpUrl": {Transport.HTTP},
    "url": {Transport.HTTP, Transport.SSE},
    "command": {Transport.STDIO},
}
"""The transports by which each kind of target is reached."""


class ServerReader:
    """Turns entries into definitions; a bad one becomes an invalid definition.

    Args:
        environ: Variables for expansion, and the `PATH` in which programs are looked up.
        inheritance: Which variables servers inherit.
        sandbox: The sandbox of the user's servers whose entries do not set one.
        folder: The opened folder.
        home: The user's home.
        known: The salt of fingerprints, and what tells the folder from another.

    Attributes:
        problems: What was found wrong so far.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        inheritance: Inheritance,
        sandbox: SandboxSettings | None,
        *,
        folder: Path,
        home: Path,
        known: Installation,
    ) -> None:
        self.problems: list[SettingsProblem] = []
        self._environ = environ
        self._inheritance = inheritance
        self._sandbox = sandbox
        self.folder = folder
        self.home = home
        self._variables = _NONE
        self._taken: set[str] = set()
        self._identify = Identifier(environ, folder, home, known)

    def fork(self, variables: Mapping[str, str]) -> "ServerReader":
        """Return a reader for the opened folder's servers, with its variables."""
        other = copy.copy(self)
        other.problems, other._taken, other._variables = [], set(self._taken), variables
        return other

    def read(self, entry: RawEntry) -> ServerDefinition:
        """Read one entry. Its id is its name, made distinct where another has that name."""
        base = server_id(entry.name)
        number = 1
        server = base or "unnamed"
        while server in self._taken:
            number += 1
            server = ServerId(f"{(base or 'unnamed')[: MAX_NAME - 6]} ({number})")
        self._taken.add(server)
        definition = self._identify(self._define(entry, ServerId(server)))
        if not base:
            return self._refuse(definition, entry, "the server name must not be empty")
        if number > 1:
            return self._refuse(definition, entry, f"another server is already named {base}")
        return definition

    def _define(self, entry: RawEntry, server: ServerId) -> ServerDefinition:
        """Validate an entry; the definition is withheld where it must not start."""
        source = entry.source
        blank = ServerDefinition(
            server,
            Transport.STDIO,
            Entry(
                source.origin,
                source.file,
                source.document.line_of(entry.path),
                source.extension,
                written=MappingProxyType(entry.raw) if isinstance(entry.raw, dict) else _EMPTY,
            ),
            Launch(inheritance=self._inheritance),
        )
        if not isinstance(entry.raw, dict):
            return self._refuse(blank, entry, "must be an object: { … }")
        if words := _misplaced(entry):
            return self._refuse(_sketch(blank, entry.raw, frozenset()), entry, words)
        own = {key: self._environ[key] for key in self._environ if key not in source.variables}
        expansion = Expansion(self._variables_of(entry), blank=_BLANKABLE)
        preview = preview_of(entry.raw, expansion, own)
        named = secret_names(entry.raw)
        blank = replace(blank, entry=replace(blank.entry, preview=preview, named=named))
        raw = preview.whole
        self.problems += expansion_problems(
            expansion, (), lambda where, words: entry.problem(words, *where)
        )
        self._report_unknown(entry, raw)
        try:
            settings, slips = salvaged(known_part(raw))
        except ValidationError as error:
            found = [entry.problem(words, *keys) for keys, words in validation_problems(error)]
            self.problems += found
            return _invalid(_sketch(blank, raw, expansion.secrets), found[0])
        for keys, words in slips:
            self._note(entry, f"{words}; ignored", *keys)
        self._report_ignored(entry, settings)
        definition = self._from_settings(blank, settings, expansion.secrets)
        if env := source.env:
            secret = frozenset(v for name, v in env.items() if is_secret_variable(name, v))
            everything = MappingProxyType({**env, **definition.launch.env})
            secret |= definition.secrets | source.secrets
            launch = replace(definition.launch, env=everything)
            definition = replace(definition, launch=launch, secrets=secret)
        if names := source.kept:
            read = references_in(dict(entry.raw))
            own = {name: self._environ.get(name, "") if name in read else "" for name in names}
            secrets = definition.secrets - {source.variables[name] for name in names}
            kept = MappingProxyType(own)
            launch = replace(definition.launch, keychain=source.keychain, kept=kept)
            definition = replace(definition, launch=launch, secrets=secrets)
        if entry.project:
            definition = replace(definition, trust=False)
        said = ((raw[key], plain) for key, plain in SWITCHES.items() if raw.get(key) is not None)
        if any(str(value).strip().lower() != plain for value, plain in said):
            advice = f"Enable it here for now, or remove the key in {source.file}."
            reason = "Disabled: turned off in its settings entry."
            return definition.held(ServerStatus.DISABLED, reason, advice, may_enable=True)
        return definition

    def _note(self, entry: RawEntry, message: str, *keys: str | int) -> None:
        self.problems.append(entry.problem(message, *keys))

    def _variables_of(self, entry: RawEntry) -> Mapping[str, str]:
        """Return the variables for an entry: the process's own win over the folder's."""
        brought = self._variables if entry.project else _NONE
        return {**brought, **self._environ, **entry.source.variables}

    def _from_settings(
        self, blank: ServerDefinition, settings: ServerSettings, secrets: frozenset[str]
    ) -> ServerDefinition:
        include, transport = settings.include_tools, _transport(settings)
        is_local = transport is Transport.STDIO
        own = (settings.command or "", *settings.args) if is_local else settings.headers_command
        is_bare = settings.url is not None and settings.http_url is None
        return replace(
            blank,
            transport=transport,
            launch=replace(
                blank.launch,
                command=own[0] if own else "",
                args=own[1:],
                env=MappingProxyType(dict(settings.env)),
                cwd=self._folder_of(settings.cwd),
                sandbox=self._sandbox_of(settings, is_project=blank.entry.origin is Origin.PROJECT),
            ),
            endpoint=Endpoint(
                settings.http_url or settings.url or "",
                MappingProxyType(dict(settings.headers)),
                SignInSettings(
                    settings.oauth or OAuthSettings(),
                    settings.auth_provider_type,
                    settings.target_audience or "",
                    settings.target_service_account or "",
                ),
                settings.tls,
                is_bare and settings.named_transport in {None, Transport.STDIO},
            ),
            timeout=settings.timeout / 1000,
            trust=settings.trust,
            review_results=settings.review_results,
            start=settings.start,
            description=sanitize_line(settings.description, MAX_DESCRIPTION),
            include_tools=None if include is None else frozenset(map(tool_name, include)),
            exclude_tools=frozenset(settings.exclude_tools),
            secrets=secrets | _own_secrets(settings),
        )

    def _sandbox_of(self, settings: ServerSettings, *, is_project: bool) -> Sandbox | None:
        """Return the sandbox of an entry, or the one of servers that do not set any.

        A project's has the network by itself only if it could not fetch its program without.
        """
        found = settings.sandbox
        if "sandbox" not in settings.model_fields_set:
            network = fetches(settings.command or "", settings.args)
            found = SandboxSettings(network=network) if is_project else self._sandbox
        if found is None:
            return None
        read, write = (tuple(map(self._path_of, paths)) for paths in (found.read, found.write))
        return Sandbox(read, write, found.network, tuple(map(str.upper, found.env)))

    def _folder_of(self, cwd: str | None) -> Path | None:
        """Read a working folder: ``~`` is the home, a relative one is under the opened folder."""
        return self._path_of(cwd) if cwd else None

    def _path_of(self, text: str) -> Path:
        if text == "~" or text.startswith("~/"):
            return self.home / text[2:]
        return self.folder / text

    def _report_unknown(self, entry: RawEntry, raw: Mapping[str, Any]) -> None:
        """Report unknown keys, such as those of other clients."""
        for key in [key for key in raw if key not in {*KNOWN, *SWITCHES}][:MAX_ENTRY_PROBLEMS]:
            self._note(entry, words_on(key, KNOWN), key)
        signs_in = as_object(raw.get("oauth"))
        for key in [key for key in signs_in if key not in KNOWN_OAUTH][:MAX_ENTRY_PROBLEMS]:
            self._note(entry, words_on(key, KNOWN_OAUTH), "oauth", key)
        for key in [key for key in SWITCHES if not isinstance(raw.get(key, False), bool | str)]:
            self._note(entry, "must be true or false", key)
        if isinstance(args := raw.get("args"), str) and len(args.split()) > 1:
            self._note(entry, "is a single argument; to pass several, write a list", "args")

    def _report_ignored(self, entry: RawEntry, settings: ServerSettings) -> None:
        """Report keys that are valid but have no effect."""
        used = "httpUrl" if settings.http_url else "url" if settings.url else "command"
        kind, named = "type" if settings.type else "transportType", settings.named_transport
        ignored = {
            "url": settings.url and used == "httpUrl",
            "command": settings.command and used != "command",
            "headersCommand": settings.headers_command and used == "command",
            "tls": settings.tls and used == "command",
            "sandbox": settings.sandbox and used != "command" and not settings.headers_command,
            kind: named is not None and named not in KINDS[used],
        }
        for key in (key for key, is_so in ignored.items() if is_so):
            self._note(entry, f"ignored because of {used}", key)
        if settings.tcp:
            self._note(entry, "tcp is not supported; ignored", "tcp")

    def _refuse(
        self, definition: ServerDefinition, entry: RawEntry, message: str
    ) -> ServerDefinition:
        problem = entry.problem(message)
        self.problems.append(problem)
        return _invalid(replace(definition, trust=False), problem)


def _invalid(definition: ServerDefinition, problem: SettingsProblem) -> ServerDefinition:
    place = f"{problem.file}, line {problem.line}" if problem.line else problem.file
    reason = f"{problem.key}: {problem.message}"
    advice = f"Fix {place}; gemdeck then reloads it."
    return definition.held(ServerStatus.INVALID, reason, advice)


def as_written(one: ServerDefinition) -> ServerDefinition:
    """Return a server of an untrusted folder, with nothing filled in; it does not start."""
    raw, none = one.entry.written, frozenset[str]()
    if one.withheld is ServerStatus.INVALID and not references_in(dict(raw)):
        return one
    blank = ServerDefinition(
        one.id,
        one.transport,
        replace(one.entry, extension="", named=frozenset()),
        Launch(inheritance=one.launch.inheritance, program=one.launch.program),
        start=one.start,
        fingerprint=one.fingerprint,
        description=sanitize_line(str(raw.get("description", "")), MAX_DESCRIPTION),
    )
    reason = "Not started: it is defined by an untrusted folder."
    return _sketch(blank, raw, none).held(ServerStatus.UNTRUSTED, reason, REVIEW_ADVICE)


def _misplaced(entry: RawEntry) -> str:
    """Say why an entry may not name the secrets that it names, or return an empty string.

    Only the user's own entry may, and only where it is filled in: what comes with a folder or an
    extension must never be sent one.
    """
    given = entry.changes if entry.source.extension else entry
    own = secret_names(given.raw) if given is not None and not entry.project else frozenset()
    if secret_names(entry.raw) - own:
        return "only your own settings can refer to your secrets, ${keyring:…}"
    raw = as_object(entry.raw)
    signs_in = as_object(raw.get("oauth"))
    elsewhere = [raw[key] for key in raw if key not in {*_BLANKABLE, "oauth"}]
    elsewhere += [signs_in[key] for key in signs_in if key not in OAUTH_SECRETS]
    words = "${keyring:…} works only in env, headers and the secrets of oauth"
    return words if secret_names(elsewhere) else ""


def _transport(settings: ServerSettings) -> Transport:
    if not (settings.http_url or settings.url):
        return Transport.STDIO
    if not settings.http_url and settings.named_transport is Transport.SSE:
        return Transport.SSE
    return Transport.HTTP


def _own_secrets(settings: ServerSettings) -> frozenset[str]:
    """Collect the values that the entry itself calls secret by the names it gives them."""
    named = [*settings.env.items(), *settings.headers.items()]
    values = {value for name, value in named if is_secret_variable(name, value)}
    values |= {value.partition(" ")[2].strip() for value in values if " " in value}
    if (oauth := settings.oauth) is not None:
        values |= {secret.get_secret_value() for secret in oauth.secrets().values()}
    return frozenset(value for value in values if not KEYRING.fullmatch(value))


def _sketch(
    blank: ServerDefinition, raw: Mapping[str, Any], secrets: frozenset[str]
) -> ServerDefinition:
    """Return an invalid server with enough fields to recognize it on the screen."""
    address = next((raw[key] for key in ("httpUrl", "url") if isinstance(raw.get(key), str)), "")
    command = raw.get("command")
    is_local = not address and isinstance(command, str)
    return replace(
        blank,
        transport=Transport.HTTP if address else blank.transport,
        launch=replace(
            blank.launch,
            command=str(command) if is_local else "",
            args=tuple(as_texts(raw.get("args"))) if is_local else (),
        ),
        endpoint=Endpoint(address),
        secrets=secrets,
    )
