"""Translate what model services answer, and errors of the HTTP client, into `ModelError`s."""

import logging
import re
import ssl
from collections.abc import Collection, Sequence
from typing import Any, Final

import httpx2

from tui.engine.chats.backends.backend import ModelError
from tui.engine.logs.redaction import MIN_SECRET
from tui.engine.mcp.transports.http.http_errors import (
    CERTIFICATE_ADVICE,
    network_error,
    telling_cause,
)
from tui.model.chat import BackendKind
from tui.model.frozen import Frozen
from tui.text import sanitize_line

MAX_MESSAGE: Final = 600
"""Longest service message shown, in characters."""

MAX_RETRY_AFTER: Final = 3_600.0
"""Longest retry delay accepted, in seconds."""

OVERLOAD_WAIT: Final = 2.0
"""Seconds to wait after an overload if the service names no time."""

QUOTA_WAIT: Final = 15.0
"""The same after too many requests."""

KEY_ADVICE: Final = (
    "Enter a key from https://aistudio.google.com/apikey with F9, or set GEMINI_API_KEY to it."
)

GOOGLE: Final = "https://generativelanguage.googleapis.com"

ADDRESS: Final = "the service's address (F9 or GOOGLE_GEMINI_BASE_URL)"
"""How advice names that of Gemini."""

_log: Final = logging.getLogger(__name__)

_WEB_PAGE: Final = re.compile(r"<(?:!doctype|html|\?xml)", re.IGNORECASE)
_DECLARATION_INDEX: Final = re.compile(
    r"(?:function_?declarations\[|tools[\[.](?!.*function_?declarations))(\d{1,5})", re.IGNORECASE
)
_TOO_LONG: Final = re.compile(
    r"token count|maximum number of tokens|payload size|prompt is too long|"
    r"(?:maximum|exceeds the available) context|context (?:length|window|size)"
)
_DECLARATION_NAME: Final = re.compile(
    r"(?:FunctionDeclaration|Function declaration|schema (?:of|for) function|"
    r"Duplicate function declaration found:|function declaration named)\s*['\"`]?"
    r"([A-Za-z_][\w.:-]{0,127})",
    re.IGNORECASE,
)


class BodyTooLongError(httpx2.ReadError):
    """The service sent more than the limit, which the message names."""


class RequestContext(Frozen):
    """What an error message may mention, and what it must not.

    Attributes:
        kind: The service that was asked.
        model: The model that was asked for.
        address: The service's base URL, or an empty string for Google's own.
        idle_timeout: Seconds without data after which a stream is aborted.
        secrets: The key, and whatever else is masked in all messages.
        tools: Names of the declared functions in the order they were sent.
        api: What should answer there, with an article.
        place: How advice names the address.
        key_advice: Which key is needed; empty for Gemini's.
    """

    kind: str
    model: str
    address: str
    idle_timeout: float
    secrets: Collection[str] = ()
    tools: Sequence[str] = ()
    api: str = "a Gemini API"
    place: str = ADDRESS
    key_advice: str = ""

    def clean(self, text: object) -> str:
        """Sanitize a service message and mask what is secret."""
        shown = str(text)
        for secret in self.secrets:
            shown = shown.replace(secret, "[key]") if len(secret) >= MIN_SECRET else shown
        return sanitize_line(shown, MAX_MESSAGE)


def translate(error: Exception, context: RequestContext) -> ModelError:
    """Return the error for a failure, with advice."""
    match error:
        case ModelError():
            return error
        case httpx2.HTTPError():
            return _from_transport(error, context)
        case _:
            return _unreadable(context.clean(error), context)


def wrong_api(context: RequestContext, why: str, part: str) -> ModelError:
    """Return the error for an address at which something else is.

    Args:
        context: Has the address.
        why: What it did when it was asked for its models.
        part: Which part of the address is to be entered.
    """
    where = sanitize_line(context.address, 200) or "Google's address"
    words = f"{where} is not {context.api}: asked for its models, {why}."
    return ModelError(words, advice=f"Correct {context.place}: {part}.")


def _unreadable(text: str, context: RequestContext) -> ModelError:
    """Say that an answer is none; a web page comes from somebody else than the service."""
    if _WEB_PAGE.search(text):
        return _web_page(context, retryable=True)
    _log.warning("an answer could not be read: %s", text)
    words = f"The service's answer could not be read: it is not what {context.api} sends."
    advice = f"Try again, or correct {context.place}. The log has details."
    return ModelError(words, advice=advice, retryable=True)


def _web_page(
    context: RequestContext, *, retryable: bool, retry_after: float | None = None
) -> ModelError:
    words = "A web page came instead of an answer."
    advice = f"Sign in to the network, or look at the proxy and at {context.place}."
    return ModelError(words, advice=advice, retryable=retryable, retry_after=retry_after)


class Refusal(Frozen):
    """What a service answered in place of what it was asked for.

    Attributes:
        code: The HTTP status.
        message: The service's message, sanitized.
        raw: The service's message as received, for lookups.
        reasons: Its words for the reason.
        quotas: Ids of violated quotas.
        retry_after: Seconds to wait, or None.
    """

    code: int
    message: str
    raw: str
    reasons: frozenset[str] = frozenset()
    quotas: tuple[str, ...] = ()
    retry_after: float | None = None

    def told(self, words: str, advice: str = "", **more: Any) -> ModelError:  # noqa: ANN401 - of the error
        """Return the error for it: our words, with the service's behind them."""
        return ModelError(words, details=self.message, advice=advice, **more)


def seconds(value: object) -> float | None:
    """Read ``"34.4s"``, ``"430ms"`` or ``"7"`` as seconds."""
    found = re.fullmatch(r"\s*([0-9]{1,7}(?:\.[0-9]{1,9})?)\.?\s*(ms|s)?\s*", str(value or ""))
    if found is None:
        return None
    return min(float(found[1]) / (1_000 if found[2] == "ms" else 1), MAX_RETRY_AFTER)


def from_status(error: Refusal, context: RequestContext) -> ModelError:
    """Return the error for a refusal, with advice."""
    match error.code:
        case code if 300 <= code < 400:
            words = f"The service redirects to another address (HTTP {code}), which is not followed"
            why = "because the key would be sent there"
            return ModelError(f"{words} {why}.", advice=f"Correct {context.place}.")
        case code if _WEB_PAGE.match(error.raw.lstrip()):
            return _web_page(context, retryable=code >= 500, retry_after=error.retry_after)
        case 400 | 422:
            return _from_bad_request(error, context)
        case 401 | 403:
            return _from_refusal(error, context)
        case 404:
            advice = "Choose another model with /model or --model, or in the settings."
            return error.told(f"The model {sanitize_line(context.model, 80)} was not found", advice)
        case 413:
            return _too_long(error)
        case 429:
            return _from_quota(error)
        case code if code == 408 or code >= 500:
            words = f"The service is overloaded or failing (HTTP {code})"
            advice = "Try again in a moment, or choose another model with /model or --model."
            wait = OVERLOAD_WAIT if error.retry_after is None else error.retry_after
            return error.told(words, advice, retryable=True, retry_after=wait)
        case code:
            return error.told(f"The service refused the request (HTTP {code})")


def _from_bad_request(error: Refusal, context: RequestContext) -> ModelError:
    text = error.raw.lower()
    if "API_KEY_INVALID" in error.reasons or "api key" in text:
        return error.told("The API key was not accepted", _key_advice(context))
    if tool := _refused_tool(error.raw, context.tools):
        words = f"The service refused the tool {sanitize_line(tool, 80)}"
        advice = "The service does not accept the tool's description or schema."
        return error.told(words, advice, refused_tool=tool)
    if "content_filter" in text or "content_filter" in error.reasons:
        advice = "Rephrase the message, or choose another model with /model or --model."
        return error.told("The service refused the message", advice)
    if "too many states" in text:
        advice = "Offer fewer tools: use includeTools or excludeTools, or disable a server."
        return error.told("The tools' schemas are too complex for the service", advice)
    if _TOO_LONG.search(text) or "context_length_exceeded" in error.reasons:
        return _too_long(error)
    advice = "If it happens again, start a new conversation."
    return error.told("The service refused the request", advice, refused_content=error.raw)


def _refused_tool(text: str, tools: Sequence[str]) -> str:
    """Return the name of the declared tool that an error is about, or an empty string."""
    if found := _DECLARATION_INDEX.search(text):
        index = int(found[1])
        return tools[index] if index < len(tools) else ""
    found = _DECLARATION_NAME.search(text)
    return found[1] if found and found[1] in tools else ""


def _too_long(error: Refusal) -> ModelError:
    return error.told("The conversation is too long for the model", "Start a new conversation.")


def _key_advice(context: RequestContext) -> str:
    """Say which key is needed: Google's, or that of another address."""
    here = "Enter another key for this address with F9, or set GEMINI_API_KEY to it."
    return context.key_advice or (here if context.address else KEY_ADVICE)


def _from_refusal(error: Refusal, context: RequestContext) -> ModelError:
    if context.kind == BackendKind.VERTEX:
        advice = "Check the project, its Vertex AI API and the roles of your credentials."
        return error.told(f"Vertex refused access (HTTP {error.code})", advice)
    words = f"The key has no access to this service or model (HTTP {error.code})"
    return error.told(words, _key_advice(context))


def _from_quota(error: Refusal) -> ModelError:
    if "insufficient_quota" in error.reasons:
        return error.told("The key's quota is used up", "See the service's page on billing.")
    if any("PerDay" in quota for quota in error.quotas):
        advice = "Choose another model (/model or --model), or a key of a project with billing."
        return ModelError("The quota for today is used up.", advice=advice)
    wait = error.retry_after
    when = f"in {wait:.0f} s" if wait is not None and wait >= 1 else "in a moment"
    again = {"retryable": True, "retry_after": QUOTA_WAIT if wait is None else wait}
    return error.told("Too many requests for the key's quota", f"Try again {when}.", **again)


def _from_transport(error: httpx2.HTTPError, context: RequestContext) -> ModelError:
    where = sanitize_line(context.address, 200) or "Google"
    match error:
        case BodyTooLongError():
            return ModelError(f"The answer was cut off: {error}.", advice="Ask for a shorter one.")
        case httpx2.DecodingError():
            words = f"{where} sends a compressed answer ({error}) although it was asked not to."
            return ModelError(words, advice=f"Correct its gateway, or {context.place}.")
        case httpx2.ReadTimeout():
            words = f"The model sent nothing for {context.idle_timeout:.0f} s."
            return ModelError(words, advice="Send the message again.", retryable=True)
    failure = network_error(error, httpx2.URL(context.address or GOOGLE)).error
    is_untrusted = isinstance(telling_cause(error), ssl.SSLCertVerificationError)
    check = f"Check the network, the proxy and {context.place}, then try again."
    advice, retryable = CERTIFICATE_ADVICE if is_untrusted else check, not failure.permanent
    return ModelError(f"{where} {failure.reason}.", advice=advice, retryable=retryable)
