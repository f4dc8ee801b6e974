"""What a message mentions after ``@``: resources of servers, and paths."""

import re
import shlex
from collections.abc import Mapping
from itertools import islice
from posixpath import basename, normpath
from typing import Final
from urllib.parse import unquote

from tui.model.catalog import Catalog
from tui.model.frozen import Frozen
from tui.model.input.uri_templates import UriTemplateError, parse_template
from tui.model.servers import ServerId

MAX_MENTIONED: Final = 20
"""Most resources and paths that one message brings along."""

MAX_WORDS: Final = 1_000
"""Words after ``@`` that are looked at; those beyond stay text."""

MAX_WORD: Final = 4_096
"""Characters of a word that can be a path."""

MAX_TEMPLATES: Final = 2_000
"""Templates that `find_resource` compares."""

_PUNCTUATION: Final = ".,;:!?'\""
_BRACKETS: Final = {")": "(", "]": "[", "}": "{", ">": "<"}
_ESCAPED: Final = re.compile(r"\\(\s)")
_START: Final = r"""(?<![^\s(\[{<"'])"""
_AT: Final = f"{_START}@"
"""What begins a mention: it stands not within a word, as in a mail address."""
_NAMED: Final = rf"{_START}(?=@(?:\S|\Z)|\\+@)"
"""Where a mention stands or may be typed on, or what a backslash keeps from being one."""
_TYPED_ON: Final = rf"""{_AT}(?>(?:[^\s"\\]++|\\[^\S\n]?|"[^"\n]*+"?+)*)\Z"""
"""A mention that a text goes on with."""
SECRET_NAME: Final = re.compile(
    r"\.env(?!.*(?:example|sample|template)).*|id_[a-z0-9]+|.*\.(?:pem|key|p12|pfx|jks|kdbx)"
    r"|\.(?:netrc|pgpass|npmrc|pypirc|htpasswd|git-credentials)|credentials(?:\.json)?",
    re.IGNORECASE,
)
"""Names of files that mostly hold secrets: neither a folder brings them nor a paste, but typing."""
_BLANK: Final = re.compile(r"\s")
_FILE: Final = re.compile(r"file://(?:localhost)?(?=/)")
_PICTURE: Final = re.compile(r'~?/[^"]+\.(?:png|jpe?g|webp|hei[cf])', re.IGNORECASE)


class ResourceMention(Frozen):
    """A resource of a server, its URI as it was typed."""

    server: ServerId
    uri: str


class PathMention(Frozen):
    """A word that may be a path, without quotes; `trimmed` is without the sentence's punctuation.

    Whether it is one, only the folders can tell.
    """

    path: str
    trimmed: str


Mention = ResourceMention | PathMention


def mentions(text: str, catalogs: Mapping[ServerId, Catalog]) -> list[Mention]:
    """Return what a message mentions, each once and in order: ``@server:uri`` and ``@path``.

    Quotes after the ``@`` or the colon keep blanks together; in a path, a backslash before a blank
    does so too. A URI may have blanks without quotes if its server lists it.
    """
    ids = "|".join(re.escape(one) for one in sorted(catalogs, key=len, reverse=True)) or "(?!)"
    word = rf"""
        {_AT}
        (?> (?: (?P<server>{ids}): )? )
        (?: "(?P<quoted>[^"\n]++)" | (?!")(?P<plain>(?>(?:[^\s\\]++|\\[^\S\n]?)+)) )
    """
    with_blanks = {
        server: [one.uri for one in catalog.resources if " " in one.uri]
        for server, catalog in catalogs.items()
    }
    found: dict[Mention, None] = {}
    for match in islice(re.finditer(word, text, re.VERBOSE), MAX_WORDS):
        server, quoted, typed = match["server"], match["quoted"], match["quoted"] or match["plain"]
        if quoted and not server and (within := re.match(f"({ids}):(.+)", quoted)):
            server, typed = within[1], within[2]  # @"server:uri"
        if server:
            blanks = with_blanks[ServerId(server)] if not quoted else ()
            listed = (uri for uri in blanks if text.startswith(uri, match.start("plain")))
            found[ResourceMention(ServerId(server), max(listed, key=len, default=typed))] = None
        elif len(typed) <= MAX_WORD:
            plain = typed if quoted else _ESCAPED.sub(r"\1", typed)
            found[PathMention(plain, plain if quoted else without_punctuation(plain))] = None
    return list(found)


def as_text(text: str) -> str:
    """Write a text of somebody else so that, as a message, it mentions and commands nothing."""
    return re.sub(r"\A/", r"\/", unnamed(text.strip()))


def unnamed(text: str, draft: str = "") -> str:
    """Write a text that came in one piece so that it mentions nothing but what a draft does."""
    if not draft:
        return re.sub(_NAMED, r"\\", text)
    kept = {*re.findall(word := rf"{_NAMED}\S+", draft)}
    return re.sub(word, lambda found: found[0] if found[0] in kept else unnamed(found[0]), text)


def pasted(text: str, before: str, replaced: str, after: str) -> str:
    """Write a paste so that it makes no mention where it goes, at its ends either.

    It goes on with a mention that was typed, as of ``@`` or ``@src/``: whoever types that wants the
    file. But one of a secret is typed as a whole: there the paste begins a new line.

    Args:
        text: The paste.
        before: What precedes it.
        replaced: What it replaces.
        after: What follows it.
    """
    if typed := re.search(_TYPED_ON, before[-MAX_WORD:]):
        named = mentions(f"{typed[0]}{text}{after[:MAX_WORD]}".partition("\n")[0], {})[:1]
        if named != mentions(typed[0], {})[:1] and any(map(_is_secret, named)):
            text, before = f"\n{text}", ""
    last = before[-1:]
    whole = re.sub(_NAMED, lambda at: "\\" * (at.start() >= len(last)), last + text)
    was_start = re.search(rf"{_START}\Z", (before + replaced)[-1:])
    parts = not was_start and re.search(rf"{_START}\Z", last + text) and re.match(r"\\*@", after)
    return whole[len(last) :] + "\\" * bool(parts)


def dropped_pictures(text: str) -> str:
    """Return the mentions of the pictures whose paths a paste is; nothing if it is anything else.

    A terminal gives the path of a file that is dropped on it: plain, in quotes, with backslashes,
    or as an address (``file:``).
    """
    try:
        paths = shlex.split(text[: MAX_WORD + 1])
    except ValueError:  # a quote is open
        return ""
    paths = [unquote(_FILE.sub("", one)) if _FILE.match(one) else one for one in paths]
    are_pictures = all(one.isprintable() and _PICTURE.fullmatch(one) for one in paths)
    return " ".join(map(typed_mention, paths)) if are_pictures and len(text) <= MAX_WORD else ""


def _is_secret(mention: Mention) -> bool:
    names = (mention.path, mention.trimmed) if isinstance(mention, PathMention) else ()
    return any(SECRET_NAME.fullmatch(basename(normpath(name))) for name in names)


def as_sent(text: str) -> str:
    """Return what a message says, without the backslashes before ``@`` that is only text."""
    return re.sub(rf"{_START}\\(?=\\*@)", "", text)


def typed_mention(target: str, server: str = "") -> str:
    """Return how a path, or a URI of a server, is mentioned."""
    before = f"@{server}:" if server else "@"
    return f'{before}"{target}"' if _BLANK.search(target) else f"{before}{target}"


def find_resource(uri: str, catalog: Catalog) -> str:
    """Return the URI of the resource that a mention names, or an empty string.

    The mention may be followed by the punctuation of its sentence. It may leave out the scheme of
    a listed resource or of a template, as in ``//path``, and if only one resource ends so, all
    that goes before.
    """
    trimmed = without_punctuation(uri)
    listed = [resource.uri for resource in catalog.resources]
    for wanted in (uri, trimmed):
        for one in listed:
            if one == wanted or (wanted.startswith("//") and one.partition(":")[2] == wanted):
                return one
    if fitting := _fitting_template(trimmed, catalog):
        return fitting
    end = trimmed.lstrip("/")
    ending = [one for one in listed if end and one.endswith(f"/{end}")]
    return ending[0] if len(ending) == 1 else ""


def without_punctuation(word: str) -> str:
    """Leave out what ends the sentence: a closing bracket only if it was opened before the word."""
    end = len(word)
    while end and (
        word[end - 1] in _PUNCTUATION
        or (
            (opening := _BRACKETS.get(word[end - 1])) is not None
            and word.count(word[end - 1], 0, end) > word.count(opening, 0, end)
        )
    ):
        end -= 1
    return word[:end]


def _fitting_template(uri: str, catalog: Catalog) -> str:
    """Return the URI, with its template's scheme if it has none, if it fits a template."""
    usable = (template.uri_template for template in catalog.templates if not template.problem)
    for template in islice(usable, MAX_TEMPLATES):
        scheme = template.partition(":")[0] if uri.startswith("//") else ""
        whole = f"{scheme}:{uri}" if scheme and "{" not in scheme else uri
        if whole.startswith(template.partition("{")[0]) and _fits(whole, template):
            return whole
    return ""


def _fits(uri: str, template: str) -> bool:
    try:
        return parse_template(template).matches(uri)
    except UriTemplateError:
        return False
