"""Links of the model: which of them may be opened, and where they lead."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

MAX_URL: Final = 2_000
"""Characters of an address that may be opened."""

_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""A name, or the number of an IPv6 host. Whoever opens an address may read other characters as the
end of its host, such as a backslash."""

_LOOPBACK_NAMES: Final = {"localhost"}


@dataclass(frozen=True, slots=True)
class Link:
    """An address, taken apart for a decision.

    Attributes:
        url: The whole address.
        host: The host it leads to, in the form that is asked of the name service.
        refusal: Why it is not opened, or nothing.
    """

    url: str
    host: str = ""
    refusal: str = ""


def examine(url: str) -> Link:
    """Decide whether an address may be opened.

    Only absolute https addresses, and http, without user names: other schemes start programs,
    and a user name makes one host look like another.
    """
    if len(url) > MAX_URL:
        return Link(url[:MAX_URL] + "…", refusal="The address is too long to be opened.")
    if not url.isprintable() or any(character.isspace() for character in url):
        return Link(url, refusal="The address holds characters that no address has.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return Link(url, refusal="This is not an address.")
    if parts.scheme not in {"http", "https"}:
        return Link(url, refusal="Only http and https addresses are opened.")
    if not host:
        return Link(url, refusal="The address names no host.")
    if parts.username is not None or parts.password is not None:
        return Link(url, host, "The address hides its host behind a user name.")
    ascii_host = _ascii(host)
    if ascii_host is None:
        return Link(url, host, "The host's name cannot be written in ASCII.")
    if not _HOST.fullmatch(ascii_host):
        return Link(url, host, "The host's name holds characters that no host has.")
    return Link(url, f"{ascii_host}:{port}" if port else ascii_host)


def is_plain_http(link: Link) -> bool:
    """Tell whether the link is http to a host other than this machine."""
    if not link.url.startswith("http:"):
        return False
    host = urlsplit(link.url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host not in _LOOPBACK_NAMES


def _ascii(host: str) -> str | None:
    """Write a host as the name service sees it, so that no letter passes for another."""
    try:
        return host.encode("ascii").decode() if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return None
