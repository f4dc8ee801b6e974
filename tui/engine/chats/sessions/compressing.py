"""Let the model summarise a conversation, so that the summary takes the place of its history."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from tui.engine.bus import Publish
from tui.engine.chats.backends.backend import ModelBackend, ModelError, ModelRequest, WireContent
from tui.engine.chats.generation import counting
from tui.engine.chats.step import ModelStep
from tui.model.chat import EntryId

SUMMARY_TIMEOUT: Final = 300.0
"""Seconds that the model gets."""

ASK: Final = (
    "Summarise this conversation, so that you can go on with it from the summary alone. Keep what "
    "the user wants, every decision, name, number, path and open question, and what tools were "
    "called for with what result. Leave out courtesies and dead ends. Write only the summary."
)
_BEFORE: Final = "This is a summary of our conversation so far:\n\n"
_AGREED: Final = "I will go on from this summary."


async def summarised(
    backend: ModelBackend, contents: Sequence[WireContent], publish: Publish
) -> list[dict[str, Any]]:
    """Return a short history in place of a long one; the tokens that it took are published.

    Raises:
        ModelError: If the model cannot, or says nothing.
        TimeoutError: If it takes too long.
    """
    ask = {"role": "user", "parts": [{"text": ASK}]}
    step = ModelStep(counting(publish), lambda: EntryId(""), lambda: None)
    async with asyncio.timeout(SUMMARY_TIMEOUT):
        await step.run(backend, ModelRequest([*contents, ask], ()))
    text = "".join(part["text"] for part in step.gathered.parts if "text" in part)
    if not text.strip():
        raise ModelError("The model gave no summary.", advice="Try again.")
    return [
        {"role": "user", "parts": [{"text": _BEFORE + text}]},
        {"role": "model", "parts": [{"text": _AGREED}]},
    ]
