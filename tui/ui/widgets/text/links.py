"""Check whether an address may be opened, find its host, and show where a link leads."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

from textual.content import Content, Span
from textual.style import Style

from tui.model.frozen import Frozen
from tui.model.input.addresses import is_loopback
from tui.text import clip

MAX_URL: Final = 2_000
"""Characters of an address."""

MAX_SHOWN: Final = 60
"""Characters of a target beside the text of its link; a host is shown whole all the same."""

LINK: Final = "link"
"""Key of a link's address in the style's metadata."""

_ADDRESS: Final = re.compile(
    r"^Resource Link: [^\n]*? at (\S+)|\b(https?://[^\s<>\"`|\\^{}\u2026]+)", re.MULTILINE
)
"""An address in a text: of a resource that a tool's result names, or of the web."""

_SCHEME: Final = re.compile(r"\A(?:[a-z0-9+.-]*://|mailto:)")
_END: Final = ".,;:!?'*_]"
"""What stands after an address more often than at its end."""

_AFTER: Final = "/()[]{}<>.,;:!?\"'“”»→"
_FORMS: Final = str.maketrans("。", ".", "[]")
"""A full stop that counts in a host as well, and the brackets around an IPv6 address."""

_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""A host name or an IPv6 address. Browsers may take other characters, such as a backslash, for the
end of the host."""


class Link(Frozen):
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
        return Link(url, refusal="The address has no host.")
    if parts.username is not None or parts.password is not None:
        return Link(url, host, "The address hides its host behind a user name.")
    if (ascii_host := _ascii(host)) is None:
        return Link(url, host, "The host name cannot be written in ASCII.")
    if not _HOST.fullmatch(ascii_host):
        return Link(url, host, "The host name contains characters that are not allowed in one.")
    return Link(url, f"{ascii_host}:{port}" if port else ascii_host)


def link_style(url: str) -> Style:
    """Return the style of a link; a terminal that can gets the address too (OSC 8).

    That one is in ASCII and holds no control character. What a click on it does is up to us, so
    that it never is a Textual action, which would let the text name code to run.
    """
    safe = url.isascii() and not examine(url).refusal
    return Style(link=url if safe else None) + Style.from_meta({LINK: url})


def linked(content: Content) -> Content:
    """Make links of the addresses in a text that are none yet."""
    taken = [span for span in content.spans if _address(span)]
    found = list[Span]()
    for match in _ADDRESS.finditer(content.plain):
        url = (match[1] or match[2]).rstrip(_END)
        url = url if "(" in url else url.rstrip(")")
        start = match.start(match.lastindex or 0)
        if not any(span.start <= start < span.end for span in taken):
            found.append(Span(start, start + len(url), ".md-link"))
            found.append(Span(start, start + len(url), link_style(url)))
    return content.add_spans(found) if found else content


def links_in(lines: Iterable[Content]) -> list[str]:
    """Return the addresses of the links in laid-out lines, each once, in order."""
    spans = (span for line in lines for span in line.spans)
    return list(dict.fromkeys(filter(None, map(_address, spans))))


def _address(span: Span) -> str:
    return str(span.style.meta.get(LINK, "")) if isinstance(span.style, Style) else ""


def target_beside(label: str, url: str) -> str:
    """Return the target of a link in parentheses to show beside its text, or nothing.

    Nothing where the text is the target or its host: a reader sees where the link leads.
    """
    link = examine(url)
    if _bare(label) in {_bare(url), _bare(link.host)}:
        return ""
    is_clear = link.host and not link.refusal
    target = url if is_clear or not link.host else link.host
    return f" ({clip(target, max(MAX_SHOWN, len(link.host) + 10))})"


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
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return None
