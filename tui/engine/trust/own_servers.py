"""Which of the user's own servers are new: those that appear in the settings while gemdeck runs."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.fingerprint import digest, effective_entry, server_fingerprint
from tui.model.servers import Origin, ServerId

_ALLOWING: Final = ("trust", "includeTools", "excludeTools")
_NOT_OURS: Final = frozenset({Origin.PROJECT, Origin.DEMO})

UNANSWERED: Final = "not answered"
"""What is kept of a new server that the user was asked about, until there is an answer."""


class KnownServer(NamedTuple):
    """What a server of the user's settings is, and what its entry allows it."""

    id: ServerId
    entry: str
    trust: bool
    include_tools: frozenset[str] | None
    exclude_tools: frozenset[str]


def known_server(definition: ServerDefinition) -> KnownServer:
    """Return the parts of a definition that matter for consent."""
    return KnownServer(
        definition.id,
        server_fingerprint(definition, b""),
        definition.trust,
        definition.include_tools,
        definition.exclude_tools,
    )


def is_users(definition: ServerDefinition) -> bool:
    """Return whether a server is one of the user's that could run."""
    return definition.entry.origin not in _NOT_OURS and definition.withheld is None


def is_new(definition: ServerDefinition, accepted: Iterable[KnownServer]) -> bool:
    """Return whether a server may do more than any that the user accepted."""
    if not is_users(definition):
        return False
    now = known_server(definition)
    same = (known for known in accepted if known.entry == now.entry)
    return not any(_gains_nothing(now, before) for before in same)


def written_keys(written: Mapping[str, object], salt: bytes) -> tuple[str, str]:
    """Return the hashes of what an entry runs, and of that with what it allows.

    A refusal is remembered by them, since the entry as written does not change with the
    environment.
    """
    entry = effective_entry(written).items()
    runs = {key: value for key, value in entry if key not in _ALLOWING}
    whole = {**runs, **{key: written[key] for key in _ALLOWING if key in written}}
    return digest(["runs", runs], salt), digest(["allows", whole], salt)


def words_on(keys: tuple[str, str], refused: Mapping[str, str], added: frozenset[str]) -> set[str]:
    """Return the answers about an entry, by its `written_keys`, from when it appeared.

    There are none once the user has added exactly this entry: with the same permissions.
    """
    return set() if keys[1] in added else {refused[key] for key in keys if key in refused}


def refusal_key(definition: ServerDefinition, accepted: Iterable[KnownServer], salt: bytes) -> str:
    """Return the key that a refusal is stored under.

    For a server that ran before its entry allowed more, only the new entry is refused.
    """
    now = known_server(definition).entry
    ran = any(known.entry == now for known in accepted)
    return written_keys(definition.entry.written, salt)[ran]


def _gains_nothing(now: KnownServer, before: KnownServer) -> bool:
    """Return whether a definition, the same server as before, may do no more than before."""
    if now.trust and not before.trust:
        return False
    if before.exclude_tools - now.exclude_tools:
        return False
    if before.include_tools is None:
        return True
    return now.include_tools is not None and now.include_tools <= before.include_tools
