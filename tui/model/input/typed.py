"""What a typed message asks for with its first word: a prompt or a command after ``/``."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from tui.model.catalog import Catalog, PromptArgument, PromptView
from tui.model.frozen import Frozen
from tui.model.servers import ServerId

MAX_COMPARED: Final = 2_000
"""Names that `nearest` compares."""

MAX_LIKE: Final = 64
"""Characters of a name that `nearest` compares."""

MAX_CLOSE: Final = 200
"""Names that `nearest` compares in full: those whose length is most like the wanted one's."""

_ESCAPED: Final = re.compile(r'\\(["\\])')
_WORD: Final = re.compile(
    r"""
    (?: --(?P<name>[^\s=]+)= )?
    (?: "(?P<double> (?> (?: [^"\\]++ | \\. )* ) )" (?!\S)
      | '(?P<single> [^']*+ )' (?!\S)
      | (?P<plain> \S+ )
      | (?<==) )               # nothing after --name=
    \s*
    """,
    re.VERBOSE | re.DOTALL,
)


class TypedPrompt(Frozen):
    """A prompt with what was typed after its name.

    Attributes:
        server: The server that offers it.
        prompt: The prompt.
        values: Its arguments.
        rest: What no argument takes; it goes along as text.
        asks_help: Whether only ``help`` follows the name.
    """

    server: ServerId
    prompt: PromptView
    values: Mapping[str, str]
    rest: str = ""
    asks_help: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """The required arguments that have no value."""
        required = (argument.name for argument in self.prompt.arguments if argument.required)
        return tuple(name for name in required if not self.values.get(name))


def find_prompt(text: str, catalogs: Iterable[tuple[ServerId, Catalog]]) -> TypedPrompt | None:
    """Return the prompt that a message names after ``/``; of several names the longest counts."""
    text = text.strip()
    if not text.startswith("/") or text.startswith(("//", "/*")):  # it is a comment
        return None
    named = [
        (server, prompt)
        for server, catalog in catalogs
        for prompt in catalog.prompts
        if text.startswith(prompt.name, 1)
        and not text[1 + len(prompt.name) : 2 + len(prompt.name)].strip()
    ]
    if not named:
        return None
    server, prompt = max(named, key=lambda one: len(one[1].name))
    after = text[1 + len(prompt.name) :].strip()
    values, rest = _read_arguments(after, prompt.arguments)
    return TypedPrompt(server, prompt, values, rest, after == "help")


def typed_command(prompt: str, values: Mapping[str, str]) -> str:
    """Return the message that sends a prompt with these arguments."""
    return " ".join([f"/{prompt}", *(typed_argument(*value) for value in values.items())])


def typed_argument(name: str, value: str) -> str:
    """Return an argument as it is typed."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'--{name}="{escaped}"'


def usage(prompt: PromptView) -> str:
    """Return how a prompt is typed: ``/name --required [--optional]``."""
    names = (f"--{a.name}" if a.required else f"[--{a.name}]" for a in prompt.arguments)
    return " ".join([f"/{prompt.name}", *names])


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like one, or an empty string."""
    listed = sorted(islice(known, MAX_COMPARED), key=lambda one: abs(len(one) - len(name)))
    ends = {one[-MAX_LIKE:]: one for one in reversed(listed[:MAX_CLOSE])}
    close = difflib.get_close_matches(name[-MAX_LIKE:], ends, n=1)
    return ends[close[0]] if close else ""


def _read_arguments(
    text: str, arguments: Sequence[PromptArgument]
) -> tuple[Mapping[str, str], str]:
    """Read ``--name=value``, and other words in declared order; return also what no argument takes.

    Quotes around a word or value keep blanks together. Several words for the last argument are
    its value as they were typed.
    """
    names = {argument.name for argument in arguments}
    values: dict[str, str] = {}

    def take(word: re.Match[str]) -> str:
        if word["name"] not in names:
            return word[0]
        values[word["name"]] = _unquoted(word)
        return ""

    rest = _WORD.sub(take, text).rstrip() if "--" in text else text
    free = [argument.name for argument in arguments if argument.name not in values]
    words = list(islice(_WORD.finditer(rest), len(free) + 1))
    for name, word in zip(free, words, strict=False):
        values[name] = word[0].rstrip() if word["name"] else _unquoted(word)
    if free and len(words) > len(free):
        values[free[-1]] = rest[words[-2].start() :]
    return values, "" if free else rest


def _unquoted(word: re.Match[str]) -> str:
    if word["double"] is not None:
        return _ESCAPED.sub(r"\1", word["double"])
    return word["single"] if word["single"] is not None else word["plain"] or ""
