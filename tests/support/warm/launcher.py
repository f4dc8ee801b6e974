"""Asks the zygote beside it to run a program, and ends as the program did."""

# The modules around `_socket` would take longer than the launch.
import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys

arguments = sys.argv[1:]
program = arguments[1:] if arguments[:1] == ["-P"] else arguments
known = bool(program) and (program[0] == "-m" or not program[0].startswith("-"))
if not known or "PYTHONPATH" in os.environ:
    os.execv(sys.executable, [sys.executable, *arguments])

variables = [f"{name}={value}" for name, value in os.environ.items()]
fields = [os.getcwd(), str(len(arguments)), *arguments, *variables]  # noqa: PTH109 - pathlib is slow
request = "\0".join(fields).encode(errors="surrogateescape")
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
zygote = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
zygote.connect(f"{sys.argv[0]}.socket")
zygote.sendmsg([b"F"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
zygote.sendall(b"%08x" % len(request) + request)
os.closerange(0, 3)
status = int(zygote.recv(16) or b"1")
if status < 0:
    if -status != _signal.SIGKILL:
        _signal.signal(-status, _signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
