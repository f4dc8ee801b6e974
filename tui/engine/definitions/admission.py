"""Whether a server starts, and where: the plan decides it, and a supervisor obeys it."""

from enum import StrEnum
from typing import TypeAlias

from tui.model.frozen import Frozen
from tui.model.servers import Failure, ServerStatus


class Where(StrEnum):
    """Where a server runs.

    INSIDE: in the opened folder or the one that its entry names; it gets the opened folders as
    roots. OUTSIDE: in an empty folder of gemdeck's, or over the network, without these roots.
    """

    INSIDE = "inside"
    OUTSIDE = "outside"


class Starts(Frozen):
    """A server may start."""

    where: Where = Where.INSIDE


class Held(Frozen):
    """A server does not start.

    Attributes:
        status: The status in which it stays.
        failure: Why, and what the user can do.
        may_enable: Whether the user may let it run all the same, until the end of the run.
        where: Where it runs then.
    """

    status: ServerStatus
    failure: Failure
    may_enable: bool = False
    where: Where = Where.INSIDE


Admission: TypeAlias = Starts | Held
