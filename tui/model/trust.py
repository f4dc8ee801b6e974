"""The opened folder, and trust in folders, settings and changed tools."""

from enum import StrEnum
from typing import Final

from tui.model.catalog import Mark
from tui.model.frozen import Frozen
from tui.model.servers import ServerId


class FolderTrust(StrEnum):
    """The trust of the opened folder. The value is its name on the screen.

    NOTHING_TO_TRUST: the folder has no settings, and no yes. The user's own servers start in a
    folder that is TRUSTED, or CHANGED in what it says alone; elsewhere they run outside it.
    """

    UNKNOWN = ""
    NOTHING_TO_TRUST = "no project settings"
    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    CHANGED = "changed since trusted"
    NEVER = "never trusted"


class TrustAnswer(StrEnum):
    """The answers to "may this run?"."""

    NOT_NOW = "not now"
    TRUST = "trust"
    TRUST_WITH_CHILDREN = "trust with all folders in it"
    TRUST_BARE = "trust, and run its servers without a sandbox"
    NEVER = "never"

    @property
    def allows(self) -> bool:
        return self not in {TrustAnswer.NOT_NOW, TrustAnswer.NEVER}


NO_SANDBOX: Final = "none: runs with your rights"
"""What is said of a program without a sandbox."""


class Boxes(StrEnum):
    """How a folder's servers run, by the user's answer. The value is kept.

    BY_ENTRY: as each entry says, else in a sandbox. IF_POSSIBLE: the same, but where no sandbox can
    be had, without: so was the yes that was given there.
    """

    IF_POSSIBLE = "if possible"
    BY_ENTRY = "as listed"
    NONE = "none"


class TrustSubject(StrEnum):
    """The subject of a trust question.

    FOLDER: the opened folder and what it says; with the yes the user's servers run in it.
    SETTINGS: servers that appeared or changed in the user's own settings while gemdeck runs;
    another program may have written them.
    """

    FOLDER = "folder"
    SETTINGS = "settings"


class DifferenceLine(Frozen):
    """One line of a diff: ``+`` added, ``-`` removed, a space for unchanged."""

    sign: str
    text: str


UNWATCHED: Final = "Files named in these lines can change later: they are not watched."
"""What a question about commands says of all that no change of asks again."""


class Disclosure(Frozen):
    """Everything that would run or be contacted for one server, complete except for secrets.

    Every text is sanitized, and runs of spaces are spelled out, so that nothing is hidden.

    Attributes:
        server: Its name.
        source: The file that defines it, as shown.
        transport: The name of its transport.
        command: The program, with values from its own file or folder expanded, or an empty
            string. References to the user's variables stay, also in the following fields.
        program: The file that would be executed, or an empty string if none was found.
        args: Its complete arguments.
        cwd: Its working folder, or an empty string.
        env: The names of the variables set for it.
        env_values: Each of them with its value; a secret one is masked.
        sandbox: What its program gets in its sandbox; empty where none is started.
        references: The names of the user's variables that its entry reads.
        inherited: The names of the user's variables that it gets by `gemdeck.environmentAllow`.
        url: Its address, or an empty string.
        headers: The names of the headers sent.
        warnings: What deserves a second look, such as an unpinned package or a shell.
        change: ``new``, ``changed``, ``gone``, or an empty string if unchanged.
        written: The expanded parts as written in the file.
    """

    server: ServerId
    source: str
    transport: str
    command: str = ""
    program: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()
    url: str = ""
    headers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    change: str = ""
    written: tuple[str, ...] = ()
    env_values: tuple[str, ...] = ()
    sandbox: str = ""


class ToolChange(Frozen):
    """A tool whose definition changed, with the diff; a marked one that nobody has seen is new."""

    tool: str
    difference: tuple[DifferenceLine, ...]
    marks: tuple[Mark, ...] = ()
    is_new: bool = False
