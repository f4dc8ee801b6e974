"""The demo model: offline and deterministic; it says that it is not a language model."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from tui.engine.chat.backends.backend import ModelChunk, ModelRequest, ModelTraits, WireContent
from tui.engine.demo.matching import Call, Declaration, complete_call, find_calls, usage
from tui.engine.mcp.catalog.offered_tool import STRUCTURED
from tui.model.answering.models import ModelOffer
from tui.model.chat import BackendKind, Usage
from tui.text import clip, clip_middle, counted

DEMO_MODEL: Final = "demo"
WORD_PACE: Final = 0.02  # seconds between two words of an answer
MAX_STREAM_SECONDS: Final = 2.5  # for a whole answer
CHARACTERS_PER_TOKEN: Final = 4  # roughly
MAX_MESSAGE: Final = 8_000  # characters read
MAX_QUESTIONS: Final = 5  # for missing arguments of one call
MAX_LISTED: Final = 8  # tools
MAX_NAME: Final = 100  # characters of a tool with its arguments
MAX_QUOTED: Final = 4_000  # characters of a result
INTRODUCTION: Final = (
    "I am the demo: a small offline model. I look for the words of a tool's name in your message, "
    "call that tool, and understand nothing else."
)

_DENIALS: Final = ("Denied: ", "The user has denied ")
_REFUSAL: Final = re.compile(
    r"\W*(?:please\s+)?(?:(?:do\s+not|don['\u2019]t|never)\b|(?:no|stop|cancel)(?:\W+thank.*)?\W*$)",
    re.I,
)
_WORDS: Final = re.compile(r"\s*\S+\s*")
_FENCES: Final = re.compile("`{3,}")


class DemoBackend:
    """A `ModelBackend` that needs no key and no network."""

    @property
    def kind(self) -> BackendKind:
        return BackendKind.DEMO

    @property
    def model(self) -> str:
        return DEMO_MODEL

    @property
    def traits(self) -> ModelTraits:
        return ModelTraits()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Stream one step: text in small pieces, then a call, then the usage."""
        full_text, call = await asyncio.to_thread(next_step, request)
        text = full_text
        if request.max_output_tokens is not None:
            text = full_text[: request.max_output_tokens * CHARACTERS_PER_TOKEN]
        words = _WORDS.findall(text)
        pause = min(WORD_PACE, MAX_STREAM_SECONDS / max(len(words), 1))
        for word in words:
            yield ModelChunk(parts=({"text": word},))
            await asyncio.sleep(pause)
        if call is not None:
            yield ModelChunk(parts=({"functionCall": call},))
        asked = [request.system_instruction, list(request.contents), list(request.declarations)]
        yield ModelChunk(
            finish_reason="STOP" if text == full_text else "MAX_TOKENS",
            usage=Usage(prompt := _tokens(asked), _tokens([text, call]), context=prompt),
        )

    async def models(self) -> Sequence[ModelOffer]:
        return (ModelOffer(DEMO_MODEL, "offline"),)

    async def check(self) -> None:
        """Accept nothing and refuse nothing: there is no service."""

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


def next_step(request: ModelRequest) -> tuple[str, dict[str, Any] | None]:
    """Return the text and the call of the next step, from the conversation alone.

    A message leads to at most one call. A result is reported and leads to no further call.
    """
    contents = request.contents or ({},)
    if responses := _of_kind(contents[-1], "functionResponse"):
        attached = len(_of_kind(contents[-1], "inlineData"))
        return "\n\n".join(_report(response, attached) for response in responses), None
    answer = _answer(contents, request.declarations)
    is_first = all(content.get("role") != "model" for content in contents)
    introduction = f"{INTRODUCTION}\n\n" if is_first else ""
    if isinstance(answer, str):
        return f"{introduction}{answer}", None
    made = sum(len(_of_kind(content, "functionCall")) for content in contents)
    call = {"id": f"demo-{made + 1}", "name": answer.name, "args": answer.arguments}
    return introduction, call


def _answer(contents: Sequence[WireContent], declarations: Sequence[Declaration]) -> str | Call:
    """Answer the last content, a user message, with text or a call."""
    message = _text(contents[-1])
    if len(message) > MAX_MESSAGE:
        return f"I cannot read messages longer than {MAX_MESSAGE:,} characters. I did nothing."
    if _REFUSAL.match(message):
        return "All right, I will do nothing."
    calls = _understand(contents, declarations)
    if not calls:
        return f"I found no tool in your message.\n\n{_tool_list(declarations)}"
    if len(calls) > 1:
        names = " or ".join(_code(call.name) for call in calls)
        return f"I can make one call per message: {names}?"
    [call] = calls
    if not call.missing:
        return call
    needed = " and ".join(_code(name) for name in call.missing)
    return f"To call {_code(call.name)} I need {needed}. What is {_code(call.missing[0])}?"


def _understand(
    contents: Sequence[WireContent],
    declarations: Sequence[Declaration],
    questions: int = MAX_QUESTIONS,
) -> list[Call]:
    """Return the calls that the last message asks for or completes."""
    message = _text(contents[-1])
    calls = find_calls(message, declarations)
    asked = len(contents) > 2 and not _of_kind(contents[-2], "functionCall")
    if calls or not (asked and questions) or _REFUSAL.match(message):
        return calls
    before = _understand(contents[:-2], declarations, questions - 1)
    return [complete_call(call, message) for call in before if call.missing and len(before) == 1]


def _report(response: Mapping[str, Any], attached: int) -> str:
    """Describe the result of a call."""
    name, body = _code(str(response.get("name"))), response.get("response") or {}
    failed = "error" in body
    text = str(body["error"] if failed else body.get("output", ""))
    text = text.partition(f"\n{STRUCTURED}\n")[0]
    if failed and text.startswith(_DENIALS):
        return f"{name} was not allowed, so it did not run."
    said = f"{name} {'failed' if failed else 'returned'}"
    said += f":\n\n{_quote(text)}" if text.strip() else " without any text."
    if attached:
        said += f"\n\nIt also returned {counted(attached, 'attachment')} that I cannot read."
    return said


def _tool_list(declarations: Sequence[Declaration]) -> str:
    """List some of the offered tools."""
    if not declarations:
        return "There are no tools right now: no server is ready, or none has any."
    lines = [f"- {_code(usage(declaration))}" for declaration in declarations[:MAX_LISTED]]
    if len(declarations) > MAX_LISTED:
        lines.append(f"- and {len(declarations) - MAX_LISTED:,} more")
    return "\n".join(("Write the name of one of these with its arguments:", "", *lines))


def _code(text: str) -> str:
    """Format a server's text as Markdown code, which is shown literally."""
    return f"`{clip(' '.join(text.replace('`', chr(39)).split()), MAX_NAME)}`"


def _quote(text: str) -> str:
    """Quote a tool's result in a fence longer than any fence inside."""
    shown = clip_middle(text.strip("\n"), MAX_QUOTED * 3 // 4, MAX_QUOTED // 4)
    fence = "`" * (max(map(len, _FENCES.findall(shown)), default=2) + 1)
    return f"{fence}text\n{shown}\n{fence}"


def _text(content: WireContent) -> str:
    """Return the message itself, the first text, without attachments."""
    return next(iter(_of_kind(content, "text")), "")


def _of_kind(content: WireContent, kind: str) -> list[Any]:
    """Return the values of all parts of one kind."""
    return [part[kind] for part in content.get("parts", ()) if part.get(kind)]


def _tokens(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str)) // CHARACTERS_PER_TOKEN
