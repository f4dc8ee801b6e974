"""Elicitation: servers ask the user to fill in a form or to open an address."""

from collections.abc import Sequence
from typing import Final

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.shared.exceptions import UrlElicitationRequiredError
from pydantic import ValidationError

from tui.engine.servers.facilities import Facilities
from tui.engine.servers.inbound.addresses import Address, AddressError, check_address
from tui.engine.servers.inbound.answers import Answer, AnswerError, read_answer
from tui.engine.servers.inbound.forms import Form, UnusableFormError, read_form
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.requests import FormRequest, Reply, ReplyAction, UrlRequest
from tui.model.servers import ServerId
from tui.text import sanitize, sanitize_line

MAX_MESSAGE: Final = 4_000
"""Characters of a server's message that are shown."""

MAX_OPENED: Final = 32
"""Opened addresses of which the end is awaited; the oldest are forgotten."""

MAX_REQUIRED: Final = 4
"""Addresses that one call may require to be opened."""

_ACCEPTING: Final = frozenset({ReplyAction.ACCEPT, ReplyAction.ACCEPT_ALWAYS})


class Elicitor:
    """Answers the elicitations of one connection.

    Args:
        server: Who asks.
        facilities: The desk, and what opens addresses.
    """

    def __init__(self, server: ServerId, facilities: Facilities) -> None:
        self._server = server
        self._facilities = facilities
        self._opened: dict[str, tuple[Address, anyio.Event]] = {}

    async def elicit(
        self, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Answer one request. A form or an address that cannot be shown is refused unasked."""
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
        """Let the user open what a call needs before it can run (error -32042).

        Args:
            error: What the call ended with.
            tool: The tool's name as shown.

        Returns:
            Whether the call may be made again: the user agreed to each address, and then said
            that all is done, or the server did.
        """
        waits: list[anyio.Event] = []
        for params in _required(error):
            waits.append(anyio.Event())
            if await self._visit(check_address(params.url), params, waits[-1]) != "accept":
                return False
        return bool(waits) and await self._wait_until_done(waits, tool)

    def complete(self, elicitation_id: str) -> None:
        """Take the server's word that what an opened address was for is done."""
        opened = self._opened.pop(elicitation_id, None)
        if opened is None:
            return
        address, done = opened
        done.set()
        self._notify(Severity.INFO, f"{self._server} says that all is done at {address.host}.")

    async def _fill_in(self, form: Form, message: str) -> types.ElicitResult:
        answer: Answer = {}

        def check(reply: Reply) -> str:
            nonlocal answer
            try:
                answer = read_answer(form, reply.content or {})
            except AnswerError as error:
                return str(error)
            return ""

        request = FormRequest(
            id=self._facilities.desk.new_id(),
            server=self._server,
            message=sanitize(message, MAX_MESSAGE),
            fields=form.fields,
        )
        reply = await self._facilities.desk.ask(request, check)
        if reply.action not in _ACCEPTING:
            return _result(reply.action.value)
        return types.ElicitResult(action="accept", content=answer)

    async def _visit(
        self, address: Address, params: types.ElicitRequestURLParams, done: anyio.Event
    ) -> str:
        """Ask whether to open an address, and open it then. Gives the user's action.

        `done` is set when the server says afterwards that what it is for is done.
        """
        request = UrlRequest(
            id=self._facilities.desk.new_id(),
            server=self._server,
            message=sanitize(params.message, MAX_MESSAGE),
            url=address.url,
            host=address.host,
            shown_host=address.shown_host,
            warning=address.warning,
        )
        reply = await self._facilities.desk.ask(request)
        if reply.action not in _ACCEPTING:
            return reply.action.value
        if params.elicitation_id:
            while len(self._opened) >= MAX_OPENED:
                self._opened.pop(next(iter(self._opened)))
            self._opened[params.elicitation_id] = (address, done)
        if not await self._facilities.open_url(address.url):
            self._notify(
                Severity.WARNING,
                f"No browser could be opened for {self._server}.",
                f"Open it yourself: {address.url}",
            )
        return ReplyAction.ACCEPT.value

    async def _wait_until_done(self, waits: Sequence[anyio.Event], tool: str) -> bool:
        """Wait until the server or the user says that everything at the addresses is done."""
        if all(wait.is_set() for wait in waits):
            return True
        request = FormRequest(
            id=self._facilities.desk.new_id(),
            server=self._server,
            message=f"Finish what you have opened. Accepting then calls {tool} once more.",
            fields=(),
        )
        is_done = False
        async with anyio.create_task_group() as group:

            async def hear() -> None:
                nonlocal is_done
                for wait in waits:
                    await wait.wait()
                is_done = True
                group.cancel_scope.cancel()

            group.start_soon(hear)
            reply = await self._facilities.desk.ask(request)
            is_done = is_done or reply.action in _ACCEPTING
            group.cancel_scope.cancel()
        return is_done

    def _notify(self, severity: Severity, text: str, advice: str = "") -> None:
        notice = Notice(severity, sanitize_line(text), sanitize_line(advice, MAX_MESSAGE))
        self._facilities.publish(NoticeRaised(notice))


def _required(error: MCPError) -> list[types.ElicitRequestURLParams]:
    """Read the addresses that an error -32042 names; none if it names any that is refused."""
    try:
        required = UrlElicitationRequiredError.from_error(error.error).elicitations
        for params in required:
            check_address(params.url)
    except (ValidationError, AttributeError, ValueError, TypeError, AddressError):
        return []
    return required if len(required) <= MAX_REQUIRED else []


def _result(action: str) -> types.ElicitResult:
    """Answer without content."""
    match action:
        case "accept":
            return types.ElicitResult(action="accept")
        case "cancel":
            return types.ElicitResult(action="cancel")
        case _:
            return types.ElicitResult(action="decline")


def _invalid(words: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_PARAMS, message=words)
