"""What a server says of a task, in either era, read without the MCP SDK."""

import math
from dataclasses import field
from typing import Final

from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolCallError
from tui.engine.mcp.session.call_timeout import ProgressReporter
from tui.model.bounded_json import as_object, text_in
from tui.model.chat import TaskStatus
from tui.model.frozen import Frozen
from tui.text import is_shown_whole, sanitize_line

MAX_ID: Final = 256
"""Characters of a task's id; each has to be one that is shown as it is."""

MAX_STATUS: Final = 200
"""Characters of what a server says of a task's state."""

LEAST_POLL: Final = 0.25
MOST_POLL: Final = 30.0
"""Between these a server chooses how often it is asked about a task, in seconds."""

USUAL_POLL: Final = 1.0
"""How often it is asked if it says nothing."""

MAX_TTL: Final = 24 * 3600.0
"""Longest time to live that is believed, in seconds, and that of a task without any."""


class TaskUnreachableError(ToolCallError):
    """The connection ended, or this one request failed; another may be answered."""


class TaskState(Frozen):
    """What a server says of a task, bounded and sanitized.

    Attributes:
        id: Its id, as the server spells it.
        status: Its status.
        message: What the server says of it, or an empty string.
        poll: Seconds until it should be asked again.
        ttl: Seconds that it lives from its beginning.
        inputs: What the server asks for, by its keys; stateless protocol only.
        outcome: The result or the error, likewise.
        reporter: Takes the progress reports of the call that began it, as long as it is kept.
    """

    id: str
    status: TaskStatus
    message: str = ""
    poll: float = USUAL_POLL
    ttl: float = MAX_TTL
    inputs: JsonObject = field(default_factory=dict)
    outcome: JsonObject = field(default_factory=dict)
    reporter: ProgressReporter | None = field(default=None, repr=False, compare=False)

    @property
    def words(self) -> str:
        """What the server says of it, with its status."""
        return ": ".join(filter(None, (self.status.words, self.message)))


def read_task(raw: JsonObject) -> TaskState:
    """Read a task in the form of either era.

    Raises:
        ToolCallError: If its id or its status cannot be used.
    """
    task = as_object(raw.get("task", raw))
    task_id = task.get("taskId")
    if not isinstance(task_id, str) or not task_id or not is_shown_whole(task_id, MAX_ID):
        raise ToolCallError("The server sent a task whose id cannot be used.")
    try:
        status = TaskStatus(str(task.get("status")))
    except ValueError:
        raise ToolCallError("The server sent a task with an unknown status.") from None
    return TaskState(
        task_id,
        status,
        sanitize_line(text_in(task, "statusMessage"), MAX_STATUS),
        _seconds(task, "pollInterval", USUAL_POLL, LEAST_POLL, MOST_POLL),
        _seconds(task, "ttl", MAX_TTL, 0.0, MAX_TTL),
        as_object(task.get("inputRequests")),
        as_object(task.get("result", task.get("error"))),
    )


def _seconds(task: JsonObject, name: str, usual: float, least: float, most: float) -> float:
    """Read a number of milliseconds; whatever is none counts as what is usual."""
    value: object = task.get(f"{name}Ms", task.get(name))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return usual
    bounded = min(max(value, least * 1000), most * 1000)  # no float is as large as some integers
    return usual if math.isnan(bounded) else bounded / 1000
