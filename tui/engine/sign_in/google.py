"""Google's credentials for a server: the user's own (ADC), or those of a service account.

They come from where the Google libraries look for them, and never from a project's file.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tui.engine.background import import_alone, in_daemon_thread
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.sign_in.sign_in_record import (
    AuthError,
    Challenge,
    Signature,
    SignInRecord,
    canonical_address,
    may_carry_tokens,
)
from tui.engine.sign_in.token_store import TokenStore, cannot_be, read_kept
from tui.model.settings import AuthProviderType
from tui.text import sanitize_line

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

ISSUER: Final = "https://accounts.google.com"
"""Under which the user's word on a server is kept."""

GOOGLE_TIMEOUT: Final = 30.0
"""Seconds that Google's libraries get for a token; they may ask several servers."""

EARLY: Final = 60.0
"""Seconds before the end of its life that a token is replaced."""

MIN_VALIDITY: Final = 30.0
"""Seconds that a token is used at least."""

_CLOUD: Final = "https://www.googleapis.com/auth/cloud-platform"
_QUOTA_HEADER: Final = "x-goog-user-project"
_LOG_IN: Final = (
    "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS."
)


class GoogleSession:
    """Google's credentials for one server; see `ServerCredentials`.

    Args:
        definition: The server.
        store: Knows where the user agreed to send the credentials.
        mask: Told every token before it is used.
    """

    def __init__(
        self, definition: ServerDefinition, store: TokenStore, mask: Callable[[str], None]
    ) -> None:
        self.definition, self._store, self._mask = definition, store, mask
        self._credentials: Credentials | None = None
        self._token = ""
        self._until = 0.0
        self._lock = asyncio.Lock()
        self._is_agreed = not self.needs_word

    @property
    def needs_word(self) -> bool:
        """Whether the credentials go to this server only once the user has agreed to it.

        They are the user's own, and what they allow is not bound to a server, as an ID token is.
        """
        host = urlsplit(self.definition.endpoint.url).hostname or ""
        is_own = self.definition.endpoint.sign_in.provider is AuthProviderType.GOOGLE_CREDENTIALS
        return is_own and not host.endswith(".googleapis.com")

    async def signature(self) -> Signature:
        """Return the token for a request, and the project that pays for it."""
        await self._check()
        async with self._lock:
            if self._until <= time.time():
                await self._refresh()
        headers = {"authorization": f"Bearer {self._token}"}
        project = getattr(self._credentials, "quota_project_id", None)
        named = {name.lower() for name in self.definition.endpoint.headers}
        if isinstance(project, str) and project.isascii() and _QUOTA_HEADER not in named:
            headers[_QUOTA_HEADER] = project
        return Signature(self._token, headers)

    async def refused(self, challenge: Challenge, sent: Signature, attempt: int) -> bool:
        """Get another token once, if the server does not take this one."""
        if challenge.status != 401 or attempt or not sent.token:
            return False
        if sent.token == self._token:
            self._until = 0.0
        return True

    async def agree(self) -> None:
        """Keep that the user agreed to send the credentials to this server.

        Raises:
            AuthError: If it cannot be written.
        """
        await self._write(self._store.save)
        self._is_agreed = True

    async def disagree(self) -> bool:
        """Take that back; return whether there was anything to take back."""
        had, self._is_agreed = self._is_agreed, not self.needs_word
        self._until = 0.0
        await self._write(self._store.forget)
        return had and self.needs_word

    async def _write(self, change: Callable[[SignInRecord], None]) -> None:
        record = self._word()
        with cannot_be("kept"):
            await in_daemon_thread(lambda: change(record))

    async def _check(self) -> None:
        """Refuse to send a token where the user did not agree, or unencrypted."""
        if not may_carry_tokens(self.definition.endpoint.url):
            reason = "gets no Google credentials: its address is not encrypted"
            raise AuthError(reason, "Use https in `url`.")
        if not self._is_agreed:
            record = self._word()
            self._is_agreed = await read_kept(lambda: self._store.get(record.key)) == record
        if not self._is_agreed:
            raise AuthError("requests your Google credentials", "Press a to see what they allow.")

    def _word(self) -> SignInRecord:
        """Return what stands for the user's agreement: this server with these scopes."""
        scope = " ".join(self.definition.endpoint.sign_in.oauth.scopes)
        server = canonical_address(self.definition.endpoint.url)
        return SignInRecord(
            server=server, issuer=ISSUER, resource=server, client_id=f"adc {scope}", scope=scope
        )

    async def _refresh(self) -> None:
        """Get a token from Google's libraries, which block."""
        try:
            async with asyncio.timeout(GOOGLE_TIMEOUT):
                credentials = await in_daemon_thread(self._get_token)
        except TimeoutError:
            reason = f"gets no Google credentials: none came within {GOOGLE_TIMEOUT:g} s"
            raise AuthError(reason, "Check the network.", is_transient=True) from None
        except Exception as error:  # noqa: BLE001 - whatever it is, its text may hold a token
            raise _told(error) from None
        token = credentials.token
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise AuthError("gets no Google credentials: the token cannot be sent")
        self._mask(token)
        self._token, self._credentials = token, credentials
        self._until = time.time() + MIN_VALIDITY
        if (expiry := credentials.expiry) is not None:
            left = expiry.replace(tzinfo=UTC).timestamp() - time.time()
            self._until = time.time() + max(left - EARLY, MIN_VALIDITY)

    def _get_token(self) -> "Credentials":
        """Find the credentials, and refresh them. Blocks."""
        import_alone("google.auth.transport.requests")
        import google.auth  # noqa: PLC0415
        from google.auth.transport.requests import Request  # noqa: PLC0415

        credentials: Any = self._credentials
        if credentials is None:
            sign_in = self.definition.endpoint.sign_in
            is_own = sign_in.provider is AuthProviderType.GOOGLE_CREDENTIALS
            scopes = list(sign_in.oauth.scopes) if is_own else [_CLOUD]
            credentials, _ = google.auth.default(scopes=scopes)
            if not is_own:
                from google.auth import impersonated_credentials  # noqa: PLC0415

                make: Any = impersonated_credentials  # which has no types
                account = make.Credentials(credentials, sign_in.account, [_CLOUD])
                credentials = make.IDTokenCredentials(account, sign_in.audience, include_email=True)
        credentials.refresh(Request())
        found: Credentials = credentials
        return found


def _told(error: Exception) -> AuthError:
    """Return in our words why there are no credentials."""
    from google.auth import exceptions  # noqa: PLC0415

    kind = sanitize_line(type(error).__name__)
    if isinstance(error, exceptions.DefaultCredentialsError):
        return AuthError("gets no Google credentials: there are none on this computer", _LOG_IN)
    if isinstance(error, exceptions.TransportError | OSError) or getattr(error, "retryable", False):
        reason = f"gets no Google credentials at the moment ({kind})"
        return AuthError(reason, "Check the network, or try again later.", is_transient=True)
    reason = f"gets no Google credentials ({kind})"
    return AuthError(reason, f"{_LOG_IN} Check their permissions.")
