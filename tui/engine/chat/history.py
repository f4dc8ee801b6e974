"""The conversation as the service gets it: plain wire dicts that it accepts at any time."""

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from tui.engine.chat.backend import WireContent, WirePart
from tui.engine.chat.retention import forget_old
from tui.engine.tools import MediaPart, TextPart
from tui.model.limits import DEFAULT_RESULT_SIZE
from tui.text import clip_middle

RESPONSE_ALLOWANCE: Final = 10_000
"""Characters that a response may have beyond the limit of a result: remarks stand beside it."""

MAX_RESPONSE_MEDIA: Final = 10 * 1024 * 1024
"""Longest base64 data of one tool's media for the model; the service takes 20 MB a request."""

UNSIGNED: Final = "skip_thought_signature_validator"
"""What the service takes in place of a thought signature that a call never had."""

_INLINE_IN_RESPONSES: Final = frozenset(
    {"image/png", "image/jpeg", "image/webp", "application/pdf"}
)
_READABLE: Final = re.compile(
    r"image/(?:png|jpeg|webp|heic|heif)|audio/[\w.+-]+|video/[\w.+-]+|text/[\w.+-]+|application/pdf"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call as the model wrote it; `id` is empty where the service gives none."""

    name: str
    arguments: _Wire
    id: str = ""


@dataclass(frozen=True, slots=True)
class FunctionResponse:
    """The answer to a call: what came of it, and media that belong to it."""

    parts: Sequence[TextPart | MediaPart]
    is_error: bool = False

    @classmethod
    def error(cls, text: str) -> "FunctionResponse":
        """Answer a call with a word on why there is no result."""
        return cls((TextPart(text),), is_error=True)


@dataclass
class History:
    """The contents of a conversation, oldest first.

    Roles alternate, calls are answered in the content right after them, and the last content
    is the model's unless a turn is running. Of old results not all is kept (see `retention`).

    Attributes:
        max_result_size: Characters of text of one tool's result for the model.
        contents: The wire form, ready to be sent.
    """

    max_result_size: int = DEFAULT_RESULT_SIZE
    contents: list[_Wire] = field(default_factory=list)

    def add_user(self, parts: Iterable[TextPart | MediaPart]) -> None:
        """Begin a turn with the user's words and what goes with them."""
        self.contents.append({"role": "user", "parts": wire_parts(parts)})
        forget_old(self.contents)

    def add_model(self, parts: Iterable[WirePart]) -> None:
        """Add what the model said in one step; nothing at all adds nothing."""
        if kept := [dict(part) for part in parts]:
            self.contents.append({"role": "model", "parts": kept})

    def add_responses(
        self,
        answers: Iterable[tuple[FunctionCall, FunctionResponse]],
        *,
        inline_media: bool,
    ) -> None:
        """Answer all calls of the last step, in call order, in one content.

        Args:
            answers: Each call with its answer.
            inline_media: Whether media the service knows go into the response itself
                (Gemini 3+). What may not stand there follows after the last response.
        """
        responses: list[_Wire] = []
        beside: list[_Wire] = []
        for call, answer in answers:
            response, siblings = _wire_response(
                call, answer, self.max_result_size, inline_media=inline_media
            )
            responses.append({"functionResponse": response})
            beside.extend(siblings)
        self.contents.append({"role": "user", "parts": responses + beside})
        forget_old(self.contents)

    def close_turn(self, note: str, said: Iterable[WirePart] = ()) -> None:
        """End a turn that broke off, so that the user may speak next.

        Args:
            note: Our word on what happened, in the model's place.
            said: What the model had said of the unfinished step; calls among it are dropped.
        """
        kept = [part for part in said if "functionCall" not in part]
        self.add_model([*kept, {"text": f"[{note}]"}])

    def drop_media(self, start: int) -> None:
        """Take media of tool results out of all contents from `start` on."""
        for content in self.contents[start:]:
            content["parts"] = [part for part in content["parts"] if "inlineData" not in part]
            for part in content["parts"]:
                part.get("functionResponse", {}).pop("parts", None)

    def strip_signatures(self) -> None:
        """Forget thought signatures, which are valid only for the model that made them."""
        for content in self.contents:
            for part in content["parts"]:
                part.pop("thoughtSignature", None)
            content["parts"] = [part for part in content["parts"] if part and part != {"text": ""}]
        self.contents[:] = [content for content in self.contents if content["parts"]]


class StepParts:
    """Gathers the parts of a streamed step in the form in which they go back."""

    def __init__(self) -> None:
        self._parts: list[_Wire] = []

    @property
    def parts(self) -> Sequence[WireContent]:
        """The parts so far."""
        return self._parts

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """The calls among them, in order."""
        return tuple(
            FunctionCall(
                name=str(call.get("name", "")),
                arguments=deepcopy(call.get("args") or {}),
                id=str(call.get("id") or ""),
            )
            for call in (part.get("functionCall") for part in self._parts)
            if call is not None
        )

    def add(self, part: WirePart) -> None:
        """Add one part.

        Thoughts are left out, and unsigned text is joined to unsigned text before it. A signed
        part stays exactly as it came: the signature is checked against it.
        """
        if "thoughtSignature" in part:
            self._parts.append(dict(part))
        elif part.get("thought") or part.get("text") == "" or not part:
            return
        elif "text" in part and self._parts and self._is_unsigned_text(self._parts[-1]):
            self._parts[-1] = {"text": self._parts[-1]["text"] + part["text"]}
        else:
            self._parts.append(dict(part))

    def sign_first_call(self) -> None:
        """Mark the first call, if it came without a signature, as one that never had any."""
        for part in self._parts:
            if "functionCall" in part:
                part.setdefault("thoughtSignature", UNSIGNED)
                return

    @staticmethod
    def _is_unsigned_text(part: WirePart) -> bool:
        return set(part) == {"text"}


def wire_parts(parts: Iterable[TextPart | MediaPart]) -> list[_Wire]:
    """Give parts in wire form; media that the service would refuse become a word on that."""
    wire: list[_Wire] = []
    media_left = MAX_RESPONSE_MEDIA
    for part in parts:
        match part:
            case TextPart(text):
                wire.append({"text": without_surrogates(text)})
            case MediaPart() if problem := _media_problem(part, media_left):
                wire.append({"text": problem})
            case MediaPart(mime_type, data):
                media_left -= len(data)
                wire.append({"inlineData": {"mimeType": mime_type, "data": data}})
    return wire


def _media_problem(part: MediaPart, media_left: int) -> str:
    """Say why a medium cannot go to the model, or nothing."""
    if len(part.data) > media_left:
        return f"[The {part.mime_type} is left out: it is too large.]"
    if not _READABLE.fullmatch(part.mime_type):
        return f"[The {part.mime_type} is left out: the model cannot read it.]"
    return ""


def without_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be sent as UTF-8."""
    return _SURROGATE.sub("\ufffd", text)


def _wire_response(
    call: FunctionCall, answer: FunctionResponse, max_size: int, *, inline_media: bool
) -> tuple[_Wire, list[_Wire]]:
    """Give a ``functionResponse`` and the parts that have to stand beside it.

    The response holds strings only: the service reads references out of nested objects.
    """
    texts: list[str] = []
    inside: list[_Wire] = []
    beside: list[_Wire] = []
    media_left = MAX_RESPONSE_MEDIA
    for part in answer.parts:
        match part:
            case TextPart(text):
                texts.append(text)
            case MediaPart() if problem := _media_problem(part, media_left):
                texts.append(problem)
            case MediaPart(mime_type, data):
                media_left -= len(data)
                target = inside if inline_media and mime_type in _INLINE_IN_RESPONSES else beside
                target.append({"inlineData": {"mimeType": mime_type, "data": data}})
    tail = (max_size + RESPONSE_ALLOWANCE) // 4
    text = clip_middle("\n".join(texts), 3 * tail, tail)
    response: _Wire = {"name": call.name}
    if call.id:
        response["id"] = call.id
    key = "error" if answer.is_error else "output"
    response["response"] = {key: without_surrogates(text)}
    if inside:
        response["parts"] = inside
    return response, beside
