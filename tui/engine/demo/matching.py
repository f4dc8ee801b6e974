"""Find the tool and the arguments that a message names. Pure and deterministic."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from tui.model.frozen import dataclass

Declaration = Mapping[str, Any]

MAX_WORDS: Final = 60  # words of a message that can name a tool
SIMILARITY: Final = 0.8  # for "notes" to match "note"
EXAMPLES: Final = {
    "show my notes": "list notes",
    "take a note": "add note",
    "remember": "add note",
    "find notes": "search notes",
    "remove note": "delete note",
    "change note": "update note",
    "count to": "count slowly",
}
"""Beginnings of messages, and the words they are replaced by."""

_QUOTE: Final = r"""(?:"[^"]*"|“[^”]*”|(?<!\w)'[^']*'(?!\w))"""
_PAIR: Final = rf"(?<![\w.-])(?P<key>\w[\w.-]*)=(?P<value>{_QUOTE}|\S+)"
_COLON: Final = r"(?P<colon>:(?!//)(?!(?<=\d:)\d))"  # not in a URL or a time
_PIECES: Final = re.compile(rf"{_PAIR}|{_QUOTE}|{_COLON}")
_NUMBERS: Final = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,15})?(?![\w%])")
_WORDS: Final = re.compile(r"[^\W_]+")
_CONNECTORS: Final = re.compile(r"\s*(?:(?:to|for|about|of|on|in|that|with|saying)\s+)*", re.I)
_FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Call:
    """A call, and the parameters that are still missing."""

    name: str
    declaration: Declaration
    arguments: dict[str, Any]
    missing: tuple[str, ...]


def find_calls(message: str, declarations: Sequence[Declaration]) -> list[Call]:
    """Return calls of the tools that a message names, with the arguments from the message.

    There are several if they match equally well, and none if the message names no tool.
    """
    for text in (message, _replace_example(message)):
        if found := _find_tools(text, declarations):
            return [_read_call(text, declaration, end) for declaration, end in found]
    return []


def complete_call(call: Call, answer: str) -> Call:
    """Use the user's answer as the first missing argument."""
    name = call.missing[0]
    value = _value(_unquote(answer.strip()), _parameters(call.declaration)[0][name])
    return _checked(call.declaration, {**call.arguments, name: value})


def usage(declaration: Declaration) -> str:
    """Return how to call a tool: ``delete_note id=…``."""
    required = _parameters(declaration)[1]
    return " ".join((declaration["name"], *(f"{name}=…" for name in required)))


def _replace_example(message: str) -> str:
    for opening, words in EXAMPLES.items():
        message = re.sub(rf"^\W*(?:please\s+)?{opening}\b", words, message, flags=re.I)
    return message


def _find_tools(message: str, declarations: Sequence[Declaration]) -> list[tuple[Declaration, int]]:
    """Return the best matching tools, each with the end of the words that name it.

    A whole name beats all its words, and more words beat fewer. The same tool of several servers
    counts once. Quotations, ``key=value`` and text after a colon are ignored.
    """
    head = _PIECES.sub(_blank, _split(message)[0])
    names = {token.strip(",.;!?`") for token in head.split()}
    words: dict[str, int] = {}
    for word in list(_WORDS.finditer(head))[:MAX_WORDS]:
        words.setdefault(word.group().casefold(), word.end())
    best: dict[tuple[str, ...], tuple[Declaration, int]] = {}
    best_rank = (False, 0, 0)
    for declaration in declarations:
        name = declaration["name"]
        wanted = tuple(_WORDS.findall(name.rpartition("__")[2].casefold()))
        exact = len(wanted) > 1 and name in names
        end = head.index(name) + len(name) if exact else _end_of(wanted, words)
        rank = (exact, len(wanted), sum(word in words for word in wanted))
        if end is None or rank < best_rank:
            continue
        if rank > best_rank:
            best, best_rank = {}, rank
        best.setdefault(wanted, (declaration, end))
    return list(best.values())


def _end_of(wanted: Sequence[str], words: Mapping[str, int]) -> int | None:
    """Return where the last of the wanted words ends; None unless all are there."""
    ends = []
    for word in wanted:
        near = [other for other in words if other[0] == word[0]] if len(word) > 3 else [word]
        alike = [word] if word in words else get_close_matches(word, near, 1, SIMILARITY)
        if not alike or alike[0] not in words:
            return None
        ends.append(words[alike[0]])
    return max(ends, default=None)


def _read_call(message: str, declaration: Declaration, end: int) -> Call:
    """Read a tool's arguments from a message; the words that name the tool end at `end`.

    ``key=value`` sets any argument, and numbers fill numeric ones. Required texts are quoted
    text, text after a colon, or else the text after the tool's name.
    """
    properties, required = _parameters(declaration)
    arguments: dict[str, Any] = {}

    def read_pair(piece: re.Match[str]) -> str:
        key = piece["key"]
        if key not in properties:
            return piece.group()
        arguments[key] = _value(_unquote(piece["value"].rstrip(",;")), properties[key])
        return _blank(piece)

    head, body = (_PIECES.sub(read_pair, text) for text in _split(message))
    quoted = [_unquote(quote) for quote in re.findall(_QUOTE, head)]
    head, body = re.sub(_QUOTE, _blank, head), _unquote(body.strip(" \n,;"))
    kinds = {name: _kind(properties[name]) for name in (*required, *properties)}
    textual = [n for n in required if n not in arguments and kinds[n] in {"string", "array"}]
    if not textual:
        head, body = f"{head} {body}", ""
    for name, kind in kinds.items():
        for number in _NUMBERS.finditer(head) if kind in {"integer", "number"} else ():
            value = _value(number.group(), properties[name])
            if name not in arguments and value is not None:
                arguments[name] = value
                head = head[: number.start()] + _blank(number) + head[number.end() :]
    rest = _CONNECTORS.sub("", head[end:], 1).strip(" \n.,;?!").removesuffix(" please")
    found = quoted or ([rest] if not body or len(textual) > 1 else [])
    for name, text in zip(textual, filter(None, (*found, body)), strict=False):
        arguments[name] = _value(text, properties[name])
    return _checked(declaration, arguments)


def _checked(declaration: Declaration, arguments: Mapping[str, Any]) -> Call:
    """Keep valid arguments; mark required and invalid ones as missing."""
    properties, required = _parameters(declaration)
    fitting = {name: arguments[name] for name in properties if arguments.get(name) is not None}
    wanted = dict.fromkeys((*required, *arguments))
    missing = tuple(name for name in wanted if name not in fitting)
    return Call(declaration["name"], declaration, fitting, missing)


def _split(message: str) -> tuple[str, str]:
    """Split a message at the first colon that is outside quotation marks."""
    for piece in _PIECES.finditer(message):
        if piece["colon"]:
            return message[: piece.start()], message[piece.end() :]
    return message, ""


def _value(text: str, schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as the schema says
    """Parse a value of the schema's type; None if the text has none."""
    match _kind(schema):
        case "integer":
            return int(text) if _NUMBERS.fullmatch(text) and "." not in text else None
        case "number":
            return float(text) if _NUMBERS.fullmatch(text) else None
        case "boolean":
            return _FLAGS.get(text.casefold())
        case "array":
            items = schema.get("items", {})
            values = [_value(_unquote(item.strip()), items) for item in text.strip("[]").split(",")]
            return None if None in values else values
        case "string":
            return text or None
    return None


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the first type that a schema names, or ``string``."""
    return str(schema.get("type") or schema.get("anyOf", [{}])[0].get("type", "string"))


def _parameters(declaration: Declaration) -> tuple[Mapping[str, Any], list[str]]:
    """Return the schemas of a tool's parameters and the names of required ones."""
    schema = declaration["parametersJsonSchema"]
    return schema["properties"], [
        n for n in schema["properties"] if n in schema.get("required", ())
    ]


def _unquote(text: str) -> str:
    return text[1:-1] if re.fullmatch(_QUOTE, text) else text


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())
