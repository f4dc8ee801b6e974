"""What the end of a streamed step means: done, to be tried again, or an error."""

from enum import Enum, auto
from typing import Final

from tui.engine.chat.backend import ModelError
from tui.text import sanitize_line


class Finish(Enum):
    """How a step ended that is no error."""

    DONE = auto()
    MALFORMED_CALL = auto()


_REASONS: Final = {
    "SAFETY": "the service's safety filters stopped it",
    "RECITATION": "it came too close to existing text",
    "LANGUAGE": "it is in a language the model does not support",
    "BLOCKLIST": "it contains a term on the service's block list",
    "PROHIBITED_CONTENT": "the service prohibits such content",
    "SPII": "it contains sensitive personal data",
    "MODEL_ARMOR": "Model Armor stopped it",
    "TOO_MANY_TOOL_CALLS": "the model called too many tools one after the other",
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
    """Judge a step whose stream has ended without a transport error.

    Args:
        finish_reason: Gemini's ``finishReason``, or nothing if none came.
        finish_message: The service's words on it.
        block_reason: Why the prompt was refused, where it was.
        any_chunk: Whether anything arrived.
        any_content: Whether there is text, a call or other content beside thoughts.

    Raises:
        ModelError: If there is no whole answer to go on with.
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
            raise _broken_off()
        case "STOP" | "UNEXPECTED_TOOL_CALL" if any_content:
            return Finish.DONE
        case "STOP":
            raise _empty()
        case "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL":
            return Finish.MALFORMED_CALL
        case "MAX_TOKENS":
            raise ModelError(
                "The answer was cut: it reached the longest output the model can give.",
                advice="Ask the model to go on, or for less at once.",
            )
        case _:
            words = sanitize_line(finish_message, 300)
            why = _REASONS.get(finish_reason) or words or "the service gives no reason"
            raise ModelError(
                f"The answer was stopped ({sanitize_line(finish_reason, 60)}): {why}.",
                advice=_REPHRASE,
            )


def malformed_call(finish_message: str) -> ModelError:
    """Give the error for a model that goes on writing calls nobody can read."""
    words = sanitize_line(finish_message, 300)
    return ModelError(
        "The model wrote a tool call that cannot be read" + (f": {words}" if words else "."),
        advice="Send the message again, or choose another model with --model.",
        retryable=True,
    )


def _broken_off() -> ModelError:
    return ModelError(
        "The answer broke off: the stream ended without its last piece.",
        advice="Send the message again.",
        retryable=True,
    )


def _empty() -> ModelError:
    return ModelError(
        "The model sent an empty answer.", advice="Send the message again.", retryable=True
    )
