"""Completions in the composer, of commands with their arguments and of mentions; their popup."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final
from urllib.parse import quote

from textual.message import Message

from tui.model.catalog import ResourceTemplateView, ResourceView
from tui.model.frozen import dataclass
from tui.model.input.fuzzy import best
from tui.model.input.mentions import typed_mention
from tui.model.input.own_commands import OWN_COMMANDS
from tui.model.input.typed import TypedPrompt, find_prompt, typed_argument, usage
from tui.model.input.uri_templates import OpenVariable, UriTemplateError, parse_template
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.text import clip
from tui.ui.widgets.lists.row_list import Row, RowList
from tui.ui.widgets.text.plain import one_line

MAX_COMPLETIONS: Final = 10
"""Completions offered at once."""

MAX_COMMANDS: Final = 50
"""Commands and prompts offered at once; the list scrolls."""

MAX_LABEL: Final = 100
"""Characters shown of a completion."""

MAX_COLUMN: Final = 32
"""Widest column of labels, in cells; what is wider sticks out."""

COMPLETE_AFTER: Final = 0.15
"""Seconds without a key before a server is asked for values."""

MAX_ARGUMENT: Final = 1_000
"""Characters before the cursor in which an argument is looked for."""

_COMMAND: Final = re.compile(r"\A/(\S*)\Z")
_MENTION: Final = re.compile(r"(?:^|(?<=\s))@(?:\"([^\"\n]*)|([^\s\"]*))\Z")
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
        start: Where what a completion replaces starts in the text before the cursor.
        write: Writes a value into the message.
    """

    server: ServerId
    prompt: str
    argument: str
    value: str
    context: Mapping[str, str]
    start: int
    write: Callable[[str], str]

    def completions(self, values: Sequence[str]) -> CompletionList | None:
        """Return what the server knows as completions, but for what is typed already."""
        found = [
            Completion(self.write(value), one_line(value))
            for value in values[:MAX_COMPLETIONS]
            if value != self.value
        ]
        return CompletionList(self.start, tuple(found)) if found else None


@dataclass(frozen=True, slots=True)
class PathQuery:
    """What the workspace is asked when a word after ``@`` is typed.

    Attributes:
        typed: The word.
        start: Where its ``@`` stands in the text before the cursor.
        resources: The resources that it may mean.
    """

    typed: str
    start: int
    resources: tuple[Completion, ...]

    def completions(self, values: Sequence[str]) -> CompletionList | None:
        """Return the resources and the paths; both have room where there are many."""
        paths = [
            Completion(typed_mention(path) + ("" if path.endswith("/") else " "), f"@{path}")
            for path in values[:MAX_COMPLETIONS]
            if path != self.typed
        ]
        room = MAX_COMPLETIONS - min(len(paths), MAX_COMPLETIONS // 2)
        found = [*self.resources[:room], *paths][:MAX_COMPLETIONS]
        return CompletionList(self.start, tuple(found)) if found else None


def complete(before_cursor: str, servers: Sequence[ServerView]) -> CompletionList | None:
    """Find completions for the word before the cursor.

    Args:
        before_cursor: The text from the start of the message to the cursor.
        servers: The servers whose prompts and resources are offered.

    Returns:
        At most `MAX_COMMANDS` or `MAX_COMPLETIONS`, prefix matches first; None if there are none.
        A prompt can only be the first word of a message.
    """
    if (command := _COMMAND.match(before_cursor)) is not None:
        found = _best(command[1], chain(_own(command[1]), _prompts(servers)))
        start = 0
    elif (mention := _MENTION.search(before_cursor)) is not None:
        found = list(_resources(mention[1] or mention[2] or "", servers))
        start = mention.start()
    else:
        return _argument_names(before_cursor, servers)
    word = before_cursor[start:]
    if not found or any(completion.text == f"{word} " for completion in found):
        return None
    return CompletionList(start, tuple(found))


def found_messages(messages: Iterable[str]) -> CompletionList | None:
    """Return earlier messages as completions that take the place of the whole draft."""
    found = [Completion(text, one_line(text)) for text in islice(messages, MAX_COMMANDS)]
    return CompletionList(0, tuple(found)) if found else None


def path_query(before_cursor: str, offered: CompletionList | None) -> PathQuery | None:
    """Return what to ask the workspace, if a word after ``@`` stands before the cursor.

    Args:
        before_cursor: The text from the start of the message to the cursor.
        offered: The resources that the word may mean.
    """
    if (match := _MENTION.search(before_cursor)) is None:
        return None
    resources = offered.completions if offered is not None else ()
    return PathQuery(match[1] or match[2] or "", match.start(), resources)


def value_query(before_cursor: str, servers: Sequence[ServerView]) -> ValueQuery | None:
    """Return what to ask a server that completes, if a value stands before the cursor."""
    match = _VALUE.search(before_cursor, max(0, len(before_cursor) - MAX_ARGUMENT))
    if match is None:
        return _template_query(before_cursor, servers)
    if (found := _prompt_in(before_cursor[: match.start()], servers)) is None:
        return None
    view = next(view for view in servers if view.id == found.server)
    name, quoted, plain = match.groups()
    if view.info is None or not view.info.completions:
        return None
    if all(argument.name != name for argument in found.prompt.arguments):
        return None
    context = {key: value for key, value in found.values.items() if key != name}
    return ValueQuery(
        found.server,
        found.prompt.name,
        name,
        quoted or plain or "",
        context,
        match.start(),
        lambda value: f"{typed_argument(name, value)} ",
    )


def _template_query(before_cursor: str, servers: Sequence[ServerView]) -> ValueQuery | None:
    """Return what to ask a server when a variable of one of its templates is typed."""
    mention = _MENTION.search(before_cursor)
    typed = (mention[1] or mention[2] or "") if mention is not None else ""
    for server in _ready(servers) if mention is not None else ():
        if not typed.startswith(f"{server.id}:") or not server.info or not server.info.completions:
            continue
        for template in server.catalog.templates:
            found = _open_variable(template, typed.removeprefix(f"{server.id}:"))
            if mention is not None and found is not None:
                return ValueQuery(
                    server.id,
                    template.uri_template,
                    found.name,
                    found.value,
                    found.values,
                    mention.start(),
                    partial(_with_value, server.id, found),
                )
    return None


def _open_variable(template: ResourceTemplateView, uri: str) -> OpenVariable | None:
    try:
        parsed = parse_template(template.uri_template)
    except UriTemplateError:
        return None
    return None if template.problem else parsed.open_variable(uri)


def _with_value(server: ServerId, variable: OpenVariable, value: str) -> str:
    """Write the mention with a value of the variable."""
    uri = f"{variable.before}{quote(value, safe='~')}{variable.after}"
    return f"@{server}:{uri}" if variable.after else f"@{server}:{uri} "


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
        Completion(f"/{one.name} ", f"/{one.usage}", one.does)
        for one in OWN_COMMANDS.values()
        if one.name.startswith(typed)
    )


def _prompts(servers: Sequence[ServerView]) -> Iterator[Completion]:
    for server in _ready(servers):
        for prompt in sorted(server.catalog.prompts, key=lambda prompt: prompt.name.casefold()):
            if prompt.problem or prompt.name.startswith(("/", "*")):  # no command when typed
                continue
            renamed = f" · its {one_line(prompt.own_name)}, renamed" if prompt.own_name else ""
            yield Completion(f"/{prompt.name} ", usage(prompt), f"{server.id}{renamed}")


def _resources(typed: str, servers: Sequence[ServerView]) -> Iterator[Completion]:
    """Yield the resources that fit best by their URI or title, and beginnings of templates."""
    known: dict[str, tuple[ServerId, ResourceView | ResourceTemplateView]] = {}
    for server in _ready(servers):
        for resource in server.catalog.resources:
            if not resource.problem:
                title = resource.title or resource.name
                known[f"{server.id}:{resource.uri} {title}"] = server.id, resource
        for template in server.catalog.templates:
            if not template.problem:
                known[f"{server.id}:{template.uri_template}"] = server.id, template
    for name in best(typed, known, MAX_COMPLETIONS):
        completion = _mention(*known[name])
        if completion.text != f"@{typed}":
            yield completion


def _mention(server: ServerId, one: ResourceView | ResourceTemplateView) -> Completion:
    """Complete a resource whole, and a template up to its first variable."""
    title = one.title or one.name
    if isinstance(one, ResourceView):
        return Completion(f"{typed_mention(one.uri, server)} ", f"@{server}:{one.uri}", title)
    text = f"@{server}:{one.uri_template}"
    return Completion(text.partition("{")[0], text, title)


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
            if len(prefixed) == MAX_COMMANDS:
                return prefixed
        elif len(contains) < MAX_COMMANDS and (
            wanted in text or wanted in completion.detail.casefold()
        ):
            contains.append(completion)
    return [*prefixed, *contains][:MAX_COMMANDS]


class CompletionPopup(RowList, can_focus=False):
    """The completions above the composer. It never takes focus; the composer forwards its keys."""

    class Accepted(Message):
        """A completion was accepted."""

        def __init__(self, start: int, completion: Completion) -> None:
            super().__init__()
            self.start = start
            self.completion = completion

    def __init__(self) -> None:
        super().__init__(clicks=1, widest=MAX_COLUMN)
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
        shown = offered.completions if offered is not None else ()
        self.set_rows(
            [Row("", clip(one.label, MAX_LABEL), note=clip(one.detail, MAX_LABEL)) for one in shown]
        )

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self.accept()

    def accept(self) -> None:
        """Accept the completion under the cursor and close."""
        if self._offered is not None:
            offered, completion = self._offered, self._offered.completions[self.cursor]
            self.offer(None)
            self.post_message(self.Accepted(offered.start, completion))
