"""Variables in settings: ``$VAR``, ``${VAR}`` and ``${VAR:-default}``, as gemini-cli reads them."""

import json
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tui.engine.logs.redaction import is_secret_name

KeyPath = tuple[str | int, ...]
"""Keys and list indexes from the top of a file."""

MAX_REFERENCE: Final = 1_024
"""Longest text between the braces of a reference, in characters."""

MAX_EXPANDED: Final = 131_072
"""Longest string that expansion gives, in characters: what Linux takes as one argument."""

MAX_GROWTH: Final = 4 * 1024 * 1024
"""Characters that the variables of one value may add in all."""

_REFERENCE: Final = re.compile(
    rf"\$(?:(?P<bare>\w+)|\{{(?P<braced>[^}}]{{1,{MAX_REFERENCE}}}+)\}})", re.ASCII
)


KEYRING: Final = re.compile(rf"\$\{{keyring:([^-}}][^}}]{{0,{MAX_REFERENCE}}}+)\}}")
"""``${keyring:NAME}``: a secret of the user's. It stays as it is until its server starts."""


@dataclass(slots=True)
class Expansion:
    """Expands the strings of one value in a single pass; what comes in is not read again.

    Attributes:
        environ: Where variables come from. An empty one counts as set.
        kept: Variables that stay references although they are set, so that a text with them can
            be shown. Limits count as if they were filled in.
        blank: Keys of the value below which an undefined variable is empty.
        undefined: Per undefined variable, the key where it was first met.
        too_long: Keys of strings that were left as they are since they would grow too long.
        filled: The variables whose values were put in, each with its value.
        defaults: The defaults that were put in, each with the variable that is not set.
    """

    environ: Mapping[str, str] = field(repr=False)
    kept: Container[str] = frozenset()
    blank: Container[str] = frozenset()
    undefined: dict[str, KeyPath] = field(default_factory=dict)
    too_long: list[KeyPath] = field(default_factory=list)
    filled: dict[str, str] = field(default_factory=dict, repr=False)
    defaults: dict[tuple[str, str], None] = field(default_factory=dict)
    _growth: int = 0
    _empties: bool = False

    @property
    def secrets(self) -> frozenset[str]:
        """Values put in for variables whose names say that they are secret."""
        return frozenset(self.filled[name] for name in self.filled if is_secret_name(name))

    def members(self, raw: Mapping[str, Any], path: KeyPath = ()) -> dict[str, Any]:
        """Expand the values of an object, with the keys in `blank` among its own."""
        made: dict[str, Any] = {}
        for key, item in raw.items():
            self._empties = key in self.blank
            made[key] = self.value(item, (*path, key))
        self._empties = False
        return made

    def value(self, value: Any, path: KeyPath = ()) -> Any:  # noqa: ANN401  (any JSON value)
        """Expand every string in a JSON value, keys excepted."""
        match value:
            case str():
                return self.text(value, path)
            case list():
                return [self.value(item, (*path, index)) for index, item in enumerate(value)]
            case dict():
                return {key: self.value(item, (*path, key)) for key, item in value.items()}
        return value

    def text(self, text: str, path: KeyPath = ()) -> str:
        """Expand one string. An undefined variable without a default stays, or is empty."""
        if "$" not in text:
            return text
        undefined: list[str] = []
        pieces: list[str] = []
        at = length = 0
        for match in _REFERENCE.finditer(text):
            piece = self._resolve(match, undefined)
            pieces += [text[at : match.start()], piece]
            length += match.start() - at + self._length(match, piece)
            at = match.end()
            if length > MAX_EXPANDED or self._growth + length - at > MAX_GROWTH:
                self.too_long.append(path)
                return text
        self._growth += max(0, length - at)
        for name in undefined:
            self.undefined.setdefault(name, path)
        return "".join([*pieces, text[at:]])

    def _resolve(self, match: re.Match[str], undefined: list[str]) -> str:
        if KEYRING.fullmatch(match[0]):
            return match[0]
        name, default = match["bare"], None
        if match["braced"] is not None:
            name, default = _split_default(match["braced"])
        if self._empties and default is None and name not in self.environ and "-" in name[1:]:
            name, _, default = name.partition("-")
        value = self.environ.get(name)
        if value is not None and name in self.kept:
            return match[0]
        if value is not None:
            self.filled[name] = value
            return value
        if default is not None:
            self.defaults[name, default] = None
            return default
        if name[0].isdigit():  # "$5" is a price, not a variable
            return match[0]
        undefined.append(name)
        return "" if self._empties else match[0]

    def _length(self, match: re.Match[str], piece: str) -> int:
        """Return the length of the value that a reference stands for."""
        name = match["bare"] or _split_default(match["braced"])[0]
        return len(self.environ[name]) if name in self.kept and name in self.environ else len(piece)


def references_in(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any JSON value
    """Name the variables that expanding a value would read, in order, each once."""
    match value:
        case str():
            whole = [
                match["bare"] or _split_default(match["braced"])[0]
                for match in _REFERENCE.finditer(value)
                if not KEYRING.fullmatch(match[0])
            ]
            found = [name for one in whole for name in (one, one.partition("-")[0]) if name]
        case list():
            found = [name for item in value for name in references_in(item)]
        case dict():
            found = [name for item in value.values() for name in references_in(item)]
        case _:
            found = []
    return tuple(dict.fromkeys(name for name in found if not name[0].isdigit()))


def secret_names(value: Any) -> frozenset[str]:  # noqa: ANN401 - any JSON value
    """Name the user's secrets that a value refers to, wherever in it."""
    apart = ("}", "}")  # what one text begins, no other one ends
    texts = json.dumps(value, ensure_ascii=False, default=str, separators=apart)
    return frozenset(KEYRING.findall(texts))


def with_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """Fill in the secrets that a text names; a name that is not there stays."""
    return KEYRING.sub(lambda found: secrets.get(found[1], found[0]), text)


def _split_default(reference: str) -> tuple[str, str | None]:
    """Split ``VAR:-default``; the name is at least one character long."""
    at = reference.find(":-", 1)
    return (reference, None) if at < 0 else (reference[:at], reference[at + 2 :])
