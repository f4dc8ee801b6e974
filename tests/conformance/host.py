"""Runs the clients of the suite: ``python -m tests.conformance.host SOCKET``.

The suite starts a client for each of its forty scenarios, all at once, and each would first
import the SDK. The host imports it once and forks a process for each visit, a few at a time. It
prints a line as soon as it may be asked.
"""

import gc
import json
import os
import socket
import sys
from importlib import import_module
from typing import Final

SLOTS: Final = 2
"""Visits that go on at the same time."""

MAX_WAITING: Final = 128
"""Clients that may wait for a visit."""

MAX_ORDER: Final = 1_000_000
"""Largest order of a visit, in bytes: its URL and the environment."""

NOWHERE: Final = "http://127.0.0.1:9/"
"""Where nothing listens: a visit to it imports all that visits without a sign-in need."""

SIGNING_IN: Final = (
    *("tui.engine.sign_in.callback", "tui.engine.sign_in.discovery", "tui.engine.sign_in.flow"),
    *("tui.engine.mcp.transports.http.auth_requests", "encodings.idna", "jwt", "mcp.client.auth"),
    *("mcp.client.auth.extensions.client_credentials", "cryptography.x509.verification"),
)
"""What is imported at the first sign-in."""


def main(address: str) -> None:
    """Take orders until the process is ended."""
    run(NOWHERE)
    for name in SIGNING_IN:
        import_module(name)
    gc.freeze()  # the collector of a visit would copy all of this
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(MAX_WAITING)
        for _ in range(SLOTS - 1):
            if os.fork() == 0:
                break
        else:
            print("ready", flush=True)
        while True:
            serve(listener)


def run(url: str) -> int:
    """Visit a server in this process; give the exit code."""
    import asyncio  # noqa: PLC0415 - clients share this module's limits, and start often

    from tests.conformance import client  # noqa: PLC0415

    return asyncio.run(client.main(url))


def serve(listener: socket.socket) -> None:
    """Have one client's visit done in a process of its own, and tell it the exit code."""
    connection, _ = listener.accept()
    with connection:
        length, outputs, *_ = socket.recv_fds(connection, 8, 2)
        order = connection.recv(int(length), socket.MSG_WAITALL)
        pid = os.fork()
        if pid == 0:
            visit(order, outputs)
        for output in outputs:
            os.close(output)
        _, status = os.waitpid(pid, 0)
        connection.sendall(bytes([0 if status == 0 else 1]))


def visit(order: bytes, outputs: list[int]) -> None:
    """Be the client: never returns."""
    code = 1
    try:
        url, environment = json.loads(order)
        os.environ.clear()
        os.environ.update(environment)
        for target, output in zip((1, 2), outputs, strict=True):
            os.dup2(output, target)
        code = run(url)
        sys.stdout.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
