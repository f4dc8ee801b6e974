"""``gemdeck mcp auth`` and ``logout``: sign in to a server from a terminal, and out again."""

import sys

import click

from tui.cli.command import CommandError, CommandOutput, prints_json
from tui.cli.output import ExitCode, say
from tui.cli.servers.server_session import StartOptions, attending, serving, starts_servers
from tui.cli.servers.server_words import why_not_ready
from tui.cli.settings import server_argument
from tui.engine.background import in_daemon_thread
from tui.engine.browser import open_in_browser
from tui.engine.engine import Engine
from tui.engine.mcp.context import open_nothing
from tui.engine.sign_in.sign_in_record import AuthError
from tui.model.consent import RequestId
from tui.model.events import RequestRaised
from tui.model.requests import Reply, ReplyAction, SignInRequest
from tui.model.servers import ServerId, ServerStatus
from tui.text import sanitize_line


@click.command(epilog="Example: gemdeck mcp auth search")
@server_argument
@click.option("-y", "--yes", is_flag=True, help="Sign in without asking first.")
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening it.")
@click.option("--gemini-cli", is_flag=True, help="Import gemini-cli's token instead of signing in.")
@prints_json
@starts_servers
async def auth(
    server: str, start: StartOptions, *, yes: bool, no_browser: bool, gemini_cli: bool
) -> CommandOutput:
    """Sign in to a server in your browser.

    If the browser cannot return to gemdeck, as over SSH, paste the address where it ends up.
    Without a terminal, only --yes opens the browser, or sends credentials that need none.
    """
    is_alone = not (yes or (sys.stdin is not None and sys.stdin.isatty()))
    open_url = open_nothing if no_browser or is_alone else open_in_browser
    async with serving(start, [server], open_url) as session:
        person, sign_ins = Person(session.engine, says_yes=yes), session.engine.sign_ins
        begin = sign_ins.import_gemini if gemini_cli else sign_ins.sign_in
        try:
            words = await attending(person.attend(), begin(ServerId(server)))
        except AuthError as error:
            raise _failed(server, error) from error
        await session.engine.wait_ready(start.timeout)
        view = next(view for view in session.views if view.id == server)
        reason, _ = why_not_ready(view)
        state = f"Now {view.status.value}" + (f": {reason}" if reason else ".")
        code = ExitCode.OK if view.status is ServerStatus.READY else ExitCode.ERROR
        value = {"server": server, "status": view.status.value, "reason": reason}
        return CommandOutput(value, f"{words} {state}", code)


@click.command(epilog="Example: gemdeck mcp logout search")
@server_argument
@prints_json
async def logout(server: str) -> CommandOutput:
    """Sign out of a server; revokes and removes its tokens."""
    async with serving(StartOptions(0.0), [server]) as session:
        try:
            words = await session.engine.sign_ins.sign_out(ServerId(server))
        except AuthError as error:
            raise _failed(server, error) from error
    return CommandOutput({"server": server, "result": words}, words)


def _failed(server: str, error: AuthError) -> CommandError:
    return CommandError(f"{server} {error.reason}. {error.advice}".rstrip())


class Person:
    """Whoever sits before the terminal, and answers there whether to sign in."""

    def __init__(self, engine: Engine, *, says_yes: bool = False) -> None:
        self._desk = engine.desk
        self._desk.attended = True
        self.events = engine.events()
        self._says_yes = says_yes
        self._asked = set[RequestId]()
        self._has_terminal = sys.stdin is not None and sys.stdin.isatty()

    async def attend(self) -> None:
        """Answer the question whether to sign in, and then with what is pasted."""
        async for event in self.events:
            if isinstance(event, RequestRaised) and isinstance(event.request, SignInRequest):
                self.hear(event.request)

    def hear(self, request: SignInRequest) -> None:
        """Show a question, and have it answered."""
        is_again = request.id in self._asked
        self._asked.add(request.id)
        if request.problem:
            say(request.problem)
        if not is_again:
            _show(request)
        # without a terminal the browser asks; where there is none, credentials go out at once
        agrees = self._says_yes or (bool(request.url) and not self._has_terminal)
        if not is_again and agrees:
            self._desk.answer(request.id, Reply(ReplyAction.ACCEPT))
            return
        say("paste it here, or wait for the browser" if is_again else "go on? [y/N]")
        self._read(request, is_again=is_again)

    def _read(self, request: SignInRequest, *, is_again: bool) -> None:
        """Read a line in a thread; the browser may come back before it."""
        reading = in_daemon_thread(sys.stdin.readline)

        def answer(_: object) -> None:
            line = "" if reading.cancelled() or reading.exception() else reading.result()
            is_gone = not line and self._has_terminal  # nobody is left, or Ctrl+D
            if is_again and line.strip():
                self._desk.answer(request.id, Reply(ReplyAction.ACCEPT, text=line.strip()))
            elif not is_again or is_gone:
                agrees = line.strip().lower() in {"y", "yes"}
                action = ReplyAction.ACCEPT if agrees else ReplyAction.CANCEL
                self._desk.answer(request.id, Reply(action))

        reading.add_done_callback(answer)


def _show(request: SignInRequest) -> None:
    """Say where the sign-in goes, what it asks for and where the tokens are kept."""
    is_plain = request.host == request.shown_host
    host = request.host if is_plain else f"{request.shown_host} ({request.host})"
    lines = [
        f"Sign in to {request.server} ({request.address}) at {host}.",
        f"The authorization server is {request.issuer}.",
        *([f"The code is sent to {request.token_host}."] if request.token_host else []),
        f"Requested scopes: {', '.join(request.scopes) or 'none'}.",
        f"Tokens are stored in {request.kept}.",
        *request.notes,
        *([f"Address: {request.url}"] if request.url else []),
    ]
    for line in lines:
        say(sanitize_line(line, limit=4_000))
