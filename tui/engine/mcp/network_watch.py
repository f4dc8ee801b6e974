"""Notices when what was away may be back: another network, or a machine that was asleep."""

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

SETTLE: Final = 2.0
"""Seconds after a change of the network before it is told, so that many are told as one."""

REST: Final = 30.0
"""Seconds after that in which further changes wait, as a host of containers never settles."""

ASLEEP: Final = 5.0
"""Seconds by which the clocks drift apart in a sleep; also how often they are compared."""

MAX_NEWS: Final = 64 * 1024
"""Bytes that are read of one message of the kernel."""

_ADDRESSES: Final = 0x10 | 0x100
"""The kernel's groups RTMGRP_IPV4_IFADDR and RTMGRP_IPV6_IFADDR."""


def clock_offset() -> float:
    """Return how far the time of day is ahead of the clock that stands still in a sleep."""
    return time.time() - time.monotonic()


def watch_network(changed: Callable[[], None]) -> Callable[[], None]:
    """Call back after addresses of this machine came or went; return what ends that.

    Nothing is watched where the kernel does not tell it, as on macOS.
    """
    loop = asyncio.get_running_loop()
    try:
        kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    except (AttributeError, OSError):
        return lambda: None
    kernel.setblocking(False)
    try:
        kernel.bind((0, _ADDRESSES))
    except OSError:
        kernel.close()
        return lambda: None

    def settle() -> None:
        loop.remove_reader(kernel)
        loop.call_later(SETTLE, tell)

    def tell() -> None:
        if kernel.fileno() >= 0:
            with suppress(OSError):  # all is read, or more happened than the kernel could keep
                while kernel.recv(MAX_NEWS):
                    pass
            loop.call_later(REST, listen)
            changed()

    def listen() -> None:
        if kernel.fileno() >= 0:
            loop.add_reader(kernel, settle)

    def close() -> None:
        loop.remove_reader(kernel)
        kernel.close()

    listen()
    return close
