"""Check whether an address may be opened, find its host, and show where a link leads."""

import re
import unicodedata
from typing import Final
from urllib.parse import unquote, urlsplit

from tui.model.addresses import is_loopback
from tui.model.frozen import dataclass
from tui.text import clip

MAX_URL: Final = 2_000
"""Characters of an address."""

MAX_SHOWN: Final = 60
"""Characters of a target beside the text of its link."""

_SCHEME: Final = re.compile(r"\A(?:[a-z0-9+.-]*://|mailto:)")
_AFTER: Final = "/()[]{}<>.,;:!?\"'“”»→"
_FORMS: Final = str.maketrans("。", ".", "[]")
"""A full stop that counts in a host as well, and the brackets around an IPv6 address."""

_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""A host name or an IPv6 address. Browsers may take other characters, such as a backslash, for the
end of the host."""


@dataclass(frozen=True, slots=True)
class Link:
    """An address and its host.

    Attributes:
        url: The whole address.
        host: The host in the form of DNS, with the port if one is given.
        refusal: Why it must not be opened, or an empty string.
    """

    url: str
    host: str = ""
    refusal: str = ""


def examine(url: str) -> Link:
    """Check whether an address may be opened.

    Only absolute http and https addresses without a user name: other schemes start programs, and
    a user name can make one host look like another.
    """
    if len(url) > MAX_URL:
        return Link(url[:MAX_URL] + "…", refusal="The address is too long to be opened.")
    if not url.isprintable() or any(character.isspace() for character in url):
        return Link(url, refusal="The address contains characters that are not allowed in one.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return Link(url, refusal="This is not a valid address.")
    if parts.scheme not in {"http", "https"}:
        return Link(url, refusal="Only http and https addresses are opened.")
    if not host:
        return Link(url, refusal="The address names no host.")
    if parts.username is not None or parts.password is not None:
        return Link(url, host, "The address hides its host behind a user name.")
    ascii_host = _ascii(host)
    if ascii_host is None:
        return Link(url, host, "The host name cannot be written in ASCII.")
    if not _HOST.fullmatch(ascii_host):
        return Link(url, host, "The host name contains characters that are not allowed in one.")
    return Link(url, f"{ascii_host}:{port}" if port else ascii_host)


def target_beside(label: str, url: str) -> str:
    """Return the target of a link in parentheses to show beside its text, or nothing.

    Nothing where the text is the target or its host: a reader sees where the link leads.
    """
    link = examine(url)
    if _bare(label) in {_bare(url), _bare(link.host)}:
        return ""
    is_clear = link.host and not link.refusal
    return f" ({clip(url if is_clear or not link.host else link.host, MAX_SHOWN)})"


def is_plain_http(link: Link) -> bool:
    """Whether the link is http to another machine."""
    if not link.url.startswith("http:"):
        return False
    return not is_loopback(urlsplit(link.url).hostname or "")


def _bare(address: str) -> str:
    """Return an address without its scheme, to compare it with what a reader sees."""
    bare = unquote(_SCHEME.sub("", address.casefold(), count=1))
    return unicodedata.normalize("NFKC", bare).translate(_FORMS).rstrip(_AFTER)


def _ascii(host: str) -> str | None:
    """Return the host in ASCII (IDNA), so that no letter passes for another."""
    try:
        return host.encode("ascii").decode() if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return None
