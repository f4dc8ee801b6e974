"""What the fake Gemini API can be told to do: a step is a sequence of these actions."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakes.gemini_rules import Json


@dataclass(frozen=True, slots=True)
class Say:
    """One chunk of text; `signed` puts a thought signature on it."""

    text: str
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Think:
    """One chunk of a thought summary."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """Parallel calls in one chunk: names with arguments. The first is signed."""

    calls: Sequence[tuple[str, Json]]
    has_ids: bool = True
    signed: bool = True


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a stream for a reason other than STOP."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A refused prompt."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    """An error: an HTTP status as the first action, an error inside the stream later."""

    status: int
    message: str = "Something is wrong."
    retry_delay: str = ""
    quota: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A web page in place of an answer."""

    status: int
    html: str = "<html><body>Bad <b>Gateway</b></body></html>"
    location: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """These events as they stand."""

    text: str


@dataclass(frozen=True, slots=True)
class Sleep:
    """A pause, in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing more until the client goes."""


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The stream ends in order, yet without a finish reason."""


Action = Say | Think | Call | Finish | Block | Fail | Page | Raw | Sleep | Stall | Reset | Stop
