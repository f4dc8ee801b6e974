"""Sampling: a server asks our model for text, and the user allows prompt and answer each time.

Revision 2026-07-28 of the protocol deprecates it.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import mcp_types as types

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.offer import MAX_DESCRIPTION
from tui.engine.mcp.catalog.offered_tool import (
    FunctionCall,
    JsonObject,
    MediaPart,
    PromptMessage,
    TextPart,
    assign_names,
    declaration,
)
from tui.engine.mcp.catalog.results import ROLES, Part, alternating, convert_block
from tui.engine.mcp.context import ClientContext, Generation, GenerationError, Prompt
from tui.engine.mcp.schema.to_gemini import UnusableSchemaError, to_gemini
from tui.engine.mcp.server_log import ServerLog
from tui.model.bounded_json import mapped, whole_numbers
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.frozen import Frozen
from tui.model.requests import SamplingMessage, SamplingRequest, SamplingReview
from tui.text import clip, sanitize, sanitize_line

MAX_MESSAGES: Final = 100
"""Messages of one prompt; a longer one is refused."""

MAX_BLOCKS: Final = 200
"""Content blocks of one prompt; more are refused."""

MAX_PROMPT: Final = 200_000
"""Characters of one prompt, system prompt included; a longer one is refused."""

MAX_TOOLS: Final = 64
"""Tools of one prompt; more are refused."""

MAX_TOKENS: Final = 16_384
"""Most tokens that a server may request."""

MAX_CALL_ID: Final = 128
"""Characters of the id of a tool call that go to the model."""

MAX_HINTS: Final = 10
"""Model hints that are shown."""

_Part = TextPart | MediaPart | JsonObject

REFUSED: Final = -1
"""Error code of a refusal by the user, from the protocol's example."""

_REFUSAL: Final = types.ErrorData(code=REFUSED, message="User rejected sampling request")


class UnusablePromptError(Exception):
    """A prompt cannot be sent to the model; the text says why, for the server."""


class SamplingPrompt(Frozen):
    """A prompt that can be shown and sent to the model.

    The text for the model is sanitized like the text for the screen.

    Attributes:
        request: What the model gets.
        messages: The messages as shown.
        hints: Models that the server prefers, best first.
        tools: The names of its tools, as shown.
    """

    request: Prompt
    messages: tuple[SamplingMessage, ...]
    hints: tuple[str, ...]
    tools: tuple[str, ...]
    _own_tools: Mapping[str, types.Tool]

    @property
    def declarations(self) -> tuple[str, ...]:
        """What the model would read of each tool, as shown."""
        return tuple(
            sanitize(json.dumps(one, ensure_ascii=False, indent=2))
            for one in self.request.declarations
        )

    def own_call(self, call: FunctionCall) -> FunctionCall:
        """Return a call of the model with the server's own tool name."""
        tool = self._own_tools.get(call.name)
        if tool is None:
            return call
        return FunctionCall(tool.name, whole_numbers(call.arguments), call.id)


def read_prompt(params: types.CreateMessageRequestParams) -> SamplingPrompt:
    """Read a request for a generation.

    ``includeContext`` is ignored: the conversation and other servers are never included. So are
    the temperature and the other sampling parameters.

    Raises:
        UnusablePromptError: If it is empty, exceeds a limit or has unusable tools.
    """
    if params.max_tokens < 1:
        raise UnusablePromptError("maxTokens must be positive")
    if not params.messages or len(params.messages) > MAX_MESSAGES:
        raise UnusablePromptError(f"there must be 1 to {MAX_MESSAGES} messages")
    if sum(len(message.content_as_list) for message in params.messages) > MAX_BLOCKS:
        raise UnusablePromptError(f"there may be {MAX_BLOCKS} content blocks at most")
    own_tools, declarations = _declare(params)
    spelled = {tool.name: name for name, tool in own_tools.items()}
    calls: dict[str, str] = {}
    read = [_message(message, spelled, calls) for message in params.messages]
    system = sanitize(params.system_prompt or "")
    if len(system) + sum(len(shown.text) for shown, _ in read) > MAX_PROMPT:
        raise UnusablePromptError(f"the prompt is longer than {MAX_PROMPT} characters")
    preferences = params.model_preferences
    hints = preferences.hints or [] if preferences is not None else []
    return SamplingPrompt(
        Prompt(
            alternating([PromptMessage(ROLES[shown.role], parts) for shown, parts in read]),
            declarations,
            system,
            min(params.max_tokens, MAX_TOKENS),
            params.tool_choice is not None and params.tool_choice.mode == "required",
        ),
        tuple(shown for shown, _ in read),
        hints=tuple(sanitize_line(hint.name, 80) for hint in hints[:MAX_HINTS] if hint.name),
        tools=tuple(sanitize_line(tool.name, 128) for tool in params.tools or ()),
        _own_tools=own_tools,
    )


def _declare(
    params: types.CreateMessageRequestParams,
) -> tuple[dict[str, types.Tool], tuple[Mapping[str, Any], ...]]:
    """Return the tools by their names for Gemini, and their declarations."""
    tools = params.tools or []
    if len(tools) > MAX_TOOLS:
        raise UnusablePromptError(f"there may be {MAX_TOOLS} tools at most")
    if len({tool.name for tool in tools}) < len(tools):
        raise UnusablePromptError("two tools have the same name")
    given = assign_names([("", [tool.name for tool in tools])])
    named = {str(given["", tool.name]): tool for tool in tools}
    if params.tool_choice is not None and params.tool_choice.mode == "none":
        return named, ()
    declarations = []
    for name, tool in named.items():
        try:
            schema = to_gemini(tool.input_schema)
        except UnusableSchemaError as error:
            raise UnusablePromptError(f"the schema of a tool cannot be used: {error}") from None
        description = sanitize(tool.description or tool.title or "", MAX_DESCRIPTION)
        declarations.append(declaration(name, description, schema))
    return named, tuple(declarations)


def _message(
    message: types.SamplingMessage, spelled: Mapping[str, str], calls: dict[str, str]
) -> tuple[SamplingMessage, tuple[_Part, ...]]:
    """Read one message: how it is shown, and the parts that the model gets.

    `calls` collects the names of called tools by call id.
    """
    parts: list[_Part] = []
    lines: list[str] = []
    for block in message.content_as_list:
        match block:
            case types.ToolUseContent():
                calls[block.id] = name = spelled.get(block.name, "unknown")
                call_id = sanitize_line(block.id, MAX_CALL_ID)
                arguments = mapped(block.input, str, sanitize, sanitize)
                parts.append({"functionCall": {"id": call_id, "name": name, "args": arguments}})
                lines.append(shown_call(FunctionCall(block.name, block.input)))
            case types.ToolResultContent():
                part, beside, line = _tool_result(block, calls.get(block.tool_use_id, "unknown"))
                parts.extend([part, *beside])
                lines.append(line)
            case _:
                for piece in convert_block(block, "Server"):
                    parts.append(_as_shown(piece.part))
                    lines.append(piece.shown)
    if not parts:
        raise UnusablePromptError("a message is empty")
    return SamplingMessage(message.role, "\n".join(filter(None, lines))), tuple(parts)


def _tool_result(
    block: types.ToolResultContent, name: str
) -> tuple[JsonObject, list[MediaPart], str]:
    """Return a result as a function response, its media, and how it is shown."""
    pieces = [piece for content in block.content for piece in convert_block(content)]
    parts = [_as_shown(piece.part) for piece in pieces]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if not texts and block.structured_content is not None:
        texts = [sanitize(json.dumps(block.structured_content, ensure_ascii=False))]
    said = {"error" if block.is_error else "output": "\n".join(texts)}
    call_id = sanitize_line(block.tool_use_id, MAX_CALL_ID)
    response = {"id": call_id, "name": name, "response": said}
    media = [part for part in parts if isinstance(part, MediaPart)]
    line = f"[result of {sanitize_line(name, 128)}] " + "\n".join(p.shown for p in pieces)
    return {"functionResponse": response}, media, line


def _as_shown(part: Part) -> Part:
    """Return a part with the text that the user has seen and allowed."""
    return TextPart(sanitize(part.text)) if isinstance(part, TextPart) else part


def shown_call(call: FunctionCall) -> str:
    """Show a tool call in one line; if it exceeds `MAX_PROMPT`, so does the line."""
    arguments = sanitize(json.dumps(call.arguments, ensure_ascii=False), MAX_PROMPT)
    return clip(f"[call of {sanitize_line(call.name, 128)}] {arguments}", MAX_PROMPT + 1)


@dataclass(eq=False, repr=False)
class Sampling:
    """Answers the sampling requests of one connection.

    Args:
        definition: The server.
        context: Provides the desk and the model.
        log: Records what the server was given.
    """

    _definition: ServerDefinition
    _context: ClientContext
    _log: ServerLog

    async def sample(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """Answer one request: show the prompt, ask the model, show the answer, return it."""
        generator = self._context.generator
        if generator is None or not generator.model():
            return types.ErrorData(code=types.INTERNAL_ERROR, message="There is no model.")
        try:
            prompt = read_prompt(params)
        except UnusablePromptError as error:
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"Not usable: {error}")
        while True:  # again if another model took its place meanwhile
            model = generator.model()
            question = SamplingRequest(
                id=self._context.desk.new_id(),
                server=self._definition.id,
                system=prompt.request.system,
                messages=prompt.messages,
                max_tokens=prompt.request.max_tokens,
                model=sanitize_line(model, 64),
                hints=prompt.hints,
                tools=prompt.tools,
                declarations=prompt.declarations,
            )
            if not (await self._context.desk.ask(question)).allows:
                return _REFUSAL
            if generator.model() in {model, ""}:
                break
        try:
            generation = await generator.generate(prompt.request)
        except GenerationError as error:
            words = f"Generating text for {self._definition.id} failed: {error}"
            notice = Notice(Severity.ERROR, sanitize_line(words), sanitize_line(error.advice))
            self._context.publish(NoticeRaised(notice))
            words = "The model could not answer the prompt."
            return types.ErrorData(code=types.INTERNAL_ERROR, message=words)
        generation = replace(generation, calls=tuple(map(prompt.own_call, generation.calls)))
        text = sanitize(generation.text)
        calls = "\n".join(map(shown_call, generation.calls))
        said, model = "\n".join(filter(None, (text, calls))), sanitize_line(generation.model, 64)
        review = SamplingReview(self._context.desk.new_id(), self._definition.id, said, model)
        if not (await self._context.desk.ask(review)).allows:
            return _REFUSAL
        said = f"received {len(text)} characters generated by {generation.model}"
        self._log.remark(said, Severity.INFO)
        return _result(text, generation, with_tools=bool(params.tools))


def _result(
    text: str, generation: Generation, *, with_tools: bool
) -> types.CreateMessageResult | types.CreateMessageResultWithTools:
    """Return the answer in the form that the request requires."""
    stop = "toolUse" if generation.calls else "maxTokens" if generation.is_cut else "endTurn"
    said = types.TextContent(type="text", text=text)
    shared: Any = {"role": "assistant", "model": generation.model, "stop_reason": stop}
    if not with_tools:
        return types.CreateMessageResult(content=said, **shared)
    named = ((call, call.id or f"call_{uuid.uuid4().hex}") for call in generation.calls)
    used = [
        types.ToolUseContent(type="tool_use", id=own, name=call.name, input=call.arguments)
        for call, own in named
    ]
    content = [said, *used] if text or not used else used
    return types.CreateMessageResultWithTools(content=content, **shared)
