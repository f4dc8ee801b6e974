"""Asks the person to sign in: the question, the browser, the answer that is pasted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk, WithdrawnError
from tui.engine.logs.secret_names import masked_address
from tui.engine.sign_in.callback import Redirect
from tui.engine.sign_in.flow import Consent
from tui.engine.sign_in.sign_in_record import AuthError, DeclinedError, canonical_address
from tui.model.addresses import AddressError, check_address
from tui.model.requests import Reply, SignInRequest
from tui.text import sanitize_line

PATIENCE: Final = 300.0
"""Seconds that the browser has to come back, from when it was opened."""

MAX_SCOPES: Final = 100
"""Most scopes that one sign-in may ask for."""

MAX_SCOPE: Final = 200
"""Characters of a scope that are shown; no real one is as long."""

MAX_FACT: Final = 500
"""Characters of an address or resource that are shown."""

WAITING: Final = "Waiting for the browser. If it does not come back, paste its address here."
NO_BROWSER: Final = (
    "No browser could be opened here. Open the address above anywhere, and paste the address "
    "where it ends."
)

OpenUrl = Callable[[str], Awaitable[bool]]


class PersonAsker:
    """Asks the person about one sign-in; see `AskPerson`.

    Args:
        definition: The server.
        desk: Asks.
        open_url: Opens an address in the browser.
        kept: Where tokens are kept, as shown.
        before: The issuer of the last sign-in, or empty.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        desk: Desk,
        open_url: OpenUrl,
        kept: str,
        before: str = "",
    ) -> None:
        self._definition = definition
        self._desk = desk
        self._open_url = open_url
        self._kept = kept
        self._before = before
        self._limit = asyncio.timeout(None)
        self._pasted: Redirect | None = None

    async def __call__(self, consent: Consent) -> Redirect:
        """Ask; the browser's answer or the person's ends the question."""
        request = self._request(consent)

        async def check(reply: Reply) -> SignInRequest | None:
            problem = await self._take(reply, request, consent)
            return replace(request, problem=problem) if problem else None

        asking = asyncio.create_task(self._desk.ask(request, check))
        back = consent.listener.answer if consent.listener is not None else None
        try:
            async with self._limit:
                waits: list[asyncio.Future[Any]] = [asking, *((back,) if back else ())]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise AuthError(
                f"was not signed in to within {PATIENCE / 60:.0f} minutes", "Try again."
            ) from None
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})
        if back is not None and back.done():
            return back.result()
        try:
            reply = asking.result()
        except WithdrawnError as error:
            raise DeclinedError(f"requires sign-in, and nobody could be asked: {error}") from None
        if not reply.allows:
            # A page that was opened may have said that it does not know the client.
            kind = DeclinedError if self._limit.when() is None else AuthError
            raise kind("was not signed in to: you cancelled it")
        return self._pasted or Redirect()

    async def _take(self, reply: Reply, request: SignInRequest, consent: Consent) -> str:
        """Do what was answered; return why the question stays, or an empty string."""
        listener = consent.listener
        if listener is None:
            return ""
        if self._limit.when() is None:
            self._limit.reschedule(asyncio.get_running_loop().time() + PATIENCE)
        if reply.text is not None:
            try:
                self._pasted = listener.read_pasted(reply.text)
            except AuthError as error:
                return f"What was pasted {error.reason}."
            return ""
        return WAITING if await self._open_url(request.url) else NO_BROWSER

    def _request(self, consent: Consent) -> SignInRequest:
        """Say what is asked for, in words that are safe to show."""
        place, definition = consent.place, self._definition
        try:
            address = check_address(consent.url or place.token_endpoint)
        except AddressError as error:
            raise AuthError(f"wants a sign-in at an address that is refused: {error}") from None
        scopes = place.scope.split()
        if len(scopes) > MAX_SCOPES:
            raise AuthError(f"asks for {len(scopes)} scopes at once, which is refused")
        notes = list(filter(None, (consent.note, address.warning)))
        if self._before and self._before != place.issuer:
            known = sanitize_line(urlsplit(self._before).hostname or self._before)
            notes.append(f"Until now the sign-in was at {known}; the server names another one now.")
        page, issuer, token = map(_host, (address.url, place.issuer, place.token_endpoint))
        if consent.url and page != issuer:
            words = f"The page is at {page}, its issuer at {issuer}"
            notes.append(f"{words}: go on only if you know that they belong together.")
        return SignInRequest(
            id=self._desk.new_id(),
            server=definition.id,
            address=sanitize_line(masked_address(definition.url, definition.secrets), MAX_FACT),
            host=address.host,
            shown_host=address.shown_host,
            issuer=sanitize_line(place.issuer, MAX_FACT),
            token_host=token if token != page else "",
            resource=sanitize_line(place.resource, MAX_FACT),
            scopes=tuple(sanitize_line(scope, MAX_SCOPE) for scope in scopes),
            url=address.url if consent.url else "",
            notes=tuple(notes),
            kept=self._kept,
        )


def _host(url: str) -> str:
    """Return the host and port of an address, as shown."""
    return sanitize_line(urlsplit(canonical_address(url)).netloc, MAX_FACT)
