"""What a typed message asks for: a prompt after ``/``, resources after ``@``, or nothing more."""

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from tui.model.catalog import PromptArgument

_COMMAND = re.compile(r"/([A-Za-z0-9_.:-]+)")
_REFERENCE = re.compile(r"(?:^|(?<=\s))@([^\s:]+):(\S+)")
_PUNCTUATION = ".,;:!?)]}'\""


def command_name(text: str) -> str:
    """Return the name after ``/`` in a message of one line, or an empty string.

    ``//``, ``/*`` and paths such as ``/etc/hosts`` are no commands.
    """
    words = text.split()
    if not words or "\n" in text.strip():
        return ""
    match = _COMMAND.fullmatch(words[0])
    return match[1] if match else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like one, or an empty string."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), "")


def typed_arguments(text: str, arguments: Sequence[PromptArgument]) -> Mapping[str, str]:
    """Read the arguments after a prompt's name: ``--name=value``, others in declared order.

    Quotes keep words together. Words left over belong to the last argument.
    """
    names = [argument.name for argument in arguments]
    values: dict[str, str] = {}
    rest: list[str] = []
    for word in _words(text)[1:]:
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and equals and name in names:
            values[name] = value
        else:
            rest.append(word)
    free = [name for name in names if name not in values]
    for index, name in enumerate(free[: len(rest)]):
        is_last = index == len(free) - 1
        values[name] = " ".join(rest[index:]) if is_last else rest[index]
    return values


def missing_arguments(
    values: Mapping[str, str], arguments: Sequence[PromptArgument]
) -> tuple[str, ...]:
    """Return the required arguments that have no value."""
    return tuple(a.name for a in arguments if a.required and not values.get(a.name))


def references(text: str) -> list[tuple[str, str]]:
    """Return each ``@server:uri`` in a message, without the punctuation of its sentence."""
    return [(server, uri.rstrip(_PUNCTUATION) or uri) for server, uri in _REFERENCE.findall(text)]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote is open, as in "don't"
        return text.split()
