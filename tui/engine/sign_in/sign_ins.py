"""The credentials of all servers, kept fresh, and the sign-ins that a person takes part in."""

import asyncio
import logging
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import SecretStr

from tui.engine.background import TaskSet, import_alone, in_daemon_thread
from tui.engine.bus import Publish
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk
from tui.engine.keys.key_store import CredentialError
from tui.engine.keys.secret_store import with_named_secrets
from tui.engine.logs.redaction import Redactor
from tui.engine.sign_in.google import ISSUER, GoogleSession
from tui.engine.sign_in.sign_in_record import (
    AuthError,
    Challenge,
    DeclinedError,
    Signature,
    SignInRecord,
    may_carry_tokens,
)
from tui.engine.sign_in.token_endpoint import RejectedError, Send, refresh, revoke
from tui.engine.sign_in.token_store import (
    TokenStore,
    cannot_be,
    gemini_sign_in,
    read_kept,
    token_in,
)
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.servers import Transport
from tui.model.settings import AuthProviderType, GrantType
from tui.model.wire.refusals import clipped
from tui.text import sanitize_line

MakeSend: TypeAlias = Callable[[ServerDefinition], Send]
"""Makes what sends requests to the authorization server of one server."""

CLOSE_TIMEOUT: Final = 3.0
"""Seconds that a refresh under way gets when gemdeck ends, so that its token is not lost."""

MAX_STEP_UPS: Final = 2
"""Most sign-ins for more scopes, for the same scopes."""

_FLOW: Final = "tui.engine.sign_in.flow"
"""Imports the MCP SDK, which takes half a second: in a thread, before a sign-in."""

_log: Final = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class SignIns:
    """The credentials of all servers. Lives on one event loop.

    Attributes:
        folder: The state folder; None keeps tokens in memory.
        desk: Asks the person.
        open_url: Opens an address in the browser, after the person agreed.
        import_send: Imports what talks to authorization servers; slow, run in a thread.
        publish: Takes notices.
        redactor: Learns every token.
        store: Where tokens are kept.
        tasks: Runs refreshes to their end, whoever asked for them.
    """

    folder: Path | None
    desk: Desk
    open_url: Callable[[str], Awaitable[bool]]
    import_send: Callable[[], MakeSend]
    publish: Publish
    redactor: Redactor

    def __post_init__(self) -> None:
        self.store = TokenStore(self.folder)
        self.tasks = TaskSet("a token could not be refreshed")
        self._sessions: dict[str, TokenSession | GoogleSession] = {}
        self._asking = asyncio.Lock()

    async def aclose(self) -> None:
        """Let refreshes under way end, within a time limit."""
        await self.tasks.wait(CLOSE_TIMEOUT)
        await self.tasks.aclose()

    def credentials(self, definition: ServerDefinition) -> "TokenSession | GoogleSession | None":
        """Return what signs requests to a server; None if nothing does."""
        return None if definition.endpoint.sign_in.is_off else self._session(definition)

    async def sign_in(self, definition: ServerDefinition) -> str:
        """Sign in with the person; return in a sentence what came of it.

        Raises:
            AuthError: If it did not work.
        """
        session = self._session(definition)
        if isinstance(session, GoogleSession):
            return await self._agree(session)
        if definition.endpoint.sign_in.is_off:
            reason = "is not signed in: its entry forbids it"
            raise AuthError(reason, "Remove oauth.enabled from its entry.")
        known = await session.record()
        await self.renew(session, (known and known.lacking) or session.challenge)
        place = await read_kept(lambda: self.store.place)
        return f"Signed in to {_named(definition)}; the tokens are stored in {place}."

    async def import_gemini(self, definition: ServerDefinition, home: Path) -> str:
        """Take over gemini-cli's sign-in to a server; return in a sentence what came of it.

        Raises:
            AuthError: If there is none that could be used.
        """
        session = self._session(definition)
        record = await in_daemon_thread(lambda: gemini_sign_in(home, definition))
        if isinstance(session, GoogleSession) or not record.fits(definition):
            raise AuthError("has an entry that requires another kind of sign-in")
        await session.take(record)
        return f"Signed in to {_named(definition)} with gemini-cli's token."

    async def sign_out(self, definition: ServerDefinition) -> str:
        """Revoke and forget the tokens of a server; return in a sentence what came of it.

        Raises:
            AuthError: If they could not be removed.
        """
        session = self._session(definition)
        if isinstance(session, GoogleSession):
            word = "no longer" if await session.disagree() else "still"
            return f"{definition.id} {word} gets your Google credentials."
        record, name = await session.record(), _named(definition)
        is_revoked = await session.sign_out()
        if record is None or not record.access_token:
            return f"You were not signed in to {name}."
        if is_revoked:
            return f"Signed out of {name}; the tokens are revoked and removed."
        return f"Signed out of {name}; the tokens are removed, but not revoked."

    def _session(self, definition: ServerDefinition) -> "TokenSession | GoogleSession":
        """Return the session of a server with these settings; another entry gets another."""
        known = self._sessions.get(definition.id)
        if known is None or not is_same_sign_in(known.definition, definition):
            if definition.endpoint.sign_in.provider is AuthProviderType.DYNAMIC_DISCOVERY:
                known = TokenSession(definition, self)
            else:
                known = GoogleSession(definition, self.store, self.redactor.register)
            self._sessions[definition.id] = known
        return known

    async def _agree(self, session: GoogleSession) -> str:
        """Ask whether a server may have the user's Google credentials, where that needs a word."""
        definition = session.definition
        if session.needs_word:
            await asyncio.to_thread(import_alone, _FLOW)
            from tui.engine.sign_in.discovery import SignInPlace  # noqa: PLC0415 - imports the SDK
            from tui.engine.sign_in.flow import Consent, PersonAsker  # noqa: PLC0415 - ditto

            scope, url = " ".join(definition.endpoint.sign_in.oauth.scopes), definition.endpoint.url
            place = SignInPlace(ISSUER, url, scope, "", token_endpoint=url)
            note = "This server gets your Google credentials, with all that these scopes allow."
            ask = PersonAsker(definition, self.desk, self.open_url, "Google's own files")
            async with self._asking:
                await ask(Consent(place, note=note))
            await session.agree()
        return f"{definition.id} gets your Google credentials."

    async def load_send(self, definition: ServerDefinition) -> Send:
        """Return what sends requests to the authorization server of a server."""
        return (await asyncio.to_thread(self.import_send))(definition)

    async def _filled(self, definition: ServerDefinition) -> ServerDefinition:
        """Fill in the secrets of a sign-in that its settings name, and the token of a file."""
        try:
            filled = await with_named_secrets(definition, self.redactor, signs_in=True)
        except CredentialError as error:
            raise AuthError(str(error), error.advice, is_transient=True) from error
        oauth = filled.endpoint.sign_in.oauth
        if not (path := oauth.identity_token_file):
            return filled
        token = await in_daemon_thread(lambda: token_in(path))
        self.redactor.register(token)
        return filled.with_oauth(oauth.model_copy(update={"identity_token": SecretStr(token)}))

    async def renew(self, session: "TokenSession", challenge: Challenge) -> None:
        """Sign in anew; persons are asked about one server after the other.

        Raises:
            AuthError: If it did not work.
        """
        if not may_carry_tokens(session.definition.endpoint.url):
            raise AuthError("is not signed in: its address is not encrypted", "Use https in `url`.")
        await asyncio.to_thread(import_alone, _FLOW)
        from tui.engine.sign_in.flow import PersonAsker, SignInFlow  # noqa: PLC0415 - imports the SDK

        definition = await self._filled(session.definition)
        send = await self.load_send(definition)
        async with self._asking:
            known = await session.record(anew=True)
            place = await read_kept(lambda: self.store.place)
            before = known.issuer if known is not None else ""
            ask = PersonAsker(definition, self.desk, self.open_url, place, before)
            if known is not None:
                self.redactor.register(*known.secrets())
            try:
                flow = SignInFlow(definition, send, ask, known, session.keep_client)
                record = await flow.run(challenge)
            except (AuthError, asyncio.CancelledError) as error:
                is_final = isinstance(error, AuthError) and not error.is_transient
                has_token = known is not None and known.access_token
                is_odd = is_final and not (has_token or isinstance(error, DeclinedError))
                is_unknown = isinstance(error, RejectedError) and error.is_of_client
                doubts = ask.is_away or is_odd or is_unknown  # it may be known there no longer
                if doubts and known is not None and known.is_registered:
                    await session.note(known, is_doubtful=True)
                raise
            await session.take(record)


def _named(definition: ServerDefinition) -> str:
    account = sanitize_line(definition.endpoint.sign_in.oauth.account)
    return f"{definition.id} (account {account})" if account else definition.id


def is_same_sign_in(one: ServerDefinition, other: ServerDefinition) -> bool:
    """Return whether two definitions mean the same server and the same way to sign in to it."""
    parts = attrgetter("endpoint.url", "transport", "endpoint.sign_in")
    # the secrets among the headers are filled in while it runs
    has_same_headers = one.endpoint.headers.keys() == other.endpoint.headers.keys()
    return bool(parts(one) == parts(other)) and has_same_headers


class TokenSession:
    """The OAuth credentials of one server; see `ServerCredentials`.

    Args:
        definition: The server.
        owner: Keeps and refreshes tokens, and signs in.

    Attributes:
        definition: The server.
        challenge: What the server said when it refused a request last.
    """

    def __init__(self, definition: ServerDefinition, owner: SignIns) -> None:
        self.definition = definition
        self.challenge = Challenge()
        self._owner = owner
        self._store = owner.store
        self._unreadable: AuthError | None = None
        self._held: SignInRecord | None = None
        self._is_loaded = False
        self._is_kept = True
        self._refreshing: asyncio.Task[None] | None = None
        self._step_ups: dict[str, int] = {}
        self._stepping = asyncio.Lock()

    async def record(self, *, anew: bool = False) -> SignInRecord | None:
        """Return what is held for the server; read once, and again after another gemdeck's change.

        Args:
            anew: Whether to read again if no token is held: another gemdeck may have got one.

        Raises:
            AuthError: If it cannot be read.
        """
        if not self._is_loaded or (anew and not (self._held and self._held.access_token)):
            found = await read_kept(lambda: self._store.find(self.definition))
            self._is_loaded, self._unreadable = True, None
            if found is not None:
                self._hold(found)
        return self._held

    async def signature(self) -> Signature:
        """Return the token for a request, refreshed if it is about to expire."""
        if not may_carry_tokens(self.definition.endpoint.url):
            return Signature()
        try:
            record = await self.record()
        except AuthError as error:
            self._unreadable = error  # most servers need none
            return Signature()
        if record is not None and record.access_token and record.is_due:
            record = await self._fresher(record)
        if record is None or not record.access_token:
            return Signature()
        # over SSE the settings may name a query parameter that carries it
        name, token = self.definition.endpoint.sign_in.oauth.token_param_name, record.access_token
        if name and self.definition.transport is Transport.SSE:
            return Signature(token, query={name: token}, secrets=record.secrets())
        return Signature(token, {"authorization": f"Bearer {token}"}, secrets=record.secrets())

    async def refused(self, challenge: Challenge, sent: Signature, attempt: int) -> bool:
        """Get another token if there is a way without a sign-in, or sign in for more scopes."""
        if challenge.is_step_up:
            return bool(sent.token) and await self._step_up(challenge, sent, attempt)
        if challenge.status != 401:
            return False
        self.challenge = challenge
        if attempt:
            return False
        if self._unreadable is not None:
            raise self._unreadable
        record = await self.record()
        if record is not None and record.access_token and sent.token == record.access_token:
            record = await self._fresher(record)
        if record is not None and record.access_token:
            return record.access_token != sent.token
        oauth = self.definition.endpoint.sign_in.oauth
        is_named = bool(oauth.issuer or oauth.token_url)
        if is_named and oauth.grant_type is not GrantType.AUTHORIZATION_CODE:  # nobody is needed
            await self._owner.renew(self, challenge)
            return True
        return False

    async def take(self, record: SignInRecord) -> None:
        """Hold and keep a record; one that cannot be written is used until the end of the run."""
        self._hold(record)
        try:
            await in_daemon_thread(lambda: self._store.save(record))
            self._is_kept = True
        except CredentialError as error:
            self._is_kept = False
            words = f"The sign-in to {self.definition.id} lasts until gemdeck ends: {error}"
            self._owner.publish(NoticeRaised(Notice(Severity.WARNING, words, error.advice)))

    async def keep_client(self, client: SignInRecord) -> None:
        """Keep a client that has just registered, where that costs no token that is held."""
        if self._held is None or not self._held.access_token:
            self._hold(client)
            with suppress(CredentialError):
                await in_daemon_thread(lambda: self._store.save(client))

    async def note(self, record: SignInRecord, **change: object) -> None:
        """Keep a change for the next sign-in, unless another client has come in between."""
        with suppress(CredentialError):
            async with self._locked(record):
                latest = self._held
                if self._is_kept:  # it may have been refreshed meanwhile
                    latest = await in_daemon_thread(lambda: self._store.get(record.key))
                if latest is not None and latest.client_id == record.client_id:
                    changed = latest.model_copy(update=change)
                    self._hold(changed)
                    await in_daemon_thread(lambda: self._store.save(changed))

    async def sign_out(self) -> bool:
        """Revoke and forget the tokens; return whether the server revoked them.

        Raises:
            AuthError: If they could not be removed.
        """
        record, revoked = await self.record(), False
        if record is None:
            return False
        with cannot_be("removed"):
            async with self._locked(record):
                latest = await in_daemon_thread(lambda: self._store.get(record.key)) or record
                await in_daemon_thread(lambda: self._store.forget(latest))
                self._held, self._step_ups = None, {}
        try:
            revoked = await revoke(await self._owner.load_send(self.definition), latest)
        except AuthError as error:
            _log.info("tokens could not be revoked: %s", error.reason)
        return revoked

    async def _fresher(self, stale: SignInRecord) -> SignInRecord | None:
        """Return the record after a refresh, one for all that wait for it."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = self._owner.tasks.start(self._refresh(stale), "refresh a token")
        await asyncio.shield(self._refreshing)
        return self._held

    async def _refresh(self, stale: SignInRecord) -> None:
        """Adopt the token that another gemdeck got, or get the next one and keep it.

        The store is locked meanwhile: a refresh token may count only once.
        """
        with cannot_be("refreshed", is_transient=True):
            async with self._locked(stale):
                latest: SignInRecord | None = stale  # newer than what is kept, if it could not be
                if self._is_kept:
                    latest = await in_daemon_thread(lambda: self._store.get(stale.key))
                if latest is None:  # signed out there
                    self._held = None
                    return
                if latest.access_token != stale.access_token:  # refreshed there
                    self._hold(latest)
                    if not latest.is_due:
                        return
                    stale = latest
                if not stale.refresh_token:
                    await self.take(stale.without_tokens())  # the registered client stays
                    return
                send = await self._owner.load_send(self.definition)
                audience = " ".join(self.definition.endpoint.sign_in.oauth.audiences)
                try:
                    fresh = await refresh(send, stale, audience)
                except RejectedError as error:
                    _log.info("a sign-in has ended: %s", error.reason)
                    update = {"is_doubtful": error.is_of_client and stale.is_registered}
                    await self.take(stale.without_tokens().model_copy(update=update))
                else:
                    await self.take(fresh)

    async def _step_up(self, challenge: Challenge, sent: Signature, attempt: int) -> bool:
        """Sign in for more scopes, if that was not tried too often.

        Some say that scopes lack where a token that has them has expired: then the next one does.
        """
        async with self._stepping:
            record = await self.record()
            if record is None or record.access_token not in {"", sent.token}:
                return True  # another request has just done it, or the user signed out
            has_all = {*challenge.scope.split()} <= {*record.scope.split()}
            if record.refresh_token and has_all and not attempt:
                fresh = await self._fresher(record)
                if fresh is not None and fresh.access_token not in {"", sent.token}:
                    return True
            tries = self._step_ups.get(challenge.scope, 0)
            if tries >= MAX_STEP_UPS:
                reason = "still refuses this for lack of scopes, even after a new sign-in"
                advice = "Ask whoever runs the server which scopes it needs."
                raise AuthError(reason, advice, is_permanent=True)
            self._step_ups[challenge.scope] = tries + 1
            await self.note(record, lacking=challenge)
            try:
                await self._owner.renew(self, challenge)
            except DeclinedError as error:
                if self._owner.desk.attended:
                    raise
                scopes = f"the scope {challenge.scope}" if challenge.scope else "more scopes"
                command = f"gemdeck mcp auth {shlex.quote(self.definition.id)}"
                words = f"refuses this without {clipped(scopes)} (sign in for it with: {command})"
                raise DeclinedError(words) from error
            return True

    def _hold(self, record: SignInRecord) -> None:
        self._owner.redactor.register(*record.secrets())
        self._held, self._is_loaded = record, True

    @asynccontextmanager
    async def _locked(self, record: SignInRecord) -> AsyncIterator[None]:
        """Hold the lock of a record, which may take a while to get, off the loop.

        What could not be kept is nobody else's: a folder that takes no file has no lock either.
        """
        if not self._is_kept:
            yield
            return
        lock = self._store.locked(record.key)
        await in_daemon_thread(lock.__enter__)
        try:
            yield
        finally:
            lock.__exit__(None, None, None)
