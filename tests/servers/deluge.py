"""An HTTP server whose answers never end: neither their heads nor their bodies.

Run it as ``deluge.py PORT``. The first part of the path that is asked for says which answer it is.
"""

import socket
import sys
import threading
from contextlib import suppress

OK = b"HTTP/1.1 200 OK\r\n"
JSON = OK + b"content-type: application/json\r\n"
EVENTS = OK + b"content-type: text/event-stream\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
GIANT = b"content-length: 1000000000000\r\n\r\n"

HEADS: dict[str, tuple[bytes, bytes]] = {
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "hints": (b"", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
    "unknown": (b"", b"HTTP/1.1 199 " + b"x" * 40_000 + b"\r\n\r\n"),
    "status": (b"HTTP/1.1 200 ", b"x"),
    "header": (OK + b"x-long: ", b"x "),
    "headers": (OK, b"x-one: 1\r\n"),
}
"""What begins an answer whose head does not end, and what is repeated."""

BODIES: dict[str, tuple[bytes, bytes]] = {
    "nothing": (JSON + b"\r\n", b" "),
    "giant": (JSON + GIANT, b" "),
    "crumbs": (JSON + CHUNKED, b"1\r\n \r\n"),
    "extensions": (JSON + CHUNKED, b"1;" + b"x" * 60 + b"\r\n \r\n"),
    "line": (EVENTS + b"\r\n", b"x"),
    "data": (EVENTS + GIANT + b"data: ", b"[],"),
    "split": (EVENTS + b"\r\ndata: [\n", b"data: [],\n"),
    "lines": (EVENTS + b"\r\n", b"x" * 2**23 + b"\n"),
    "rows": (EVENTS + b"\r\n", b"data: [%b0]\r\n\r\n" % (b"[]," * 2**21)),
    "comments": (EVENTS + CHUNKED, b"3\r\n:x\n\r\n"),
    "events": (EVENTS + b"\r\n", b"data: {}\r\n\r\n"),
}
"""The same for bodies."""


def serve(connection: socket.socket) -> None:
    """Answer one request."""
    with connection, suppress(OSError):
        request = connection.recv(65_536)
        begin, again = (HEADS | BODIES)[request.split(b"/")[1].split()[0].decode()]
        connection.sendall(begin)
        piece = again * (65_536 // len(again) + 1)
        while True:
            connection.sendall(piece)


def main() -> None:
    """Serve until killed."""
    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
