"""Completions in the composer, of commands with their arguments and of mentions; their popup."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from operator import itemgetter
from typing import Final
from urllib.parse import quote

from textual import on

from tui.model.catalog import ResourceTemplateView, ResourceView
from tui.model.events import ArgumentCompleted
from tui.model.frozen import Frozen
from tui.model.input.fuzzy import best
from tui.model.input.mentions import typed_mention
from tui.model.input.own_commands import OWN_COMMANDS, OwnCommand, Takes
from tui.model.input.typed import TypedPrompt, find_prompt, typed_argument, usage
from tui.model.input.uri_templates import OpenVariable, UriTemplateError, parse_template
from tui.model.servers import USABLE, ServerId, ServerStatus, ServerView
from tui.store.commands import Commands
from tui.text import clip
from tui.ui.bridge import Delay, StoreBridge
from tui.ui.themes import in_order
from tui.ui.widgets.chat.composer import Composer, MessageHistory
from tui.ui.widgets.chat.welcome import WorkingLine
from tui.ui.widgets.lists.row_list import Row, RowList
from tui.ui.widgets.text.plain import one_line

MAX_COMPLETIONS: Final = 10
"""Completions offered at once."""

MAX_COMMANDS: Final = 50
"""Commands and prompts offered at once; the list scrolls."""

MAX_LABEL: Final = 100
"""Characters shown of a completion."""

COMPLETE_AFTER: Final = 0.15
"""Seconds without a key before a server is asked for values."""

MAX_ARGUMENT: Final = 1_000
"""Characters before the cursor in which an argument is looked for."""

_COMMAND: Final = re.compile(r"\A/(\S*)\Z")
_MENTION: Final = re.compile(r"(?:^|(?<=\s))@(?:\"([^\"\n]*)|([^\s\"]*))\Z")
_NAME: Final = re.compile(r"(?<=\s)--([^\s=]*)\Z")
_VALUE: Final = re.compile(r"(?<=\s)--([^\s=]+)=(?:\"([^\"\n]*)|([^\s\"]*))\Z")
_FOLDER: Final = re.compile(r"/directory +add +([^\n]*)\Z")
_TYPED: Final = re.compile(r"/([\w.:-]+) +([^\n]*)\Z")
_NUMBERS: Final = count(1)

SEARCHING: Final = "Type to search your messages · Enter use · Ctrl+R next · Esc cancel"


class Completion(Frozen):
    """One completion.

    Attributes:
        text: What replaces the word, including its sign and what follows it.
        label: What the popup shows for it.
        detail: A muted addition, such as its server.
    """

    text: str
    label: str
    detail: str = ""


class CompletionList(Frozen):
    """Completions of the word that starts at offset `start` of the text before the cursor."""

    start: int
    completions: tuple[Completion, ...]


class Query(Frozen):
    """What a server or the workspace is asked about the word that is typed.

    Attributes:
        start: Where what a completion replaces starts in the text before the cursor.
        typed: The word so far.
        ask: Asks for values; its last argument identifies the answer.
        write: Makes a completion of a value.
        others: Completions of the word that are known already.
    """

    start: int
    typed: str
    ask: Callable[[Commands, str], None]
    write: Callable[[str], Completion]
    others: tuple[Completion, ...] = ()

    def completions(self, values: Sequence[str]) -> CompletionList | None:
        """Return what is known and the values, but for what is typed already; both have room.

        What is known and holds the typed letters only here and there comes after the values.
        """
        found = [self.write(value) for value in values[:MAX_COMPLETIONS] if value != self.typed]
        others = self.others[: MAX_COMPLETIONS - min(len(found), MAX_COMPLETIONS // 2)]
        typed = self.typed.casefold()
        near = [one for one in others if typed in f"{one.label} {one.detail}".casefold()]
        far = [one for one in others if one not in near]
        found = [*near, *found, *far][:MAX_COMPLETIONS]
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
        found = _best(command[1], [*_own(command[1]), *_prompts(servers)])
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


def folder_query(before_cursor: str) -> Query | None:
    """Return what to ask if the path of a folder stands before the cursor."""
    if (match := _FOLDER.match(before_cursor)) is None:
        return None
    typed = match[1]
    return Query(
        match.start(1),
        typed,
        lambda commands, token: commands.engine.features.complete_folder(token, typed),
        lambda path: Completion(path, path),
    )


def path_query(before_cursor: str, offered: CompletionList | None) -> Query | None:
    """Return what to ask the workspace, if a word after ``@`` stands before the cursor.

    Args:
        before_cursor: The text from the start of the message to the cursor.
        offered: The resources that the word may mean.
    """
    if (match := _MENTION.search(before_cursor)) is None:
        return None
    typed = match[1] or match[2] or ""

    return Query(
        match.start(),
        typed,
        lambda commands, token: commands.engine.features.complete_path(token, typed),
        lambda path: Completion(typed_mention(path) + " " * (not path.endswith("/")), f"@{path}"),
        offered.completions if offered is not None else (),
    )


def value_query(before_cursor: str, servers: Sequence[ServerView]) -> Query | None:
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
    typed = quoted or plain or ""
    about = found.server, found.prompt.name, name, typed, context
    return Query(
        match.start(),
        typed,
        partial(_ask, about),
        lambda value: Completion(f"{typed_argument(name, value)} ", one_line(value)),
    )


def _ask(
    about: tuple[ServerId, str, str, str, Mapping[str, str]], commands: Commands, token: str
) -> None:
    """Ask a server for values of an argument of a prompt, or of a variable of a template."""
    commands.engine.features.complete(token, *about)


def _template_query(before_cursor: str, servers: Sequence[ServerView]) -> Query | None:
    """Return what to ask a server when a variable of one of its templates is typed."""
    mention = _MENTION.search(before_cursor)
    typed = (mention[1] or mention[2] or "") if mention is not None else ""
    for server in _ready(servers) if mention is not None else ():
        if not typed.startswith(f"{server.id}:") or not server.info or not server.info.completions:
            continue
        for template in server.catalog.templates:
            found = _open_variable(template, typed.removeprefix(f"{server.id}:"))
            if mention is not None and found is not None:
                about = server.id, template.uri_template, found.name, found.value, found.values
                write = partial(_with_value, server.id, found)
                return Query(mention.start(), found.value, partial(_ask, about), write)
    return None


def _open_variable(template: ResourceTemplateView, uri: str) -> OpenVariable | None:
    try:
        parsed = parse_template(template.uri_template)
    except UriTemplateError:
        return None
    return None if template.problem else parsed.open_variable(uri)


def _with_value(server: ServerId, variable: OpenVariable, value: str) -> Completion:
    """Write the mention with a value of the variable."""
    uri = f"{variable.before}{quote(value, safe='~')}{variable.after}"
    text = f"@{server}:{uri}" if variable.after else f"@{server}:{uri} "
    return Completion(text, one_line(value))


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
        for prompt in server.catalog.prompts:
            if prompt.problem or prompt.name.startswith(("/", "*")):  # no command when typed
                continue
            renamed = f" · renamed from {one_line(prompt.own_name)}" if prompt.own_name else ""
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
        completion = mention(*known[name])
        if completion.text != f"@{typed}":
            yield completion


def mention(server: ServerId, one: ResourceView | ResourceTemplateView) -> Completion:
    """Complete a resource whole, and a template up to its first variable."""
    title = one.title or one.name
    if isinstance(one, ResourceView):
        return Completion(f"{typed_mention(one.uri, server)} ", f"@{server}:{one.uri}", title)
    text = f"@{server}:{one.uri_template}"
    return Completion(text.partition("{")[0], text, title)


def _ready(servers: Sequence[ServerView]) -> Iterator[ServerView]:
    return (server for server in servers if server.status in USABLE)


def _best(typed: str, offered: Iterable[Completion]) -> list[Completion]:
    """Return those that begin as was typed, then those that contain it elsewhere."""
    wanted = typed.casefold()
    words = ((one, one.text.removeprefix("/").casefold()) for one in offered)
    found = [
        (not text.startswith(wanted), one)
        for one, text in words
        if wanted in text or wanted in one.detail.casefold()
    ]
    return [one for _, one in sorted(found, key=itemgetter(0))][:MAX_COMMANDS]


def complete_command(
    before_cursor: str, servers: Sequence[ServerView], names: Mapping[Takes, Iterable[str]]
) -> CompletionList | None:
    """Find completions of what stands after a command of the screen.

    Args:
        before_cursor: The text from the start of the message to the cursor.
        servers: The servers that it can name.
        names: What else it can name, such as themes.
    """
    match = _TYPED.match(before_cursor)
    command = OWN_COMMANDS.get(match[1]) if match is not None else None
    if match is None or command is None:
        return None
    typed = match[2]
    if command.parts:
        word, blank, after = typed.partition(" ")
        part = next((part for part in command.parts if part.name == word), None)
        if not blank:
            offered = [Completion(f"{one.name} ", one.name, one.does) for one in command.parts]
            return _fitting(offered, word, before_cursor)
        if part is None:
            return None
        command, typed = part, after.lstrip()
    return _fitting(_values(command, servers, names), typed, before_cursor)


def _values(
    command: OwnCommand, servers: Sequence[ServerView], names: Mapping[Takes, Iterable[str]]
) -> Sequence[Completion]:
    match command.takes:
        case Takes.SERVER | Takes.SOME_SERVERS:
            return [
                Completion(view.id, one_line(view.id), view.status.value)
                for view in servers
                if (view.status is ServerStatus.DISABLED) is (command.name == "enable")
                or command.takes is Takes.SOME_SERVERS
            ]
        case Takes.SKILL:
            return [
                Completion(f"{view.id}:{one.name} ", f"{view.id}:{one.name}", one_line(said))
                for view in _ready(servers)
                for one in view.catalog.skills
                if (said := one.problem or one.description)
            ]
        case _:
            return [Completion(name, name) for name in names.get(command.takes, ()) if name]


def _fitting(offered: Iterable[Completion], typed: str, before: str) -> CompletionList | None:
    """Return those with what was typed in them, but for what is typed already."""
    wanted = typed.casefold()
    fit = (one for one in offered if wanted in one.text.casefold() and one.text.strip() != typed)
    found = _best(typed, fit)
    start = len(before) - len(typed)
    return CompletionList(start, tuple(found)) if found else None


class CompletionPopup(RowList, can_focus=False):
    """The completions above the composer. It never takes focus; the composer forwards its keys.

    Args:
        composer: Whose words are completed.
        history: The messages that are searched.
        bridge: Provides what can be completed, and asks servers and the workspace for values.
        working: Where it stands that messages are searched.
    """

    def __init__(
        self,
        composer: Composer,
        history: MessageHistory,
        bridge: StoreBridge,
        working: WorkingLine,
    ) -> None:
        super().__init__(clicks=1)
        self._composer = composer
        self._history = history
        self._bridge = bridge
        self._working = working
        self._offered: CompletionList | None = None
        self._query: Query | None = None
        self._token = ""
        self._asking = Delay(self)
        self.display = False

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda state: state.completion, self._show_values)

    def press(self, key: str) -> None:
        """Act on a key of the composer."""
        match key:
            case "tab" if self._offered is None:
                self.complete()
            case "tab":
                self._accept()
            case "search" if not self._composer.searching:
                self._composer.searching = True
                self._working.hint = SEARCHING
                self.complete()
            case "up":
                self.turn(-1)
            case _:
                self.turn(1)

    def close(self) -> bool:
        """Close the popup and end the search; return whether there was one of them."""
        was_open = self._offered is not None or self._composer.searching
        self._ask_later(None)
        self._end_search()
        self.offer(None)
        return was_open

    def complete(self) -> None:
        """Offer what completes the word before the cursor; a server's values come later."""
        query, offered, state = None, None, self._bridge.state
        servers = state.servers
        if self._composer.searching:
            offered = found_messages(self._history.matching(self._composer.message))
        elif self._composer.has_focus:
            before = self._composer.before_cursor
            themes = in_order(self.app.available_themes)
            names = {Takes.THEME: themes, Takes.SOME_PROFILE: state.profiles}
            offered = complete_command(before, servers, names)
            usable = [view for view in servers if not state.leaves_out(view.id)]
            offered = offered or complete(before, usable)
            query = (
                folder_query(before) or value_query(before, usable) or path_query(before, offered)
            )
        self._ask_later(query)
        self.offer(offered)

    def offer(self, offered: CompletionList | None) -> None:
        """Show these completions; None hides the popup."""
        self.styles.margin = (0, 0, self._composer.outer_size.height + 1, 0)
        self._composer.completing = offered is not None
        if offered == self._offered:
            return
        self._offered = offered
        self.display = offered is not None
        shown = offered.completions if offered is not None else ()
        texts = ((clip(one.label, MAX_LABEL), clip(one.detail, MAX_LABEL)) for one in shown)
        self.set_rows([Row("", label, note=note) for label, note in texts])

    @on(RowList.Chosen)
    def _accept(self) -> None:
        """Write the completion under the cursor into the message, and close."""
        if self._offered is None:
            return
        start, text = self._offered.start, self._offered.completions[self.cursor].text
        self.offer(None)
        if self._composer.searching:
            self._end_search()
            self._composer.replace_all(text)
        else:
            self._composer.replace_before_cursor(start, text)
        self._composer.focus()

    def _end_search(self) -> None:
        if self._composer.searching:
            self._composer.searching = False
            self._working.hint = ""

    def _ask_later(self, query: Query | None) -> None:
        self._query = query
        self._asking.stop()
        if query is not None:
            self._token = f"composer-{next(_NUMBERS)}"
            ask = partial(query.ask, self._bridge.commands, self._token)
            self._asking.begin(COMPLETE_AFTER, ask)

    def _show_values(self, completed: ArgumentCompleted | None) -> None:
        if completed is not None and completed.token == self._token and self._query is not None:
            self.offer(self._query.completions(completed.values))
