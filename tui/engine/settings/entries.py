"""Turn entries of ``mcpServers`` into validated definitions."""

import copy
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from tui.engine.definitions.definition import (
    REVIEW_ADVICE,
    Inheritance,
    ServerDefinition,
    SettingsProblem,
    SignInSettings,
    preview_of,
)
from tui.engine.definitions.expansion import Expansion, references_in
from tui.engine.definitions.fingerprint import Identifier, Installation
from tui.engine.logs.redaction import is_secret_variable
from tui.engine.settings.raw_entries import (
    KNOWN,
    KNOWN_OAUTH,
    MAX_NAME,
    Entry,
    known_part,
    salvaged,
    server_id,
    tool_name,
    words_on,
)
from tui.engine.settings.sources.source import (
    MAX_ENTRY_PROBLEMS,
    validation_problems,
)
from tui.model.sections.settings_types import MAX_ITEMS, TransportName, names_transport
from tui.model.sections.sign_in_settings import OAuthSettings
from tui.model.servers import Failure, ServerId, ServerStatus, Transport
from tui.model.settings import ServerSettings
from tui.text import sanitize_line

MAX_DESCRIPTION: Final = 500
"""Longest description of a server, in characters."""

_EMPTY: Final[Mapping[str, object]] = MappingProxyType({})
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_BLANKABLE: Final = frozenset({"env", "headers"})
"""Keys below which a variable that is not set is empty, as in gemini-cli."""

_Scalar: Final = str | int | float


class ServerReader:
    """Turns entries into definitions; a bad one becomes an invalid definition.

    Args:
        environ: Variables for expansion, and the `PATH` in which programs are looked up.
        inheritance: Which variables servers inherit.
        developed: The names of the user's servers that the user develops.
        folder: The opened folder.
        home: The user's home.
        gate: Knows the salt of fingerprints, and what tells the folder from another.

    Attributes:
        problems: What was found wrong so far.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        inheritance: Inheritance,
        developed: AbstractSet[str] = frozenset(),
        *,
        folder: Path,
        home: Path,
        gate: Installation,
    ) -> None:
        self.problems: list[SettingsProblem] = []
        self._environ = environ
        self._inheritance = inheritance
        self._developed = developed
        self.folder = folder
        self.home = home
        self._trusted: frozenset[ServerId] = frozenset()
        self._variables = _NONE
        self._taken: set[str] = set()
        self._identify = Identifier(environ, folder, home, gate)

    def fork(
        self, variables: Mapping[str, str], trusted: frozenset[ServerId] = frozenset()
    ) -> "ServerReader":
        """Return a reader for the opened folder's servers, with its own list of problems.

        Args:
            variables: The folder's own variables.
            trusted: The servers that may run; the others are withheld and stay unexpanded.
        """
        other = copy.copy(self)
        other.problems, other._taken = [], set(self._taken)
        other._trusted, other._variables = trusted, variables
        return other

    def read(self, entry: Entry) -> ServerDefinition:
        """Read one entry. Its id is its name, made distinct where another has that name."""
        base = server_id(entry.name)
        number = 1
        server = base or "unnamed"
        while server in self._taken:
            number += 1
            server = ServerId(f"{(base or 'unnamed')[: MAX_NAME - 6]} ({number})")
        self._taken.add(server)
        defined = self._define(entry, ServerId(server))
        definition = self._identify(defined, self._effective(entry, defined))
        if not base:
            return self._refuse(definition, entry, "the name of a server must not be empty")
        if number > 1:
            return self._refuse(definition, entry, f"another server already has the name {base}")
        return definition

    def _define(self, entry: Entry, server: ServerId) -> ServerDefinition:
        """Validate an entry; the definition is withheld where it must not start."""
        origin, extension = entry.source.origin, entry.source.extension
        blank = ServerDefinition(
            server,
            origin,
            Transport.STDIO,
            inheritance=self._inheritance,
            developed=server in self._developed and not entry.project,
            extension=extension,
            source=entry.source.file,
            line=entry.source.document.line_of(entry.path),
            written=MappingProxyType(dict(entry.raw)) if isinstance(entry.raw, dict) else _EMPTY,
        )
        if not isinstance(entry.raw, dict):
            return self._refuse(blank, entry, "must be an object: { … }")
        own = {
            key: self._environ[key] for key in self._environ if key not in entry.source.variables
        }
        usable = self._without_slips(entry, entry.raw)
        preview = preview_of(usable, self._variables_of(entry), own, _BLANKABLE)
        blank = replace(blank, preview=preview)
        withheld = entry.project and server not in self._trusted
        raw, secrets = (usable, frozenset[str]()) if withheld else self._expanded(entry, usable)
        self._report_unknown(entry, raw)
        try:
            settings, slips = salvaged(known_part(raw))
        except ValidationError as error:
            found = [entry.problem(words, *keys) for keys, words in validation_problems(error)]
            sketch = _sketch(blank, raw, secrets)
            if withheld and references_in(dict(raw)):
                return replace(sketch, **_untrusted())  # it may be valid once it is expanded
            self.problems += found
            return replace(sketch, **_invalid(found[0]))
        for keys, words in slips:
            self._note(entry, f"{words}; left out", *keys)
        self._report_ignored(entry, settings)
        definition = self._from_settings(blank, settings, secrets)
        if env := entry.source.env:
            secret = frozenset(v for name, v in env.items() if is_secret_variable(name, v))
            everything = MappingProxyType({**env, **definition.env})
            definition = replace(definition, env=everything, secrets=definition.secrets | secret)
        if entry.project:
            definition = replace(definition, trust=False)
        if withheld:
            return replace(definition, **_untrusted())
        if _says_disabled(raw):
            fields = disabled("the entry says so", _disabled_advice(entry), may_enable=True)
            return replace(definition, **fields)
        return definition

    def _without_slips(self, entry: Entry, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out what gemini-cli warns of and goes on without, with a problem each."""
        kept = dict(raw)
        for key in ("type", "transportType"):
            if kept.get(key) is not None and not names_transport(kept[key]):
                self._note(entry, "no transport has this name, ignored: stdio, sse, http", key)
                del kept[key]
        for key in ("env", "headers", "oauth"):
            if kept.get(key) is not None and not isinstance(kept[key], dict):
                self._note(entry, "must be an object: { … }; left out", key)
                del kept[key]
        for key in sorted(_BLANKABLE):
            values = kept.get(key)
            if not isinstance(values, dict) or len(values) > MAX_ITEMS:
                continue
            bad = [name for name, value in values.items() if not isinstance(value, _Scalar)]
            kept[key] = {name: item for name, item in values.items() if isinstance(item, _Scalar)}
            for name in bad[:MAX_ENTRY_PROBLEMS]:
                self._note(entry, "must be a text, left out", key, name)
        return kept

    def _note(self, entry: Entry, message: str, *keys: str | int) -> None:
        self.problems.append(entry.problem(message, *keys))

    def _effective(self, entry: Entry, definition: ServerDefinition) -> ServerDefinition:
        """Return a server with all its references filled in, whether it may run or not."""
        preview = definition.preview
        if not entry.project or preview is None:
            return definition
        try:
            settings, _ = salvaged(known_part(preview.whole))
        except ValidationError:
            return definition
        return self._from_settings(definition, settings, frozenset())

    def _variables_of(self, entry: Entry) -> Mapping[str, str]:
        """Return the variables for an entry: the process's own win over the folder's."""
        brought = self._variables if entry.project else _NONE
        return {**brought, **self._environ, **entry.source.variables}

    def _expanded(
        self, entry: Entry, raw: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], frozenset[str]]:
        """Expand variables."""
        expansion = Expansion(self._variables_of(entry), blank=_BLANKABLE)
        value, problems = entry.source.expanded(
            raw,
            entry.path,
            expansion,
            lambda where, words: entry.problem(words, *where[len(entry.path) :]),
        )
        self.problems += problems
        return value, frozenset(expansion.secrets)

    def _from_settings(
        self, blank: ServerDefinition, settings: ServerSettings, secrets: frozenset[str]
    ) -> ServerDefinition:
        include, transport = settings.include_tools, _transport(settings)
        is_local = transport is Transport.STDIO
        return replace(
            blank,
            transport=transport,
            command=settings.command or "" if is_local else "",
            args=settings.args if is_local else (),
            env=MappingProxyType(dict(settings.env)),
            cwd=self._folder_of(settings.cwd),
            url=settings.http_url or settings.url or "",
            headers=MappingProxyType(dict(settings.headers)),
            sign_in=SignInSettings(
                settings.oauth or OAuthSettings(),
                settings.auth_provider_type,
                settings.target_audience or "",
                settings.target_service_account or "",
            ),
            sse_fallback=_may_fall_back(settings),
            timeout=settings.timeout / 1000,
            trust=settings.trust,
            review_results=settings.review_results,
            description=sanitize_line(settings.description, MAX_DESCRIPTION),
            include_tools=None if include is None else frozenset(map(tool_name, include)),
            exclude_tools=frozenset(settings.exclude_tools),
            secrets=secrets | _own_secrets(settings),
        )

    def _folder_of(self, cwd: str | None) -> Path | None:
        """Read a working folder: ``~`` is the home, a relative one is under the opened folder."""
        if not cwd:
            return None
        if cwd == "~" or cwd.startswith("~/"):
            return self.home / cwd[2:]
        return self.folder / cwd

    def _report_unknown(self, entry: Entry, raw: Mapping[str, Any]) -> None:
        """Report unknown keys, such as those of other clients."""

        def note(keys: Mapping[str, Any], known: frozenset[str], *above: str) -> None:
            unknown = [key for key in keys if key not in known][:MAX_ENTRY_PROBLEMS]
            self.problems += [entry.problem(words_on(key, known), *above, key) for key in unknown]

        note(raw, KNOWN | {"disabled"})
        if isinstance(oauth := raw.get("oauth"), dict):
            note(oauth, KNOWN_OAUTH, "oauth")
        if not isinstance(raw.get("disabled", False), bool | str):
            self._note(entry, "must be true or false", "disabled")

    def _report_ignored(self, entry: Entry, settings: ServerSettings) -> None:
        """Report keys that are valid but have no effect."""

        def note(key: str, message: str) -> None:
            self._note(entry, message, key)

        named = settings.named_transport
        type_key = "type" if settings.type else "transportType"
        if settings.url and settings.http_url:
            note("httpUrl", 'httpUrl is used and url ignored; keep url with "type": "http"')
        if settings.command and (settings.http_url or settings.url):
            note("command", "ignored beside an address; keep one of them")
        if settings.tcp:
            note("tcp", "tcp is not supported and ignored")
        is_local = _transport(settings) is Transport.STDIO
        if is_local and named in {TransportName.SSE, TransportName.HTTP}:
            note(type_key, f"{named} is ignored beside a command")
        if settings.url and not settings.http_url and named is TransportName.STDIO:
            note(type_key, "stdio is ignored beside an address")
        if settings.http_url and named in {TransportName.SSE, TransportName.STDIO}:
            note(type_key, f"{named} is ignored beside httpUrl")

    def _refuse(self, definition: ServerDefinition, entry: Entry, message: str) -> ServerDefinition:
        problem = entry.problem(message)
        self.problems.append(problem)
        return replace(definition, trust=False, **_invalid(problem))


def disabled(why: str, advice: str, *, may_enable: bool = False) -> dict[str, Any]:
    """Return the fields that mark a definition as disabled."""
    return {
        "withheld": ServerStatus.DISABLED,
        "failure": Failure(f"Disabled: {why}.", sanitize_line(advice)),
        "may_enable": may_enable,
    }


def _invalid(problem: SettingsProblem) -> dict[str, Any]:
    place = f"{problem.file}, line {problem.line}" if problem.line else problem.file
    return {
        "withheld": ServerStatus.INVALID,
        "failure": Failure(
            f"{problem.key}: {problem.message}",
            f"Correct {place}; it is then read again.",
        ),
    }


def _untrusted() -> dict[str, Any]:
    return {
        "withheld": ServerStatus.UNTRUSTED,
        "failure": Failure("Not started: it comes with an untrusted folder.", REVIEW_ADVICE),
    }


def _disabled_advice(entry: Entry) -> str:
    return f"Enable it here for now, or remove the key in {entry.source.file}."


def _says_disabled(raw: Mapping[str, Any]) -> bool:
    """Return whether an entry sets ``disabled`` as other clients do; when unclear, it counts."""
    value = raw.get("disabled", False)
    return value is not None and str(value).strip().lower() != "false"


def _network_transport(settings: ServerSettings) -> TransportName | None:
    """Return the transport named for an address; stdio names none."""
    named = settings.named_transport
    return None if named is TransportName.STDIO else named


def _may_fall_back(settings: ServerSettings) -> bool:
    """Return whether a bare `url` leaves the transport open."""
    bare = settings.url is not None and settings.http_url is None
    return bare and _network_transport(settings) is None


def _transport(settings: ServerSettings) -> Transport:
    if not (settings.http_url or settings.url):
        return Transport.STDIO
    if not settings.http_url and _network_transport(settings) is TransportName.SSE:
        return Transport.SSE
    return Transport.HTTP


def _own_secrets(settings: ServerSettings) -> frozenset[str]:
    """Collect the values that the entry itself calls secret by the names it gives them."""
    named = [*settings.env.items(), *settings.headers.items()]
    values = {value for name, value in named if is_secret_variable(name, value)}
    values |= {value.partition(" ")[2].strip() for value in values if " " in value}
    if (oauth := settings.oauth) is not None:
        secrets = (oauth.client_secret, oauth.private_key, oauth.identity_token)
        values |= {secret.get_secret_value() for secret in secrets if secret is not None}
    return frozenset(values)


def _sketch(
    blank: ServerDefinition, raw: Mapping[str, Any], secrets: frozenset[str]
) -> ServerDefinition:
    """Return an invalid server with enough fields to recognize it on the screen."""
    address = next((raw[key] for key in ("httpUrl", "url") if isinstance(raw.get(key), str)), "")
    command, args = raw.get("command"), raw.get("args")
    if not address and isinstance(command, str) and command:
        words = args if isinstance(args, list) else []
        return replace(
            blank,
            command=command,
            args=tuple(word for word in words if isinstance(word, str)),
            secrets=secrets,
        )
    return replace(
        blank,
        transport=Transport.HTTP if address else blank.transport,
        url=address,
        secrets=secrets,
    )
