"""Value types of ``settings.json``: validation and coercion."""

import math
import re
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from tui.model.servers import Transport
from tui.model.settings_rules import check_model_name

MAX_ITEMS: Final = 4_096
"""Most items of a list, or variables or headers of a server."""

MAX_URL: Final = 8_192
"""Longest address, in characters."""

MAX_CONTEXT_NAMES: Final = 20
"""Most names in `context.fileName`."""

MAX_PRICE: Final = 1_000_000
"""Highest price of a million tokens."""

MAX_PATTERNS: Final = 1_000
"""Most names in a list, or rules in `alwaysAllow` or `alwaysDeny`."""

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")  # RFC 9110, 5.6.2: token
STREAMABLE_HTTP: Final = frozenset({"streamable-http", "streamableHttp", "streamable_http"})
"""Other clients' names for the transport ``http``."""


def _flag(value: object) -> object:
    """Accept booleans, ``"true"`` and ``"false"``."""
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _number(value: object) -> object:
    """Refuse booleans; text such as ``"5000"`` is parsed later."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _word(value: object) -> object:
    """Convert a number or boolean to text, for arguments and environment variables."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return f"{value:.15g}"
    return value


def _words(value: object) -> object:
    """Accept a string as a list with one item."""
    return [value] if isinstance(value, str) else value


def _few(value: object) -> object:
    """Refuse a huge collection before its items are validated."""
    if isinstance(value, list | dict) and len(value) > MAX_ITEMS:
        raise ValueError(f"must not have more than {MAX_ITEMS} items")
    return value


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    return value


def _transport(value: object) -> object:
    return Transport.HTTP if isinstance(value, str) and value in STREAMABLE_HTTP else value


def _variables(value: dict[str, str]) -> dict[str, str]:
    if any(not name or "=" in name or "\0" in name for name in value):
        raise ValueError("a variable's name must not be empty or contain '=' or NUL")
    return value


def _headers(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError("a header's name must consist of letters, digits and hyphens")
        if not text.isascii() or any(character in text for character in "\r\n\0"):
            raise ValueError("a header's value must be one line of ASCII text")
    return {name: text.strip() for name, text in value.items()}


def _web_address(value: str) -> str:
    advice = "must be an address such as https://example.com/mcp"
    if len(value) > MAX_URL or any(not character.isprintable() for character in value):
        raise ValueError(advice)
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(character.isspace() for character in value):
        raise ValueError(advice)
    return value


def _whole_path(value: str) -> str:
    if not value.startswith(("/", "~/")):
        raise ValueError("must be a whole path, which begins with / or ~/")
    return value


def _context_name(value: str) -> str:
    is_below = ".." not in value.split("/") and not value.startswith(("/", "~"))
    if not is_below or value in {"", "."} or any(mark in value for mark in "\\\0"):
        raise ValueError("must be the name of a file, or its path below a folder")
    return value


Flag = Annotated[bool, BeforeValidator(_flag)]
Word = Annotated[str, BeforeValidator(_word), AfterValidator(_without_nul)]
WholePath = Annotated[Word, AfterValidator(_whole_path)]
Words = Annotated[tuple[Word, ...], BeforeValidator(_few), BeforeValidator(_words)]
Names = Annotated[
    tuple[Word, ...], Field(max_length=MAX_PATTERNS), BeforeValidator(_few), BeforeValidator(_words)
]
NamePattern = Annotated[str, Field(min_length=1, max_length=200)]
Variables = Annotated[dict[str, Word], BeforeValidator(_few), AfterValidator(_variables)]
Headers = Annotated[dict[str, Word], BeforeValidator(_few), AfterValidator(_headers)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
Number = Annotated[float, BeforeValidator(_number)]
Price = Annotated[float, Field(ge=0, le=MAX_PRICE), BeforeValidator(_number)]
WholeNumber = Annotated[int, BeforeValidator(_number)]
NamedTransport = Annotated[Transport, BeforeValidator(_transport)]
ContextName = Annotated[str, AfterValidator(_context_name)]
ContextNames = Annotated[
    tuple[ContextName, ...], Field(max_length=MAX_CONTEXT_NAMES), BeforeValidator(_words)
]
ModelName = Annotated[str, AfterValidator(check_model_name)]


class Section(BaseModel):
    """One object of the settings: camelCase keys, frozen; unknown keys are left out."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:  # noqa: ANN401  (pydantic: anything can come)
        """Treat null as a missing key."""
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}
