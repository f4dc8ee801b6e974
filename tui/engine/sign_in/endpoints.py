"""Which addresses a sign-in may use: encrypted, plain, and not into the user's network.

A server names the addresses of its sign-in, and gemdeck fetches them and sends secrets there. They
must not become a way to reach what only this machine can reach.
"""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from tui.engine.sign_in.sign_in_record import AuthError
from tui.model.addresses import is_loopback, is_number
from tui.text import sanitize_line

MAX_ENDPOINT: Final = 2_048
"""Longest address of a sign-in, in characters."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!&()*+,;=%-]+")
"""Characters of an address; quotes, blanks, dollars and the like are none."""

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class RefusedAddressError(AuthError):
    """A host leads to where a sign-in may not lead."""


def checked_endpoint(url: str, server: str, what: str, *, is_own: bool = False) -> str:
    """Return the address of an endpoint if it may be used.

    Args:
        url: The address.
        server: The server's own address; only one on this machine may name others here.
        what: What the endpoint is, such as "token endpoint".
        is_own: Whether the user's own settings name it.

    Raises:
        AuthError: If it may not; the reason says what is wrong.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or port == 0 or len(url) > MAX_ENDPOINT or not _PLAIN.fullmatch(url):
        raise _refused(what, "is not a valid address")
    shown = sanitize_line(host)
    if "@" in parts.netloc:
        raise _refused(what, f"hides its host {shown} behind a user name")
    if parts.fragment:
        raise _refused(what, f"at {shown} carries a fragment")
    is_local = is_loopback(host)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise _refused(what, f"at {shown} is not encrypted (https)")
    if is_local and not is_own and not is_loopback(urlsplit(server).hostname or ""):
        raise _refused(what, f"at {shown} is on this computer, and the server is not")
    return url


def may_reach(address: str, host: str, server_host: str, server_addresses: list[str]) -> bool:
    """Return whether a request for a server's sign-in may go to an address.

    Public ones with a name may be reached, the server's own host may, and within a private network
    those of the same network's other hosts.

    Args:
        address: Where the host's name leads.
        host: The host of the endpoint.
        server_host: The server's host.
        server_addresses: Where that leads; empty if unknown.
    """
    if host.lower() == server_host.lower():
        return True
    target = _unwrapped(address)
    if target.is_loopback:
        return is_loopback(server_host)
    if target.is_global and not target.is_multicast:
        return not is_number(host)
    around = [_unwrapped(known) for known in server_addresses]
    return _is_private(target) and any(_is_private(known) for known in around)


def _is_private(address: IpAddress) -> bool:
    odd = address.is_loopback or address.is_link_local or address.is_unspecified
    return address.is_private and not odd and not address.is_reserved


def _unwrapped(address: str) -> IpAddress:
    """Return the IPv4 address inside an IPv6 one, if there is one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found in _NAT64:
            return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        return found.ipv4_mapped or found.sixtofour or found
    return found


def _refused(what: str, why: str) -> AuthError:
    return AuthError(f"names a {what} that {why}; it is refused")
