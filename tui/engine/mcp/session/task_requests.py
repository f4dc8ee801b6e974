"""What is said about tasks over one connection, in the words of its era."""

import asyncio
from collections.abc import Callable
from typing import Final

import mcp_types as types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from pydantic import TypeAdapter

from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolCallError
from tui.engine.mcp.session import sdk_patches
from tui.engine.mcp.session.task_state import TaskState, TaskUnreachableError, read_task
from tui.engine.mcp.transports.jsonrpc_lines import OWN_CODES
from tui.model.chat import TaskStatus

EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""What a client of the stateless protocol announces; the older one has tasks in its core."""

ASKED_TTL: Final = 3_600_000
"""Milliseconds that a server is asked to keep a task which only we can ask for."""

MAX_INPUTS: Final = 32
"""Most that a server may ask for in one task, or while one call runs."""

ANSWER_PATIENCE: Final = 30.0
"""Seconds for an answer about a task."""

_TOO_OFTEN: Final = "The server requested input too often in one task."
_ENDED: Final = "The connection has ended."
_GONE: Final = frozenset({types.CONNECTION_CLOSED, types.INTERNAL_ERROR, *OWN_CODES})
"""Errors after which another request may be answered."""


class TaskRequests:
    """The tasks of one connection.

    Args:
        client: The connected client.
        clean: Sanitizes what the server says in errors, and masks its secrets.
        withdraw: Withdraws the questions that the server asks for a task.

    Attributes:
        followed: How many tasks are followed, which the server must be awake for.
        asked: See `CallTimeout`.
    """

    def __init__(
        self, client: Client, clean: Callable[[str], str], withdraw: Callable[[str], None]
    ) -> None:
        self._client, self._session = client, client.session
        self._clean, self._withdraw = clean, withdraw
        self.asked: dict[str | None, set[str | int]] = {}
        self._is_stateless = sdk_patches.is_stateless(client)
        self._is_closed = False
        self.followed = 0

    def close(self) -> None:
        """Take what fails from now on for the end of the connection."""
        self._is_closed = True

    async def follow(
        self, state: TaskState, answered: set[str | int], take: Callable[[TaskState], None]
    ) -> JsonObject:
        """Ask about a task until it has ended, and return its result.

        What it needs is got meanwhile, so that a question goes away with the task.

        Args:
            state: How it stands.
            answered: The keys of what the server asked for and got; it is added to.
            take: Takes how it stands then; what it raises ends this.

        Raises:
            TaskUnreachableError: If the server does not answer, and may be asked again.
            ToolCallError: If no result comes.
        """
        self.followed += 1
        self.asked[state.id] = answered
        getting: asyncio.Task[JsonObject | None] | None = None
        try:
            while True:
                if getting is not None and getting.done():
                    raw, getting = getting.result(), None
                    if raw is not None:
                        return raw
                if state.status.is_over:
                    return await self._outcome(state)
                if not self._is_stateless and len(answered) > MAX_INPUTS:
                    raise ToolCallError(_TOO_OFTEN)
                needs_more = not self._is_stateless or not state.inputs.keys() <= answered
                if getting is None and state.status is TaskStatus.INPUT_REQUIRED and needs_more:
                    getting = asyncio.create_task(self._attend(state, answered))
                if getting is None:
                    await asyncio.sleep(state.poll)
                else:
                    await asyncio.wait({getting}, timeout=state.poll)
                state = await self._get(state.id)
                take(state)
        finally:
            self.followed -= 1
            if len(answered) <= MAX_INPUTS:  # else it may go on asking
                self.asked.pop(state.id, None)
            if getting is not None:
                getting.cancel()
                await asyncio.gather(getting, return_exceptions=True)

    async def _get(self, task_id: str) -> TaskState:
        state = read_task(await self._ask("tasks/get", task_id))
        if state.id != task_id:
            raise ToolCallError("The server sent the state of another task.")
        return state

    async def _outcome(self, state: TaskState) -> JsonObject:
        """Return the result of a task that has ended."""
        if state.status is TaskStatus.CANCELLED:
            raise ToolCallError(f"The server cancelled the task. {state.message}".rstrip())
        if not self._is_stateless:
            return await self._ask("tasks/result", state.id)
        if not state.outcome:  # it had ended when the server answered the call, without a result
            state = await self._get(state.id)
        if state.status is TaskStatus.COMPLETED:
            return state.outcome
        message = state.outcome.get("message")
        words = self._clean(message) if isinstance(message, str) else state.message
        raise ToolCallError(f"The task failed: {words}")

    async def _attend(self, state: TaskState, answered: set[str | int]) -> JsonObject | None:
        """Let the user give what a task asks for.

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
            raise ToolCallError(_TOO_OFTEN)
        given = {key: await self._answer(key, state.inputs[key]) for key in asked}
        await self._ask("tasks/update", state.id, {"inputResponses": given})
        answered.update(asked)
        return None

    async def _answer(self, key: str, raw: JsonObject) -> JsonObject:
        try:
            request = TypeAdapter[types.InputRequest](types.InputRequest).validate_python(
                sdk_patches.check_weight(dict(raw)), by_name=False
            )
        except (TypeError, ValueError, MCPError):
            raise ToolCallError("The task requests something gemdeck cannot provide.") from None
        context = ClientRequestContext(session=self._session, request_id=key)
        answer = await self._session.dispatch_input_request(context, request)
        if not isinstance(answer, types.ErrorData):
            return answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        if self._is_closed:
            raise TaskUnreachableError(_ENDED)
        raise ToolCallError(f"The task's request cannot be answered: {answer.message}")

    async def cancel(self, task_id: str) -> None:
        """Tell the server to stop a task; raises as `follow`."""
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
            raise TaskUnreachableError("The server does not respond.") from None
        except MCPError as error:
            words = self._clean(sdk_patches.error_words(error))
            is_own = error.code == types.INTERNAL_ERROR and method == "tasks/result"
            if error.code in _GONE and not is_own:
                raise TaskUnreachableError(f"The server does not respond: {words}.") from None
            raise ToolCallError(f"The server returned an error for the task: {words}") from None
