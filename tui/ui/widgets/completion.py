"""What can complete the word at the cursor: prompts after ``/``, resources after ``@``. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tui.model.servers import ServerStatus, ServerView

MAX_COMPLETIONS: Final = 10
"""Completions offered at once."""

_WORD: Final = re.compile(r"(?:^|(?<=\s))([/@])(\S*)\Z")


@dataclass(frozen=True, slots=True)
class Completion:
    """One way to go on.

    Attributes:
        text: What replaces the word, sign included.
        label: What is shown for it.
        detail: A word on it, such as its server.
    """

    text: str
    label: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CompletionList:
    """What is offered for the word that starts at column `start` of the text before the cursor."""

    start: int
    completions: tuple[Completion, ...]


def complete(before_cursor: str, servers: Sequence[ServerView]) -> CompletionList | None:
    """Offer completions for the word before the cursor.

    Args:
        before_cursor: The text from the start of the message to the cursor.
        servers: The servers whose prompts and resources are known.

    Returns:
        At most `MAX_COMPLETIONS`, those that begin with the word first; None where the word
        asks for none or nothing fits. A prompt can only be the first word of a message.
    """
    match = _WORD.search(before_cursor)
    if match is None:
        return None
    sign, typed = match.groups()
    if sign == "/" and match.start() > 0:
        return None
    offered = _prompts(servers) if sign == "/" else _resources(servers)
    found = _best(typed, offered)
    word = before_cursor[match.start() :]
    if not found or any(completion.text == word for completion in found):
        return None
    return CompletionList(match.start(), tuple(found))


def _prompts(servers: Sequence[ServerView]) -> Iterator[Completion]:
    for server in _ready(servers):
        for prompt in server.catalog.prompts:
            wants = " ".join(
                f"--{argument.name}" if argument.required else f"[--{argument.name}]"
                for argument in prompt.arguments
            )
            label = f"/{prompt.name} {wants}".rstrip()
            yield Completion(f"/{prompt.name}", label, server.id)


def _resources(servers: Sequence[ServerView]) -> Iterator[Completion]:
    for server in _ready(servers):
        for resource in server.catalog.resources:
            name = resource.title or resource.name
            yield Completion(f"@{server.id}:{resource.uri}", f"@{server.id}:{resource.uri}", name)


def _ready(servers: Sequence[ServerView]) -> Iterator[ServerView]:
    return (server for server in servers if server.status is ServerStatus.READY)


def _best(typed: str, offered: Iterator[Completion]) -> list[Completion]:
    """Pick what begins with the typed text, then what holds it anywhere."""
    wanted = typed.casefold()
    begins: list[Completion] = []
    holds: list[Completion] = []
    for completion in offered:
        text = completion.text[1:].casefold()
        if text.startswith(wanted):
            begins.append(completion)
            if len(begins) == MAX_COMPLETIONS:
                return begins
        elif len(holds) < MAX_COMPLETIONS and (
            wanted in text or wanted in completion.detail.casefold()
        ):
            holds.append(completion)
    return [*begins, *holds][:MAX_COMPLETIONS]
