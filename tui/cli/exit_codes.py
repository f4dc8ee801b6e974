"""Exit codes; the numbers are those that users of Gemini in a terminal already script against."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a run ended."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NO_KEY = 41
    NO_INPUT = 42
    BAD_SETTINGS = 52
    TURN_LIMIT = 53
    CANCELLED = 130
