"""The OpenAI SDK as a second client of our service, so that the service itself is right."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.fakes.completions import KEY, FakeCompletions
from tests.fakes.gemini import Step
from tests.fakes.gemini_script import Call, Fail, Say

TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("look", "buy")
]
ASKED: Any = {"role": "user", "content": "go"}


@asynccontextmanager
async def client(*steps: Step) -> AsyncIterator[openai.AsyncOpenAI]:
    """Give the SDK before a service that plays a script and finds nothing at fault."""
    async with FakeCompletions(steps) as fake:
        async with openai.AsyncOpenAI(api_key=KEY, base_url=fake.url, max_retries=0) as sdk:
            yield sdk
        assert fake.violations == []


async def ask(sdk: openai.AsyncOpenAI, *messages: Any) -> Any:  # noqa: ANN401 - the SDK's
    """Stream an answer, and return it as the SDK puts it together."""
    state = ChatCompletionStreamState()
    stream = await sdk.chat.completions.create(
        model="large",
        messages=messages,
        tools=TOOLS,
        stream=True,
        stream_options={"include_usage": True},
    )
    async for chunk in stream:
        state.handle_chunk(chunk)
    return state.get_final_completion()


async def test_the_sdk_reads_text_calls_and_counts_and_gives_results_back() -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("look", {"text": "käse"}),
        ("buy", {"text": "b", "n": 2}),
    ]
    async with client([Say("One "), Say("moment."), Call(calls)], [Say("Done.")]) as sdk:
        made = await ask(sdk, ASKED)
        said = made.choices[0]
        assert (said.message.content, said.finish_reason) == ("One moment.", "tool_calls")
        assert (made.usage.prompt_tokens, made.usage.completion_tokens) == (7, 3)
        named = [call.function for call in said.message.tool_calls]
        assert [(one.name, json.loads(one.arguments)) for one in named] == calls
        given: list[Any] = [
            {"role": "tool", "tool_call_id": call.id, "content": "ok"}
            for call in said.message.tool_calls
        ]
        kept = {
            "role": "assistant",
            "content": said.message.content,
            "tool_calls": [
                {
                    "id": one.id,
                    "type": "function",
                    "function": one.function.model_dump(include={"name", "arguments"}),
                }
                for one in said.message.tool_calls
            ],
        }
        made = await ask(sdk, ASKED, kept, *given)
        assert (made.choices[0].message.content, made.choices[0].finish_reason) == ("Done.", "stop")
        assert [model.id async for model in sdk.models.list()] == ["large"]


@pytest.mark.parametrize(
    ("step", "error", "words"),
    [
        ([Fail(429, "Slow down.", retry_delay="3s")], openai.RateLimitError, "Slow down."),
        ([Fail(401, "Incorrect API key.")], openai.AuthenticationError, "Incorrect API key"),
        ([Say("half"), Fail(500, "Broke.")], openai.APIError, "Broke."),
    ],
    ids=["refused", "wrong key", "in mid-stream"],
)
async def test_the_sdk_reads_errors(step: Step, error: type[Exception], words: str) -> None:
    async with client(step) as sdk:
        with pytest.raises(error, match=words):
            await ask(sdk, ASKED)
