"""How servers start: each step with its time, what they write, and what they offer."""

import logging
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Final, Self

from tui.cli.doctor.findings import DoctorSection, FindingLevel
from tui.cli.servers.server_session import ServerSession
from tui.engine.definitions.definition import ServerDefinition
from tui.model.events import OWN_SOURCE
from tui.model.frozen import dataclass
from tui.model.servers import ServerStatus, ServerView
from tui.text import sanitize_line

LOGGER: Final = "tui.engine.mcp"
"""Tells each step of a handshake, with the server's name before it."""

MAX_LINES: Final = 20
"""Last lines that a server wrote that are shown."""

_VERDICTS: Final[Mapping[ServerStatus, FindingLevel]] = MappingProxyType(
    {
        ServerStatus.READY: FindingLevel.OK,
        ServerStatus.DISABLED: FindingLevel.NOTE,
        ServerStatus.STOPPED: FindingLevel.NOTE,
        ServerStatus.UNTRUSTED: FindingLevel.WARNING,
        ServerStatus.NEEDS_SIGN_IN: FindingLevel.WARNING,
    }
)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a handshake, in seconds since the first one."""

    seconds: float
    what: str


class StepRecorder(logging.Handler):
    """Records the steps of all handshakes while it is entered."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._steps: dict[str, list[tuple[float, str]]] = {}
        self._logger = logging.getLogger(LOGGER)
        self._level = self._logger.level

    def __enter__(self) -> Self:
        self._logger.addHandler(self)
        self._logger.setLevel(logging.DEBUG)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record that begins with the name of a server."""
        if isinstance(record.args, tuple) and str(record.msg).startswith("%s: ") and record.args:
            server = str(record.args[0])
            words = record.getMessage().removeprefix(f"{server}: ")
            self._steps.setdefault(server, []).append((record.created, words))

    def steps(self, server: str) -> list[Step]:
        """Return the steps of one server."""
        found = self._steps.get(server, [])
        return [Step(round(moment - found[0][0], 3), sanitize_line(what)) for moment, what in found]


def server_section(
    view: ServerView, definition: ServerDefinition, session: ServerSession, steps: StepRecorder
) -> DoctorSection:
    """Say how one server stands, and what to do about it."""
    section = DoctorSection(f"Server {view.id}")
    reason, advice = session.why_not_ready(view)
    verdict = _VERDICTS.get(view.status, FindingLevel.FAILED)
    words = f"{view.status.value}: {reason}" if reason else view.status.value
    section.add(verdict, words, advice)
    section.add(
        FindingLevel.NOTE, f"{view.transport.value} from {definition.source}: {view.target}"
    )
    if definition.program:
        section.add(FindingLevel.OK, f"its program is {definition.program}")
    taken = steps.steps(view.id)
    if taken:
        lines = [f"{step.seconds:8.3f} s  {step.what}" for step in taken]
        section.add(verdict, "its steps", details=lines)
    refused = [(tool.name, tool.problem) for tool in view.catalog.tools if tool.problem]
    for name, why in refused:
        section.add(FindingLevel.WARNING, f"the model is not offered {name}: {why}")
    own = [line.text for line in session.log(view.id) if line.source == OWN_SOURCE]
    said = [line.text for line in session.log(view.id) if line.source != OWN_SOURCE]
    if own:
        section.add(FindingLevel.NOTE, "gemdeck remarked", details=own[-MAX_LINES:])
    if said:
        section.add(FindingLevel.NOTE, "it wrote", details=said[-MAX_LINES:])
    section.value = {
        "name": view.id,
        "status": view.status.value,
        "reason": reason,
        "steps": [{"seconds": step.seconds, "what": step.what} for step in taken],
        "tools": len(view.catalog.tools),
        "refused": [{"tool": name, "why": why} for name, why in refused],
        "output": said[-MAX_LINES:],
    }
    return section
