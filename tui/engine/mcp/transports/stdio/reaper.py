"""The parent process of each stdio server on Linux; it outlives gemdeck and ends the server.

It runs as ``python -I -S reaper.py DESCRIPTOR`` and imports nothing of gemdeck. The descriptor is
a stream socket to gemdeck: it receives what to start, reports the result, and when it closes,
gemdeck is gone and the server gets a moment to exit. The server inherits the standard streams.

The kernel makes this process the parent of every orphaned descendant of the server
(``PR_SET_CHILD_SUBREAPER``), even outside the server's session. So when this process has no
children left, the server and all that it started are gone; then it exits as the server did. If it
is killed itself, the kernel kills the server.

The protocol on the socket, in bytes:
    from gemdeck: 8 hexadecimal digits, then so many bytes: the number of arguments, the
        arguments and the ``NAME=VALUE`` variables, each after the first behind a NUL;
        then ``T`` to end the server's group and ``K`` to kill everything.
    to gemdeck: ``started PID`` or ``failed ERRNO``, and ``done`` at the end, a line each.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

EOF_GRACE = 1.0
"""Seconds that the server gets to exit once gemdeck is gone and its input has ended."""

TERMINATE_GRACE = 1.0
"""Seconds that its group gets after the SIGTERM that follows."""

KILL_WAIT = 2.0
"""Seconds to wait for killed processes; those that hang in the kernel are left."""

KILL_POLL = 0.02
"""Seconds between searches for new children."""

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

prctl = ctypes.CDLL(None).prctl


class Reaper:
    """Starts one server, waits until it or gemdeck ends, and leaves no process behind.

    Args:
        descriptor: The descriptor of the socket to gemdeck.
    """

    def __init__(self, descriptor: int) -> None:
        self._socket = descriptor
        self._server = 0
        self._status: int | None = None
        self._signals, wake = os.pipe()
        for end in (self._signals, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for name in ("SIGCHLD", *_FORWARDED):
            signal.signal(getattr(signal, name), lambda _number, _frame: None)

    def run(self) -> int:
        """Run until the server has ended; return its wait status."""
        arguments, environment = self._receive()
        self._start(arguments, environment)
        poll = select.poll()
        poll.register(self._signals, select.POLLIN)
        poll.register(self._socket, select.POLLIN)
        terminate_at = kill_at = float("inf")
        while self._status is None:
            now = time.monotonic()
            if now >= kill_at:
                break
            if now >= terminate_at:
                terminate_at = float("inf")
                kill_at = now + TERMINATE_GRACE  # from here, so that a late TERM still counts
                self._signal_group(signal.SIGTERM)
            until = min(terminate_at, kill_at)
            ready = poll.poll(None if until == float("inf") else max(0, until - now) * 1000 + 1)
            for descriptor, _ in ready:
                if descriptor == self._signals:
                    self._take_signals()
                    continue
                match self._read_command():
                    case b"T":
                        self._signal_group(signal.SIGTERM)
                    case b"K":
                        kill_at = now
                    case b"":
                        poll.unregister(self._socket)
                        terminate_at = time.monotonic() + EOF_GRACE  # `now` is from before poll
        self._kill_all()
        self._send(b"done\n")
        return self._status if self._status is not None else signal.SIGKILL

    def _receive(self) -> tuple[list[bytes], dict[bytes, bytes]]:
        """Read the arguments and the environment of the server."""
        count, *words = self._read_exactly(int(self._read_exactly(8), 16)).split(b"\0")
        arguments, variables = words[: int(count)], words[int(count) :]
        split = [variable.partition(b"=") for variable in variables]
        return arguments, {name: value for name, _, value in split}

    def _read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = os.read(self._socket, size - len(data))
            if not chunk:  # gemdeck went before there was anything to start
                os._exit(1)
            data += chunk
        return data

    def _start(self, arguments: list[bytes], environment: dict[bytes, bytes]) -> None:
        """Start the server in its own session and close our copies of its streams."""
        me = os.getpid()
        outcome, report = os.pipe()
        self._server = os.fork()
        if self._server == 0:
            _become(arguments, environment, report, me)
        os.close(report)
        failure = os.read(outcome, 16)
        os.close(outcome)
        if failure:
            self._send(b"failed " + failure + b"\n")
            os._exit(127)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.close(nothing)
        os.chdir("/")
        self._send(b"started %d\n" % self._server)

    def _read_command(self) -> bytes:
        """Read one command of gemdeck; empty once it is gone."""
        try:
            return os.read(self._socket, 1)
        except OSError:
            return b""

    def _take_signals(self) -> None:
        """Reap ended children, and forward other signals to the server."""
        for number in os.read(self._signals, 256):
            if number == signal.SIGCHLD:
                self._reap()
            elif self._status is None:
                os.kill(self._server, number)

    def _reap(self) -> bool:
        """Reap ended children; return whether any are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._server:
                self._status = status

    def _kill_all(self) -> None:
        """Kill all descendants, in rounds, as those of killed ones become our children."""
        deadline = time.monotonic() + KILL_WAIT
        self._signal_group(signal.SIGKILL)
        while self._reap() and time.monotonic() < deadline:
            for pid in children():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            select.select([self._signals], [], [], KILL_POLL)
            with contextlib.suppress(BlockingIOError):
                os.read(self._signals, 256)

    def _signal_group(self, number: int) -> None:
        """Send a signal to the server's group, whose id is only valid while the server lives."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._server, number)

    def _send(self, words: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._socket, words)


def children() -> list[int]:
    """Return our child processes."""
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", "rb") as file:  # noqa: PTH123 - a slow import
            return [int(pid) for pid in file.read().split()]
    except OSError:  # the kernel was built without it
        return search_children(me)


def search_children(parent: int) -> list[int]:
    """Return the children of a process by searching all processes."""
    try:
        everybody = os.listdir("/proc")  # noqa: PTH208 - a slow import
    except OSError:  # it is not mounted; the server's group is killed without it
        return []
    return [int(pid) for pid in everybody if pid.isdigit() and _parent(pid) == parent]


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - a slow import
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def _become(
    arguments: list[bytes], environment: dict[bytes, bytes], report: int, parent: int
) -> None:
    """Become the server. Does not return; writes an errno to `report`."""
    try:
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.setsid()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == parent:
            os.execve(arguments[0], arguments, environment)  # noqa: S606 - as intended
    except OSError as error:
        os.write(report, b"%d" % (error.errno or 0))
    finally:
        os._exit(127)


def end_like(status: int) -> None:
    """Exit as a process with this wait status did."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # one core file of a crash is enough
        with contextlib.suppress(OSError, ValueError):  # SIGKILL takes no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        code = 128 - code
    os._exit(code)


def main() -> None:
    """Run as a program."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    prctl(_PR_SET_NAME, b"gemdeck-reaper", 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    end_like(Reaper(descriptor).run())


if __name__ == "__main__":
    main()
