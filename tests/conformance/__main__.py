"""One client of the suite: ``python -m tests.conformance SOCKET URL``.

It has the host at the other end of the socket visit the URL in its stead, with its environment
and its output, and ends as the visit ended.
"""

import json
import os
import socket
import sys

from tests.conformance.host import MAX_ORDER


def main(address: str, url: str) -> int:
    """Order a visit and wait for it; give the exit code."""
    order = json.dumps([url, dict(os.environ)]).encode()
    if len(order) > MAX_ORDER:
        raise ValueError("The environment is too large to hand over.")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [b"%08d" % len(order)], [1, 2])
        connection.sendall(order)
        return (connection.recv(1) or b"\1")[0]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
