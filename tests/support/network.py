"""Keeps the test process off the network: sockets reach loopback and nothing else."""

import ipaddress
import os
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpcore2
import pytest

UNRESOLVABLE: Final = ".invalid"
"""Names under this domain never resolve (RFC 2606), so asking for them is harmless."""


Address = tuple[Any, ...] | str | bytes
Connect = Callable[[socket.socket, Address], int | None]


class ForbiddenConnectionError(ConnectionRefusedError):
    """A test tried to leave the machine."""


class NetworkGuard:
    """Refuses and remembers every attempt to leave loopback.

    Attributes:
        attempts: The forbidden addresses, oldest first. Code under test may well swallow the
            error it got, so the test fails by this list.
    """

    def __init__(self) -> None:
        self.attempts: list[str] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand between the socket module and its users until the monkeypatch is undone."""
        for name in ("connect", "connect_ex"):
            monkeypatch.setattr(socket.socket, name, self._guarded(getattr(socket.socket, name)))
        resolve: Callable[..., list[tuple[Any, ...]]] = socket.getaddrinfo

        def getaddrinfo(
            host: bytes | str | None, *arguments: object, **options: object
        ) -> list[tuple[Any, ...]]:
            text = host.decode() if isinstance(host, bytes) else host
            if text is not None and not is_local(text):
                if not text.endswith(UNRESOLVABLE):
                    self.attempts.append(text)
                raise socket.gaierror(socket.EAI_NONAME, f"{text} is outside this machine")
            return resolve(host, *arguments, **options)

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    def _guarded(self, connect: Connect) -> Connect:
        def guarded(sock: socket.socket, address: Address) -> int | None:
            inet = sock.family in {socket.AF_INET, socket.AF_INET6}
            if inet and not is_local(str(address[0])):
                self.attempts.append(f"{address[0]}:{address[1]}")
                raise ForbiddenConnectionError(f"Tests may not connect to {address[0]}.")
            return connect(sock, address)

        return guarded


def load_certificates_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clients of a worker share what is trusted: to load it takes each of them 20 ms."""
    make = httpcore2.default_ssl_context
    load = cache(lambda _file, _folder, **options: make(**options))

    def shared(**options: bool) -> object:
        file = Path(os.environ.get("SSL_CERT_FILE", os.devnull))
        named = file.read_bytes() if file.is_file() else str(file)
        return load(named, os.environ.get("SSL_CERT_DIR"), **options)

    monkeypatch.setattr(httpcore2, "default_ssl_context", shared)


def is_local(host: str) -> bool:
    """Tell whether a host name or address is this machine."""
    if host in {"", "localhost"} or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.split("%", 1)[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
