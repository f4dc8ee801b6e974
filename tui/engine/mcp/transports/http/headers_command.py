"""Headers that a program of the user's prints for the requests to one server."""

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from tui.engine.definitions.definition import AUTHORIZATION, ServerDefinition
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.server_log import MAX_LOG_LINES, ServerLog
from tui.engine.mcp.transports.http.http_client import check_header
from tui.engine.mcp.transports.stdio.launch import launched
from tui.engine.mcp.transports.stdio.process import ServerProcess
from tui.engine.sign_in.sign_in_record import AuthError, Challenge, Signature
from tui.model.bounded_json import JsonError, read_object

HEADERS_TIMEOUT: Final = 30.0
"""Seconds that the program gets."""

MAX_PRINTED: Final = 64 * 1024
"""Most bytes that it may print."""

_BY_HAND: Final = "Run the command yourself to check that its credentials are still valid."


class HeadersCommand:
    """Signs requests with what the program prints; see `ServerCredentials`.

    It runs before the first request, and once more for a request that is refused with 401. What
    it writes to standard error goes to the server's log.

    Args:
        definition: The server, with the program as its command.
        log: Takes what the program says.
        context: Has the zygote, the opened folders, and what masks secrets.

    Attributes:
        definition: The server; it may move.
    """

    def __init__(
        self, definition: ServerDefinition, log: ServerLog, context: ClientContext
    ) -> None:
        self.definition, self._log, self._context = definition, log, context
        self._headers: Mapping[str, str] | None = None
        self._lock = asyncio.Lock()

    async def signature(self) -> Signature:
        async with self._lock:
            if self._headers is None:
                self._headers = await self._read()
            return Signature(headers=self._headers)

    async def refused(self, challenge: Challenge, sent: Signature, attempt: int) -> bool:
        """Run the program again after the first 401, unless another request has just done so."""
        if challenge.status != 401:
            return False
        if attempt:
            reason = "rejects the headers that headersCommand prints (HTTP 401)"
            # transient, as no sign-in would help
            raise AuthError(reason, _BY_HAND, is_transient=True, is_permanent=True)
        async with self._lock:
            if sent.headers is self._headers:
                self._headers = await self._read()
        return True

    async def _read(self) -> Mapping[str, str]:
        """Run the program; what it prints is masked from then on and in no error.

        Raises:
            AuthError: If it fails or prints no headers; a later attempt may work.
        """
        said: deque[bytes] = deque(maxlen=MAX_LOG_LINES)
        printed, is_permanent = bytearray(), False
        try:
            await self._run(said, printed)
            headers = read_object(bytes(printed))
            if not all(isinstance(value, str) for value in headers.values()):
                raise ServerError("printed a header that is not text")
            for name, value in headers.items():
                check_header(name, value)
            return headers
        except JsonError:
            why = "did not print a JSON object of headers"
        except TimeoutError:
            why = f"did not finish within {HEADERS_TIMEOUT:g} s"
        except ServerError as error:
            why, is_permanent = error.reason, error.permanent
        finally:
            with suppress(JsonError):  # a program that failed may have printed some as well
                values = read_object(bytes(printed)).values()
                self._log.learn((AUTHORIZATION, one) for one in values if isinstance(one, str))
            self._log.write_stderr([*said])  # only now is it known what to mask there
        last = "".join(f": {line}" for line in self._log.tail(1) if said)
        reason = f"has no headers: its headersCommand {why}{last}"
        raise AuthError(reason, _BY_HAND, is_transient=True, is_permanent=is_permanent)

    async def _run(self, said: deque[bytes], printed: bytearray) -> None:
        """Run the program to its end; add what it prints, and what else it says."""
        async with launched(self.definition, self._context) as launch:
            process = await ServerProcess.start(launch, said.extend, self._context.zygote)
            try:
                process.end_input()
                async with asyncio.timeout(HEADERS_TIMEOUT):
                    while (line := await process.read_line()) is not None:
                        printed += line + b"\n"
                        if len(printed) > MAX_PRINTED:
                            break
                    printed += process.unfinished()
                    if len(printed) > MAX_PRINTED:
                        raise ServerError(f"printed more than {MAX_PRINTED // 1024} KiB")
                    await process.exited.wait()
            finally:
                await process.close()
        if code := process.exit_code:
            raise ServerError(f"exited with code {code}")
