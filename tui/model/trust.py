"""What an opened folder, or an edited settings file, would run; and the user's word on it."""

from dataclasses import dataclass
from enum import StrEnum

from tui.model.consent import RequestId
from tui.model.servers import ServerId


class FolderTrust(StrEnum):
    """What the user said of the opened folder. The value is the word on the screen.

    NOTHING_TO_TRUST: it brings no settings of its own.
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
    NEVER = "never"


class TrustSubject(StrEnum):
    """What a trust question is about.

    FOLDER: the settings that an opened folder brings. SETTINGS: servers that appeared or
    changed in the user's own settings while gemdeck runs, perhaps by somebody else's hand.
    """

    FOLDER = "folder"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """One line of a difference: ``+`` came, ``-`` went, a blank stayed."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Disclosure:
    """All that would run or be contacted for one server: complete, secrets apart.

    Every text is sanitised; runs of blanks are spelled out, so that nothing can hide.

    Attributes:
        server: Its name.
        source: The file it stands in, as shown.
        transport: The word for its transport.
        command: The program with all filled in that its own file or folder chooses, or nothing.
            References to the user's variables stay, here and in what follows.
        program: The file that would be executed, or nothing where none was found.
        args: Its arguments, one by one, complete.
        cwd: Its working folder, or nothing.
        env: The names of the variables that are set for it.
        references: The names of the user's variables that its entry would read.
        url: Its address, or nothing.
        headers: The names of the headers that are sent.
        warnings: What deserves a second look, such as an unpinned package or a shell.
        change: ``new``, ``changed``, ``gone``, or nothing where it is as it was allowed.
        written: How those parts stand in the file in which something was filled in, one by one.
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
    url: str = ""
    headers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    change: str = ""
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """Asks whether what a folder or an edited settings file brings may run.

    Attributes:
        id: What the answer refers to.
        subject: What it is about.
        place: The folder or file, as shown.
        servers: Every server it brings, or that changed.
        variables: The names of the variables that its ``.env`` sets.
        rules: What else it would do, in words, such as "denies the tools of git".
        difference: What changed since it was trusted, line by line; nothing the first time.
        refusal: Why it cannot be trusted at all, or nothing.
        may_include_children: Whether trust can also cover the folders in it.
        standing: Those of its servers that run whatever the answer, since they did not change.
    """

    id: RequestId
    subject: TrustSubject
    place: str
    servers: tuple[Disclosure, ...]
    variables: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    difference: tuple[DifferenceLine, ...] = ()
    refusal: str = ""
    may_include_children: bool = False
    standing: tuple[ServerId, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolChange:
    """One tool whose definition is not the one the user knew; `difference` says how."""

    tool: str
    difference: tuple[DifferenceLine, ...]


@dataclass(frozen=True, slots=True)
class ToolChangeRequest:
    """A server changed tools: they stay away from the model until the user accepted them.

    Attributes:
        id: What the answer refers to.
        server: The server.
        changes: Each changed tool, with the difference.
    """

    id: RequestId
    server: ServerId
    changes: tuple[ToolChange, ...]
