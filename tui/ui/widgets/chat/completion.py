"""Completions in the composer, prompts after ``/`` and resources after ``@``, and their popup."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.model.servers import ServerStatus, ServerView
from tui.text import clip

MAX_COMPLETIONS: Final = 10
"""Completions offered at once."""

MAX_LABEL: Final = 100
"""Characters shown of a completion."""

_WORD: Final = re.compile(r"(?:^|(?<=\s))([/@])(\S*)\Z")


@dataclass(frozen=True, slots=True)
class Completion:
    """One completion.

    Attributes:
        text: What replaces the word, including its sign.
        label: What the popup shows for it.
        detail: A muted addition, such as its server.
    """

    text: str
    label: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CompletionList:
    """Completions of the word that starts at offset `start` of the text before the cursor."""

    start: int
    completions: tuple[Completion, ...]


def complete(before_cursor: str, servers: Sequence[ServerView]) -> CompletionList | None:
    """Find completions for the word before the cursor.

    Args:
        before_cursor: The text from the start of the message to the cursor.
        servers: The servers whose prompts and resources are offered.

    Returns:
        At most `MAX_COMPLETIONS`, prefix matches first; None if there are none. A prompt can only
        be the first word of a message.
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
            if prompt.problem or prompt.name.startswith(("/", "*")):  # no command when typed
                continue
            wants = " ".join(
                f"--{argument.name}" if argument.required else f"[--{argument.name}]"
                for argument in prompt.arguments
            )
            label = f"/{prompt.name} {wants}".rstrip()
            yield Completion(f"/{prompt.name}", label, server.id)


def _resources(servers: Sequence[ServerView]) -> Iterator[Completion]:
    for server in _ready(servers):
        for resource in server.catalog.resources:
            if resource.problem:
                continue
            name = resource.title or resource.name
            yield Completion(f"@{server.id}:{resource.uri}", f"@{server.id}:{resource.uri}", name)


def _ready(servers: Sequence[ServerView]) -> Iterator[ServerView]:
    return (server for server in servers if server.status is ServerStatus.READY)


def _best(typed: str, offered: Iterator[Completion]) -> list[Completion]:
    """Return prefix matches, then those that contain the typed text elsewhere."""
    wanted = typed.casefold()
    prefixed: list[Completion] = []
    contains: list[Completion] = []
    for completion in offered:
        text = completion.text[1:].casefold()
        if text.startswith(wanted):
            prefixed.append(completion)
            if len(prefixed) == MAX_COMPLETIONS:
                return prefixed
        elif len(contains) < MAX_COMPLETIONS and (
            wanted in text or wanted in completion.detail.casefold()
        ):
            contains.append(completion)
    return [*prefixed, *contains][:MAX_COMPLETIONS]


class CompletionPopup(OptionList, can_focus=False):
    """The completions above the composer. It never takes focus; the composer forwards its keys."""

    ALLOW_SELECT: ClassVar[bool] = False

    class Chosen(Message):
        """A completion was accepted."""

        def __init__(self, start: int, completion: Completion) -> None:
            super().__init__()
            self.start = start
            self.completion = completion

    def __init__(self) -> None:
        super().__init__(markup=False, compact=True)
        self._offered: CompletionList | None = None
        self.display = False

    @property
    def is_open(self) -> bool:
        return self._offered is not None

    def offer(self, offered: CompletionList | None) -> None:
        """Show these completions; None closes the popup."""
        if offered == self._offered:
            return
        self._offered = offered
        self.display = offered is not None
        if offered is not None:
            self.set_options(
                Option(
                    Content.assemble(
                        clip(completion.label, MAX_LABEL),
                        "  ",
                        (clip(completion.detail, MAX_LABEL), "$foreground 60%"),
                    )
                )
                for completion in offered.completions
            )
            self.highlighted = 0

    def move(self, step: int) -> None:
        """Move the highlight, wrapping at the ends."""
        if self._offered is not None:
            count = len(self._offered.completions)
            self.highlighted = ((self.highlighted or 0) + step) % count

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.choose(event.option_index)

    def choose(self, index: int) -> None:
        """Accept a completion and close."""
        if self._offered is not None:
            offered, completion = self._offered, self._offered.completions[index]
            self.offer(None)
            self.post_message(self.Chosen(offered.start, completion))
