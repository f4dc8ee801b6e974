"""Servers that appear or change in the user's own settings while gemdeck runs.

Somebody else may have written them there: a tool that the model called, or an installer. They
are held until the user has seen them. What stood in the files when gemdeck started was the
user's, unless the user had refused it before, and so is what the user accepted since.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from tui.engine.consent.fingerprint import digest, effective_entry
from tui.engine.consent.folders.disclosure import disclose
from tui.engine.settings.definitions import REVIEW_ADVICE, ServerDefinition
from tui.model.consent import RequestId
from tui.model.servers import Failure, Origin, ServerStatus
from tui.model.trust import Disclosure, TrustRequest, TrustSubject

_ALLOWING: Final = ("trust", "includeTools", "excludeTools")
_NOT_OURS: Final = frozenset({Origin.PROJECT, Origin.DEMO})


class Newcomers:
    """Knows which servers of the user's own settings may run.

    Attributes:
        salt: The salt of this installation, for what refusals are remembered by.
    """

    def __init__(self) -> None:
        self.salt = b""
        self._accepted: dict[str, list[ServerDefinition]] = {}
        self._names: set[str] = set()
        self._refused: frozenset[str] = frozenset()
        self._begun = False

    def admit(
        self, definitions: Iterable[ServerDefinition], refused: Iterable[str] = ()
    ) -> tuple[ServerDefinition, ...]:
        """Withhold those that are new; the first time, those that were refused before.

        Args:
            definitions: All servers.
            refused: The keys, as `refusal_keys` gives them, of what was refused in earlier runs.
        """
        known = tuple(definitions)
        if not self._begun:
            self._begun = True
            self._refused = frozenset(refused)
            self.accept(one for one in known if self._refused.isdisjoint(self._keys(one)))
        return tuple(self._held(one) if self._is_new(one) else one for one in known)

    def waiting(self, definitions: Iterable[ServerDefinition]) -> tuple[ServerDefinition, ...]:
        """Give those that are new, as the settings define them."""
        return tuple(filter(self._is_new, definitions))

    def accept(self, definitions: Iterable[ServerDefinition]) -> None:
        """Let these run from now on, in exactly these definitions."""
        for definition in definitions:
            if definition.origin not in _NOT_OURS and definition.withheld is None:
                self._accepted.setdefault(definition.fingerprint, []).append(definition)
                self._names.add(definition.id)

    def refusal_keys(self, definitions: Iterable[ServerDefinition]) -> tuple[str, ...]:
        """Give what to remember refused servers by, in later runs.

        It is the entry as written, which does not change with the environment. Of a server that
        ran before its entry allowed more, only that entry is meant.
        """
        return tuple(
            self._keys(one)[one.fingerprint in self._accepted]
            for one in definitions
            if one.origin not in _NOT_OURS
        )

    def all_keys(self, definitions: Iterable[ServerDefinition]) -> tuple[str, ...]:
        """Give all by which a refusal of these servers may be remembered."""
        return tuple(key for one in definitions for key in self._keys(one))

    def question(
        self, request: RequestId, waiting: Sequence[ServerDefinition], folder: Path
    ) -> TrustRequest:
        """Ask about all of them at once. Blocks on the file system."""
        return TrustRequest(
            request,
            TrustSubject.SETTINGS,
            ", ".join(dict.fromkeys(one.source for one in waiting)),
            tuple(self._disclosed(one, folder) for one in waiting),
            rules=tuple(sorted({words for one in waiting for words in self._grants(one)})),
        )

    def _disclosed(self, definition: ServerDefinition, folder: Path) -> Disclosure:
        change = "changed" if definition.id in self._names else "new"
        return disclose(definition, folder, change)

    def _keys(self, definition: ServerDefinition) -> tuple[str, str]:
        """Give the hashes of what an entry runs, and of that with what it allows."""
        written = definition.written
        entry = effective_entry(written).items()
        runs = {key: value for key, value in entry if key not in _ALLOWING}
        whole = {**runs, **{key: written[key] for key in _ALLOWING if key in written}}
        return digest(["runs", runs], self.salt), digest(["allows", whole], self.salt)

    def _is_new(self, definition: ServerDefinition) -> bool:
        if definition.origin in _NOT_OURS or definition.withheld is not None:
            return False
        known = self._accepted.get(definition.fingerprint, ())
        return not any(_gains_nothing(definition, before) for before in known)

    def _grants(self, definition: ServerDefinition) -> Iterable[str]:
        """Say in sentences what a definition allows beyond what it runs."""
        if definition.trust:
            yield f"The tools of {definition.id} would run without asking."

    def _held(self, definition: ServerDefinition) -> ServerDefinition:
        word = "Changed" if definition.id in self._names else "New"
        reason = f"{word} in your settings since gemdeck started, so it is not started."
        if not self._refused.isdisjoint(self._keys(definition)):
            reason = "You did not allow it when it appeared in your settings; it is not started."
        return replace(
            definition,
            withheld=ServerStatus.UNTRUSTED,
            failure=Failure(reason, REVIEW_ADVICE),
            may_enable=False,
        )


def _gains_nothing(now: ServerDefinition, before: ServerDefinition) -> bool:
    """Tell whether a definition, the same server as before, may do no more than before."""
    if now.trust and not before.trust:
        return False
    if before.exclude_tools - now.exclude_tools:
        return False
    if before.include_tools is None:
        return True
    return now.include_tools is not None and now.include_tools <= before.include_tools
