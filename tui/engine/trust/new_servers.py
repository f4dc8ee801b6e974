"""Servers that appear or change in the user's own settings while gemdeck runs.

Something else may have written them: a tool that the model called, or an installer. They are
held until the user has seen them. What the files contained when gemdeck started counts as the
user's own unless refused before, and so does what the user accepted since.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from tui.engine.definitions.definition import REVIEW_ADVICE, ServerDefinition
from tui.engine.definitions.fingerprint import digest, effective_entry, server_fingerprint
from tui.model.servers import Failure, Origin, ServerId, ServerStatus

_ALLOWING: Final = ("trust", "includeTools", "excludeTools")
_NOT_OURS: Final = frozenset({Origin.PROJECT, Origin.DEMO})


class KnownServer(NamedTuple):
    """What a server of the user's settings is, and what its entry allows it.

    The files that it runs are left out: they are asked about with the folder they lie in.
    """

    id: ServerId
    entry: str
    trust: bool
    include_tools: frozenset[str] | None
    exclude_tools: frozenset[str]


def known_server(definition: ServerDefinition) -> KnownServer:
    """Return the parts of a definition that matter for consent."""
    return KnownServer(
        definition.id,
        server_fingerprint(replace(definition, files=()), b""),
        definition.trust,
        definition.include_tools,
        definition.exclude_tools,
    )


def is_users(definition: ServerDefinition) -> bool:
    """Return whether a server is one of the user's that could run."""
    return definition.origin not in _NOT_OURS and definition.withheld is None


def is_new(definition: ServerDefinition, accepted: Iterable[KnownServer]) -> bool:
    """Return whether a server may do more than any that the user accepted."""
    if not is_users(definition):
        return False
    now = known_server(definition)
    same = (known for known in accepted if known.entry == now.entry)
    return not any(_gains_nothing(now, before) for before in same)


def hold(
    definition: ServerDefinition,
    accepted: Iterable[KnownServer],
    refused: Mapping[str, str],
    salt: bytes,
) -> ServerDefinition:
    """Withhold a new server."""
    word = "changed" if any(known.id == definition.id for known in accepted) else "new"
    reason = f"Not started: {word} in your settings since gemdeck started."
    if was_refused(definition, refused, salt):
        reason = "Not started: you refused it when it appeared in your settings."
    return replace(
        definition,
        withheld=ServerStatus.UNTRUSTED,
        failure=Failure(reason, REVIEW_ADVICE),
        may_enable=False,
    )


def was_refused(definition: ServerDefinition, refused: Mapping[str, str], salt: bytes) -> bool:
    """Return whether a server was refused in an earlier run."""
    return any(key in refused for key in entry_keys(definition, salt))


def entry_keys(definition: ServerDefinition, salt: bytes) -> tuple[str, str]:
    """Return the hashes of what an entry runs, and of that with what it allows.

    A refusal is remembered by them, since the entry as written does not change with the
    environment.
    """
    return written_keys(definition.written, salt)


def written_keys(written: Mapping[str, object], salt: bytes) -> tuple[str, str]:
    """Return the keys of an entry as it is written; see `entry_keys`."""
    entry = effective_entry(written).items()
    runs = {key: value for key, value in entry if key not in _ALLOWING}
    whole = {**runs, **{key: written[key] for key in _ALLOWING if key in written}}
    return digest(["runs", runs], salt), digest(["allows", whole], salt)


def refusal_key(definition: ServerDefinition, accepted: Iterable[KnownServer], salt: bytes) -> str:
    """Return the key that a refusal is stored under.

    For a server that ran before its entry allowed more, only the new entry is refused.
    """
    now = known_server(definition).entry
    ran = any(known.entry == now for known in accepted)
    return entry_keys(definition, salt)[ran]


def _gains_nothing(now: KnownServer, before: KnownServer) -> bool:
    """Return whether a definition, the same server as before, may do no more than before."""
    if now.trust and not before.trust:
        return False
    if before.exclude_tools - now.exclude_tools:
        return False
    if before.include_tools is None:
        return True
    return now.include_tools is not None and now.include_tools <= before.include_tools
