"""Files of context: what the user, extensions and a project tell the model in every turn."""

from tui.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A file such as ``GEMINI.md``.

    Attributes:
        place: Where it lies, as shown.
        text: What it says, as the model gets it.
        problem: Why it is not used, or an empty string.
    """

    place: str
    text: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ContextRead:
    """The files of context were read, and are not what they were."""

    files: tuple[ContextFile, ...]
