"""Checks addresses that servers want to open and splits them for display; never fetches them."""

import ipaddress
import re
from contextlib import suppress
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

from tui.model.frozen import Frozen
from tui.text import sanitize_line

MAX_URL: Final = 4_096
"""Longest address that is shown and opened, in characters."""

MAX_KEY_URL: Final = 2_048
"""Longest address that a key is sent to."""

MAX_HOST: Final = 253
"""Longest host name, in characters (RFC 1035)."""

_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029]")
_HOST: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9.])?", re.IGNORECASE)
_KEPT: Final = "%/:?#[]@!$&'()*+,;=~-._"
"""Reserved and unreserved characters that stay as they are (RFC 3986)."""


class AddressError(Exception):
    """An address must not be opened; the text says why, without repeating it."""


class Address(Frozen):
    """An address that may be shown and, after consent, opened.

    Attributes:
        url: The full address in ASCII; exactly this text is opened.
        host: Its host in ASCII.
        shown_host: Its host in its own script.
        warning: What is suspicious about it, or empty.
    """

    url: str
    host: str
    shown_host: str
    warning: str = ""


def check_address(url: str) -> Address:
    """Check an address.

    Raises:
        AddressError: If it is not a plain ``http`` or ``https`` address: another scheme, no
            host, a user name, white space or control characters, or too long.
    """
    if len(url) > MAX_URL:
        raise AddressError(f"it is longer than {MAX_URL} characters")
    if _UNSAFE.search(url):
        raise AddressError("it contains whitespace, control characters or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AddressError("it is malformed") from None
    if parts.scheme not in {"http", "https"}:
        raise AddressError("it is neither http nor https")
    if "@" in parts.netloc:
        raise AddressError("it contains a user name, which hides its real host")
    host = _ascii_host(parts.hostname or "")
    shown_host = _readable(host)
    netloc = f"[{host}]" if ":" in host else host
    netloc += f":{port}" if port is not None else ""
    tail = (quote(part, safe=_KEPT) for part in (parts.path, parts.query, parts.fragment))
    ascii_url = urlunsplit((parts.scheme, netloc, *tail))
    if len(ascii_url) > MAX_URL:
        raise AddressError(f"it is longer than {MAX_URL} characters")
    return Address(ascii_url, host, shown_host, _warning(parts.scheme, host, shown_host))


def _ascii_host(host: str) -> str:
    if not host:
        raise AddressError("it has no host")
    try:
        if ":" in host:
            return str(ipaddress.IPv6Address(host))
        ascii_host = (host if host.isascii() else host.encode("idna").decode("ascii")).lower()
    except ValueError:
        ascii_host = ""
    if len(ascii_host) > MAX_HOST or not _HOST.fullmatch(ascii_host) or ".." in ascii_host:
        raise AddressError("its host is malformed")
    return ascii_host


def _readable(host: str) -> str:
    """Return a host with its ``xn--`` labels decoded, if they can be."""
    if "xn--" not in host:
        return host
    try:
        return sanitize_line(host.encode("ascii").decode("idna"))
    except UnicodeError:
        return host


def _warning(scheme: str, host: str, shown_host: str) -> str:
    """Return the gravest suspicious property of an address as one line."""
    if "xn--" in host:
        other = f" It reads as {shown_host}" if shown_host != host else " It is not readable"
        return f"The host uses letters that can imitate others.{other}."
    if is_loopback(host):
        return "It points to this computer."
    if is_number(host):
        return "The host is a bare number, not a name."
    if scheme == "http":
        return "It is not encrypted: others on the network can read and change what is sent."
    return ""


def is_number(host: str) -> bool:
    """Return whether browsers read a host as a number: its last label is decimal or hex."""
    last = host.rstrip(".").rpartition(".")[2]
    return ":" in host or last.isdigit() or last.startswith("0x")


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address or a ``localhost`` name (RFC 6761)."""
    name = host.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_key_address(url: str) -> str:
    """Return the address of a model service if a key may be sent to it.

    Raises:
        ValueError: If it is neither https nor http on this computer, or more than an address.
    """
    is_safe = len(url) <= MAX_KEY_URL and url.isascii() and not _UNSAFE.search(url)
    with suppress(ValueError):
        parts = urlsplit(url)
        is_near = parts.scheme == "http" and is_loopback(parts.hostname or "")
        is_more = "@" in parts.netloc or parts.query or parts.fragment or parts.port == 0
        if is_safe and parts.hostname and not is_more and (parts.scheme == "https" or is_near):
            return url
    raise ValueError("must be a plain address: https, or http on this computer")
