"""Mask secrets in logs, the audit log and error messages.

Known secrets are masked in all their encodings; text that looks like a secret is masked too.
"""

import base64
import json
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final
from urllib.parse import SplitResult, quote, quote_plus, unquote, unquote_plus, urlsplit

from tui.text import USUAL_BASE64, clip, clip_middle, sanitize_line, without_sequences

MASK: Final = "***"
"""Replaces a secret on the screen."""

MIN_SECRET: Final = 4
"""Shortest value masked wherever it occurs; shorter ones occur by chance."""

LONG_VALUE: Final = 20
"""Length in characters from which a query value counts as a secret."""

MAX_SHOWN: Final = 2_000
"""Characters of a command line or address shown; the rest is cut off."""

MIN_ENVIRONMENT_SECRET: Final = 8
"""Shortest environment value that is masked; flags and numbers are shorter."""

MASK_ENDING: Final = "hidden by gemdeck"
"""How each mask ends that stands for a secret of a server in what it says."""

MAX_SECRET_NAME: Final = 64
"""Characters of the name of a secret in its mask."""

MIN_WORDS: Final = 16
"""Length from which words that a name calls a secret are one, such as a passphrase."""

_WORDS: Final = re.compile(
    r"(?:[A-Z]?[a-z]+|[A-Z]+)(?:[ ._,@/-]+(?:[A-Z]?[a-z]+|[A-Z]+))*(?:\d{1,4}|:\d+)?|[\d ._,:/-]+"
)
"""Words, a host, a number, a date."""

_PATH_WORD: Final = r"(?:(?:[A-Z]?[a-z]{2,}(?:[A-Z][a-z]{2,})*|[A-Z]+|[a-z])\d{0,8}|\d{1,8})"
_PART: Final = rf"[/\\](?:[ ._-]|(?<![^\W_]){_PATH_WORD}(?![^\W_]))*"
"""One name in a path: words, each perhaps with a number."""

_PLACE: Final = re.compile(
    rf"(?:(?:~|\.{{1,2}}|[A-Za-z]:){_PART}|{_PART}{_PART})(?:{_PART})*|(?s:[\w+.-]+://.*)"
)
"""A path or an address. What is no words may be a secret that begins as one."""

_MAIL: Final = re.compile(r"[\w+.-]+@[A-Za-z.-]+")
_OF_PERSON: Final = re.compile("user|mail|login|account", re.IGNORECASE)
"""The name of what may be an address of mail, though its name sounds secret."""

_NOT_SECRET: Final = frozenset(
    {"PWD", "SSH_AUTH_SOCK", "SESSION_MANAGER", "DESKTOP_SESSION", "DBUS_SESSION_BUS_ADDRESS"}
    | {"XDG_SESSION_CLASS", "XDG_SESSION_DESKTOP", "XDG_SESSION_PATH", "XDG_SESSION_TYPE"}
)
"""Common desktop variables with secret-sounding names; PWD is the opened folder."""

_SECRET_NAME: Final = re.compile(
    r"""token|secret|passw|passphrase|credential|bearer|cookie|api-?_?key|access-?_?key
    |private-?_?key|connection-?_?string
    |(?:^|[^a-z])(?:key|auth|authorization|pat|pwd|pass|sig|signature|session|dsn)(?:[^a-z]|$)""",
    re.IGNORECASE | re.VERBOSE,
)
_SECRET_PART: Final = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|KEY|AUTH|CREDENTIAL|CREDS|PRIVATE|CERT|DSN|COOKIE"
    r"|SESSION|_PAT\Z"
)
"""Parts of names of variables that no server inherits."""

_SECRET_SHAPE: Final = re.compile(
    r"""
      (?:gh[pousr]_|github_pat_|glpat-|npm_|hf_|sk-|[sr]k_(?:live|test)_|ya29\.)[\w.-]{10,}
    | AIza[\w-]{20,}
    | AKIA[A-Z0-9]{12,}
    | xox[a-z]-[\w-]{8,}
    | eyJ[\w-]{8,}\.[\w.-]+
    | (?i:(?<=bearer\ )|(?<=basic\ ))[\w.~+/=-]{6,}
    | (?<![A-Za-z0-9])(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{24,}
    | (?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
    """,
    re.VERBOSE | re.ASCII,
)
"""Formats of well-known tokens, and long runs of mixed letters and digits."""

_PAIR: Final = re.compile(r"(?P<name>[\w.-]{1,100})(?P<sign>=|:\s?)(?P<value>.+)", re.DOTALL)
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://\S+")

MAX_SECRETS: Final = 2_000
"""Most registered secrets; beyond that the oldest are dropped."""

MAX_REDACTED: Final = 16_000
"""Longest text kept, in characters; the middle of a longer one is cut out."""

MAX_REDACTED_LINE: Final = 4_000
"""Longest line kept, in characters; the patterns are not linear."""

ESCAPED: Final = 6
"""Most characters that one becomes in JSON."""

MESSAGE: Final = "message"
_INPUTS: Final = "inputRequests"
_RELATED: Final = "io.modelcontextprotocol/related-task"
_NOTHING: Final = (frozenset[str](), frozenset[str]())
_TASK: Final = (frozenset({"taskId", "requestState"}), frozenset({_INPUTS}))
_RESULT: Final = (
    frozenset({"taskId", "nextCursor", "requestState", "progressToken", "requestId"}),
    frozenset({"task", "tasks", "_meta", _INPUTS}),
)
NOT_MASKED: Final = _RESULT[0] | _RESULT[1]
"""The names in a result whose texts go back as they came; they are masked where they are shown."""

_PROTOCOL: Final = {
    MESSAGE: (frozenset({"id", "method"}), frozenset({"params", "result"})),
    **dict.fromkeys(("params", "result"), _RESULT),
    **dict.fromkeys(("task", "tasks", _RELATED), _TASK),
    "_meta": (frozenset({"progressToken"}), frozenset({_RELATED})),
}
"""The places of a message in which gemdeck reads or passes back texts that it does not show as what
the server says: the names of these texts, and of further places."""

_OWN_NAMES: Final = frozenset({MESSAGE, "params", "result", _INPUTS})
"""The places whose names are the protocol's own, or are passed back."""

PIECE: Final = 64 * 1024
"""Characters searched at once for what is hidden: C code holds up every thread meanwhile."""

JUDGEMENT: Final = 64
"""Characters whose search costs as much as beginning one."""

MAX_JUDGED: Final = 8 * 2**20
"""Characters of a message searched for what is hidden in them."""

LEFT_OUT: Final = "[left out: too much of this message is escaped to be searched for secrets]"
"""Stands for a text beyond that."""

_BETWEEN: Final = "\x1b\n"
"""Joins texts for a search; it ends every sequence for a terminal."""

_SAFE: Final = ("", "/", "!'()*", "*")
"""What encoders leave as it is in a URL: Python's two, and JavaScript's."""

_JSON_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_ESCAPE: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")
_ESCAPED_SIGN: Final = re.compile(r"\\+[nrt\W_]")
"""A line end, a quotation mark or a sign of Markdown as it is escaped in JSON."""

_SECRET_LINE: Final = re.compile("(?!-----).+")
"""A line of a secret that is one alone, unlike ``-----BEGIN PRIVATE KEY-----``."""

_RUN: Final = re.compile("[A-Za-z0-9]+")
"""Characters of a secret that encoders leave as they are."""

_SPLITTING: Final = re.compile(
    rb"[\\%](?:u00)?(?:3\d|[46][1-9A-Fa-f]|[57][\dAa])"
    rb"|\\u00(?:1[Bb]|[89][\dA-Fa-f]|[Aa][Dd])|\xc2[\x80-\x9f\xad]"
)
"""One that is escaped all the same, and what is between two on no screen."""

_SOFT_HYPHEN: Final = "\xad"

_HIDING: Final = re.compile(r"[\\%\x1b\x80-\x9f\xad]")
"""Behind what a secret may be hidden: escapes, percent signs, sequences for a terminal."""

_CONTROLS: Final = str.maketrans("\b\f\n\r\t", "bfnrt", "\\")

_DATA: Final = re.compile(r"[A-Za-z0-9+/_\s-]{8,}={0,2}\s*")
_MIN_ENCODED: Final = 8
"""Shortest Base64 fragment that is masked; shorter ones occur by chance."""


def is_secret_name(name: str) -> bool:
    """Return whether the name of a variable, flag or header suggests a secret value."""
    return name not in _NOT_SECRET and _SECRET_NAME.search(name) is not None


def has_secret_part(name: str) -> bool:
    """Return whether the name of a variable, in capitals, may be that of a secret."""
    return _SECRET_PART.search(name) is not None


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether a variable may hold a secret; a path is none."""
    if name in _NOT_SECRET:
        return _is_password(name, value)
    may_be = has_secret_part(name.upper()) and not value.startswith("/")
    return may_be or is_secret_name(name)


def masked_words(words: Sequence[str], secrets: Iterable[str] = ()) -> list[str]:
    """Return the words of a command line with secrets masked, up to `MAX_SHOWN` characters.

    Masked are the given values, values after a flag or name that suggests a secret, anything
    in the format of a token, and user names, passwords and query values in addresses.
    """
    known = known_secrets(secrets)
    shown: list[str] = []
    length = 0
    flagged = False
    for word in words:
        if length > MAX_SHOWN:
            break
        is_flag = word.startswith("-")
        shown.append(MASK if flagged and not is_flag else _masked(word, known))
        flagged = is_flag and "=" not in word and is_secret_name(word)
        length += len(shown[-1]) + 1
    return shown


def masked_address(address: str, secrets: Iterable[str] = ()) -> str:
    """Return a URL with user info, query values and secrets masked, without its fragment."""
    return _masked_address(masked_text(address, known_secrets(secrets))[:MAX_SHOWN])


def secrets_in_address(address: str) -> list[str]:
    """Return the secrets in a URL: the password, and query values with a secret name or long."""
    try:
        parts = urlsplit(address)
        values = [parts.password or ""]
    except ValueError:
        return []
    for item in parts.query.split("&"):
        name, _, value = item.partition("=")
        if is_secret_name(unquote_plus(name)) or len(value) >= LONG_VALUE:
            values += value, unquote_plus(value)
    return known_secrets(values)


def environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """Return long enough values of variables with secret-sounding names, and in addresses."""
    found = [value for name, value in environ.items() if is_secret_variable(name, value)]
    found += [secret for value in environ.values() for secret in secrets_in_address(value)]
    return [value for value in found if len(value) >= MIN_ENVIRONMENT_SECRET]


def named_secrets(name: str, text: str) -> list[str]:
    """Return what of a value is secret by its name, and the secrets of an address in it.

    A token may follow a word, as in ``Bearer TOKEN``. What reads as plain words, a number, a path
    or an address is none: it stands in ordinary text as well.
    """
    given = [text, text.partition(" ")[2].strip()] if is_secret_variable(name, text) else []
    found = [one for one in given + secrets_in_address(text) if not _PLACE.fullmatch(one)]
    if not is_secret_name(name) or _OF_PERSON.search(name):
        found = [one for one in found if not _MAIL.fullmatch(one)]
    least = MIN_WORDS if is_secret_name(name) else len(text) + 1
    found = [one for one in found if len(one) >= least or not _WORDS.fullmatch(one)]
    return [one for one in found if len(one) >= MIN_ENVIRONMENT_SECRET]


def named_words(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the values in a command line by their flags and names."""
    for before, word in pairwise(("", *words)):
        yield before if re.fullmatch(r"-[\w-]+", before) else "", word
        while pair := _PAIR.fullmatch(word):
            yield pair["name"], (word := pair["value"])


def mask_of(name: str) -> str:
    """Return what stands for a secret of a server: plain, so that a model can copy it as it is."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")[:MAX_SECRET_NAME]
    return f"[secret {plain or 'value'} {MASK_ENDING}]"


def _folded(text: str) -> str:
    """Return the letters and digits of a text, which models keep where they change the rest."""
    plain = unicodedata.normalize("NFKC", unquote(text)).casefold()
    return re.sub(r"[\W_]+", "", plain) if "gemdeck" in plain else ""


def masked_text(text: str, known: Sequence[str]) -> str:
    """Return a text with these secrets masked."""
    for secret in known:
        text = text.replace(secret, MASK)
    return text


def masked_shapes(line: str) -> str:
    """Return a line of text with everything that looks like a secret masked.

    The caller must limit its length: the patterns are not linear.
    """
    line = _SECRET_SHAPE.sub(MASK, line)
    return " ".join(_masked(word, ()) for word in line.split(" "))


def without_tokens(text: str) -> str:
    """Return a text cut at `MAX_SHOWN` characters with everything in a token format masked."""
    return _SECRET_SHAPE.sub(MASK, text[:MAX_SHOWN])


def known_secrets(values: Iterable[str]) -> list[str]:
    """Return the values long enough to be masked, longest first."""
    return sorted({value for value in values if len(value) >= MIN_SECRET}, key=len, reverse=True)


def _masked(word: str, known: Sequence[str]) -> str:
    word = masked_text(word, known)[:MAX_SHOWN]  # the patterns below are not linear
    pair = _PAIR.fullmatch(word)
    if pair and "://" not in pair["name"] + pair["sign"] and _is_secret_pair(**pair.groupdict()):
        return f"{pair['name']}{pair['sign']}{MASK}"
    word = _ADDRESS.sub(lambda match: _masked_address(match[0]), word)
    return _SECRET_SHAPE.sub(MASK, word)


def _is_secret_pair(name: str, sign: str, value: str) -> bool:
    return (sign == "=" and _is_password(name, value)) or is_secret_name(name)


def _is_password(name: str, value: str) -> bool:
    """Return whether a PWD is that of a connection string, and no folder."""
    return name == "PWD" and not value.startswith("/")


def _masked_address(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return MASK
    netloc = parts.netloc
    if "@" in netloc:
        netloc = f"{MASK}@{netloc.rpartition('@')[2]}"
    path = _SECRET_SHAPE.sub(MASK, parts.path)
    query = "&".join(_masked_parameter(item) for item in parts.query.split("&") if item)
    if not netloc and address.lower().startswith(f"{parts.scheme}:///"):  # as of a database
        return f"{parts.scheme}://{path}{'?' * bool(query)}{query}"
    return SplitResult(parts.scheme, netloc, path, query, "").geturl()


def _masked_parameter(item: str) -> str:
    name, sign, value = item.partition("=")
    return f"{name}={MASK if value else ''}" if sign else MASK


def _letters(text: str) -> str:
    """Return the letters of a text, whether they are escaped or not, at any depth of JSON."""
    if "\\" in text:
        text = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text).replace("\\", "")
    return text if text.isprintable() else text.translate(_CONTROLS)


def _seen(text: str) -> str:
    """Return what a screen shows of a text."""
    return without_sequences(text).replace(_SOFT_HYPHEN, "")


def _holding(texts: Sequence[str], holds: Callable[[str], object]) -> list[str]:
    """Return those of some texts that hold something; they are searched together."""
    if len(texts) == 1 or sum(map(len, texts)) <= PIECE:
        if not texts or not holds(_BETWEEN.join(texts)):
            return []
        if len(texts) == 1:
            return [*texts]
    half = len(texts) // 2
    return _holding(texts[:half], holds) + _holding(texts[half:], holds)


def _each_text(value: object, change: Callable[[str], str], place: str = "") -> Any:  # noqa: ANN401 - any JSON
    """Change each text, and each name that is not of the protocol, in a place of a message."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(one, change, place) for one in value]
    if not isinstance(value, dict):
        return value
    passed_back, places = _PROTOCOL.get(place, _NOTHING)
    return {
        name if place in _OWN_NAMES else change(name): item
        if name in passed_back and isinstance(item, str)
        else _each_text(item, change, name if name in places else "")
        for name, item in value.items()
    }


class Redactor:
    """Masks the secrets of this run, or of one server. Methods may be called from any thread.

    Attributes:
        revision: Grows whenever a further secret is known.
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._forms: dict[str, str] = {}
        self._lock = threading.Lock()
        self._letters: dict[str, str] = {}
        self._runs = frozenset[bytes]()
        self._masks: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self.revision = 0

    def register(self, *values: str, mask: str = MASK) -> None:
        """Put a mask in place of these values from now on, of `MIN_SECRET` characters or more."""
        with self._lock:
            long = dict.fromkeys(value for value in values if len(value.strip()) >= MIN_SECRET)
            if not (new := [value for value in long if value not in self._values]):
                return
            self._values |= dict.fromkeys(new, mask)
            while len(self._values) > MAX_SECRETS:
                del self._values[next(iter(self._values))]
            found = {form: own for value, own in self._values.items() for form in _forms(value)}
            self._forms = {form: found[form] for form in known_secrets(found)}
            self._letters = {_letters(form): own for form, own in self._forms.items()}
            runs = (max(_RUN.findall(form), key=len, default="") for form in self._forms)
            self._runs = frozenset(run.encode() for run in runs)
            self.revision += len(new)

    def learnt_since(self, revision: int) -> "Redactor":
        """Return one that masks only the secrets that were not known at a revision."""
        found = Redactor()
        known = len(self._values) - (self.revision - revision)
        found.register(*list(self._values)[max(0, known) :])
        return found

    def know_masks(self, names: Iterable[str]) -> None:
        """Know the masks of secrets with these names from now on."""
        self._masks |= {_folded(mask): mask for mask in map(mask_of, names)}

    def may_hold_mask(self, value: object) -> bool:
        """Return whether a JSON value may hold a mask; of most it is told at little cost."""
        text = json.dumps(value, ensure_ascii=False) if self._masks else ""
        return not text.isascii() or "gemdeck" in text.lower()

    def mask_in(self, value: object) -> str:
        """Return a known mask that a JSON value holds, however it was rewritten; "" if none."""
        if not self.may_hold_mask(value):
            return ""  # the rest costs a hundred times as much
        text = _folded(_ESCAPED_SIGN.sub("", json.dumps(value, ensure_ascii=False)))
        return next((mask for one, mask in self._masks.items() if one in text), "")

    def redact(self, text: str) -> str:
        """Return a text with secrets masked, clipped to about `MAX_REDACTED` characters."""
        text = self.redact_known(text)
        text = clip_middle(text, MAX_REDACTED // 4, MAX_REDACTED * 3 // 4)
        lines = (clip(line, MAX_REDACTED_LINE) for line in text.split("\n"))
        return "\n".join(map(masked_shapes, lines))

    def redact_known(self, text: str) -> str:
        """Return a text with only the registered secrets masked, in all their encodings."""
        for form, mask in self._forms.items():
            if len(form) <= len(text):  # most texts are short
                text = text.replace(form, mask)
        return text

    def redact_json(self, text: str) -> str:
        """Return JSON with only the registered secrets masked, however their letters are escaped.

        A string that hides one behind further escapes or percent signs, or splits one by what a
        terminal does not show, is masked whole; the rest stays as it is written. What is not JSON,
        or only a part of it, is masked as well.
        """
        text = self.redact_known(text)
        if not self._hidden_in(text):
            return text
        text = _JSON_STRING.sub(self._masked_string, text)
        return self._hidden_in(text) or text

    @property
    def knows_any(self) -> bool:
        """Whether there is anything to mask."""
        return bool(self._forms)

    def redact_message(self, message: object, line: bytes) -> tuple[Any, int]:
        """Return a message with the registered secrets masked in its texts and their names.

        The protocol's own names stay, and what is passed back as it came, such as ids and cursors.
        Texts beyond `MAX_JUDGED` in which something may be hidden are left out with a word.

        Args:
            message: The message.
            line: The same as it was written, which tells fast that there is nothing to mask.

        Returns:
            The message, and how many characters were searched, as what that costs.
        """
        has_data = self._runs and (b'"blob"' in line or b'"data"' in line)
        may_hold = has_data or any(run in line for run in self._runs)
        if self._runs and not may_hold and (b"\\u00" in line or b"%" in line or b"\xc2" in line):
            may_hold = _SPLITTING.search(line) is not None
        if not may_hold:
            return message, 0
        texts: dict[str, str] = {}
        _each_text(message, lambda text: texts.setdefault(text, text), MESSAGE)
        masks: dict[str, str] = {}
        judged = 0

        def hidden_in(text: str) -> str:
            nonlocal judged
            if text not in masks:
                judged += len(text) + JUDGEMENT
                if judged > MAX_JUDGED:
                    return LEFT_OUT
                masks[text] = self._hidden_in(text)
            return masks[text]

        hiding = [text for text in texts if _HIDING.search(text)]
        found = _holding([*texts], self._holds) + _holding(hiding, hidden_in)
        found += [text for text in texts if has_data and self._mask_in_data(text)]
        for text in dict.fromkeys(found):
            known = self.redact_known(text)
            known = known if known != text else self._mask_in_data(text) or text
            masked = (_HIDING.search(known) and hidden_in(known)) or known
            if masked != text and len(text) <= MAX_SHOWN and len(self._said) < MAX_SECRETS:
                self._said[masked] = text
            texts[text] = masked
        cost = judged + sum(map(len, texts)) // JUDGEMENT + JUDGEMENT * len(texts)
        changed = _each_text(message, texts.__getitem__, MESSAGE) if found else message
        return changed, cost

    def _mask_in_data(self, text: str) -> str:
        """Return the mask of a secret that Base64 holds in lines or for URLs; "" if none."""
        data = text.rpartition(",")[2]
        if len(data) > MAX_JUDGED or not _DATA.fullmatch(data):
            return ""
        letters = re.sub(r"[\s=]", "", data).translate(USUAL_BASE64)
        said = base64.b64decode(letters + "A" * (-len(letters) % 4)).decode("utf-8", "replace")
        return next((mask for form, mask in self._forms.items() if form in said), "")

    def _holds(self, text: str) -> bool:
        return any(form in text for form in self._forms)

    def said(self, text: str) -> str:
        """Return what was masked to become a text of a message, such as an address; else itself."""
        return self._said.get(text, text)

    def _hidden_in(self, text: str) -> str:
        """Return the mask of a secret that a text holds behind escapes, or an empty string."""
        overlap = 2 * ESCAPED * max(map(len, self._letters), default=0)
        size = max(PIECE, 4 * overlap)
        pieces = (text[start : start + size + overlap] for start in range(0, len(text), size))
        return next(filter(None, map(self._hidden_in_piece, pieces)), "")

    def _hidden_in_piece(self, text: str) -> str:
        if not _HIDING.search(text):
            return ""
        read = {letters := _letters(text), _seen(letters)}
        read |= {_letters(_seen(text)), _letters(unquote(letters))}
        found = (mask for form, mask in self._letters.items() if any(form in one for one in read))
        return next(found, "")

    def _masked_string(self, written: re.Match[str]) -> str:
        return f'"{mask}"' if (mask := self._hidden_in(written[0])) else written[0]

    def redact_ends(self, head: str, tail: str) -> tuple[str, str]:
        """Mask both ends of a text, without what may be a part of a secret where it was cut."""
        most = ESCAPED * max(map(len, self._forms), default=0)
        return self.redact_json(head)[: -most or None], self.redact_json(tail)[most:]

    def settled(self, text: str) -> int:
        """Return how many characters of a text that still grows begin no registered secret."""
        end = len(text)
        for form in self._forms:
            start = text.find(form[0], max(0, len(text) - len(form) + 1), end)
            while start >= 0 and not form.startswith(text[start:]):
                start = text.find(form[0], start + 1, end)
            end = end if start < 0 else start
        return end


def _forms(value: str) -> Iterator[str]:
    """Return the encodings in which a secret may appear."""
    lines = (line for line in value.splitlines() if _SECRET_LINE.fullmatch(line))
    for form in known_secrets((value, value.strip(), sanitize_line(value), *lines)):
        yield form
        encoded = _bytes(form)
        yield from (quote(encoded, safe) for safe in _SAFE)
        yield quote_plus(encoded)
        yield json.dumps(form)[1:-1]
        yield json.dumps(form, ensure_ascii=False)[1:-1]
        yield repr(form)[1:-1]
        yield from (encoded.hex(), encoded.hex().upper())
        yield from _base64(encoded)


def _bytes(value: str) -> bytes:
    """Encode a value; what the environment holds need not be UTF-8."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a surrogate pair of another origin
        return value.encode("utf-8", "surrogatepass")


def _base64(value: bytes) -> Iterator[str]:
    """Return the Base64 characters of a value at each possible offset.

    Three bytes become four characters. Characters that also depend on neighboring bytes are
    left out.
    """
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(value)) * 8 // 6
        encoded = base64.b64encode(b"\0" * before + value).decode("ascii")[first:last]
        if len(encoded) >= _MIN_ENCODED:
            yield encoded
            yield encoded.translate(_URL_SAFE)


_URL_SAFE: Final = str.maketrans("+/", "-_")
