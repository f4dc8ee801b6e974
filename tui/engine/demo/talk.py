"""Recognises what is said to the model itself rather than asked of a tool."""

import re
from enum import Enum, auto
from typing import Final

MAX_TALK: Final = 120
"""Longest message that can be small talk, in characters."""


class Talk(Enum):
    """What a message says to the model itself."""

    GREETING = auto()
    ABOUT_MODEL = auto()
    ABOUT_TOOLS = auto()
    THANKS = auto()
    DISMISSAL = auto()


_PATTERNS: Final = (
    (Talk.GREETING, r"(?:hi|hello|hey|good (?:morning|day|evening)|greetings)(?: there| demo)?"),
    (Talk.THANKS, r"(?:ok(?:ay)?,? )?(?:thanks|thank you|thx|cheers|great|nice|cool)(?: .{0,30})?"),
    (
        Talk.DISMISSAL,
        r"(?:no(?:thing)?|never ?mind|cancel|stop|forget it|ok(?:ay)?)(?:,? thank(?:s| you))?",
    ),
    (
        Talk.ABOUT_TOOLS,
        r"(?:please )?help(?: me)?|what can (?:you|i) do(?: here| now)?|what do you do"
        r"|(?:what|which|show me the|list the|list all|list) (?:tools|functions|commands)"
        r"(?: (?:do|can|are|have)? ?.{0,30})?|how do(?:es)? (?:you|this|it|the demo) work",
    ),
    (
        Talk.ABOUT_MODEL,
        r"(?:who|what) (?:are|r) you|what(?:'s| is) (?:this|your name)|(?:who|what) is this"
        r"|(?:which|what) model (?:is this|are you|do you use)"
        r"|are you (?:a |an |the )?(?:real|ai|llm|model|gemini|bot|robot|human|person|offline"
        r"|online|demo|there|real model|language model)",
    ),
)
_COMPILED: Final = tuple(
    (talk, re.compile(rf"\W*(?:{pattern})\W*", re.IGNORECASE)) for talk, pattern in _PATTERNS
)


def read_talk(message: str) -> Talk | None:
    """Tell what a message says to the model itself, or None for anything else."""
    if len(message) > MAX_TALK:
        return None
    plain = message.replace("\u2019", "'")
    return next((talk for talk, pattern in _COMPILED if pattern.fullmatch(plain)), None)
