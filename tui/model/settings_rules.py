"""Rules and defaults of settings, for modules that must not load the schema."""

import math
import re
from typing import Final
from urllib.parse import urlsplit

from tui.model.servers import Transport

DEFAULT_RESULT_SIZE: Final = 50_000
"""Default for the characters of one tool result that the model gets."""

MAX_WAIT: Final = 600
"""Largest value of `waitForServers`, in seconds."""

MAX_PRICE: Final = 1_000_000
"""Highest price of a million tokens, and highest `maxCost`."""

MAX_KEY: Final = 4_096
"""Longest API key, in characters."""

DEFAULT_MAX_TOOLS: Final = 128
"""Default for the number of tools that the model holds at once."""

DEFAULT_TOOL_SHARE: Final = 5.0
"""Default for what these may take of the model's context, in percent."""

ANY: Final = "*"
"""Stands for any characters, also none."""

_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}")


MAX_ITEMS: Final = 4_096
"""Most items of a list, or variables or headers of a server."""

MAX_URL: Final = 8_192
"""Longest address, in characters."""

HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")  # RFC 9110, 5.6.2: token
"""The name of an HTTP header."""

STREAMABLE_HTTP: Final = frozenset({"streamable-http", "streamableHttp", "streamable_http"})
"""Other clients' names for the transport ``http``."""

_SERVICE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")

_ROOTS: Final = frozenset({"models", "publishers", "projects", "tunedmodels"})
"""With these, names of Gemini's models begin."""


def check_service_name(name: str) -> str:
    """Return the name of a service if names of models can begin with it.

    Raises:
        ValueError: If they cannot.
    """
    if not _SERVICE_NAME.fullmatch(name) or name.lower() in _ROOTS:
        raise ValueError("must be a single word that no Gemini model name starts with")
    return name


def check_model_name(name: str) -> str:
    """Return the name of a model if it is safe in a request path.

    Raises:
        ValueError: If it is not.
    """
    if not _MODEL_NAME.fullmatch(name) or ".." in name or "//" in name:
        raise ValueError("must be the name of a model, such as gemini-3.8-flash")
    return name


def matches(pattern: str, name: str) -> bool:
    """Match a whole name, in time that grows with pattern times name at most."""
    first, *others = pattern.split(ANY)
    if not others:
        return pattern == name
    *inner, last = others
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    start, end = len(first), len(name) - len(last)
    for piece in inner:
        found = name.find(piece, start, end)
        if found < 0:
            return False
        start = found + len(piece)
    return True


def read_flag(value: object) -> object:
    """Accept booleans, ``"true"`` and ``"false"``."""
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def read_sandbox(value: object) -> object:
    """Read ``true`` as a sandbox that is given nothing more, ``false`` and ``"none"`` as none."""
    if value in (False, "none", "false"):
        return None
    if value in (True, "true"):
        return {}
    if isinstance(value, str | int | float | list):
        raise ValueError("must be true, false or an object: { … }")
    return value


def read_network(value: object) -> object:
    """Refuse a list of hosts."""
    if isinstance(value, list):
        raise ValueError("must be true or false: hosts cannot be allowed by name")
    return read_flag(value)


def read_number(value: object) -> object:
    """Refuse booleans; text such as ``"5000"`` is parsed later."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def read_word(value: object) -> object:
    """Convert a number or boolean to text, for arguments and environment variables."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return f"{value:.15g}"
    return value


def read_words(value: object) -> object:
    """Accept a string as a list with one item."""
    return [value] if isinstance(value, str) else value


def check_few(value: object) -> object:
    """Refuse a huge collection before its items are validated."""
    if isinstance(value, list | dict) and len(value) > MAX_ITEMS:
        raise ValueError(f"must not have more than {MAX_ITEMS} items")
    return value


def check_nul(value: str) -> str:
    """Refuse what no argument of a program can have."""
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    return value


def read_transport(value: object) -> object:
    """Read other clients' names for a transport."""
    return Transport.HTTP if isinstance(value, str) and value in STREAMABLE_HTTP else value


def check_variables(value: dict[str, str]) -> dict[str, str]:
    """Refuse names that no variable can have."""
    if any(not name or "=" in name or "\0" in name for name in value):
        raise ValueError("a variable's name must not be empty or contain '=' or NUL")
    return value


def check_headers(value: dict[str, str]) -> dict[str, str]:
    """Refuse what no HTTP header can be."""
    for name, text in value.items():
        if not HEADER_NAME.fullmatch(name):
            raise ValueError("a header's name must consist of letters, digits and hyphens")
        # what a .env file of Windows ends its lines with is no part of a value
        if any(ord(character) > 0xFF or character in "\r\n\0" for character in text.strip()):
            raise ValueError("a header's value must be one line of Latin-1 text")
    return {name: text.strip() for name, text in value.items()}


def check_web_address(value: str) -> str:
    """Refuse what is no address of http or https."""
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


def check_whole_path(value: str) -> str:
    """Refuse a path that depends on the working directory."""
    if not value.startswith(("/", "~/")):
        raise ValueError("must be an absolute path, starting with / or ~/")
    return value


def check_context_name(value: str) -> str:
    """Refuse what is no file below a folder."""
    is_below = ".." not in value.split("/") and not value.startswith(("/", "~"))
    if not is_below or value in {"", "."} or any(mark in value for mark in "\\\0"):
        raise ValueError("must be a file name or a relative path below the folder")
    return value
