"""The conversation in the service's wire format, valid at any time."""

import re
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from tui.engine.chats.backends.backend import WirePart
from tui.engine.mcp.catalog.offered_tool import (
    FunctionCall,
    JsonObject,
    MediaPart,
    PromptMessage,
    TextPart,
)
from tui.model.frozen import Frozen

MAX_RESPONSE_MEDIA: Final = 10 * 1024 * 1024
"""Most base64 characters of media in one response; the service takes 20 MB a request."""

UNSIGNED: Final = "skip_thought_signature_validator"
"""What the service accepts in place of a thought signature for a call that never had one."""

_INLINE_IN_RESPONSES: Final = frozenset(
    {"image/png", "image/jpeg", "image/webp", "application/pdf"}
)
_READABLE: Final = re.compile(
    r"image/(?:png|jpeg|webp|heic|heif)|audio/[\w.+-]+|video/[\w.+-]+|text/[\w.+-]+|application/pdf"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_Wire = dict[str, Any]

_MEDIA_WORDS: Final = re.compile("image|document|pdf|audio|video", re.IGNORECASE)
"""What an error message that is about media says."""

MAX_TEXT_KEPT: Final = 4_000_000
"""Most characters of all tool texts together; about what the largest contexts hold."""

TEXT_LEFT: Final = MAX_TEXT_KEPT // 2
"""Characters kept whole once the limit was exceeded.

Well below the limit, since each cut changes the prefix that the service may have cached.
"""

MAX_OLD_TEXT: Final = 2_000
"""Characters kept of an older text."""

MAX_MEDIA_KEPT: Final = 12 * 1024 * 1024
"""Most base64 characters of all media together; the service takes 20 MB a request."""

_NOTICE: Final = 100
"""Longest notice about a cut, in characters; a text within this margin is not cut again."""


class FunctionResponse(Frozen):
    """The response to a call: text and media."""

    parts: Sequence[TextPart | MediaPart]
    is_error: bool = False

    @classmethod
    def error(cls, text: str) -> "FunctionResponse":
        return cls((TextPart(text),), is_error=True)


@dataclass
class History:
    """The contents of a conversation, oldest first.

    Roles alternate, calls are answered in the next content, and the last content is the model's
    unless a turn is running. Old results are shortened (see `forget_old`).

    Attributes:
        contents: The wire format, ready to send.
    """

    contents: list[_Wire] = field(default_factory=list)

    def add_user(
        self,
        parts: Iterable[TextPart | MediaPart | JsonObject],
        before: Iterable[PromptMessage] = (),
    ) -> None:
        """Start a turn with the user's message; `before` is what a prompt has said before it."""
        self.contents += wire_contents(before)
        self.contents.append({"role": "user", "parts": wire_parts(parts)})
        forget_old(self.contents)

    def add_model(self, parts: Iterable[WirePart]) -> None:
        """Add the model's output of one step; an empty one adds nothing."""
        if kept := [dict(part) for part in parts]:
            self.contents.append({"role": "model", "parts": kept})

    def add_responses(
        self, answers: Iterable[tuple[FunctionCall, FunctionResponse]], *, inline_media: bool
    ) -> None:
        """Add the responses to all calls of the last step, in call order, as one content.

        Args:
            answers: Each call with its response.
            inline_media: Whether supported media go into the response itself (Gemini 3+).
                Other media follow the last response.
        """
        responses: list[_Wire] = []
        beside: list[_Wire] = []
        for call, answer in answers:
            response, siblings = _wire_response(call, answer, inline_media=inline_media)
            responses.append({"functionResponse": response})
            beside.extend(siblings)
        self.contents.append({"role": "user", "parts": responses + beside})
        forget_old(self.contents)

    def close_turn(self, note: str, said: Iterable[WirePart] = ()) -> None:
        """End an interrupted turn, so that the next content can be the user's.

        Args:
            note: What happened; stored as the model's text.
            said: The model's output of the unfinished step; calls are dropped.
        """
        kept = [part for part in said if "functionCall" not in part]
        self.add_model([*kept, {"text": f"[{note}]"}])

    def strip_signatures(self) -> None:
        """Remove thought signatures, which are valid only for the model that made them."""
        for content in self.contents:
            for part in content["parts"]:
                part.pop("thoughtSignature", None)
            content["parts"] = [part for part in content["parts"] if part and part != {"text": ""}]
        self.contents[:] = [content for content in self.contents if content["parts"]]


class StepParts:
    """Collects the parts of a streamed step in the form in which they are sent back."""

    def __init__(self) -> None:
        self.parts: list[_Wire] = []

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        return tuple(
            FunctionCall(
                name=str(call.get("name", "")),
                arguments=deepcopy(call.get("args") or {}),
                id=str(call.get("id") or ""),
            )
            for call in (part.get("functionCall") for part in self.parts)
            if call is not None
        )

    def add(self, part: WirePart) -> None:
        """Add one part.

        Thoughts are dropped, and consecutive unsigned texts are joined. A signed part is kept
        unchanged, because the service checks its signature.
        """
        if "thoughtSignature" in part:
            self.parts.append(dict(part))
        elif part.get("thought") or part.get("text") == "" or not part:
            return
        elif "text" in part and self.parts and self.parts[-1].keys() == {"text"}:
            self.parts[-1] = {"text": self.parts[-1]["text"] + part["text"]}
        else:
            self.parts.append(dict(part))


def sign_first_call(parts: Iterable[_Wire]) -> None:
    """Give the first call the placeholder signature if it has none."""
    for part in [part for part in parts if "functionCall" in part][:1]:
        part.setdefault("thoughtSignature", UNSIGNED)


def wire_contents(messages: Iterable[PromptMessage]) -> list[_Wire]:
    """Return messages in wire format."""
    return [{"role": one.role, "parts": wire_parts(one.parts)} for one in messages]


def wire_parts(parts: Iterable[TextPart | MediaPart | WirePart]) -> list[_Wire]:
    """Return parts in wire format; media the service would refuse become a note."""
    wire: list[_Wire] = []
    media_left = MAX_RESPONSE_MEDIA
    for part in parts:
        match part:
            case TextPart(text):
                wire.append({"text": without_surrogates(text)})
            case MediaPart() if problem := media_problem(part, media_left):
                wire.append({"text": f"[{problem}]"})
            case MediaPart(mime_type, data):
                media_left -= len(data)
                wire.append({"inlineData": {"mimeType": mime_type, "data": data}})
            case _:
                wire.append(dict(part))
    return wire


def media_problem(part: MediaPart, media_left: int) -> str:
    """Return why a media part cannot be sent to the model, or an empty string.

    Args:
        part: The part.
        media_left: Characters of base64 that still fit.
    """
    if len(part.data) > media_left:
        return f"The {part.mime_type} is left out: it is too large."
    if not _READABLE.fullmatch(part.mime_type):
        return f"The {part.mime_type} is left out: the model cannot read it."
    return ""


def without_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be sent as UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _wire_response(
    call: FunctionCall, answer: FunctionResponse, *, inline_media: bool
) -> tuple[_Wire, list[_Wire]]:
    """Return a ``functionResponse`` and the parts that follow it in the content.

    The response holds strings only: the service resolves references in nested objects.
    """
    texts: list[str] = []
    inside: list[_Wire] = []
    beside: list[_Wire] = []
    for part in wire_parts(answer.parts):
        if "text" in part:
            texts.append(part["text"])
        else:
            is_inline = inline_media and part["inlineData"]["mimeType"] in _INLINE_IN_RESPONSES
            (inside if is_inline else beside).append(part)
    named = {"name": call.name} | ({"id": call.id} if call.id else {})
    said = {"error" if answer.is_error else "output": "\n".join(texts)}
    return {**named, "response": said, **({"parts": inside} if inside else {})}, beside


def drop_media(contents: Sequence[_Wire], start: int, message: str = "") -> list[str]:
    """Put notes in place of the media that the service has not accepted yet.

    If there are none and its words are about media, those go that it accepted before.

    Args:
        contents: A conversation in wire format.
        start: The index of the first content that the service has not accepted yet.
        message: The service's words.

    Returns:
        The media types of what was dropped.
    """
    dropped: list[str] = []

    def note(media: _Wire) -> str:
        dropped.append(media["mimeType"])
        return f"[The {media['mimeType']} is left out: the service did not accept it.]"

    for some in (contents[start:], contents[:start] if _MEDIA_WORDS.search(message) else ()):
        if not dropped:
            _replace_media(some, note)
            for content in some if dropped else ():
                content["parts"] = [*content["parts"]]
    return dropped


def _replace_media(contents: Sequence[_Wire], note: Callable[[_Wire], str]) -> None:
    """Put notes in place of media, in the newest content first, where there is a `note`."""
    for content in reversed(contents):
        for index, part in reversed([*enumerate(content["parts"])]):
            if "inlineData" in part and (words := note(part["inlineData"])):
                content["parts"][index] = {"text": words}
            elif media := part.get("functionResponse", {}).pop("parts", None):
                response = part["functionResponse"]
                noted = [(one, note(one["inlineData"])) for one in media]
                key, text = next(iter(response["response"].items()))
                said = (words for _, words in noted if words)
                response["response"] = {key: "\n".join([text, *said])}
                if kept := [one for one, words in noted if not words]:
                    response["parts"] = kept


def forget_old(contents: list[_Wire]) -> None:
    """Clip old texts and drop old media in place; order and number of contents stay.

    Args:
        contents: A conversation in wire format, oldest first.
    """
    _forget_texts(contents)
    _forget_media(contents)


def _forget_texts(contents: list[_Wire]) -> None:
    newest_first = (part for content in reversed(contents) for part in reversed(content["parts"]))
    responses = [part["functionResponse"] for part in newest_first if "functionResponse" in part]
    sizes = [sum(map(len, response["response"].values())) for response in responses]
    if sum(sizes) <= MAX_TEXT_KEPT:
        return
    room = TEXT_LEFT
    for response, size in zip(responses, sizes, strict=True):
        room -= size
        if room < 0:
            response["response"] = {key: _cut(text) for key, text in response["response"].items()}


def _forget_media(contents: list[_Wire]) -> None:
    room = MAX_MEDIA_KEPT

    def note(media: _Wire) -> str:
        nonlocal room
        room -= len(media["data"])
        return "" if room >= 0 else f"[The {media['mimeType']} is no longer kept.]"

    _replace_media(contents, note)


def shortened(contents: Iterable[_Wire]) -> list[_Wire]:
    """Return a copy with its longest texts cut to a quarter, or without its older half.

    It is empty if no text is long and there is but one turn.
    """
    made = deepcopy([*contents])
    parts = [part for content in made for part in content["parts"]]
    texts = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    texts += [part for part in parts if part.keys() == {"text"}]
    most = max((len(text) for one in texts for text in one.values()), default=0) // 4
    if most > _NOTICE:
        for one in texts:
            one.update({key: _cut(text, most) for key, text in one.items()})
        return made
    answers = [any("functionResponse" in part for part in one["parts"]) for one in made]
    starts = [n for n, one in enumerate(made) if one["role"] == "user" and not answers[n]]
    return made[starts[len(starts) // 2] :] if len(starts) > 1 else []


def _cut(text: str, most: int = MAX_OLD_TEXT) -> str:
    if len(text) <= most + _NOTICE:
        return text
    dropped = len(text) - most
    return f"{text[:most]}\n… [clipped; {dropped:,} characters were dropped]"
