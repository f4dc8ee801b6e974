"""The manual: pages of Markdown in ``help/``, for F1, ``gemdeck help`` and the web."""

from pathlib import Path
from typing import Final

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


def page(topic: str) -> str:
    """Read a page: Markdown, its heading included.

    Links lead to addresses or to ``topic.md#heading``.

    Raises:
        KeyError: There is none of this name.
    """
    if topic not in TOPICS:
        raise KeyError(topic)
    return (_FOLDER / f"{topic}.md").read_text("utf-8")
