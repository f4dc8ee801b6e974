"""gemdeck's end of the socket to a reaper, the process that guards one server on Linux."""

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.engine.servers.failures import ServerError

REAPER: Final = Path(__file__).with_name("reaper.py")
"""The program of the guarding process; its protocol stands there."""

START_TIMEOUT: Final = 10.0
"""Seconds a reaper gets to start the server; it takes hundredths of one."""

_MAX_ANSWER: Final = 64
_PASSING: Final = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_LOADER_VARIABLE: Final = "LD_LIBRARY_PATH"


class Lifeline:
    """Holds a server alive: once this end is closed, however, nothing of the server is left.

    Attributes:
        theirs: The descriptor that the reaper is to inherit.
    """

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._is_done = False
        self.theirs: int = self._theirs.fileno()

    @staticmethod
    def is_available() -> bool:
        """Tell whether this system lets a process adopt the orphans among its descendants."""
        return sys.platform == "linux" and bool(sys.executable)

    @property
    def command(self) -> tuple[str, ...]:
        """The argument list that starts the reaper."""
        return (sys.executable, "-I", "-S", str(REAPER), str(self.theirs))

    @property
    def environment(self) -> dict[str, str]:
        """What the reaper's own interpreter needs; the server's variables are sent to it."""
        return {name: os.environ[name] for name in (_LOADER_VARIABLE,) if name in os.environ}

    async def begin(self, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
        """Have the server started, once the reaper runs; give its process id.

        Raises:
            ServerError: If the system refuses to start it.
            ValueError: If a NUL or an odd name of a variable makes that impossible.
        """
        self._theirs.close()
        request = _request(arguments, environment)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await loop.sock_sendall(self._ours, request)
                answer = await loop.sock_recv(self._ours, _MAX_ANSWER)
        except (TimeoutError, OSError) as error:
            raise ServerError("could not be started: its guard does not answer") from error
        match answer.split():
            case [b"started", pid, *rest]:
                self._is_done = bool(rest)
                return int(pid)
            case [b"failed", number]:
                raise start_error(int(number))
        raise ServerError("could not be started: its guard broke down")

    def terminate(self) -> None:
        """Send SIGTERM to the server's process group."""
        self._tell(b"T")

    def kill(self) -> None:
        """Kill the server and all that it started."""
        self._tell(b"K")

    def is_done(self) -> bool:
        """Tell, once the reaper has ended, whether it left nothing; one that was killed did not."""
        with suppress(OSError):
            self._is_done = self._is_done or self._ours.recv(_MAX_ANSWER).startswith(b"done")
        return self._is_done

    def close(self) -> None:
        """Let go; a reaper that still runs then ends the server."""
        self._theirs.close()
        self._ours.close()

    def _tell(self, word: bytes) -> None:
        with suppress(OSError):  # it has ended, or was let go
            self._ours.send(word)


def start_error(number: int) -> ServerError:
    """Say why the system refuses to start a server, by the number of its error."""
    reason = f"could not be started: {os.strerror(number)}"
    return ServerError(reason, permanent=number not in _PASSING)


def _request(arguments: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """Write down what to start."""
    if any(not name or "=" in name for name in environment):
        raise ValueError("a variable has no proper name")
    variables = (f"{name}={value}" for name, value in environment.items())
    words = (str(len(arguments)), *arguments, *variables)
    if any("\0" in word for word in words):
        raise ValueError("an argument or a variable holds a NUL")
    body = b"\0".join(map(os.fsencode, words))
    return b"%08x%b" % (len(body), body)
