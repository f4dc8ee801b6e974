"""The token of one server: kept fresh for all its requests, and for every other gemdeck."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from tui.engine.background import TaskSet, in_daemon_thread
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.keys.key_store import CredentialError
from tui.engine.sign_in.server_credentials import Challenge, Signature
from tui.engine.sign_in.sign_in_record import AuthError, SignInRecord
from tui.engine.sign_in.token_endpoint import RejectedError, Send, refresh, revoke
from tui.engine.sign_in.token_store import TokenStore, read_kept
from tui.model.addresses import is_loopback
from tui.model.servers import Transport
from tui.model.settings import GrantType

MAX_STEP_UPS: Final = 2
"""Most sign-ins for more scopes, for the same scopes."""

_log: Final = logging.getLogger(__name__)

SignIn = Callable[["TokenSession", Challenge], Awaitable[None]]
"""Signs in to a server with the person; raises `AuthError`."""


class TokenSession:
    """The OAuth credentials of one server; see `ServerCredentials`.

    Args:
        definition: The server.
        store: Where tokens are kept.
        load_send: Gives what sends requests to the server's authorization server.
        sign_in: Signs in, with the person if one is needed.
        tasks: Runs refreshes to their end, whoever asked for them.
        on_record: Called with each record before it is used, and whether it could be kept.

    Attributes:
        definition: The server.
        challenge: What the server said when it refused a request last.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        store: TokenStore,
        load_send: Callable[[ServerDefinition], Awaitable[Send]],
        sign_in: SignIn,
        tasks: TaskSet,
        on_record: Callable[[ServerDefinition, SignInRecord, CredentialError | None], None],
    ) -> None:
        self.definition = definition
        self.challenge = Challenge()
        self._store = store
        self._load_send = load_send
        self._sign_in = sign_in
        self._tasks = tasks
        self._on_record = on_record
        self._unreadable: AuthError | None = None
        self._held: SignInRecord | None = None
        self._is_loaded = False
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
        has_token = self._held is not None and self._held.access_token
        if not self._is_loaded or (anew and not has_token):
            found = await read_kept(lambda: self._store.find(self.definition))
            self._is_loaded, self._unreadable = True, None
            if found is not None:
                self._hold(found)
        return self._held

    async def signature(self) -> Signature:
        """Return the token for a request, refreshed if it is about to expire."""
        if not self.may_send:
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
        if name := self._parameter():
            return Signature(record.access_token, query={name: record.access_token})
        headers = {"authorization": f"Bearer {record.access_token}"}
        return Signature(record.access_token, headers)

    async def refused(self, challenge: Challenge, sent: Signature, attempt: int) -> bool:
        """Get another token if there is a way without a sign-in, or sign in for more scopes."""
        if challenge.is_step_up:
            return bool(sent.token) and await self._step_up(challenge, sent)
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
        if self._signs_in_alone():
            await self._sign_in(self, challenge)
            return True
        return False

    async def take(self, record: SignInRecord) -> None:
        """Hold and keep the outcome of a sign-in."""
        self._hold(record)
        await self._keep(record)

    async def keep_client(self, client: SignInRecord) -> None:
        """Keep a client that has just registered, where that costs no token that is held."""
        if self._held is None or not self._held.access_token:
            self._hold(client)
            with suppress(CredentialError):
                await in_daemon_thread(lambda: self._store.save(client))

    async def forget_client(self, record: SignInRecord | None) -> None:
        """Forget a client that was known and has no token: perhaps it is known there no longer.

        Else each further sign-in would fail as the last one did.
        """
        if record is not None and record.is_registered and not record.access_token:
            self._held, self._is_loaded = None, False
            with suppress(CredentialError):
                await in_daemon_thread(lambda: self._store.forget(record))

    async def sign_out(self) -> bool:
        """Revoke and forget the tokens; return whether the server revoked them.

        Raises:
            AuthError: If they could not be removed.
        """
        record, revoked = await self.record(), False
        if record is None:
            return False
        try:
            async with self._locked(record):
                latest = await in_daemon_thread(lambda: self._store.get(record.key)) or record
                await in_daemon_thread(lambda: self._store.forget(latest))
                self._held, self._step_ups = None, {}
        except CredentialError as error:
            raise AuthError(f"has a sign-in that cannot be removed: {error}", error.advice) from (
                error
            )
        try:
            revoked = await revoke(await self._load_send(self.definition), latest)
        except AuthError as error:
            _log.info("tokens could not be revoked: %s", error.reason)
        return revoked

    async def _fresher(self, stale: SignInRecord) -> SignInRecord | None:
        """Return the record after a refresh, one for all that wait for it."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = self._tasks.start(self._refresh(stale), "refresh a token")
        await asyncio.shield(self._refreshing)
        return self._held

    async def _refresh(self, stale: SignInRecord) -> None:
        """Adopt the token that another gemdeck got, or get the next one and keep it.

        The store is locked meanwhile: a refresh token may count only once.
        """
        try:
            async with self._locked(stale):
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
                    await self._take_rejected(stale)
                    return
                send = await self._load_send(self.definition)
                audience = " ".join(self.definition.sign_in.oauth.audiences)
                try:
                    fresh = await refresh(send, stale, audience)
                except RejectedError as error:
                    _log.info("a sign-in has ended: %s", error.reason)
                    await self._take_rejected(stale)
                else:
                    await self.take(fresh)
        except CredentialError as error:
            raise AuthError(
                f"has a sign-in that cannot be refreshed: {error}", error.advice, is_transient=True
            ) from error

    async def _take_rejected(self, record: SignInRecord) -> None:
        """Drop tokens that are worth nothing; the registered client stays."""
        await self.take(record.without_tokens())

    async def _step_up(self, challenge: Challenge, sent: Signature) -> bool:
        """Sign in for more scopes, if that was not tried too often."""
        async with self._stepping:
            record = await self.record()
            if record is not None and record.access_token not in {"", sent.token}:
                return True  # another request has just done it
            tries = self._step_ups.get(challenge.scope, 0)
            if tries >= MAX_STEP_UPS:
                raise AuthError(
                    "still refuses this for lack of scopes after signing in for them",
                    "Ask whoever runs the server which scopes it needs.",
                    is_permanent=True,
                )
            self._step_ups[challenge.scope] = tries + 1
            await self._sign_in(self, challenge)
            return True

    async def _keep(self, record: SignInRecord) -> None:
        """Write a record; one that cannot be written is used until the end of the run."""
        problem: CredentialError | None = None
        try:
            await in_daemon_thread(lambda: self._store.save(record))
        except CredentialError as error:
            problem = error
        self._on_record(self.definition, record, problem)

    def _hold(self, record: SignInRecord) -> None:
        self._on_record(self.definition, record, None)
        self._held, self._is_loaded = record, True

    @asynccontextmanager
    async def _locked(self, record: SignInRecord) -> AsyncIterator[None]:
        """Hold the lock of a record, which may take a while to get, off the loop."""
        lock = self._store.locked(record.key)
        await in_daemon_thread(lock.__enter__)
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def _signs_in_alone(self) -> bool:
        """Return whether a token can be had without anybody, from where the settings say."""
        oauth = self.definition.sign_in.oauth
        is_named = bool(oauth.issuer or oauth.token_url)
        return is_named and oauth.grant_type is not GrantType.AUTHORIZATION_CODE

    @property
    def may_send(self) -> bool:
        """Whether a token may be sent: only encrypted, or on this machine."""
        parts = urlsplit(self.definition.url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            return False
        return self.definition.sign_in.oauth.enabled is not False

    def _parameter(self) -> str:
        """Return the query parameter that carries the token, where the settings name one."""
        name = self.definition.sign_in.oauth.token_param_name
        return name or "" if self.definition.transport is Transport.SSE else ""
