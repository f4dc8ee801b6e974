"""Elicitation: a server asks the user to fill in a form or open an address."""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import mcp_types as types
from mcp import MCPError
from mcp.shared.exceptions import UrlElicitationRequiredError
from pydantic import ValidationError

from tui.engine.mcp.context import FORM_TAKER, ClientContext, FormTaker
from tui.engine.mcp.schema import safe_regex
from tui.engine.mcp.schema.form_schema import (
    Control,
    Form,
    UnusableFormError,
    asks_for_secret,
    read_form,
)
from tui.model.bounded_json import whole_numbers
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.input.addresses import Address, AddressError, check_address
from tui.model.input.field_values import number_in, problem_of
from tui.model.requests import (
    FieldKind,
    FormField,
    FormRequest,
    FormValue,
    Reply,
    ReplyAction,
    UrlRequest,
)
from tui.model.servers import ServerId
from tui.text import sanitize, sanitize_line

_HANDED_ON: Final = {"message", "requested_schema"}

MAX_ANSWER_TEXT: Final = 100_000
"""Longest text of one field that is sent."""

Answer = dict[str, Any]
"""The content of an accepted form, by the server's own names."""

_FORMATS: Final[Mapping[str, tuple[str, Callable[[str], object], str]]] = {
    "email": (r"[^@\s]{1,64}@[^@\s.]+(?:\.[^@\s.]+)*", str, "name@example.com"),
    "uri": (r"[A-Za-z][A-Za-z0-9+.-]*:\S+", urlsplit, "https://example.com"),
    "date": (r"\d{4}-\d{2}-\d{2}", date.fromisoformat, "2026-07-28"),
    "date-time": (  # RFC 3339, with an offset
        r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})",
        datetime.fromisoformat,
        "2026-07-28T09:30:00Z",
    ),
}
"""Per format: a pattern, a parser that raises `ValueError`, and an example."""

_WORDS: Final = {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False}

MAX_PATTERN: Final = 240
"""Characters of a regular expression that are shown."""

MAX_MESSAGE: Final = 4_000
"""Characters of a server's message that are shown."""

MAX_OPENED: Final = 32
"""Opened addresses whose completion is told; the oldest are dropped."""

MAX_REQUIRED: Final = 4
"""Addresses that one call may require the user to open."""


class AnswerError(Exception):
    """A field does not fit the schema; the text says why, `field` is its key."""

    def __init__(self, field: FormField, what: str) -> None:
        super().__init__(what)
        self.field = field.key


def read_answer(form: Form, content: Mapping[str, FormValue]) -> Answer:
    """Check what the user entered and convert it to the types of the schema.

    Fields missing from `content` keep their default; None and empty text leave a field out.

    Args:
        form: The form.
        content: The values by field key. Texts are converted where the field is a number.

    Raises:
        AnswerError: If a field is missing or does not fit.
    """
    answer: Answer = {}
    for control in form.controls:
        field = control.field
        try:
            value = _fitting(control, content.get(field.key, field.default))
        except ValueError as error:
            raise AnswerError(field, str(error)) from None
        if value is not None:
            answer[control.name] = control.sent(value)
        elif control.sends_null:
            answer[control.name] = None
    return answer


def _fitting(control: Control, entered: FormValue) -> FormValue:
    """Return what was entered with the type of its field; None if that is nothing.

    Raises:
        ValueError: If it does not fit; the message is for the user.
    """
    field = control.field
    value: FormValue = None
    if entered not in {None, "", ()}:
        match field.kind:
            case FieldKind.TEXT:
                value = _text(control, entered)
            case FieldKind.BOOLEAN:
                value = _WORDS.get(str(entered).strip().lower())
                if value is None:
                    raise ValueError("Enter yes or no.")
            case FieldKind.INTEGER | FieldKind.NUMBER:
                value = number_in(str(whole_numbers(entered)), field.kind)
            case FieldKind.CHOICE | FieldKind.CHOICES:
                chosen = entered if isinstance(entered, tuple) else (str(entered),)
                if not all(one in control.values for one in chosen):
                    raise ValueError("Choose from the options.")
                value = chosen if field.kind is FieldKind.CHOICES else chosen[0]
    if problem := problem_of(field, value):
        raise ValueError(problem)
    return value


def _text(control: Control, entered: FormValue) -> str:
    field = control.field
    if not isinstance(entered, str):
        raise ValueError("Enter text.")
    if len(entered) > MAX_ANSWER_TEXT:
        raise ValueError(f"At most {MAX_ANSWER_TEXT:,} characters.")
    if field.format:
        pattern, parse, example = _FORMATS[field.format]
        with suppress(ValueError):
            parse(entered)
            if re.fullmatch(pattern, entered):
                example = ""
        if example:
            raise ValueError(f"Enter a value such as {example}.")
    if control.pattern and safe_regex.find(control.pattern, entered) is False:
        raise ValueError(f"It does not match {sanitize_line(control.pattern, MAX_PATTERN)}.")
    return entered


class Elicitation:
    """Answers the elicitations of one connection.

    Args:
        server: The server that asks.
        context: Provides the desk, and opens addresses.
    """

    def __init__(self, server: ServerId, context: ClientContext) -> None:
        self._server, self._context = server, context
        self._opened: dict[str, str] = {}
        self._takers: list[FormTaker | None] = []

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Know within the block that a request or a task runs, and who takes its forms."""
        taker = FORM_TAKER.get()
        self._takers.append(taker)
        try:
            yield
        finally:
            self._takers.remove(taker)

    async def elicit(
        self, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Answer one request; refuse a form or an address that cannot be shown."""
        if isinstance(params, types.ElicitRequestURLParams):
            try:
                address = check_address(params.url)
            except AddressError as error:
                return _invalid(f"The address is refused: {error}.")
            return types.ElicitResult(action=(await self._visit(address, params)).value)
        try:
            form = await asyncio.to_thread(read_form, params.requested_schema)
        except UnusableFormError as error:
            return _invalid(f"The form cannot be shown: {error}.")
        takers = {*self._takers}  # which of several requests a form belongs to is unknown
        # a secret is never a client's to give
        is_free = not (asks_for_secret(params.message) or any(f.asks_secret for f in form.fields))
        if is_free and len(takers) == 1 and (take := takers.pop()) is not None:
            asked = params.model_dump(by_alias=True, mode="json", include=_HANDED_ON)
            if (answer := await take(self._server, asked)) is not None:
                try:
                    result = types.ElicitResult.model_validate(answer)
                except ValidationError:  # it quotes the answer, which may hold secrets
                    return types.ElicitResult(action="cancel")
                names = {control.name for control in form.controls}
                given = {name: one for name, one in (result.content or {}).items() if name in names}
                return types.ElicitResult(action=result.action, content=given or None)
        return await self._fill_in(form, params.message)

    async def open_required(self, error: MCPError, tool: str) -> bool:
        """Let the user open the addresses that a call needs before it can run (error -32042).

        Args:
            error: The error of the call.
            tool: The tool's name as shown.

        Returns:
            Whether to repeat the call: the user opened each address, and is done there.
        """
        required = required_addresses(error)
        for params in required:
            if await self._visit(check_address(params.url), params) is not ReplyAction.ACCEPT:
                return False
        words = f"Finish in the browser, then accept to call {tool} again."
        request = FormRequest(self._context.desk.new_id(), self._server, words, fields=())
        return bool(required) and (await self._context.desk.ask(request)).allows

    def complete(self, elicitation_id: str) -> None:
        """Handle the server's notice that the task at an opened address is done."""
        if host := self._opened.pop(elicitation_id, ""):
            self._notify(Severity.INFO, f"{self._server} reports that you are done at {host}.")

    async def _fill_in(self, form: Form, message: str) -> types.ElicitResult:
        answer: Answer = {}
        free = {FieldKind.TEXT} if asks_for_secret(message) else set()  # any text may be one
        fields = tuple(replace(f, asks_secret=f.asks_secret or f.kind in free) for f in form.fields)

        async def check(reply: Reply) -> FormRequest | None:
            nonlocal answer
            try:
                answer = read_answer(form, reply.content or {})
            except AnswerError as error:
                return replace(request, problem=str(error), wrong=error.field)
            return None

        words = sanitize(message, MAX_MESSAGE)
        request = FormRequest(self._context.desk.new_id(), self._server, words, fields)
        reply = await self._context.desk.ask(request, check)
        if not reply.allows:
            return types.ElicitResult(action=reply.action.value)
        return types.ElicitResult(action="accept", content=answer)

    async def _visit(self, address: Address, params: types.ElicitRequestURLParams) -> ReplyAction:
        """Ask the user, open the address if allowed, and return the user's action."""
        words = sanitize(params.message, MAX_MESSAGE)
        where = address.url, address.host, address.shown_host, address.warning
        request = UrlRequest(self._context.desk.new_id(), self._server, words, *where)
        reply = await self._context.desk.ask(request)
        if not reply.allows:
            return reply.action
        if params.elicitation_id:
            while len(self._opened) >= MAX_OPENED:
                self._opened.pop(next(iter(self._opened)))
            self._opened[params.elicitation_id] = address.host
        if not await self._context.open_url(address.url):
            words = f"Could not open a browser for {self._server}."
            self._notify(Severity.WARNING, words, f"Open this address yourself: {address.url}")
        return ReplyAction.ACCEPT

    def _notify(self, severity: Severity, text: str, advice: str = "") -> None:
        notice = Notice(severity, sanitize_line(text), sanitize_line(advice, MAX_MESSAGE))
        self._context.publish(NoticeRaised(notice))


def required_addresses(error: MCPError) -> list[types.ElicitRequestURLParams]:
    """Read the addresses in an error -32042; return none if any of them is refused."""
    try:
        required = UrlElicitationRequiredError.from_error(error.error).elicitations
        for params in required:
            check_address(params.url)
    except (ValidationError, AttributeError, ValueError, TypeError, AddressError):
        return []
    return required if len(required) <= MAX_REQUIRED else []


def _invalid(words: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_PARAMS, message=words)
