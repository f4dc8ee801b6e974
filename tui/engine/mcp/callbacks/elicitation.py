"""Elicitation: a server asks the user to fill in a form or open an address."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.shared.exceptions import UrlElicitationRequiredError
from pydantic import ValidationError

from tui.engine.mcp.callbacks.asked_secrets import asks_for_secret
from tui.engine.mcp.callbacks.form_answers import Answer, AnswerError, read_answer
from tui.engine.mcp.callbacks.form_schema import Form, UnusableFormError, read_form
from tui.engine.mcp.context import ClientContext
from tui.model.addresses import Address, AddressError, check_address
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.requests import FieldKind, FormField, FormRequest, Reply, ReplyAction, UrlRequest
from tui.model.servers import ServerId
from tui.text import sanitize, sanitize_line

MAX_MESSAGE: Final = 4_000
"""Characters of a server's message that are shown."""

MAX_OPENED: Final = 32
"""Opened addresses that wait for completion; the oldest are dropped."""

MAX_REQUIRED: Final = 4
"""Addresses that one call may require the user to open."""


class Elicitation:
    """Answers the elicitations of one connection.

    Args:
        server: The server that asks.
        context: Provides the desk, and opens addresses.
    """

    def __init__(self, server: ServerId, context: ClientContext) -> None:
        self._server = server
        self._context = context
        self._opened: dict[str, tuple[Address, anyio.Event]] = {}

    async def elicit(
        self, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Answer one request; refuse a form or an address that cannot be shown."""
        if isinstance(params, types.ElicitRequestURLParams):
            try:
                address = check_address(params.url)
            except AddressError as error:
                return _invalid(f"The address is refused: {error}.")
            return _result(await self._visit(address, params, anyio.Event()))
        try:
            form = read_form(params.requested_schema)
        except UnusableFormError as error:
            return _invalid(f"The form cannot be shown: {error}.")
        return await self._fill_in(form, params.message)

    async def open_required(self, error: MCPError, tool: str) -> bool:
        """Let the user open the addresses that a call needs before it can run (error -32042).

        Args:
            error: The error of the call.
            tool: The tool's name as shown.

        Returns:
            Whether to repeat the call: the user agreed to each address, and then the user or the
            server confirmed that everything is done.
        """
        waits: list[anyio.Event] = []
        for params in _required(error):
            waits.append(anyio.Event())
            if await self._visit(check_address(params.url), params, waits[-1]) != "accept":
                return False
        return bool(waits) and await self._wait_until_done(waits, tool)

    def complete(self, elicitation_id: str) -> None:
        """Handle the server's notice that the task at an opened address is done."""
        opened = self._opened.pop(elicitation_id, None)
        if opened is None:
            return
        address, done = opened
        done.set()
        self._notify(Severity.INFO, f"{self._server} reports that you are done at {address.host}.")

    async def _fill_in(self, form: Form, message: str) -> types.ElicitResult:
        answer: Answer = {}

        async def check(reply: Reply) -> FormRequest | None:
            nonlocal answer
            try:
                answer = read_answer(form, reply.content or {})
            except AnswerError as error:
                return replace(request, problem=str(error), wrong=error.field)
            return None

        request = FormRequest(
            id=self._context.desk.new_id(),
            server=self._server,
            message=sanitize(message, MAX_MESSAGE),
            fields=_marked(form.fields) if asks_for_secret(message) else form.fields,
        )
        reply = await self._context.desk.ask(request, check)
        if not reply.allows:
            return _result(reply.action.value)
        return types.ElicitResult(action="accept", content=answer)

    async def _visit(
        self, address: Address, params: types.ElicitRequestURLParams, done: anyio.Event
    ) -> str:
        """Ask the user, open the address if allowed, and return the user's action.

        `done` is set when the server reports later that the task at the address is done.
        """
        request = UrlRequest(
            id=self._context.desk.new_id(),
            server=self._server,
            message=sanitize(params.message, MAX_MESSAGE),
            url=address.url,
            host=address.host,
            shown_host=address.shown_host,
            warning=address.warning,
        )
        reply = await self._context.desk.ask(request)
        if not reply.allows:
            return reply.action.value
        if params.elicitation_id:
            while len(self._opened) >= MAX_OPENED:
                self._opened.pop(next(iter(self._opened)))
            self._opened[params.elicitation_id] = (address, done)
        if not await self._context.open_url(address.url):
            self._notify(
                Severity.WARNING,
                f"No browser could be opened for {self._server}.",
                f"Open it yourself: {address.url}",
            )
        return ReplyAction.ACCEPT.value

    async def _wait_until_done(self, waits: Sequence[anyio.Event], tool: str) -> bool:
        """Wait until the server or the user confirms that everything is done."""
        if all(wait.is_set() for wait in waits):
            return True
        request = FormRequest(
            id=self._context.desk.new_id(),
            server=self._server,
            message=f"Finish in the browser first. Accepting then calls {tool} again.",
            fields=(),
        )
        is_done = False
        async with anyio.create_task_group() as group:

            async def wait_for_server() -> None:
                nonlocal is_done
                for wait in waits:
                    await wait.wait()
                is_done = True
                group.cancel_scope.cancel()

            group.start_soon(wait_for_server)
            reply = await self._context.desk.ask(request)
            is_done = is_done or reply.allows
            group.cancel_scope.cancel()
        return is_done

    def _notify(self, severity: Severity, text: str, advice: str = "") -> None:
        notice = Notice(severity, sanitize_line(text), sanitize_line(advice, MAX_MESSAGE))
        self._context.publish(NoticeRaised(notice))


def _marked(fields: Iterable[FormField]) -> tuple[FormField, ...]:
    """Mark the fields that take any text, since the words above them ask for a secret."""
    marks = ((field, field.kind is FieldKind.TEXT) for field in fields)
    return tuple(
        replace(field, asks_secret=field.asks_secret or is_text) for field, is_text in marks
    )


def _required(error: MCPError) -> list[types.ElicitRequestURLParams]:
    """Read the addresses in an error -32042; return none if any of them is refused."""
    try:
        required = UrlElicitationRequiredError.from_error(error.error).elicitations
        for params in required:
            check_address(params.url)
    except (ValidationError, AttributeError, ValueError, TypeError, AddressError):
        return []
    return required if len(required) <= MAX_REQUIRED else []


def _result(action: str) -> types.ElicitResult:
    known: Literal["accept", "cancel", "decline"]
    known = "accept" if action == "accept" else "cancel" if action == "cancel" else "decline"
    return types.ElicitResult(action=known)


def _invalid(words: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_PARAMS, message=words)
