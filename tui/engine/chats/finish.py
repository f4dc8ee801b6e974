"""Decide whether a finished step is complete, should be retried, or failed."""

from enum import Enum, auto
from typing import Final

from tui.engine.chats.backends.backend import ModelError
from tui.text import sanitize_line


class Finish(Enum):
    """How a step ended without an error."""

    DONE = auto()
    MALFORMED_CALL = auto()


_REASONS: Final = {
    "SAFETY": "the service's safety filters stopped it",
    "RECITATION": "it is too similar to existing text",
    "LANGUAGE": "it is in a language the model does not support",
    "BLOCKLIST": "it contains a term on the service's block list",
    "PROHIBITED_CONTENT": "it contains prohibited content",
    "SPII": "it contains sensitive personal data",
    "MODEL_ARMOR": "Model Armor stopped it",
    "TOO_MANY_TOOL_CALLS": "the model called too many tools in a row",
    "MISSING_THOUGHT_SIGNATURE": "the conversation lacks a thought signature",
}

_REPHRASE: Final = "Rephrase the message, or choose another model with --model."


def judge_finish(
    *,
    finish_reason: str,
    finish_message: str,
    block_reason: str,
    any_chunk: bool,
    any_content: bool,
) -> Finish:
    """Evaluate a step whose stream ended without a transport error.

    Args:
        finish_reason: Gemini's ``finishReason``, or an empty string if there was none.
        finish_message: The service's explanation.
        block_reason: Why the prompt was refused, or an empty string.
        any_chunk: Whether anything arrived.
        any_content: Whether there is text, a call or other content besides thoughts.

    Raises:
        ModelError: If there is no complete answer.
    """
    if block_reason:
        raise ModelError(
            f"The service refused the message ({sanitize_line(block_reason, 60)}).",
            advice=_REPHRASE,
        )
    match finish_reason:
        case "" if not any_chunk:
            raise _empty()
        case "":
            raise _incomplete()
        case "STOP" | "UNEXPECTED_TOOL_CALL" if any_content:
            return Finish.DONE
        case "STOP":
            raise _empty()
        case "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL":
            return Finish.MALFORMED_CALL
        case "MAX_TOKENS":
            raise ModelError(
                "The answer was cut off: it reached the model's output limit.",
                advice="Ask the model to continue, or ask for a shorter answer.",
            )
        case _:
            message = sanitize_line(finish_message, 300)
            why = _REASONS.get(finish_reason) or message or "the service gave no reason"
            raise ModelError(
                f"The answer was stopped ({sanitize_line(finish_reason, 60)}): {why}.",
                advice=_REPHRASE,
            )


def malformed_call(finish_message: str) -> ModelError:
    """Return the error for a model that keeps sending malformed calls."""
    message = sanitize_line(finish_message, 300)
    return ModelError(
        "The model sent a malformed tool call" + (f": {message}" if message else "."),
        advice="Send the message again, or choose another model with --model.",
        retryable=True,
    )


def _incomplete() -> ModelError:
    return ModelError(
        "The answer is incomplete: the stream ended early.",
        advice="Send the message again.",
        retryable=True,
    )


def _empty() -> ModelError:
    return ModelError(
        "The model sent an empty answer.", advice="Send the message again.", retryable=True
    )
