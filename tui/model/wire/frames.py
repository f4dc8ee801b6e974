"""What was said between gemdeck and its servers, frame by frame, as it may be shown."""

from enum import StrEnum

from tui.model.chat import ConversationId, EntryId
from tui.model.frozen import Frozen
from tui.model.servers import ServerId


class Direction(StrEnum):
    """Who said it; the value is the word for it."""

    SENT = "sent"
    RECEIVED = "received"
    OWN = "gemdeck"
    """Said on no wire: a remark of ours."""


class FrameKind(StrEnum):
    """What a frame is; the value is the word for it."""

    REQUEST = "request"
    ANSWER = "answer"
    NOTIFICATION = "notification"
    HTTP = "http"
    """The head of an HTTP response, or the address that a server named for messages."""
    NOISE = "noise"
    """What a server sent in place of a message."""
    STDERR = "stderr"
    LIFECYCLE = "lifecycle"
    """A word on the process or the connection, or why an exchange failed."""


class FrameFault(StrEnum):
    """What gemdeck found wrong with a frame; the value is the word for it."""

    NOT_JSON = "not JSON"
    INVALID = "protocol violation"
    """Not valid by the schema of the revision in use."""
    UNKNOWN_RESULT = "unknown resultType"
    REPEATED_ID = "duplicate id"
    UNASKED = "no matching request"
    TOO_LARGE = "too large"
    FAILED = "no answer"
    """The exchange failed; `WireFrame.detail` says why, or the end of the connection."""


class WireFrame(Frozen):
    """One frame without its body, which `Wire.body` gives. All texts are masked and sanitized.

    A frame whose pair came, or whose message was checked, is another object with the same number.

    Attributes:
        number: Counts the frames of all servers of the run, from 1: the order of what happened.
        server: Whose wire it is.
        time: Seconds since the epoch.
        direction: Who said it.
        kind: What it is.
        method: The method of a message, of an answer that of its request; GET, POST or DELETE of
            HTTP; a server's status as a word of the lifecycle; else empty.
        id: The id of a request and its answer, or of the request that is called off; else empty.
        pair: The number of its answer or request; of an HTTP frame that of the message that was
            posted; of a request that gets none that of the word that ended the connection; 0
            while there is none. It may have left the ring.
        seconds: From the request to its answer, on both; of HTTP from the request to the status.
        target: A tool's or prompt's name, a URI, a level or the address of HTTP; else empty.
        size: The bytes of the message.
        token: The progress token that a request gives and its progress names.
        status: The HTTP status, 0 if there is none.
        session: The digest of the HTTP session's id, else empty.
        attempt: Which attempt at the same call, or at the same HTTP request, from 1.
        round: Which round of a request that the server answers with questions, from 1.
        conversation: The conversation of the call in the chat that caused it, else empty.
        call: That call, whose row in the chat has this id; else empty.
        is_error: Whether it is an error answer, a tool's error or a failure status.
        faults: What is wrong with it. Schemas are checked while somebody watches.
        detail: What more there is to say of a fault, a status or a word; else empty.
        is_cut: Whether only both ends of the body are kept.
        said: How the body begins of what is no message; else empty.
    """

    number: int
    server: ServerId
    time: float
    direction: Direction
    kind: FrameKind
    method: str = ""
    id: str = ""
    pair: int = 0
    seconds: float | None = None
    target: str = ""
    size: int = 0
    token: str = ""
    status: int = 0
    session: str = ""
    attempt: int = 1
    round: int = 1
    conversation: ConversationId = ConversationId("")
    call: EntryId = EntryId("")
    is_error: bool = False
    faults: tuple[FrameFault, ...] = ()
    detail: str = ""
    is_cut: bool = False
    said: str = ""


class FrameBody(Frozen):
    """The body of a frame, masked and sanitized.

    Attributes:
        text: As the server or gemdeck wrote it; of a cut one both ends, with a note between them.
        value: The parsed JSON of a whole one; None if it is none, or if it is cut.
    """

    text: str
    value: object = None
