"""The parent process of each stdio server on Linux; it outlives gemdeck and ends the server.

The program runs once as ``python -I -S reaper.py DESCRIPTOR``, imports nothing of gemdeck, and is
a zygote: it only forks, so that no server waits for an interpreter of its own. For each byte on
the socket DESCRIPTOR it forks a reaper, which gets the four descriptors that come with the byte
(``SCM_RIGHTS``): the server's standard streams and a stream socket to gemdeck. The zygote keeps
none of them, and ends when gemdeck closes its socket. A reaper does not need it any more.

A reaper's socket receives what to start, reports the result, and when it closes, gemdeck is gone
and the server gets a moment to exit.

The kernel makes the reaper the parent of every orphaned descendant of the server
(``PR_SET_CHILD_SUBREAPER``), even outside the server's session. So when the reaper has no children
left, the server and all that it started are gone; then it says how the server ended, and ends. If
it is killed itself, the kernel kills the server.

The protocol on a reaper's socket, in bytes:
    from gemdeck: 8 hexadecimal digits, then so many bytes: the number of arguments, the working
        folder, its ``DEVICE:INODE`` or nothing, the arguments and the ``NAME=VALUE`` variables,
        each after the first behind a NUL; then ``T`` to end the server's group and ``K`` to kill
        everything.
    to gemdeck: ``started PID REAPER_PID`` or ``failed ERRNO``, and ``done EXIT_CODE`` at the end,
        a line each. An exit code is negative for a signal.
"""

# The modules around those named _so would take 0.2 MB of each reaper.
import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import ctypes
import errno
import gc
import os
import select
import sys
import time
from _collections_abc import Callable

EOF_GRACE = 1.0
"""Seconds that the server gets to exit once gemdeck is gone and its input has ended."""

TERMINATE_GRACE = 1.0
"""Seconds that its group gets after the SIGTERM that follows."""

KILL_WAIT = 2.0
"""Seconds to wait for killed processes; those that hang in the kernel are left."""

KILL_POLL = 0.02
"""Seconds between searches for new children."""

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_FOUR = socket.CMSG_LEN(4 * 4)  # descriptors
_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

prctl = ctypes.CDLL(None).prctl


class Reaper:
    """Starts one server, waits until it or gemdeck ends, and leaves no process behind.

    Args:
        streams: The descriptors of the server's standard streams.
        descriptor: The descriptor of the socket to gemdeck.
    """

    def __init__(self, streams: list[int], descriptor: int) -> None:
        self._streams, self._socket = streams, descriptor
        self._server = 0
        self._is_boxed = False
        self._status: int | None = None
        self._signals = open_signals()

    def run(self) -> None:
        """Run until the server has ended."""
        self._start(*self._receive())
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
                self._terminate()
            until = min(terminate_at, kill_at)
            ready = poll.poll(None if until == float("inf") else max(0, until - now) * 1000 + 1)
            for descriptor, _ in ready:
                if descriptor == self._signals:
                    self._take_signals()
                    continue
                match attempt(os.read, self._socket, 1):
                    case b"T":
                        self._terminate()
                    case b"K":
                        kill_at = now
                    case b"" | None:  # gemdeck is gone
                        poll.unregister(self._socket)
                        terminate_at = time.monotonic() + EOF_GRACE  # `now` is from before poll
        self._kill_all()
        status = self._status if self._status is not None else signal.SIGKILL
        code = os.waitstatus_to_exitcode(status)
        if self._is_boxed and code > 128:  # so bwrap says that a signal killed the server
            code = 128 - code
        self._send(b"done %d\n" % code)

    def _receive(self) -> tuple[bytes, bytes, list[bytes], dict[bytes, bytes]]:
        """Read the working folder, its place, the arguments and the environment of the server."""
        body = self._read_exactly(int(self._read_exactly(8), 16))
        count, folder, place, *words = body.split(b"\0")
        arguments, variables = words[: int(count)], words[int(count) :]
        split = [variable.partition(b"=") for variable in variables]
        return folder, place, arguments, {name: value for name, _, value in split}

    def _read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = os.read(self._socket, size - len(data))
            if not chunk:  # gemdeck went before there was anything to start
                os._exit(1)
            data += chunk
        return data

    def _start(
        self, folder: bytes, place: bytes, arguments: list[bytes], environment: dict[bytes, bytes]
    ) -> None:
        """Start the server in its own session and close our copies of its streams."""
        me = os.getpid()
        outcome, report = os.pipe()
        self._is_boxed = arguments[0].endswith(b"/bwrap")
        self._server = os.fork()
        if self._server == 0:
            _become(folder, place, arguments, environment, self._streams, report, me)
        for descriptor in (report, *self._streams):
            os.close(descriptor)
        failure = os.read(outcome, 16)
        os.close(outcome)
        if failure:
            raise OSError(int(failure), "")
        self._send(b"started %d %d\n" % (self._server, me))

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
            for pid in children(os.getpid()):
                attempt(os.kill, pid, signal.SIGKILL)
            select.select([self._signals], [], [], KILL_POLL)
            attempt(os.read, self._signals, 256)

    def _terminate(self) -> None:
        """Send SIGTERM to the server's group; that of a sandbox is in a session of its own.

        bwrap, which is in front of that one, would end of it, and kill all that it holds.
        """
        inner = children(self._server) if self._is_boxed and self._status is None else []
        for group in inner:
            attempt(os.killpg, group, signal.SIGTERM)
        if not inner:
            self._signal_group(signal.SIGTERM)

    def _signal_group(self, number: int) -> None:
        """Send a signal to the server's group, whose id is only valid while the server lives."""
        if self._status is None:
            attempt(os.killpg, self._server, number)

    def _send(self, words: bytes) -> None:
        attempt(os.write, self._socket, words)


def open_signals() -> int:
    """Return a new pipe that brings the numbers of the signals that arrive."""
    signals, wake = os.pipe()
    for end in (signals, wake):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    if before >= 0:
        os.close(before)
    return signals


def attempt(call: Callable[..., object], *arguments: object) -> object:
    """Call a function of the system; None if that refuses."""
    try:
        return call(*arguments)
    except OSError:
        return None


def children(parent: int) -> list[int]:
    """Return the children of a process."""
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
    folder: bytes,
    place: bytes,
    arguments: list[bytes],
    environment: dict[bytes, bytes],
    streams: list[int],
    report: int,
    parent: int,
) -> None:
    """Become the server. Does not return; writes an errno to `report`."""
    try:
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.setsid()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for standard, stream in enumerate(streams):
            os.dup2(stream, standard)
        os.chdir(folder)
        here = os.stat(".")  # noqa: PTH116 - without pathlib
        if place and b"%d:%d" % (here.st_dev, here.st_ino) != place:
            raise OSError(errno.ESTALE, "")
        if os.getppid() == parent:
            os.execve(arguments[0], arguments, environment)  # noqa: S606 - as intended
    except OSError as error:
        os.write(report, b"%d" % (error.errno or 0))
    finally:
        os._exit(127)


class ForkServer:
    """Forks reapers until gemdeck closes the socket.

    What it does before, such as handling signals, no reaper has to do: whatever a reaper touches
    takes memory of its own.

    Args:
        descriptor: The descriptor of the socket to gemdeck.
    """

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._signals = open_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for name in ("SIGCHLD", *_FORWARDED):
            signal.signal(getattr(signal, name), lambda _number, _frame: None)
        gc.collect()
        gc.disable()

    def run(self) -> None:
        """Run until gemdeck is gone, or a signal asks for the end."""
        poll = select.poll()
        poll.register(self._signals, select.POLLIN)
        poll.register(self._socket, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor != self._signals:
                    word, control, _, _ = self._socket.recvmsg(1, _FOUR, socket.MSG_CMSG_CLOEXEC)
                    if not word:
                        return
                    self._fork(list(memoryview(control[0][2]).cast("i")))
                elif any(number != signal.SIGCHLD for number in os.read(self._signals, 256)):
                    return
                else:
                    self._reap()

    def _reap(self) -> None:
        """Reap ended reapers."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return

    def _fork(self, descriptors: list[int]) -> None:
        """Fork a reaper, which does not return, and close our copies of its descriptors."""
        pid = -1
        try:
            pid = os.fork()
            if pid == 0:
                self._become_reaper(descriptors)
        except OSError as error:  # of this fork, or of starting the server
            attempt(os.write, descriptors[-1], b"failed %d\n" % (error.errno or 0))
        finally:
            if pid == 0:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)

    def _become_reaper(self, descriptors: list[int]) -> None:
        """Run as a reaper, with nothing of the zygote's."""
        self._socket.close()
        os.close(self._signals)
        os.setsid()
        prctl(_PR_SET_NAME, b"gemdeck-reaper", 0, 0, 0)
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        *streams, control = descriptors
        Reaper(streams, control).run()


def main() -> None:
    """Run as a program."""
    prctl(_PR_SET_NAME, b"gemdeck-zygote", 0, 0, 0)
    ForkServer(int(sys.argv[1])).run()


if __name__ == "__main__":
    main()
