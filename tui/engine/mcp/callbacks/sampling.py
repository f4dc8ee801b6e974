"""Sampling: a server asks our model for text, and the user reviews both sides."""

import uuid
from dataclasses import replace
from typing import Final

import mcp_types as types

from tui.engine.mcp.callbacks.sampling_prompt import (
    SamplingPrompt,
    UnusablePromptError,
    read_prompt,
    shown_call,
)
from tui.engine.mcp.context import ClientContext, Generation, GenerationError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.requests import Reply, ReplyAction, SamplingRequest, SamplingReview
from tui.text import sanitize, sanitize_line

REFUSED: Final = -1
"""Error code of a refusal by the user, from the protocol's example."""

_REFUSAL: Final = types.ErrorData(code=REFUSED, message="User rejected sampling request")
_ACCEPTING: Final = frozenset({ReplyAction.ACCEPT, ReplyAction.ACCEPT_ALWAYS})


class Sampling:
    """Answers the sampling requests of one connection.

    Args:
        definition: The server.
        context: Provides the desk and the model.
        log: Records what the server was given.
    """

    def __init__(
        self, definition: ServerDefinition, context: ClientContext, log: ServerLog
    ) -> None:
        self._definition = definition
        self._context = context
        self._log = log

    async def sample(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """Answer one request: show the prompt, ask the model, show the answer, return it."""
        generator = self._context.generator
        if generator is None or not (model := generator.model()):
            return types.ErrorData(code=types.INTERNAL_ERROR, message="There is no model.")
        try:
            prompt = read_prompt(params)
        except UnusablePromptError as error:
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"Not usable: {error}")
        reply = await self._admit(prompt, model)
        if reply.action not in _ACCEPTING:
            return _REFUSAL
        try:
            generation = await generator.generate(prompt.request(reply.system, reply.messages))
        except GenerationError as error:
            self._complain(error)
            return types.ErrorData(
                code=types.INTERNAL_ERROR, message="The model could not answer the prompt."
            )
        generation = replace(generation, calls=tuple(map(prompt.own_call, generation.calls)))
        reviewed = await self._review(generation)
        if reviewed is None:
            return _REFUSAL
        words = f"was given {len(reviewed)} characters that {generation.model} generated for it"
        self._log.add("gemdeck", Severity.INFO, words)
        return _result(reviewed, generation, with_tools=bool(params.tools))

    async def _admit(self, prompt: SamplingPrompt, model: str) -> Reply:
        """Ask whether the prompt may go to the model, unless the user always allows it."""
        if self._context.sampling_grants.take(self._definition):
            return Reply(ReplyAction.ACCEPT)
        request = SamplingRequest(
            id=self._context.desk.new_id(),
            server=self._definition.id,
            system=prompt.system,
            messages=prompt.messages,
            max_tokens=prompt.max_tokens,
            model=sanitize_line(model, 64),
            hints=prompt.hints,
            tools=prompt.tools,
        )
        reply = await self._context.desk.ask(request)
        if reply.action is ReplyAction.ACCEPT_ALWAYS:
            self._context.sampling_grants.allow(self._definition)
        return reply

    async def _review(self, generation: Generation) -> str | None:
        """Show the generated text; return it as approved, or None if refused."""
        text = sanitize(generation.text)
        calls = "\n".join(map(shown_call, generation.calls))
        request = SamplingReview(
            id=self._context.desk.new_id(),
            server=self._definition.id,
            text="\n".join(part for part in (text, calls) if part),
            model=sanitize_line(generation.model, 64),
            editable=not generation.calls,
        )
        reply = await self._context.desk.ask(request)
        if reply.action not in _ACCEPTING:
            return None
        if reply.text is not None and request.editable:
            return sanitize(reply.text)
        return text

    def _complain(self, error: GenerationError) -> None:
        text = f"{self._definition.id} wanted text from the model, which failed: {error}"
        notice = Notice(Severity.ERROR, sanitize_line(text), sanitize_line(error.advice))
        self._context.publish(NoticeRaised(notice))


def _result(
    text: str, generation: Generation, *, with_tools: bool
) -> types.CreateMessageResult | types.CreateMessageResultWithTools:
    """Return the answer in the form that the request requires."""
    stop = "toolUse" if generation.calls else "maxTokens" if generation.is_cut else "endTurn"
    if not with_tools:
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(type="text", text=text),
            model=generation.model,
            stop_reason=stop,
        )
    content: list[types.SamplingMessageContentBlock] = []
    if text or not generation.calls:
        content.append(types.TextContent(type="text", text=text))
    content.extend(
        types.ToolUseContent(
            type="tool_use",
            id=call.id or f"call_{uuid.uuid4().hex}",
            name=call.name,
            input=call.arguments,
        )
        for call in generation.calls
    )
    return types.CreateMessageResultWithTools(
        role="assistant", content=content, model=generation.model, stop_reason=stop
    )
