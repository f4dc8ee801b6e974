"""The credentials of all servers, and the sign-ins that a person takes part in, one at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from tui.engine.background import TaskSet, import_alone, in_daemon_thread
from tui.engine.bus import Publish
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk
from tui.engine.keys.key_store import CredentialError
from tui.engine.logs.redaction import Redactor
from tui.engine.sign_in.gemini_tokens import gemini_sign_in
from tui.engine.sign_in.google import ISSUER, GoogleSession
from tui.engine.sign_in.server_credentials import Challenge, ServerCredentials
from tui.engine.sign_in.sign_in_record import AuthError, DeclinedError, SignInRecord
from tui.engine.sign_in.token_endpoint import Send
from tui.engine.sign_in.token_source import TokenSession
from tui.engine.sign_in.token_store import TokenStore, read_kept
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.settings import AuthProviderType

if TYPE_CHECKING:  # it imports the MCP SDK, which takes half a second
    from tui.engine.sign_in.flow import SignInFlow

MakeSend: TypeAlias = "Callable[[ServerDefinition], Send]"
"""Makes what sends requests to the authorization server of one server."""

CLOSE_TIMEOUT: Final = 3.0
"""Seconds that a refresh under way gets when gemdeck ends, so that its token is not lost."""

_log: Final = logging.getLogger(__name__)


class SignIns:
    """The credentials of all servers. Lives on one event loop.

    Args:
        folder: The state folder; None keeps tokens in memory.
        desk: Asks the person.
        open_url: Opens an address in the browser, after the person agreed.
        import_send: Imports what talks to authorization servers; slow, run in a thread.
        publish: Takes notices.
        redactor: Learns every token.
    """

    def __init__(
        self,
        folder: Path | None,
        desk: Desk,
        open_url: Callable[[str], Awaitable[bool]],
        import_send: Callable[[], MakeSend],
        publish: Publish,
        redactor: Redactor,
    ) -> None:
        self.store = TokenStore(folder)
        self._desk = desk
        self._open_url = open_url
        self._import_send = import_send
        self._publish = publish
        self._redactor = redactor
        self._tasks = TaskSet("a token could not be refreshed")
        self._sessions: dict[str, TokenSession] = {}
        self._googles: dict[str, GoogleSession] = {}
        self._asking = asyncio.Lock()

    async def aclose(self) -> None:
        """Let refreshes under way end, within a time limit."""
        await self._tasks.wait(CLOSE_TIMEOUT)
        await self._tasks.aclose()

    def credentials(self, definition: ServerDefinition) -> ServerCredentials | None:
        """Return what signs requests to a server; None if nothing does."""
        if is_google(definition):
            return self._google(definition)
        if definition.sign_in.oauth.enabled is False:
            return None
        return self._session(definition)

    async def sign_in(self, definition: ServerDefinition) -> str:
        """Sign in with the person; return in a sentence what came of it.

        Raises:
            AuthError: If it did not work.
        """
        if is_google(definition):
            return await self._agree(definition)
        if definition.sign_in.oauth.enabled is False:
            raise AuthError(
                "is not signed in to: its entry forbids it", "Remove oauth.enabled from its entry."
            )
        session = self._session(definition)
        await self._sign_in(session, session.challenge)
        place = await read_kept(lambda: self.store.place)
        return f"Signed in to {definition.id}; the tokens are kept in {place}."

    async def import_gemini(self, definition: ServerDefinition, home: Path) -> str:
        """Take over gemini-cli's sign-in to a server; return in a sentence what came of it.

        Raises:
            AuthError: If there is none that could be used.
        """
        record = await in_daemon_thread(lambda: gemini_sign_in(home, definition))
        if is_google(definition) or not record.fits(definition):
            raise AuthError("is to be signed in to in another way, its entry says")
        await self._session(definition).take(record)
        return f"{definition.id} is signed in to with gemini-cli's token."

    async def sign_out(self, definition: ServerDefinition) -> str:
        """Revoke and forget the tokens of a server; return in a sentence what came of it.

        Raises:
            AuthError: If they could not be removed.
        """
        if is_google(definition):
            had = await self._google(definition).disagree()
            word = "no longer" if had else "still"
            return f"{definition.id} {word} gets your Google credentials."
        session = self._session(definition)
        record = await session.record()
        is_revoked = await session.sign_out()
        if record is None or not record.access_token:
            return f"You were not signed in to {definition.id}."
        if is_revoked:
            return f"Signed out of {definition.id}; the tokens are revoked and removed."
        return f"Signed out of {definition.id}; the tokens are removed here, but not revoked there."

    def _session(self, definition: ServerDefinition) -> TokenSession:
        """Return the session of a server with these settings; another entry gets another."""
        known = self._sessions.get(definition.id)
        if known is None or not is_same_sign_in(known.definition, definition):
            known = self._sessions[definition.id] = TokenSession(
                definition, self.store, self._load_send, self._sign_in, self._tasks, self._told
            )
        return known

    def _google(self, definition: ServerDefinition) -> GoogleSession:
        """Return Google's credentials for a server with these settings."""
        known = self._googles.get(definition.id)
        if known is None or not is_same_sign_in(known.definition, definition):
            known = self._googles[definition.id] = GoogleSession(
                definition, self.store, self._redactor.register
            )
        return known

    async def _agree(self, definition: ServerDefinition) -> str:
        """Ask whether a server may have the user's Google credentials, where that needs a word."""
        session = self._google(definition)
        if session.needs_word:
            await asyncio.to_thread(_import_flow)
            from tui.engine.sign_in.browser_sign_in import PersonAsker  # noqa: PLC0415
            from tui.engine.sign_in.discovery import SignInPlace  # noqa: PLC0415 - imports the SDK
            from tui.engine.sign_in.flow import Consent  # noqa: PLC0415

            scope = " ".join(definition.sign_in.oauth.scopes)
            place = SignInPlace(ISSUER, definition.url, scope, "", token_endpoint=definition.url)
            note = "Your Google credentials go to this server, with all that these scopes allow."
            ask = PersonAsker(definition, self._desk, self._open_url, "Google's own files")
            async with self._asking:
                await ask(Consent(place, note=note))
            await session.agree()
        return f"{definition.id} gets your Google credentials."

    async def _load_send(self, definition: ServerDefinition) -> Send:
        make = await asyncio.to_thread(self._import_send)
        return make(definition)

    async def _sign_in(self, session: TokenSession, challenge: Challenge) -> None:
        """Run a sign-in; persons are asked about one after the other."""
        if not session.may_send:
            raise AuthError(
                "is not signed in to: its address is not encrypted", "Use https in `url`."
            )
        flow = await asyncio.to_thread(_import_flow)
        definition = session.definition
        send = await self._load_send(definition)
        async with self._asking:
            known = await session.record(anew=True)
            from tui.engine.sign_in.browser_sign_in import PersonAsker  # noqa: PLC0415 - imports the SDK

            place = await read_kept(lambda: self.store.place)
            before = known.issuer if known is not None else ""
            ask = PersonAsker(definition, self._desk, self._open_url, place, before)
            if known is not None:
                self._redactor.register(*known.secrets())
            try:
                signing_in = flow(definition, send, ask, known, session.keep_client)
                record = await signing_in.run(challenge)
            except AuthError as error:
                if not (error.is_transient or isinstance(error, DeclinedError)):
                    await session.forget_client(known)
                raise
            await session.take(record)

    def _told(
        self, definition: ServerDefinition, record: SignInRecord, problem: CredentialError | None
    ) -> None:
        """Mask the secrets of a record, and tell the user if it could not be kept."""
        self._redactor.register(*record.secrets())
        if problem is not None:
            words = f"The sign-in to {definition.id} lasts until the end of this run: {problem}"
            self._publish(NoticeRaised(Notice(Severity.WARNING, words, problem.advice)))


def is_google(definition: ServerDefinition) -> bool:
    """Return whether a server gets Google's credentials and none of its own."""
    return definition.sign_in.provider is not AuthProviderType.DYNAMIC_DISCOVERY


def is_same_sign_in(one: ServerDefinition, other: ServerDefinition) -> bool:
    """Return whether two definitions mean the same server and the same way to sign in to it."""
    parts = attrgetter("url", "transport", "sign_in", "headers")
    return bool(parts(one) == parts(other))


def _import_flow() -> "type[SignInFlow]":
    import_alone("tui.engine.sign_in.flow")
    from tui.engine.sign_in.flow import SignInFlow  # noqa: PLC0415

    return SignInFlow
