"""Completions in the composer, of commands with their arguments and of resources; their popup."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Final

from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.model.input.typed import OWN_COMMANDS, TypedPrompt, find_prompt, typed_argument, usage
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.text import clip
from tui.ui.widgets.text.plain import one_line

MAX_COMPLETIONS: Final = 10
"""Completions offered at once."""

MAX_LABEL: Final = 100
"""Characters shown of a completion."""

COMPLETE_AFTER: Final = 0.15
"""Seconds without a key before a server is asked for values."""

MAX_ARGUMENT: Final = 1_000
"""Characters before the cursor in which an argument is looked for."""

_WORD: Final = re.compile(r"(?:^|(?<=\s))([/@])(\S*)\Z")
_NAME: Final = re.compile(r"(?<=\s)--([^\s=]*)\Z")
_VALUE: Final = re.compile(r"(?<=\s)--([^\s=]+)=(?:\"([^\"\n]*)|([^\s\"]*))\Z")


@dataclass(frozen=True, slots=True)
class Completion:
    """One completion.

    Attributes:
        text: What replaces the word, including its sign and what follows it.
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


@dataclass(frozen=True, slots=True)
class ValueQuery:
    """What a server is asked when a value of a prompt's argument is typed.

    Attributes:
        server: The server.
        prompt: The prompt.
        argument: The argument.
        value: What was typed of its value.
        context: The other arguments.
        start: Where the argument starts in the text before the cursor.
    """

    server: ServerId
    prompt: str
    argument: str
    value: str
    context: Mapping[str, str]
    start: int

    def completions(self, values: Sequence[str]) -> CompletionList | None:
        """Return what the server knows as completions, but for what is typed already."""
        found = [
            Completion(f"{typed_argument(self.argument, value)} ", one_line(value))
            for value in values[:MAX_COMPLETIONS]
            if value != self.value
        ]
        return CompletionList(self.start, tuple(found)) if found else None


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
        return _argument_names(before_cursor, servers)
    sign, typed = match.groups()
    if sign == "/" and match.start() > 0:
        return None
    offered = chain(_own(typed), _prompts(servers)) if sign == "/" else _resources(servers)
    found = _best(typed, offered)
    word = before_cursor[match.start() :]
    if not found or any(completion.text == f"{word} " for completion in found):
        return None
    return CompletionList(match.start(), tuple(found))


def value_query(before_cursor: str, servers: Sequence[ServerView]) -> ValueQuery | None:
    """Return what to ask a server that completes, if a value stands before the cursor."""
    match = _VALUE.search(before_cursor, max(0, len(before_cursor) - MAX_ARGUMENT))
    if match is None or (found := _prompt_in(before_cursor[: match.start()], servers)) is None:
        return None
    view = next(view for view in servers if view.id == found.server)
    name, quoted, plain = match.groups()
    if view.info is None or not view.info.completions:
        return None
    if all(argument.name != name for argument in found.prompt.arguments):
        return None
    context = {key: value for key, value in found.values.items() if key != name}
    return ValueQuery(
        found.server, found.prompt.name, name, quoted or plain or "", context, match.start()
    )


def _argument_names(before_cursor: str, servers: Sequence[ServerView]) -> CompletionList | None:
    """Complete ``--name`` after a prompt, with those that have no value."""
    match = _NAME.search(before_cursor, max(0, len(before_cursor) - MAX_ARGUMENT))
    if match is None or (found := _prompt_in(before_cursor[: match.start()], servers)) is None:
        return None
    free = (one for one in found.prompt.arguments if one.name not in found.values)
    offered = (Completion(f"--{one.name}=", f"--{one.name}", one.description) for one in free)
    names = [one for one in offered if one.text.startswith(match[0])][:MAX_COMPLETIONS]
    return CompletionList(match.start(), tuple(names)) if names else None


def _prompt_in(text: str, servers: Sequence[ServerView]) -> TypedPrompt | None:
    return find_prompt(text, [(view.id, view.catalog) for view in _ready(servers)])


def _own(typed: str) -> Iterable[Completion]:
    """The commands of the screen that begin as was typed."""
    return (
        Completion(f"/{name} ", f"/{name}", does)
        for name, does in OWN_COMMANDS.items()
        if name.startswith(typed)
    )


def _prompts(servers: Sequence[ServerView]) -> Iterator[Completion]:
    for server in _ready(servers):
        for prompt in server.catalog.prompts:
            if prompt.problem or prompt.name.startswith(("/", "*")):  # no command when typed
                continue
            yield Completion(f"/{prompt.name} ", usage(prompt), server.id)


def _resources(servers: Sequence[ServerView]) -> Iterator[Completion]:
    for server in _ready(servers):
        for resource in server.catalog.resources:
            if resource.problem:
                continue
            name = resource.title or resource.name
            text = f"@{server.id}:{resource.uri}"
            yield Completion(f"{text} ", text, name)


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
