"""The process in front of each stdio server on Linux; it outlives gemdeck and ends the server.

It is run by its path, as ``python -I -S reaper.py DESCRIPTOR``, and imports nothing of gemdeck.
The descriptor is a stream socket to gemdeck, the lifeline. On it comes what to start; over it
goes whether that worked; when it closes, gemdeck is gone, for whatever reason, and the server
gets a moment to end by itself. Standard streams pass to the server untouched.

The kernel makes this process the parent of every descendant of the server that loses its own
(``PR_SET_CHILD_SUBREAPER``), also of those that left the server's session. So the server and
all that it started are gone when this process has no children left, and only then it ends, in
the way the server did. Should it be killed itself, the kernel kills the server.

The lifeline speaks this, in bytes:
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
"""Seconds the server gets to end by itself once gemdeck is gone: its input has ended then."""

TERMINATE_GRACE = 1.0
"""Seconds its group gets after the SIGTERM that follows."""

KILL_WAIT = 2.0
"""Seconds in which killed processes must have gone; what hangs in the kernel is left to it."""

KILL_POLL = 0.02
"""Seconds until processes that became children meanwhile are looked for again."""

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

prctl = ctypes.CDLL(None).prctl


class Reaper:
    """Starts one server, waits for its end or gemdeck's, and leaves nothing behind.

    Args:
        lifeline: The descriptor of the socket to gemdeck.
    """

    def __init__(self, lifeline: int) -> None:
        self._lifeline = lifeline
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
        """Live as long as the server does; give its wait status."""
        arguments, environment = self._receive()
        self._start(arguments, environment)
        poll = select.poll()
        poll.register(self._signals, select.POLLIN)
        poll.register(self._lifeline, select.POLLIN)
        terminate_at = kill_at = float("inf")
        while self._status is None:
            now = time.monotonic()
            if now >= kill_at:
                break
            if now >= terminate_at:
                terminate_at = float("inf")
                self._signal_group(signal.SIGTERM)
            until = min(terminate_at, kill_at)
            ready = poll.poll(None if until == float("inf") else max(0, until - now) * 1000 + 1)
            for descriptor, _ in ready:
                if descriptor == self._signals:
                    self._take_signals()
                    continue
                match self._hear():
                    case b"T":
                        self._signal_group(signal.SIGTERM)
                    case b"K":
                        kill_at = now
                    case b"":
                        poll.unregister(self._lifeline)
                        terminate_at = now + EOF_GRACE
                        kill_at = terminate_at + TERMINATE_GRACE
        self._kill_all()
        self._tell(b"done\n")
        return self._status if self._status is not None else signal.SIGKILL

    def _receive(self) -> tuple[list[bytes], dict[bytes, bytes]]:
        """Read from gemdeck what to start."""
        count, *words = self._read_exactly(int(self._read_exactly(8), 16)).split(b"\0")
        arguments, variables = words[: int(count)], words[int(count) :]
        split = [variable.partition(b"=") for variable in variables]
        return arguments, {name: value for name, _, value in split}

    def _read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = os.read(self._lifeline, size - len(data))
            if not chunk:  # gemdeck went before there was anything to start
                os._exit(1)
            data += chunk
        return data

    def _start(self, arguments: list[bytes], environment: dict[bytes, bytes]) -> None:
        """Start the server in a session of its own and let go of its streams and its folder."""
        me = os.getpid()
        outcome, report = os.pipe()
        self._server = os.fork()
        if self._server == 0:
            _become(arguments, environment, report, me)
        os.close(report)
        failure = os.read(outcome, 16)
        os.close(outcome)
        if failure:
            self._tell(b"failed " + failure + b"\n")
            os._exit(127)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.close(nothing)
        os.chdir("/")
        self._tell(b"started %d\n" % self._server)

    def _hear(self) -> bytes:
        """Read a word of gemdeck's; nothing once it is gone, also where it left ours unread."""
        try:
            return os.read(self._lifeline, 1)
        except OSError:
            return b""

    def _take_signals(self) -> None:
        """Reap who died, and pass on what was sent to us in the server's stead."""
        for number in os.read(self._signals, 256):
            if number == signal.SIGCHLD:
                self._reap()
            elif self._status is None:
                os.kill(self._server, number)

    def _reap(self) -> bool:
        """Take note of the dead; tell whether anybody is left."""
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
        """Kill every descendant. Those of the killed become our children, so it goes in rounds."""
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
        """Send a signal to the server's group, whose number is surely its own while it lives."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._server, number)

    def _tell(self, words: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._lifeline, words)


def children() -> list[int]:
    """List the processes whose parent we are."""
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", "rb") as file:  # noqa: PTH123 - a slow import
            return [int(pid) for pid in file.read().split()]
    except OSError:  # the kernel was built without it
        return search_children(me)


def search_children(parent: int) -> list[int]:
    """List the processes with this parent by looking at all there are."""
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
    """Become the server. Does not return; a failure's number goes to `report`."""
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
    """End this process as the one with this wait status ended."""
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
    lifeline = int(sys.argv[1])
    os.set_inheritable(lifeline, False)
    prctl(_PR_SET_NAME, b"gemdeck-reaper", 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    end_like(Reaper(lifeline).run())


if __name__ == "__main__":
    main()
