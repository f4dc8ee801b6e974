"""What servers ask while a command uses them, as questions at the terminal.

A server's words stand behind bars, as none of them may look like ours. Lines are read by us:
`click.prompt` would lead standard output, to which the result may go meanwhile, elsewhere.
"""

import sys
import termios
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from tui.cli.output import quote, say
from tui.cli.servers.server_session import ServerSession, attending
from tui.cli.servers.sign_in import Person
from tui.engine.background import in_daemon_thread
from tui.model.events import LogLine, RequestRaised
from tui.model.requests import (
    PRIVATE_WARNING,
    FieldKind,
    FormField,
    FormRequest,
    FormValue,
    Reply,
    ReplyAction,
    SignInRequest,
    UrlRequest,
)
from tui.model.servers import ServerId

T = TypeVar("T")

_NOTHING: Final = "-"
"""Leaves a field empty, also one with a default."""


async def using(session: ServerSession, work: Coroutine[Any, Any, T]) -> T:
    """Use a server: standard error tells what it logs; at a terminal it may ask meanwhile."""
    session.follow = _tell
    if not all(one is not None and one.isatty() for one in (sys.stdin, sys.stderr)):
        return await work
    return await attending(_Terminal(session).attend(), work)


def _tell(server: ServerId, line: LogLine) -> None:
    if line.source == "log":
        quote(f"{server}: {line.level}: {line.text}")


class _Terminal:
    """Asks one question after the other, in a thread."""

    def __init__(self, session: ServerSession) -> None:
        self._session, self._person = session, Person(session.engine)
        self._content: dict[str, FormValue] = {}

    async def attend(self) -> None:
        async for event in self._person.events:
            match event:
                case RequestRaised(request=SignInRequest() as asked):
                    self._person.hear(asked)
                case RequestRaised(request=FormRequest() | UrlRequest() as request):
                    reply = await in_daemon_thread(partial(self._ask, request))
                    self._session.engine.desk.answer(request.id, reply)

    def _ask(self, request: FormRequest | UrlRequest) -> Reply:
        try:
            return self._open(request) if isinstance(request, UrlRequest) else self._fill(request)
        except EOFError:
            return Reply(ReplyAction.CANCEL)

    def _open(self, request: UrlRequest) -> Reply:
        """Show where an address leads, whole, and ask whether to open it."""
        self._begin(request, f"asks you to open an address at {request.host}.")
        if request.shown_host != request.host:
            say(f"The host is shown as {request.shown_host}.")
        if request.warning:
            say(f"Warning: {request.warning}")
        say(f"Full address: {request.url}")
        return Reply(ReplyAction(self._choose(request, "Open it in your browser?")))

    def _fill(self, request: FormRequest) -> Reply:
        """Ask for each field, or again for the one that is wrong, and show all before it goes."""
        asked = [one for one in request.fields if one.key == request.wrong]
        if request.problem:
            say(f"Not accepted: {request.problem}")
        else:
            self._content = {}
            self._begin(request, "asks for input:")
            answer = self._choose(request, "Answer?")
            if answer != ReplyAction.ACCEPT or not request.fields:
                return Reply(ReplyAction(answer), {})
            say(f"Enter for the default, {_NOTHING} for no value, Ctrl+D to cancel.")
        while True:
            for field in asked or request.fields:
                self._content[field.key] = self._value(request, field)
            say(f"To be sent to {request.server}:")
            for field in request.fields:
                quote(f"{field.title}: {_words(field, self._content[field.key])}")
            answer = self._choose(request, "Send it?", "change")
            if answer != "change":
                return Reply(ReplyAction(answer), dict(self._content))
            asked = []

    def _value(self, request: FormRequest, field: FormField) -> FormValue:
        """Ask for one field; whether the value fits is judged by the engine."""
        lines = [f"{number}  {one.label}" for number, one in enumerate(field.options, 1)]
        if field.default is not None:
            lines.append(f"default: {_words(field, field.default)}")
        quote("\n".join(filter(None, (field.title, field.description, *lines))))
        if field.asks_secret:
            say(PRIVATE_WARNING)
        kind = field.format or field.kind.value
        comma = ", separated by commas" if field.kind is FieldKind.CHOICES else ""
        numbers = f" 1 to {len(field.options)}{comma}" if field.options else ""
        word = self._read(request, f"{kind}{numbers}{', required' if field.required else ''}")
        if word in {"", _NOTHING}:
            return None if word else field.default
        values = {str(number): one.value for number, one in enumerate(field.options, 1)}
        if field.kind is FieldKind.CHOICES:
            return tuple(values.get(one.strip(), one.strip()) for one in word.split(","))
        return values.get(word, word)

    def _begin(self, request: FormRequest | UrlRequest, asks: str) -> None:
        """Say who asks for what; what was typed before answers nothing."""
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        say(f"{request.server} {asks}")
        quote(request.message or "The server gave no reason.")

    def _choose(self, request: FormRequest | UrlRequest, words: str, *more: str) -> str:
        known = ("accept", *more, "decline", "cancel")
        while (word := self._read(request, f"{words} [{'/'.join(known)}]")) not in known:
            pass
        return word

    def _read(self, request: FormRequest | UrlRequest, prompt: str) -> str:
        """Read a line; raises `EOFError` at Ctrl+D, or if the question is over."""
        print(f"{prompt}: ", end="", file=sys.stderr, flush=True)  # noqa: T201 - a message
        line = sys.stdin.readline()
        if self._session.is_open(request.id) and line:
            return line.strip()
        say("This question is no longer open." if line else "Cancelled.")
        raise EOFError


def _words(field: FormField, value: FormValue) -> str:
    """Write a value as the question shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    labels: dict[FormValue, str] = {one.value: one.label for one in field.options}
    chosen = value if isinstance(value, tuple) else () if value is None else (value,)
    return ", ".join(str(labels.get(one, one)) for one in chosen) or "(no value)"
