"""Which servers may use the model unasked, and how often."""

import time
from collections import deque
from typing import Final

from tui.engine.settings.definitions import ServerDefinition
from tui.model.servers import ServerId

MAX_UNASKED: Final = 10
"""Prompts of one server within `UNASKED_PERIOD` that go to the model unasked."""

UNASKED_PERIOD: Final = 3_600.0
"""Seconds over which unasked prompts are counted."""


class SamplingGrants:
    """Remembers, for the session, the servers whose prompts the user lets pass.

    A grant holds for a server as it was defined then; a changed definition asks again.
    """

    def __init__(self) -> None:
        self._definitions: dict[ServerId, ServerDefinition] = {}
        self._passed: dict[ServerId, deque[float]] = {}

    def allow(self, definition: ServerDefinition) -> None:
        """Let the prompts of a server pass from now on."""
        self._definitions[definition.id] = definition

    def take(self, definition: ServerDefinition) -> bool:
        """Tell whether one more prompt may pass unasked, and count it if so."""
        if self._definitions.get(definition.id) != definition:
            return False
        now = time.monotonic()
        passed = self._passed.setdefault(definition.id, deque())
        while passed and passed[0] <= now - UNASKED_PERIOD:
            passed.popleft()
        if len(passed) >= MAX_UNASKED:
            return False
        passed.append(now)
        return True
