"""The welcome in an empty conversation, and the line that shows the running turn."""

import re
from collections.abc import Sequence
from itertools import starmap
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.reactive import reactive
from textual.style import Style
from textual.timer import Timer

from tui.model.chat import ModelView, TurnState
from tui.model.servers import USABLE, Origin, ServerView
from tui.text import clip
from tui.ui.widgets.key_bar import key_hints, whole_parts
from tui.ui.widgets.text.plain import PlainText, moment, one_line

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.model.sessions import LastSessionFound

QUIET_SECONDS: Final = 2
"""Seconds after which the line shows how long the turn has been running."""

STANDS_IN: Final = "no key found, so this is the offline demo"
"""Shown while the demo stands in for want of a key."""

MAX_EXAMPLES: Final = 3
"""Suggestions shown."""

_LISTS: Final = re.compile(r"(?:list|count)(?:[_-].+)?")
_SENSITIVE: Final = re.compile("env|secret|key|token|pass|cred|conf", re.IGNORECASE)
"""What a suggestion may name: its result, which a model gets, must give nothing away."""

_NO_SERVERS: Final = (
    ("F2 +", "add one"),
    ("F2 d", "start the demo server"),
    ("", "gemdeck import: servers from other clients"),
)

_KEYS: Final = (
    ("/", "commands and prompts"),
    ("@", "resources and files"),
    ("^J", "new line"),
    ("F1", "help and keys"),
)


class Welcome(PlainText):
    """What to go on with or to try, and the most important keys, in an empty conversation."""

    examples: Sequence[str] = ()

    def show(
        self,
        model: ModelView,
        servers: Sequence[ServerView] | None,
        last: "LastSessionFound | None",
        go_on: str,
    ) -> None:
        """Show what fits the model and the servers, once they are known.

        Args:
            model: The model that answers.
            servers: All servers; None until the settings are read.
            last: What an earlier run left to go on with.
            go_on: The key that does it, as shown.
        """
        self.examples = _examples(servers or ())
        offers = []
        if model.needs_setup:
            offers += [
                _key_line("F9", "enter a Gemini API key, or choose another model", ""),
                _key_line("", STANDS_IN),
            ]
        if last is not None:
            words = f"resume: {clip(last.view.name, limit=50)}"
            when = moment(last.view.changed, "%Y-%m-%d %H:%M", "")
            when += " · interrupted mid-turn" * last.is_cut
            offers += [_key_line(go_on, words, ""), _key_line("", when)]
        tries = [Content.styled(f"  {example}", "$text-primary") for example in self.examples]
        if servers == ():
            tries = [_faint("No servers yet"), *starmap(_key_line, _NO_SERVERS)]
        elif tries:
            tries.insert(0, _faint("Try one of these (Tab inserts it)"))
        keys = [_faint("Keys"), *starmap(_key_line, _KEYS)]
        parts = ([Content.styled("What would you like to do?", "bold")], offers, tries, keys)
        self.update(Content("\n\n").join(Content("\n").join(part) for part in parts if part))

    def suggestion_after(self, text: str) -> str:
        """Return the suggestion after one, or the first after no text; else nothing."""
        known = ["", *self.examples, *self.examples[:1]] if self.display else []
        return known[known.index(text) + 1] if text in known[:-1] else ""


def _examples(servers: Sequence[ServerView]) -> Sequence[str]:
    """Suggest messages that call tools that are there, or prompts; none needs an argument."""
    ready = [view for view in servers if view.status in USABLE]
    if any(view.origin is Origin.DEMO for view in ready):
        return ("add a note: buy milk", "list my notes")
    words = [f"what can {one_line(view.id)} do?" for view in ready if view.catalog.tools][:1]
    for view in ready:
        for tool in view.catalog.tools:
            is_on = not (tool.problem or tool.off)
            is_usable = is_on and not any(p.required for p in tool.parameters)
            if is_usable and tool.claims_to_read and _is_harmless(tool.name):
                words.append(f"use the {one_line(tool.name)} tool of {one_line(view.id)}")
                break
        for prompt in view.catalog.prompts:
            is_usable = not prompt.problem and not any(a.required for a in prompt.arguments)
            if is_usable and not _SENSITIVE.search(prompt.name):
                words.append(f"/{prompt.name}")
                break
    return words[:MAX_EXAMPLES]


def _is_harmless(tool: str) -> bool:
    return bool(_LISTS.fullmatch(tool)) and not _SENSITIVE.search(tool)


def _faint(text: str) -> Content:
    return Content.styled(text, "$text-muted")


def _key_line(key: str, text: str, style: str = "$text-muted") -> Content:
    return Content.assemble((f"  {key:<8}", "$accent"), (text, style))


def _question(words: str) -> Content:
    """Write that a question waits; a click opens it."""
    style = Style.from_meta({"@click": "app.open_question"})
    return Content.styled(words, "$text-warning").stylize(style)


Work = tuple[TurnState | None, int, str, bool]
"""The running turn, the number of queued messages, and what is waited for: servers or the start
of the model, in words, and whether it is an answer of the user."""

IDLE: Final[Work] = (None, 0, "", False)


class WorkingLine(PlainText):
    """What the running turn is doing, or that a question waits; else a hint or an empty row.

    Of the parts that do not fit, none is shown in part.

    Attributes:
        waiting: That a question waits, shown in place of everything else.
        elsewhere: That other conversations ask, shown first.
        hint: What is shown while nothing runs.
    """

    waiting = reactive("")
    elsewhere = reactive("")
    hint = reactive("")

    def __init__(self) -> None:
        super().__init__()
        self._work = IDLE
        self._timer: Timer | None = None

    def show(self, work: Work) -> None:
        self._work, turn = work, work[0]
        if turn is not None and self._timer is None:
            self._timer = self.set_interval(1, self.refresh)
        elif turn is None and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.refresh()

    def render(self) -> Content:
        """Show what fits; before the first layout that is all."""
        elsewhere = [_question(self.elsewhere)] if self.elsewhere else []
        line = Content("   ").join([*elsewhere, *self._parts()])
        if self.waiting:
            line = _question(self.waiting)
        return whole_parts(line, self.size.width or line.cell_length)

    def _parts(self) -> list[Content]:
        turn, queued, servers, is_asking = self._work
        if turn is None and servers:
            taking_back = key_hints(self.app, ("chat.stop", "take it back"))
            return [Content.styled(f"◐ {servers}", "$text-primary"), taking_back]
        if turn is None:
            return [Content.styled(self.hint, "$text-muted")] if self.hint else []
        if is_asking:
            return [Content.styled("◆ waiting for you", "$text-warning")]
        seconds = int(monotonic() - turn.started_at)
        doing = servers or f"{turn.phase} {one_line(turn.server or '')}".rstrip()
        if turn.until is not None:
            doing += f" in {max(0, ceil(turn.until - monotonic()))} s"
        parts = [Content.styled(f"◐ {doing}", "$text-primary")]
        if seconds >= QUIET_SECONDS and turn.until is None:
            parts.append(Content.styled(f"{seconds} s", "$text-muted"))
        if queued:
            parts.append(Content.styled(f"{queued} queued", "$text-warning"))
        keys = list[tuple[str, str]]()
        if servers:
            keys += [("chat.send-now", "send now")]
        elif turn.until is not None:
            keys += ("chat.send-now", "retry now"), ("chat.give-up", "give up")
        keys.append(("chat.stop", "stop"))
        if queued:
            keys.append(("composer.take-back", "take back the last"))
        return [*parts, key_hints(self.app, *keys)]
