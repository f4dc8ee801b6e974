"""Servers that appear or change in the user's own settings while gemdeck runs.

Somebody else may have written them there: a tool that the model called, or an installer. They
are held until the user has seen them. What stood in the files when gemdeck started was the
user's, and so is what the user accepted since.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from tui.engine.consent.disclosure import disclose
from tui.engine.settings.definitions import REVIEW_ADVICE, ServerDefinition
from tui.model.consent import RequestId
from tui.model.servers import Failure, Origin, ServerStatus
from tui.model.trust import Disclosure, TrustRequest, TrustSubject

_NOT_OURS: Final = frozenset({Origin.PROJECT, Origin.DEMO})


class Newcomers:
    """Knows which servers of the user's own settings may run."""

    def __init__(self) -> None:
        self._accepted: dict[str, list[ServerDefinition]] = {}
        self._names: set[str] = set()
        self._begun = False

    def admit(self, definitions: Iterable[ServerDefinition]) -> tuple[ServerDefinition, ...]:
        """Withhold those that are new; the first time, none is."""
        known = tuple(definitions)
        if not self._begun:
            self._begun = True
            self.accept(known)
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
        changed = definition.id in self._names
        word = "Changed" if changed else "New"
        reason = f"{word} in your settings since gemdeck started, so it is not started."
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
