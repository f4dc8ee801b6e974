"""Translate what model services answer, and errors of the HTTP client, into `ModelError`s."""

import logging
import re
import ssl
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx2

from tui.engine.chats.backends.backend import ModelError
from tui.engine.logs.redaction import MIN_SECRET
from tui.engine.mcp.transports.http.http_errors import (
    CERTIFICATE_ADVICE,
    network_error,
    telling_cause,
)
from tui.model.frozen import Frozen
from tui.model.wire.refusals import AMOUNT, wait_in
from tui.text import sanitize_line

MAX_MESSAGE: Final = 600
"""Longest service message shown, in characters."""

MAX_RAW: Final = 4_000
"""Most characters of a message in which words are looked for: it can take the square of them."""

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
"""How advice names that of Gemini."""

_ANOTHER: Final = "Choose another model with /model or --model if that does not help."
Clean = Callable[[object], str]

_log: Final = logging.getLogger(__name__)

_WEB_PAGE: Final = re.compile(r"<(?:!doctype|html|\?xml)", re.IGNORECASE)
_AGAIN: Final = re.compile(
    rf"(?:retry|again|resets?|wait) (?:(?:in|after|for) )?((?:{AMOUNT}){{1,4}})", re.IGNORECASE
)
_DECLARATION_INDEX: Final = re.compile(
    r"(?:function_?declarations\[|tools[\[.](?!.*function_?declarations))(\d{1,5})", re.IGNORECASE
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
        proxy: The proxy on the way, and the variable that names it, or an empty string.
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
    proxy: str = ""
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
        case _ if _WEB_PAGE.search(text := context.clean(error)):  # of somebody else
            return _web_page(context, retryable=True)
        case _:
            _log.warning("an answer could not be read: %s", text)
            words = f"The service's answer could not be read: it is not what {context.api} sends."
            advice = f"Try again, or correct {context.place}. The log has details."
            return ModelError(words, advice=advice, retryable=True)


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


def _web_page(
    context: RequestContext, *, retryable: bool, retry_after: float | None = None
) -> ModelError:
    words = "The service sent a web page instead of an answer."
    advice = f"Sign in to the network, or check the proxy and {context.place}."
    return ModelError(words, advice=advice, retryable=retryable, retry_after=retry_after)


class Refusal(Frozen):
    """What a service answered in place of what it was asked for.

    Attributes:
        code: The HTTP status; 0 in mid-stream.
        message: The service's message, sanitized.
        raw: Its beginning as received, with what else it says of the reason, for lookups.
        retry_after: Seconds to wait, or None.
    """

    code: int
    message: str
    raw: str
    retry_after: float | None = None

    @classmethod
    def read(
        cls, code: int, said: str, reasons: Sequence[str], waits: Sequence[object], clean: Clean
    ) -> "Refusal":
        """Read a refusal.

        Args:
            code: See above.
            said: The service's message.
            reasons: What else it says of the reason.
            waits: How long to wait, in whatever form, what counts first.
            clean: Sanitizes the message.
        """
        raw = " ".join([said[:MAX_RAW], *reasons])[: 2 * MAX_RAW]
        told = _AGAIN.search(raw)
        delays = map(wait_in, (*waits, told and told[1]))
        return cls(code, clean(said), raw, next((one for one in delays if one is not None), None))

    def told(self, words: str, advice: str = "", **more: Any) -> ModelError:  # noqa: ANN401 - of the error
        """Return the error for it: our words, with the service's behind them."""
        return ModelError(words, details=self.message, advice=advice, **more)


def _when(seconds: float | None) -> str:
    """Say when to try again."""
    if seconds is None or seconds < 1:
        return "later" if seconds is None else "in a moment"
    hours, minutes = divmod(round(seconds / 60), 60)
    if seconds < 120:
        return f"in {seconds:.0f} s"
    return f"in {hours} h {minutes} min" if hours else f"in {minutes} min"


def from_status(error: Refusal, context: RequestContext) -> ModelError:
    """Return the error for a refusal, with advice."""
    match error.code:
        case 0 if (known := _known_refusal(error, context)) and not known.refused_tool:
            return known
        case 0 if (known := _known_refusal(replace(error, code=400), context)) and known.lacks:
            return known
        case 0:
            words = "The service aborted the answer"
            return error.told(words, "Send the message again.", retryable=True)
        case code if 300 <= code < 400:
            words = f"The service redirects to another address (HTTP {code}), which is not followed"
            why = "because the key would be sent there"
            return ModelError(f"{words} {why}.", advice=f"Correct {context.place}.")
        case code if _WEB_PAGE.match(error.raw.lstrip()):
            return _web_page(context, retryable=code >= 500, retry_after=error.retry_after)
        case 400 | 401 | 402 | 403 | 404 | 413 | 422 | 429 if known := _known_refusal(
            error, context
        ):
            return known
        case 400 | 422:
            advice = "If it happens again, start a new conversation."
            words = "The service refused the request"
            return error.told(words, advice, refused_content=error.raw)
        case 429 if "no capacity" not in error.raw.lower():
            wait = error.retry_after
            again = {"retryable": True, "retry_after": QUOTA_WAIT if wait is None else wait}
            words = "Too many requests for the key's quota"
            return error.told(words, f"Try again {_when(wait)}.", **again)
        case code if code in {408, 429} or code >= 500:
            words = f"The service is overloaded or failing (HTTP {code})"
            advice = f"Try again {_when(error.retry_after)}. {_ANOTHER}"
            wait = OVERLOAD_WAIT if error.retry_after is None else error.retry_after
            return error.told(words, advice, retryable=True, retry_after=wait)
        case code:
            return error.told(f"The service refused the request (HTTP {code})")


def _known_refusal(error: Refusal, context: RequestContext) -> ModelError | None:
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
            key = context.key_advice or (_OTHER_KEY if context.address else KEY_ADVICE)
            advice = row.get("advice") or key
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
        case httpx2.ProxyError():
            return _from_proxy(f"refused ({context.clean(error)})", where, context)
    failure = network_error(error, httpx2.URL(context.address or GOOGLE)).error
    is_connecting = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
    if context.proxy and is_connecting and not isinstance(telling_cause(error), ssl.SSLError):
        return _from_proxy("does not respond", where, context)
    is_untrusted = isinstance(telling_cause(error), ssl.SSLCertVerificationError)
    check = f"Check the network, the proxy and {context.place}, then try again."
    advice, retryable = CERTIFICATE_ADVICE if is_untrusted else check, not failure.permanent
    return ModelError(f"{where} {failure.reason}.", advice=advice, retryable=retryable)


def _from_proxy(what: str, where: str, context: RequestContext) -> ModelError:
    words = f"{where} could not be reached: the proxy {context.proxy} {what}."
    advice = "Correct or unset that variable, or add the service's host to NO_PROXY."
    return ModelError(words, advice=advice, retryable=True)
