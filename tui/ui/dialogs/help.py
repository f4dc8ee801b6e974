"""The help: the keys that work here, the manual from the page that fits, and all keys to bind."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from textual import events
from textual.app import App, ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.getters import query_one

from tui.manual import TOPICS, Part, parts_of
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import ChoiceDialog, Dialog, ListDialog
from tui.ui.questions.address import LinkScreen
from tui.ui.questions.own_keys import check_keys
from tui.ui.widgets.lists.filter_list import DialogFilterList, FilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.blocks import Block, BlockView, IndentBlock, TextBlock, TextPage, styled
from tui.ui.widgets.text.links import LINK, links_in
from tui.ui.widgets.text.markdown import parse_markdown
from tui.ui.widgets.text.plain import fit

KEY_WIDTH: Final = 16
"""Cells of the column of keys."""

_PLACES: Final = {
    "servers#servers-pane": "ServersPane",
    "servers#connect": "ImportScreen",
    "servers#add-a-server": "ServerScreen",
    "servers#running-tools-yourself": "ToolsPane ToolFormScreen RunScreen",
    "servers#server-page": "ServerPage",
    "chat": "ChatPane",
    "chat#prompts": "PromptsPane ArgumentsScreen",
    "chat#files-and-resources": "ResourcesPane ResourceScreen",
    "chat#the-conversation": "Transcript ViewerScreen",
    "chat#the-model": "ModelScreen ModelsScreen",
    "chat#skills": "SkillQuestion",
    "sessions": "SessionsScreen",
    "sign-in": "SignInQuestion",
    "permissions#rules": "GrantsScreen",
    "permissions#trusted-folders": "TrustQuestion",
    "permissions#questions": "Question QuestionStep",
    "permissions#requests-from-servers": """
        FormQuestion AddressQuestion SamplingQuestion ReviewQuestion ResultQuestion""",
    "servers#protocol-log": "ProtocolPane",
    "troubleshooting": "ActivityPane",
}
PAGES: Final = {place: page for page, places in _PLACES.items() for place in places.split()}
"""Where the manual tells of a widget or a screen: ``topic#heading`` by the name of its class."""

SAMPLE: Final = "settings.sample.json"

HelpLine = tuple[str, str]
"""The keys of one action as shown, and what it does."""

_MARKUP: Final = re.compile(r"\]\([^)]*\)|[`|*\[]")


def lines_here(
    app: App[Any],
    bindings: Mapping[str, ActiveBinding],
    focused: DOMNode | None,
    own: Mapping[str, str],
) -> Sequence[HelpLine]:
    """List the keys of the focused widget and its ancestors, without those that work everywhere.

    First those that the key bars name, those of the focused widget before those around it, then
    keys that work everywhere if they are the user's own. Keys that cannot be remapped, such as
    those of a text cursor, are left out.
    """
    general = {key.id for key in keymap.KEYS if key.place in keymap.GENERAL} - own.keys()
    nodes = list(focused.ancestors_with_self) if focused is not None else []
    found: dict[str, tuple[DOMNode, Binding, list[str]]] = {}
    for node, binding, enabled, _ in bindings.values():
        if enabled and binding.id is not None and binding.id not in general:
            key = app.get_key_display(binding)
            found.setdefault(binding.id, (node, binding, []))[2].append(key)

    def rank(entry: tuple[DOMNode, Binding, list[str]]) -> tuple[bool, int, int]:
        node, binding, _ = entry
        depth = nodes.index(node) if binding.show and node in nodes else len(nodes)
        return not binding.show, depth, keymap.order(binding.id)

    return [
        ("  ".join(dict.fromkeys(keys)), binding.tooltip or binding.description)
        for _, binding, keys in sorted(found.values(), key=rank)
    ]


def place_of(node: DOMNode) -> str:
    """Return where the manual tells of a widget, or of what it stands in."""
    kinds = (kind.__name__ for one in node.ancestors_with_self for kind in type(one).__mro__)
    return next((PAGES[name] for name in kinds if name in PAGES), "keys")


class HelpIndex(ListDialog[str]):
    """The pages and their headings; what is `typed` is searched for in each line of the manual."""

    enter = "open"

    def on_mount(self) -> None:
        parts = [part for topic in TOPICS for part in parts_of(topic)]
        heads = [_entry(part, part.heading) for part in parts]
        self._offered = heads, [*heads, *(_entry(*line) for part in parts for line in _lines(part))]
        self.watch(self.listed.line, "value", self._offer)

    def _offer(self, typed: str) -> None:
        self.typed = typed
        self.listed.set_entries(self._offered[bool(typed)])


def _lines(part: Part) -> Iterator[tuple[Part, str]]:
    lines = (" ".join(_MARKUP.sub(" ", line).split()) for line in part.text.splitlines()[1:])
    return ((part, line) for line in lines if any(map(str.isalnum, line)))


def _entry(part: Part, line: str) -> ListEntry[str]:
    """List a heading, or as a note, of which no scattered letters are found, another line."""
    if line == part.title:
        row = Row("", line)
    elif line == part.heading:
        row = Row("", f"  {line}", part.title)
    else:
        row = Row("", "", _name(part), note=line)
    return ListEntry(part.at, row, line.lower())


def _name(part: Part) -> str:
    return " · ".join(dict.fromkeys((part.title, part.heading)))


class HelpSection(BlockView):
    """A part of the help."""

    def __init__(self, at: str, blocks: Sequence[Block]) -> None:
        super().__init__(blocks)
        self.at = at


class HelpScreen(Dialog):
    """Show what the keys do here, and a page of the manual; the others are a key or link away.

    Args:
        here: The keys that work where the focus was when the help was opened; none are shown if
            the manual was opened at a section.
        at: The page or section that is shown first: ``topic#heading``.
        commands: Opens links of the web.
    """

    BINDINGS = keymap.bindings(keymap.Place.HELP)

    KIND = "large help"

    page = query_one(TextPage)

    def __init__(self, here: Sequence[HelpLine], at: str, commands: Commands) -> None:
        super().__init__("Help")
        self._here = here
        self._at = at
        self._visited: list[tuple[str, int]] = []
        self._commands = commands

    def compose_body(self) -> ComposeResult:
        yield TextPage(*self._sections())

    def _sections(self) -> Iterator[HelpSection]:
        """Give the page; at first what the keys do here, and the part that fits before the rest."""
        parts = parts_of(self._at.partition("#")[0])
        if not self._visited:
            if self._here:
                yield HelpSection("", [*_key_list(self._here)])
            first = next((i for i, part in enumerate(parts) if part.at == self._at), 0)
            parts = [*parts[first:], *parts[:first]]
        for part in parts:
            yield HelpSection(part.at, parse_markdown(part.text, names_targets=False).blocks)

    async def go(self, at: str, words: str = "") -> None:
        """Go to a heading of a page, and mark words below it, unless the help has closed."""
        if not self.is_attached:
            return
        self._visited.append((self._at, self.page.scroll_offset.y))
        await self._show(at)
        pattern = "|".join(map(re.escape, words.split()))
        for part in self.page.query(HelpSection):
            if part.at == at:
                part.mark(re.compile(pattern, re.IGNORECASE) if pattern else None)
                self.call_after_refresh(self._reveal, part, words.lower().split())

    async def action_back(self) -> None:
        if self._visited:
            at, row = self._visited.pop()
            await self._show(at)
            self.call_after_refresh(self.page.scroll_to, y=row, animate=False)

    async def _show(self, at: str) -> None:
        self._at = at
        with self.app.batch_update():
            await self.page.remove_children()
            await self.page.mount_all(self._sections())
        self.page.scroll_home(animate=False)

    def _reveal(self, section: HelpSection, words: Sequence[str]) -> None:
        """Scroll to a part, or in a long one to the first line with all of these words."""
        lines = (line.plain.lower() for line in section.lines(section.size.width))
        row = next((i for i, line in enumerate(lines) if all(word in line for word in words)), 0)
        above = self.page.size.height // 2
        self.page.scroll_to(y=section.virtual_region.y + max(0, row - above), animate=False)

    async def action_search(self) -> None:
        listed = DialogFilterList[str]("place", "", "Type to search the manual", clicks=1)
        index = HelpIndex("The manual", listed, lambda at: self.go(at, index.typed))
        await self.app.push_screen(index)

    def action_links(self) -> None:
        """Offer the links of the page."""
        sections = self.page.query(HelpSection)
        urls = [one for part in sections for one in links_in(part.lines(part.size.width))]
        rows = [ListEntry(one, Row("", self._target_name(one)), one) for one in dict.fromkeys(urls)]
        if rows:
            self.app.push_screen(ChoiceDialog("Links on this page", rows, self.follow, urls[0]))
        else:
            self.notify("This page has no links.", timeout=2)

    async def on_click(self, event: events.Click) -> None:
        if isinstance(target := event.style.meta.get(LINK), str):
            await self.follow(target)

    async def follow(self, target: str) -> None:
        """Follow a link to another page, to the sample of the settings, or out of the manual."""
        if (part := self._part_at(target)) is not None:
            await self.go(part.at)
        elif target.endswith(SAMPLE):
            await self.app.run_action("app.open('sample')")
        else:
            self.app.push_screen(LinkScreen(target, self._commands))

    def _part_at(self, target: str) -> Part | None:
        """Find where a link leads in the manual; a page's beginning, if it lacks the heading."""
        file, _, heading = target.partition("#")
        topic = file.removesuffix(".md") or self._at.partition("#")[0]
        parts = parts_of(topic) if topic in TOPICS else ()
        same = (part for part in parts if part.at == f"{topic}#{heading}")
        return next(same, parts[0] if parts else None)

    def _target_name(self, target: str) -> str:
        part = self._part_at(target)
        return target.rpartition("../")[2] if part is None else _name(part)


def _key_list(lines: Iterable[HelpLine]) -> Iterator[Block]:
    yield TextBlock(styled("Keys that work here", ".md-h2"))
    for keys, words in lines:
        first, indent = fit(keys, KEY_WIDTH), Content(" " * KEY_WIDTH)
        text = TextBlock(Content(words))
        yield IndentBlock(Content.styled(first, "$accent"), indent, [text], spaced=False)


class KeysScreen(ListDialog[keymap.Key]):
    """List what keys do everywhere; Enter binds the next key that is pressed to an action.

    Args:
        bridge: Has the user's own keys, and writes the settings.
    """

    KIND = "large"
    AUTO_FOCUS = "RowList"
    BINDINGS = keymap.bindings("keys.default")
    enter = "new key"

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__("Keys", FilterList("action"))
        self._bridge = bridge
        self._waiting: keymap.Key | None = None

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda state: state.keys, self._show)

    def _show(self, own: Mapping[str, str]) -> None:
        from tui.ui.questions.kinds import answer_keys  # noqa: PLC0415 - with every question

        keys = sorted((*keymap.KEYS, *answer_keys()), key=lambda k: [*keymap.Place].index(k.place))
        shown = [self._entry(key, own.get(key.id, "")) for key in keys if key.description]
        self.listed.set_entries(shown)

    def _entry(self, key: keymap.Key, own: str) -> ListEntry[keymap.Key]:
        usual, now = (
            ", ".join(self.app.get_key_display(Binding(one, "")) for one in keys.split(","))
            for keys in (key.keys, own)
        )
        row = Row("", key.description, f"{now} (default {usual})" if own else usual, note=key.id)
        label = f"{key.description} {key.id}".lower()
        return ListEntry(key, row, label, row.tail.lower(), key.place.value)

    async def choose(self, item: keymap.Key) -> None:
        """Wait for the new key of the action under the cursor."""
        self._waiting = item
        self.head.say(f"Press the new key for “{item.description}”, or Esc to cancel.")

    def take_key(self, pressed: str) -> bool:
        """Take a key that was pressed, if one is waited for; the app asks before all else."""
        if (key := self._waiting) is None:
            return False
        if pressed != "escape" and (words := self._bind(key, [pressed])):
            self.head.say(f"{words}. Press another key, or Esc to cancel.")
        else:
            self._waiting = None
            self.head.say("")
        return True

    def action_default(self) -> None:
        """Give the action under the cursor its default keys again."""
        if (key := self.listed.current) is not None:
            is_own = key.id in self._bridge.state.keys
            self.say(self._bind(key, None) if is_own else "This action has its default keys.")

    def _bind(self, key: keymap.Key, keys: list[str] | None) -> str:
        """Save the keys of an action, None for the default, or return why it cannot have them."""
        own = {name: keys.split(",") for name, keys in self._bridge.state.keys.items()}
        wrong = check_keys({**own, key.id: keys or key.keys.split(",")})
        if not wrong:
            self.run_worker(self._bridge.commands.running.set_own(keys, "keys", key.id))
        return next(iter(wrong.values()), "")
