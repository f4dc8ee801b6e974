"""Prompts that servers want answered: as the user sees them, and as the model gets them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types

from tui.engine.chat.backend import ModelRequest, WireContent, WirePart
from tui.engine.chat.history import FunctionCall, wire_parts
from tui.engine.servers.coercion import coerce
from tui.engine.servers.content import convert_block
from tui.engine.servers.names import assign_names
from tui.engine.servers.schemas import UnusableSchemaError, to_gemini
from tui.engine.tools import MediaPart, TextPart
from tui.model.requests import SamplingMessage
from tui.text import clip, sanitize, sanitize_line

MAX_MESSAGES: Final = 100
"""Messages of one prompt; a longer one is refused."""

MAX_BLOCKS: Final = 200
"""Content blocks of one prompt; more are refused."""

MAX_PROMPT: Final = 200_000
"""Characters of one prompt, system prompt included; a longer one is refused."""

MAX_TOOLS: Final = 64
"""Tools that one prompt may bring; more are refused."""

MAX_TOKENS: Final = 16_384
"""The most tokens a server is given, whatever it asks for."""

MAX_DESCRIPTION: Final = 2_048
"""Characters of a tool's description that go to the model."""

MAX_CALL_ID: Final = 128
"""Characters of the id of a tool call that go to the model."""

MAX_HINTS: Final = 10
"""Hints at models that are shown."""

_ROLES: Final = {"user": "user", "assistant": "model"}
_OPENING: Final = "[The conversation so far.]"
_GO_ON: Final = "[Go on.]"


class UnusablePromptError(Exception):
    """A prompt cannot be put to the model; the text says why, for the server."""


@dataclass(frozen=True, slots=True)
class _Message:
    """One message: how it is shown, and the parts the model gets unless its text is edited."""

    shown: SamplingMessage
    parts: tuple[WirePart, ...]


@dataclass(frozen=True, slots=True)
class SamplingPrompt:
    """A prompt that can be shown and put to the model.

    Text passes the same filter towards the model as towards the screen.

    Attributes:
        system: The system prompt, or nothing.
        messages: The messages as shown.
        max_tokens: The most tokens the answer may have.
        hints: Models the server would like, best first.
        tools: The names of its tools, as shown.
    """

    system: str
    max_tokens: int
    hints: tuple[str, ...]
    tools: tuple[str, ...]
    _own_tools: Mapping[str, types.Tool]
    _messages: tuple[_Message, ...]
    _declarations: tuple[Mapping[str, Any], ...]
    _must_call: bool

    @property
    def messages(self) -> tuple[SamplingMessage, ...]:
        """The messages as shown."""
        return tuple(message.shown for message in self._messages)

    def request(self, system: str | None, texts: Sequence[str] | None) -> ModelRequest:
        """Give what the model is asked.

        Args:
            system: The system prompt as edited, or None where it was not.
            texts: The texts of all messages, as edited, or None where they were not. Those of
                messages that are not editable do not count.
        """
        contents: list[WireContent] = []
        for index, message in enumerate(self._messages):
            parts: Sequence[WirePart] = message.parts
            if message.shown.editable and texts is not None and index < len(texts):
                parts = wire_parts([TextPart(sanitize(texts[index]))])
            _append(contents, _ROLES[message.shown.role], parts)
        if contents[0]["role"] != "user":
            contents.insert(0, {"role": "user", "parts": [{"text": _OPENING}]})
        if contents[-1]["role"] != "user":
            contents.append({"role": "user", "parts": [{"text": _GO_ON}]})
        return ModelRequest(
            contents=contents,
            declarations=self._declarations,
            system_instruction=self.system if system is None else sanitize(system),
            max_output_tokens=self.max_tokens,
            must_call=self._must_call,
        )

    def own_call(self, call: FunctionCall) -> FunctionCall:
        """Give a call of the model in the server's spelling."""
        tool = self._own_tools.get(call.name)
        if tool is None:
            return call
        return FunctionCall(tool.name, coerce(tool.input_schema, call.arguments), call.id)


def read_prompt(params: types.CreateMessageRequestParams) -> SamplingPrompt:
    """Read a request for a generation.

    ``includeContext`` is left aside: nothing of the conversation or of another server is ever
    added. So are the temperature and other settings of the sampling itself.

    Raises:
        UnusablePromptError: If it is empty, exceeds a limit or brings tools nobody can use.
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
    messages = tuple(_message(message, spelled, calls) for message in params.messages)
    system = sanitize(params.system_prompt or "")
    if len(system) + sum(len(message.shown.text) for message in messages) > MAX_PROMPT:
        raise UnusablePromptError(f"the prompt is longer than {MAX_PROMPT} characters")
    preferences = params.model_preferences
    hints = preferences.hints or [] if preferences is not None else []
    return SamplingPrompt(
        system=system,
        max_tokens=min(params.max_tokens, MAX_TOKENS),
        hints=tuple(sanitize_line(hint.name, 80) for hint in hints[:MAX_HINTS] if hint.name),
        tools=tuple(sanitize_line(tool.name, 128) for tool in params.tools or ()),
        _own_tools=own_tools,
        _messages=messages,
        _declarations=declarations,
        _must_call=params.tool_choice is not None and params.tool_choice.mode == "required",
    )


def _declare(
    params: types.CreateMessageRequestParams,
) -> tuple[dict[str, types.Tool], tuple[Mapping[str, Any], ...]]:
    """Give the tools by names that Gemini allows, and their declarations."""
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
        declarations.append(
            {"name": name, "description": description, "parametersJsonSchema": schema}
        )
    return named, tuple(declarations)


def _message(
    message: types.SamplingMessage, spelled: Mapping[str, str], calls: dict[str, str]
) -> _Message:
    """Read one message; `calls` gathers the names of called tools by the id of the call."""
    blocks = message.content_as_list
    parts: list[WirePart] = []
    lines: list[str] = []
    for block in blocks:
        match block:
            case types.ToolUseContent():
                calls[block.id] = name = spelled.get(block.name, "unknown")
                call = {"id": _call_id(block.id), "name": name, "args": _sanitised(block.input)}
                parts.append({"functionCall": call})
                lines.append(shown_call(FunctionCall(block.name, block.input)))
            case types.ToolResultContent():
                part, beside, line = _tool_result(block, calls.get(block.tool_use_id, "unknown"))
                parts.extend([part, *beside])
                lines.append(line)
            case _:
                for part_of_block, line in convert_block(block, "Server"):
                    parts.extend(wire_parts([part_of_block]))
                    lines.append(line)
    if not parts:
        raise UnusablePromptError("a message is empty")
    editable = len(blocks) == 1 and isinstance(blocks[0], types.TextContent)
    text = "\n".join(line for line in lines if line)
    return _Message(SamplingMessage(message.role, text, editable), tuple(parts))


def _tool_result(block: types.ToolResultContent, name: str) -> tuple[WirePart, list[WirePart], str]:
    """Give a result as a function response, the media beside it, and how it is shown."""
    converted = [pair for content in block.content for pair in convert_block(content)]
    texts = [part.text for part, _ in converted if isinstance(part, TextPart)]
    if not texts and block.structured_content is not None:
        texts = [sanitize(json.dumps(block.structured_content, ensure_ascii=False))]
    key = "error" if block.is_error else "output"
    response = {
        "id": _call_id(block.tool_use_id),
        "name": name,
        "response": {key: "\n".join(texts)},
    }
    media = wire_parts(part for part, _ in converted if isinstance(part, MediaPart))
    line = f"[result of {sanitize_line(name, 128)}] " + "\n".join(line for _, line in converted)
    return {"functionResponse": response}, list(media), line


def shown_call(call: FunctionCall) -> str:
    """Show a call of a tool in one line; one too long for a prompt stays too long."""
    arguments = sanitize(json.dumps(call.arguments, ensure_ascii=False), MAX_PROMPT)
    return clip(f"[call of {sanitize_line(call.name, 128)}] {arguments}", MAX_PROMPT + 1)


def _call_id(given: str) -> str:
    return sanitize_line(given, MAX_CALL_ID)


def _sanitised(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Make all text in a JSON value presentable, names included."""
    match value:
        case str():
            return sanitize(value)
        case list():
            return [_sanitised(item) for item in value]
        case dict():
            return {sanitize(str(name)): _sanitised(item) for name, item in value.items()}
        case _:
            return value


def _append(contents: list[WireContent], role: str, parts: Sequence[WirePart]) -> None:
    """Add parts; neighbours of the same role become one content, as roles have to alternate."""
    if contents and contents[-1]["role"] == role:
        before = contents.pop()
        parts = [*before["parts"], *parts]
    contents.append({"role": role, "parts": list(parts)})
