"""The process that forks a reaper for each stdio server on Linux."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

REAPER: Final = Path(__file__).with_name("reaper.py")
"""The program, which documents the protocol."""

_LOADER_VARIABLE: Final = "LD_LIBRARY_PATH"


class Zygote:
    """Starts with the first server, and again if it was killed; running reapers do not need it."""

    def __init__(self) -> None:
        self._running: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    @staticmethod
    def is_available() -> bool:
        return sys.platform == "linux" and bool(sys.executable)

    def fork(self, descriptors: Sequence[int]) -> None:
        """Fork a reaper.

        Args:
            descriptors: Of the server's standard streams and the reaper's socket to us.

        Raises:
            OSError: If the system refuses.
        """
        try:
            socket.send_fds(self._connect(), [b"F"], descriptors)
        except ConnectionError:  # it was killed
            self.close()
            socket.send_fds(self._connect(), [b"F"], descriptors)

    def close(self) -> None:
        """End the process, if it runs."""
        if self._running is not None:
            process, ours = self._running
            self._running = None
            ours.close()
            process.kill()  # it has nothing to finish, and could hang
            process.wait()

    def _connect(self) -> socket.socket:
        """Return the socket to the process; start it if need be."""
        if self._running is None:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            with theirs:
                try:
                    process = self._start(theirs.fileno())
                except BaseException:
                    ours.close()
                    raise
            self._running = process, ours
        return self._running[1]

    @staticmethod
    def _start(descriptor: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own program
            (sys.executable, "-I", "-S", str(REAPER), str(descriptor)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={name: os.environ[name] for name in (_LOADER_VARIABLE,) if name in os.environ},
            start_new_session=True,
            pass_fds=(descriptor,),
        )
