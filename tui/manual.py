"""The manual: pages of Markdown in ``help/``, for F1, ``gemdeck help`` and the web."""

from pathlib import Path
from typing import Final

from tui.model.frozen import Frozen

TOPICS: Final = (
    "start",
    "servers",
    "sign-in",
    "permissions",
    "chat",
    "sessions",
    "keys",
    "commands",
    "settings",
    "security",
    "troubleshooting",
)
"""The pages, in the order of reading; each is the file of that name."""

_FOLDER: Final = Path(__file__).with_name("help")


class Page(Frozen):
    """One page.

    Attributes:
        topic: Its name, one of `TOPICS`.
        title: Its heading.
        text: Markdown, the heading included. Links lead to addresses or to ``topic.md#heading``.
    """

    topic: str
    title: str
    text: str


def page(topic: str) -> Page:
    """Read a page.

    Raises:
        KeyError: There is none of this name.
    """
    if topic not in TOPICS:
        raise KeyError(topic)
    text = (_FOLDER / f"{topic}.md").read_text("utf-8")
    return Page(topic, text.partition("\n")[0].removeprefix("# "), text)
