"""gemdeck's end of the socket to a reaper, the parent process of one server on Linux."""

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.engine.mcp.errors import ServerError

REAPER: Final = Path(__file__).with_name("reaper.py")
"""The reaper's program, which documents the protocol."""

START_TIMEOUT: Final = 10.0
"""Seconds that a reaper gets to start the server; usually some hundredths."""

_MAX_ANSWER: Final = 64
_PASSING: Final = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_LOADER_VARIABLE: Final = "LD_LIBRARY_PATH"


class ReaperClient:
    """Keeps a server alive: when this end closes, the reaper ends the server.

    Attributes:
        theirs: The descriptor for the reaper to inherit.
    """

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._is_done = False
        self.theirs: int = self._theirs.fileno()

    @staticmethod
    def is_available() -> bool:
        return sys.platform == "linux" and bool(sys.executable)

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, "-I", "-S", str(REAPER), str(self.theirs))

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the reaper's interpreter; the server's is sent over the socket."""
        return {name: os.environ[name] for name in (_LOADER_VARIABLE,) if name in os.environ}

    async def begin(self, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
        """Let the running reaper start the server; return its process id.

        Raises:
            ServerError: If the system refuses to start it.
            ValueError: If an argument contains NUL or a variable has an invalid name.
        """
        self._theirs.close()
        request = _request(arguments, environment)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await loop.sock_sendall(self._ours, request)
                answer = await loop.sock_recv(self._ours, _MAX_ANSWER)
        except (TimeoutError, OSError) as error:
            raise ServerError("could not be started: its parent process does not answer") from error
        match answer.split():
            case [b"started", pid, *rest]:
                self._is_done = bool(rest)
                return int(pid)
            case [b"failed", number]:
                raise start_error(int(number))
        raise ServerError("could not be started: its parent process failed")

    def terminate(self) -> None:
        self._send(b"T")

    def kill(self) -> None:
        self._send(b"K")

    def is_done(self) -> bool:
        """Return whether an ended reaper ended cleanly, with no process left."""
        with suppress(OSError):
            self._is_done = self._is_done or self._ours.recv(_MAX_ANSWER).startswith(b"done")
        return self._is_done

    def close(self) -> None:
        """Close the socket; a running reaper then ends the server."""
        self._theirs.close()
        self._ours.close()

    def _send(self, word: bytes) -> None:
        with suppress(OSError):  # it has ended, or the socket is closed
            self._ours.send(word)


def start_error(number: int) -> ServerError:
    """Return the error for an errno of starting a server."""
    reason = f"could not be started: {os.strerror(number)}"
    return ServerError(reason, permanent=number not in _PASSING)


def _request(arguments: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """Encode what to start."""
    if any(not name or "=" in name for name in environment):
        raise ValueError("a variable has an invalid name")
    variables = (f"{name}={value}" for name, value in environment.items())
    words = (str(len(arguments)), *arguments, *variables)
    if any("\0" in word for word in words):
        raise ValueError("an argument or a variable contains a NUL")
    body = b"\0".join(map(os.fsencode, words))
    return b"%08x%b" % (len(body), body)
