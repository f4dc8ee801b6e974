"""Exit codes, the same as those of gemini-cli."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The result of a run."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    NO_KEY = 41
    NO_INPUT = 42
    BAD_SETTINGS = 52
    TURN_LIMIT = 53
    CANCELLED = 130
