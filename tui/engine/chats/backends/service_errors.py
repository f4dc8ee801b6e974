"""Translate exceptions of google-genai and its HTTP client into `ModelError` with advice."""

import logging
import re
import ssl
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import google.auth.exceptions
import httpx2
from google.genai import errors as genai_errors

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

OVERLOAD_WAIT: Final = 2.0
"""Seconds to wait after an overload if the service names no time."""

QUOTA_WAIT: Final = 15.0
"""The same after too many requests."""

KEY_ADVICE: Final = (
    "Enter a key from https://aistudio.google.com/apikey with F9, or set GEMINI_API_KEY to it."
)

_OTHER_KEY: Final = "Enter another key for this address with F9, or set GEMINI_API_KEY to it."

GOOGLE: Final = "https://generativelanguage.googleapis.com"

ADDRESS: Final = "the service's address (F9 or GOOGLE_GEMINI_BASE_URL)"
"""How advice names it."""

_ANOTHER: Final = "Choose another model with /model or --model if that does not help."
_log: Final = logging.getLogger(__name__)

_WEB_PAGE: Final = re.compile(r"<(?:!doctype|html|\?xml)", re.IGNORECASE)
_NO_SUCH_PATH: Final = {404, 405, 501}
_AMOUNT: Final = r"(\d{1,7}(?:\.\d{1,9})?)\s*(ms|[dhms])[a-z]*\s*"
_AGAIN: Final = re.compile(
    rf"(?:retry|again|resets?|wait) (?:(?:in|after|for) )?((?:{_AMOUNT}){{1,4}})", re.IGNORECASE
)
_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DECLARATION_INDEX: Final = re.compile(r"function_?declarations\[(\d{1,5})\]", re.IGNORECASE)
_DECLARATION_NAME: Final = re.compile(
    r"(?:FunctionDeclaration|Function declaration|schema of function|"
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
        secret: The key, which is masked in all messages.
        tools: Names of the declared functions in the order they were sent.
        proxy: The proxy on the way, and the variable that names it, or an empty string.
    """

    kind: BackendKind
    model: str
    address: str
    idle_timeout: float
    secret: str = ""
    tools: Sequence[str] = ()
    proxy: str = ""

    def clean(self, text: object) -> str:
        """Sanitize a service message and mask the key."""
        is_secret = len(self.secret) >= MIN_SECRET
        shown = str(text).replace(self.secret, "[key]") if is_secret else str(text)
        return sanitize_line(shown, MAX_MESSAGE)


def translate(error: Exception, context: RequestContext) -> ModelError:
    """Return the error for a failure, with advice."""
    match error:
        case ModelError():
            return error
        case genai_errors.APIError():
            return _from_status(_ServiceError.read(error, context), context)
        case httpx2.HTTPError():
            return _from_transport(error, context)
        case google.auth.exceptions.GoogleAuthError():
            words = "Google's credentials could not be used"
            advice = "Run: gcloud auth application-default login"
            return ModelError(words, details=context.clean(error), advice=advice)
        case _:
            return _unreadable(context.clean(error))


def translate_check(error: Exception, context: RequestContext) -> ModelError:
    """Return the error for a service that did not list its models."""
    if isinstance(error, genai_errors.APIError) and error.code in _NO_SUCH_PATH:
        return not_gemini(context, f"it answered with HTTP {error.code}")
    return translate(error, context)


def stream_error(told: object) -> genai_errors.APIError:
    """Return the error that a service tells within a stream, as one or in words alone."""
    error = dict(told) if isinstance(told, Mapping) else {"message": str(told)}
    code = error.get("code")
    error["code"] = code if isinstance(code, int) and 400 <= code < 600 else 0
    return genai_errors.APIError(0, {"error": error})


def not_gemini(context: RequestContext, why: str) -> ModelError:
    """Return the error for an address at which something else is."""
    where = sanitize_line(context.address, 200) or "Google's address"
    words = f"{where} is not a Gemini API: asked for its models, {why}."
    return ModelError(words, advice=f"Correct {ADDRESS}: the part before /v1beta/models.")


def _unreadable(text: str) -> ModelError:
    """Say that an answer is none; a web page comes from somebody else than the service."""
    if _WEB_PAGE.search(text):
        return _web_page(retryable=True)
    _log.warning("an answer could not be read: %s", text)
    words = "The service's answer could not be read: it is not what a Gemini API sends."
    advice = f"Try again, or correct {ADDRESS}. The log has details."
    return ModelError(words, advice=advice, retryable=True)


def _web_page(*, retryable: bool, retry_after: float | None = None) -> ModelError:
    words = "A web page came instead of an answer."
    advice = f"Sign in to the network, or look at the proxy and at {ADDRESS}."
    return ModelError(words, advice=advice, retryable=retryable, retry_after=retry_after)


class _ServiceError(Frozen):
    """A parsed error response of the service.

    Attributes:
        code: The HTTP status.
        message: The service's message, sanitized.
        raw: The same as received, with the reasons and the quotas of its details, for lookups.
        retry_after: Seconds to wait, or None.
    """

    code: int
    message: str
    raw: str
    retry_after: float | None

    @classmethod
    def read(cls, error: genai_errors.APIError, context: RequestContext) -> "_ServiceError":
        raw = str(error.message or error.status or "")
        details = _details(error.details)
        named = [one for detail in details for one in (detail, *_objects(detail.get("violations")))]
        keys = ("reason", "quotaId")
        told, headers = _AGAIN.search(raw), getattr(error.response, "headers", {})
        delays = [*(detail.get("retryDelay") for detail in details), told and told[1]]
        delays.append(headers.get("retry-after"))
        return cls(
            code=error.code,
            message=context.clean(raw),
            raw=" ".join(
                [raw, *(str(one.get(key)) for one in named for key in keys if key in one)]
            ),
            retry_after=next((one for one in map(_seconds, delays) if one is not None), None),
        )

    def told(self, words: str, advice: str = "", **more: Any) -> ModelError:  # noqa: ANN401 - of the error
        """Return the error for it: our words, with the service's behind them."""
        return ModelError(words, details=self.message, advice=advice, **more)


def _details(body: object) -> list[Mapping[str, Any]]:
    """Return the ``error.details`` objects of a response, whatever its wrapping."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            return _objects(inner.get("details"))
    return []


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _seconds(value: object) -> float | None:
    """Read ``"34.4s"``, ``"430ms"``, ``"12h34m16s"``, ``"5 minutes"``, ``"7"`` or a date."""
    text = str(value or "").strip().rstrip(".").lower()
    text += "s" if text[-1:].isdecimal() else ""
    if not re.fullmatch(rf"(?:{_AMOUNT}){{1,4}}", text):
        with suppress(ValueError, TypeError, OverflowError):
            left = parsedate_to_datetime(str(value)) - datetime.now(UTC)
            return max(left.total_seconds(), 0.0)
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_AMOUNT, text))


def _when(seconds: float | None) -> str:
    """Say when to try again."""
    if seconds is None or seconds < 1:
        return "later" if seconds is None else "in a moment"
    hours, minutes = divmod(round(seconds / 60), 60)
    if seconds < 120:
        return f"in {seconds:.0f} s"
    return f"in {hours} h {minutes} min" if hours else f"in {minutes} min"


def _from_status(error: _ServiceError, context: RequestContext) -> ModelError:
    match error.code:
        case 0:
            words = "The service broke off the answer"
            return error.told(words, "Send the message again.", retryable=True)
        case code if 300 <= code < 400:
            words = f"The service redirects to another address (HTTP {code}), which is not followed"
            why = "because the key would be sent there"
            return ModelError(f"{words} {why}.", advice=f"Correct {ADDRESS}.")
        case code if _WEB_PAGE.match(error.raw.lstrip()):
            return _web_page(retryable=code >= 500, retry_after=error.retry_after)
        case 400 | 401 | 403 | 404 | 413 | 429 if known := _known_refusal(error, context):
            return known
        case 400:
            advice = "If it happens again, start a new conversation."
            words = "The service refused the request"
            return error.told(words, advice, refused_content=error.raw)
        case 429 if "no capacity" not in error.raw.lower():
            return _from_quota(error)
        case code if code in {408, 429} or code >= 500:
            words = f"The service is overloaded or failing (HTTP {code})"
            advice = f"Try again {_when(error.retry_after)}. {_ANOTHER}"
            wait = OVERLOAD_WAIT if error.retry_after is None else error.retry_after
            return error.told(words, advice, retryable=True, retry_after=wait)
        case code:
            return error.told(f"The service refused the request (HTTP {code})")


def _known_refusal(error: _ServiceError, context: RequestContext) -> ModelError | None:
    """Return the error for a refusal whose words are known."""
    if tool := _refused_tool(error.raw, context.tools):
        words = f"The service refused the tool {sanitize_line(tool, 80)}"
        advice = "The service does not accept the tool's description or schema."
        return error.told(words, advice, refused_tool=tool)
    told = f"{error.code} {error.raw}"
    for row in known_refusals():
        is_here = row.get("service", context.kind) == context.kind
        if is_here and re.search(row["words"], told, re.IGNORECASE | re.DOTALL):
            model = sanitize_line(context.model, 80)
            says = row["says"].format(model=model, status=error.code)
            advice = row.get("advice") or (_OTHER_KEY if context.address else KEY_ADVICE)
            return error.told(says, advice, lacks=row.get("lacks", ""))
    return None


@cache
def known_refusals() -> Sequence[Mapping[str, Any]]:
    """Return the rows of ``refusals.toml``, which says what they hold."""
    text = Path(__file__).with_name("refusals.toml").read_text("utf-8")
    rows: Sequence[Mapping[str, Any]] = tomllib.loads(text)["refusal"]
    return rows


def _refused_tool(text: str, tools: Sequence[str]) -> str:
    """Return the name of the declared tool that an error is about, or an empty string."""
    if found := _DECLARATION_INDEX.search(text):
        index = int(found[1])
        return tools[index] if index < len(tools) else ""
    found = _DECLARATION_NAME.search(text)
    return found[1] if found and found[1] in tools else ""


def _from_quota(error: _ServiceError) -> ModelError:
    wait = error.retry_after
    again = {"retryable": True, "retry_after": QUOTA_WAIT if wait is None else wait}
    return error.told("Too many requests for the key's quota", f"Try again {_when(wait)}.", **again)


def _from_transport(error: httpx2.HTTPError, context: RequestContext) -> ModelError:
    where = sanitize_line(context.address, 200) or "Google"
    match error:
        case BodyTooLongError():
            return ModelError(f"The answer was cut off: {error}.", advice="Ask for a shorter one.")
        case httpx2.DecodingError():
            words = f"{where} sends a compressed answer ({error}) although it was asked not to."
            return ModelError(words, advice=f"Correct its gateway, or {ADDRESS}.")
        case httpx2.ReadTimeout():
            words = f"The model sent nothing for {context.idle_timeout:.0f} s."
            return ModelError(words, advice="Send the message again.", retryable=True)
        case httpx2.ProxyError():
            return _from_proxy(f"refused ({context.clean(error)})", where, context)
    failure = network_error(error, httpx2.URL(context.address or GOOGLE)).error
    is_connecting = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
    if context.proxy and is_connecting and not isinstance(telling_cause(error), ssl.SSLError):
        return _from_proxy("does not answer", where, context)
    is_untrusted = isinstance(telling_cause(error), ssl.SSLCertVerificationError)
    check = f"Check the network, the proxy and {ADDRESS}, then try again."
    advice, retryable = CERTIFICATE_ADVICE if is_untrusted else check, not failure.permanent
    return ModelError(f"{where} {failure.reason}.", advice=advice, retryable=retryable)


def _from_proxy(what: str, where: str, context: RequestContext) -> ModelError:
    words = f"{where} could not be reached: the proxy {context.proxy} {what}."
    advice = "Correct or unset that variable, or put the service's host into NO_PROXY."
    return ModelError(words, advice=advice, retryable=True)
