"""Forms of elicitations: reads the requested schema into fields.

The schema is the restricted one of elicitation: top-level properties only, each a text, a
number, a boolean, or a choice.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from tui.engine.mcp.schema.flatten import is_number
from tui.model.bounded_json import as_list, as_object, as_texts, text_in
from tui.model.frozen import Frozen
from tui.model.input.arguments import json_line
from tui.model.requests import FieldKind, FieldOption, FormField, FormValue
from tui.text import INVISIBLE, LATIN_ALIKE, sanitize, sanitize_line

MAX_READ: Final = 1_000
"""Characters of a text that are looked through; no more are shown."""

_WORDS: Final = r"""
password*, passwd*, pass phrase*, pass word*, pass code*, pwd, secret*, credential*,
(?<!\w\s)pass(?!\s\w), (user|db|login|root|admin) pass, (?<!max\s)\w*token, jwt, bearer, pat,
(api|access|private|signing|ssh|gpg|pgp|master|wallet|encryption|deploy|license) key*,
authorization, (session|auth) cookie*, connection string*, dsn, security answer*, maiden name,
(seed|recovery|backup|secret|mnemonic) (phrase|word|key|code)*, mnemonic*,
pin, pin (code|number), cv[vc]\d?, cvn, card (number|code|verification)*,
(credit|debit|bank) card*, security code*, iban, (account|routing) number*, sort code,
ssn, social security*, passport*, national id*, (identity|id) (number|card)*,
tax (id|number)*, driv(er|ing).?s? licen[cs]e*, otp, totp,
(one time|verification|2fa|mfa|two factor) code*,

pass wort*, kennwort*, geheim*, (zugangs|anmelde) (daten|code)*, pin nummer*, tan, tan nummer*,
(privat|privat(er|en|e)|zugangs) schlue?ssel*,
(seed|wiederherstellungs) (wort|wo?e?rter|phrase|schlu|code)*, kredit karte*,
(karten|kreditkarten|konto|pass|ausweis|sozialversicherungs|steuer) (nummer|nr)*,
karten prue?f*, prue?f (nummer|ziffer)*, sicherheits code*, reise pass*,
(personal )?ausweis*, sozialversicherung*, steuer id*,

mots? de (passe|recuperation)*, phrase (de recuperation|mnemonique|secrete|de passe)*,
cle (privee|secrete|api|d.?acces)*, code (pin|secret|de securite|de verification)*,
cryptogramme*, carte (bancaire|de credit|bleue|d.?identite)*,
numero de (carte|compte|passeport|securite)*, passeport*, securite sociale*,

contrasena*, clave, (frase|palabras) (semilla|de recuperacion|secreta)*,
(codigo|numero) (pin|de seguridad|de verificacion|de tarjeta|de cuenta)*,
tarjeta de (credito|debito)*, pasaporte*, dni, seguridad social*, documento de identidad*,

senha, wachtwoord, has[lł]o, parola chiave, пароль, \w*密[码碼], \w*パスワード*, \w*비밀번호*
"""
"""English, German, French and Spanish words, and those for a password elsewhere, in lower case
and without accents. One with ``*`` may go on, and a blank may be missing."""

MAX_FIELDS: Final = 50
"""Fields of one form; a longer form is refused."""

MAX_OPTIONS: Final = 200
"""Options of one field; a longer choice is refused."""

MAX_ALL_OPTIONS: Final = 300
"""Options of all fields of a form; each is a widget to draw, or an entry of a list."""

MAX_OPTION: Final = 1_000
"""Characters of an option; a choice with a longer one is refused, as none is shown in part."""

MAX_TITLE: Final = 120
"""Characters of a field's label that are shown."""

MAX_DESCRIPTION: Final = 1_000
"""Characters of a field's description that are shown."""

MAX_LINES: Final = 20
"""Lines of a field's description that are shown."""

MAX_DEFAULT: Final = 4_000
"""Longest default text of a field."""

_KINDS: Final = {
    "array": FieldKind.CHOICES,
    "string": FieldKind.TEXT,
    "integer": FieldKind.INTEGER,
    "number": FieldKind.NUMBER,
    "boolean": FieldKind.BOOLEAN,
}
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})

_Json = Mapping[str, Any]

NOTHING: Final[Any] = object()
"""Stands for a value of JSON that is not there."""


def _pattern(word: str) -> str:
    end = "" if word.endswith("*") else r"\b"
    return rf"\b(?:{word.removesuffix('*').replace(' ', ' ?')}){end}"


_SECRET: Final = re.compile("|".join(_pattern(word.strip()) for word in _WORDS.split(",")))
_DENIED: Final = re.compile(
    r"(?:\b(?:never|no|not|without)|n['\u2019]t)\b(?! forget)[^.,;:!?\n]*", re.IGNORECASE
)
"""What a description says not to enter."""

_WORD_BREAK: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s_.\-]+")
_UNSEEN: Final = dict.fromkeys(map(ord, INVISIBLE))
_DIGITS: Final = str.maketrans("013457$@", "oieastsa")
"""Signs that stand for letters, as in ``passw0rd``."""


def asks_for_secret(*texts: str, whole: bool = False) -> bool:
    """Return whether a name, a title or a message asks for a secret, in part or as a whole."""
    find = _SECRET.fullmatch if whole else _SECRET.search
    cut = [text[:MAX_READ] for text in texts]
    plain = [*map(_folded, cut), *map(str.casefold, cut)]  # what has no Latin letters stays
    return any(find(one) or find(one.translate(_DIGITS)) for one in plain)


def _folded(text: str) -> str:
    """Split a name into words in lower case, without accents or what cannot be seen.

    Letters of other alphabets that look like Latin ones are folded.
    """
    words = _WORD_BREAK.sub(" ", unicodedata.normalize("NFKC", text.translate(_UNSEEN)))
    letters = unicodedata.normalize("NFKD", words.casefold())
    return "".join(c for c in letters if not unicodedata.combining(c)).translate(LATIN_ALIKE)


class UnusableFormError(ValueError):
    """No form can be made from a requested schema; the text says why."""


class Control(Frozen):
    """A field, with the server's spelling of its parts.

    Attributes:
        field: The field as shown.
        name: The property's name as the server spells it.
        values: For each option's shown value, the value as the server spells it; any JSON.
        pattern: The regular expression as the server spells it.
        sends_null: Whether the property is sent as null if the field is empty.
    """

    field: FormField
    name: str
    values: Mapping[str, Any]
    pattern: str
    sends_null: bool

    def sent(self, entered: FormValue) -> Any:  # noqa: ANN401 - any JSON
        """Return what was entered as the server spells it; of several, in the server's order."""
        if isinstance(entered, tuple):
            return [value for shown, value in self.values.items() if shown in entered]
        return self.values.get(entered, entered) if isinstance(entered, str) else entered


class Form(Frozen):
    """A form, its controls in the server's order."""

    controls: tuple[Control, ...]

    @property
    def fields(self) -> tuple[FormField, ...]:
        return tuple(control.field for control in self.controls)


def read_form(schema: _Json) -> Form:
    """Read the schema of an elicitation.

    Raises:
        UnusableFormError: If no form can be made from it.
    """
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise UnusableFormError("its properties are not an object")
    if len(properties) > MAX_FIELDS:
        raise UnusableFormError(f"it has more than {MAX_FIELDS} fields")
    needed = set(as_texts(schema.get("required")))
    controls: list[Control] = []
    keys: set[str] = set()
    room = MAX_ALL_OPTIONS
    for name, definition in properties.items():
        if not isinstance(definition, Mapping):
            raise UnusableFormError("one of its fields is not an object")
        key = unique(sanitize_line(str(name), MAX_TITLE), keys)
        control = read_control(key, str(name), definition, required=name in needed, room=room)
        room -= len(control.field.options)
        controls.append(control)
    return Form(tuple(controls))


def read_control(
    key: str, name: str, definition: _Json, *, required: bool, room: int = MAX_ALL_OPTIONS
) -> Control:
    """Read the schema of one property, for whose options the form has still `room`.

    Raises:
        UnusableFormError: If no field can show it.
    """
    inner, nullable = _without_null(definition)
    kind = _kind(inner)
    values, options = _options(kind, inner, room)
    title = sanitize_line(text_in(definition, "title"), MAX_TITLE) or key
    description = sanitize(text_in(definition, "description"), MAX_DESCRIPTION)
    description = "\n".join(description.split("\n")[:MAX_LINES])
    pattern = text_in(inner, "pattern") if kind is FieldKind.TEXT else ""
    low, high = _bounds(kind, inner)
    shown = FormField(
        key=key,
        kind=kind,
        title=title,
        description=description,
        required=required and not nullable,
        default=_default(kind, definition.get("default", inner.get("default", NOTHING)), values),
        options=options,
        format=form if (form := text_in(inner, "format")) in _FORMATS else "",
        minimum=low,
        maximum=high,
        asks_secret=inner.get("format") == "password"
        or (
            kind in {FieldKind.TEXT, FieldKind.INTEGER}  # a PIN is one, and no password's length
            and asks_for_secret(name, text_in(definition, "title"), whole=kind is FieldKind.INTEGER)
        )
        or (
            kind is FieldKind.TEXT
            and asks_for_secret(_DENIED.sub("", text_in(definition, "description")[:MAX_READ]))
        ),
    )
    return Control(shown, name, values, pattern, sends_null=required and nullable)


def _without_null(definition: _Json) -> tuple[_Json, bool]:
    """Return the definition without null, and whether null is allowed."""
    branches = as_list(definition.get("anyOf"))
    kept = [b for b in branches if isinstance(b, Mapping) and b.get("type") != "null"]
    if len(kept) == 1 and "type" not in definition:
        return kept[0], len(branches) > 1
    kinds = as_list(definition.get("type"))
    others = [kind for kind in kinds if kind != "null"]
    if len(others) == 1:
        return {**definition, "type": others[0]}, len(kinds) > 1
    return definition, False


def _kind(definition: _Json) -> FieldKind:
    name = definition.get("type")
    has_options = {"enum", "oneOf"} & definition.keys() or options_of(definition)
    if name in ("string", None) and has_options:
        return FieldKind.CHOICE
    if not isinstance(name, str) or name not in _KINDS:
        raise UnusableFormError("one of its fields has a type that forms do not support")
    return _KINDS[name]


def _options(
    kind: FieldKind, definition: _Json, room: int
) -> tuple[dict[str, Any], tuple[FieldOption, ...]]:
    """Return the shown option values with the server's values, and the options as shown."""
    if kind is FieldKind.CHOICES:
        definition = as_object(definition.get("items"))
    elif kind is not FieldKind.CHOICE:
        return {}, ()
    pairs = options_of(definition)
    if not pairs:
        raise UnusableFormError("one of its choices has no options")
    if len(pairs) > MAX_OPTIONS:
        raise UnusableFormError(f"one of its choices has more than {MAX_OPTIONS} options")
    if len(pairs) > room:
        raise UnusableFormError(f"its choices have more than {MAX_ALL_OPTIONS} options together")
    values: dict[str, Any] = {}
    options: list[FieldOption] = []
    taken: set[str] = set()
    for value, label in pairs:
        text = value if isinstance(value, str) else json_line(value)
        if max(len(text), len(label)) > MAX_OPTION:
            raise UnusableFormError(f"one of its options has more than {MAX_OPTION:,} characters")
        shown = unique(sanitize_line(text), taken)
        values[shown] = value
        options.append(FieldOption(shown, sanitize_line(label) or shown))
    return values, tuple(options)


def options_of(definition: _Json) -> list[tuple[Any, str]]:
    """Return the values of which one is to be chosen, each with its title; none if all are open."""
    titled = as_list(definition.get("oneOf", definition.get("anyOf")))
    if titled and all(isinstance(one, Mapping) and "const" in one for one in titled):
        return [(one["const"], text_in(one, "title")) for one in titled]
    values = [definition["const"]] if "const" in definition else as_list(definition.get("enum"))
    names = as_list(definition.get("enumNames"))
    titles = map(str, names) if len(names) == len(values) else [""] * len(values)
    return list(zip(values, titles, strict=True))


def _bounds(kind: FieldKind, definition: _Json) -> tuple[float | None, float | None]:
    keys = {
        FieldKind.TEXT: ("minLength", "maxLength"),
        FieldKind.INTEGER: ("minimum", "maximum"),
        FieldKind.NUMBER: ("minimum", "maximum"),
        FieldKind.CHOICES: ("minItems", "maxItems"),
    }.get(kind)
    if keys is None:
        return None, None
    low, high = (definition.get(key) for key in keys)
    return low if is_number(low) else None, high if is_number(high) else None


def _default(kind: FieldKind, value: Any, values: Mapping[str, Any]) -> FormValue:  # noqa: ANN401 - any JSON
    """Return the default of a field, if the server's is valid."""
    shown_of = {json_line(one): shown for shown, one in values.items()}
    match kind, value:
        case FieldKind.TEXT, str():
            return sanitize(value, MAX_DEFAULT)
        case FieldKind.BOOLEAN, bool():
            return value
        case FieldKind.INTEGER | FieldKind.NUMBER, int() | float() if is_number(value):
            return value
        case FieldKind.CHOICE, _ if value is not NOTHING:
            return shown_of.get(json_line(value))
        case FieldKind.CHOICES, [*chosen]:
            shown = (shown_of.get(json_line(one)) for one in chosen)
            return tuple(one for one in shown if one is not None)
        case _:
            return None


def unique(shown: str, taken: set[str]) -> str:
    """Number texts that are equal once sanitized."""
    unique, number = shown or "(no name)", 2
    while unique in taken:
        unique, number = f"{shown} ({number})", number + 1
    taken.add(unique)
    return unique
