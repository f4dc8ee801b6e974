"""What is said about tasks over one connection, in the words of its era."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import mcp_types as types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from pydantic import TypeAdapter

from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolCallError
from tui.engine.mcp.session import sdk_patches
from tui.engine.mcp.session.task_state import (
    LEAST_POLL,
    TaskState,
    TaskUnreachableError,
    read_task,
)
from tui.engine.mcp.transports.jsonrpc_lines import OWN_CODES
from tui.model.chat import TaskStatus

EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""What a client of the stateless protocol announces; the older one has tasks in its core."""

ASKED_TTL: Final = 3_600_000
"""Milliseconds that a server is asked to keep a task which only we can ask for."""

MAX_INPUTS: Final = 32
"""Most that a server may ask for in one task."""

ANSWER_PATIENCE: Final = 30.0
"""Seconds for an answer about a task."""

_ENDED: Final = "The connection has ended."
_GONE: Final = frozenset({types.CONNECTION_CLOSED, types.INTERNAL_ERROR, *OWN_CODES})
"""Errors after which another request may be answered."""


class TaskRequests:
    """The tasks of one connection.

    Args:
        client: The connected client.
        clean: Sanitizes what the server says in errors, and masks its secrets.
        withdraw: Withdraws the questions that the server asks for a task.
    """

    def __init__(
        self, client: Client, clean: Callable[[str], str], withdraw: Callable[[str], None]
    ) -> None:
        self._client = client
        self._withdraw = withdraw
        self._clean = clean
        self._is_stateless = sdk_patches.is_stateless(client)
        self._told: dict[str, asyncio.Event] = {}
        self._is_closed = False

    def close(self) -> None:
        """Take what fails from now on for the end of the connection."""
        self._is_closed = True

    def tell(self, task_id: str) -> None:
        """Ask about a task soon: the server has announced a change."""
        if (told := self._told.get(task_id)) is not None:
            told.set()

    @property
    def is_followed(self) -> bool:
        """Whether a task is followed, which the server must be awake for."""
        return bool(self._told)

    @contextmanager
    def following(self, task_id: str) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever the server announces a change of a task."""
        told = self._told[task_id] = asyncio.Event()
        try:
            yield told
        finally:
            self._told.pop(task_id, None)

    async def pause(self, state: TaskState, told: asyncio.Event) -> None:
        """Wait until the server should be asked again, or has told something."""
        await asyncio.sleep(LEAST_POLL)
        with suppress(TimeoutError):
            async with asyncio.timeout(state.poll - LEAST_POLL):
                await told.wait()
        told.clear()

    async def get(self, task_id: str) -> TaskState:
        """Ask how a task stands.

        Raises:
            TaskUnreachableError: If this may be asked again.
            ToolCallError: If the server does not know it, or its answer cannot be used.
        """
        state = read_task(await self._ask("tasks/get", task_id))
        if state.id != task_id:
            raise ToolCallError("The server answered about another task.")
        return state

    async def outcome(self, state: TaskState) -> JsonObject:
        """Return the result of a task that has ended; raises as `get`."""
        if state.status is TaskStatus.CANCELLED:
            raise ToolCallError(f"The server cancelled the task. {state.message}".rstrip())
        if not self._is_stateless:
            return await self._ask("tasks/result", state.id)
        if state.status is TaskStatus.COMPLETED:
            return state.outcome
        message = state.outcome.get("message")
        words = self._clean(message) if isinstance(message, str) else state.message
        raise ToolCallError(f"The task failed: {words}")

    async def attend(self, state: TaskState, answered: set[str]) -> JsonObject | None:
        """Let the user give what a task asks for; raises as `get`.

        Older servers send their requests while they are asked for the result, which they give in
        the end. Otherwise there is none.
        """
        if not self._is_stateless:
            try:
                return await self._ask("tasks/result", state.id, patience=None)
            finally:
                self._withdraw(state.id)
        asked = [key for key in state.inputs if key not in answered]
        if len(answered) + len(asked) > MAX_INPUTS:
            raise ToolCallError("The server asked for input too often in one task.")
        given = {key: await self._answer(key, state.inputs[key]) for key in asked}
        await self._ask("tasks/update", state.id, {"inputResponses": given})
        answered.update(asked)
        return None

    async def _answer(self, key: str, raw: JsonObject) -> JsonObject:
        session = self._client.session
        try:
            request = TypeAdapter[types.InputRequest](types.InputRequest).validate_python(
                sdk_patches.check_weight(dict(raw)), by_name=False
            )
        except (TypeError, ValueError, MCPError):
            raise ToolCallError("The task asks for something that nobody can give.") from None
        context = ClientRequestContext(session=session, request_id=key)
        answer = await session.dispatch_input_request(context, request)
        if not isinstance(answer, types.ErrorData):
            return answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        if self._is_closed:
            raise TaskUnreachableError(_ENDED)
        raise ToolCallError(f"What the task asks for cannot be given: {answer.message}")

    async def cancel(self, task_id: str) -> None:
        """Tell the server to stop a task; raises as `get`."""
        await self._ask("tasks/cancel", task_id)

    async def _ask(
        self,
        method: str,
        task_id: str,
        more: JsonObject | None = None,
        patience: float | None = ANSWER_PATIENCE,
    ) -> JsonObject:
        params = {"taskId": task_id, **(more or {})}
        if self._is_closed:
            raise TaskUnreachableError(_ENDED)
        try:
            async with asyncio.timeout(patience):
                return await sdk_patches.request(self._client, method, params, task_id)
        except TimeoutError:
            raise TaskUnreachableError("The server does not answer.") from None
        except MCPError as error:
            words = self._clean(sdk_patches.error_words(error))
            is_own = error.code == types.INTERNAL_ERROR and method == "tasks/result"
            if error.code in _GONE and not is_own:
                raise TaskUnreachableError(f"The server does not answer: {words}.") from None
            raise ToolCallError(f"The server gave an error on its task: {words}") from None
