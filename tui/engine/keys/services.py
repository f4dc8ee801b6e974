"""Services that speak chat completions, by name: the user's, and the well-known ones."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, Final

from pydantic import SecretStr

from tui.model.frozen import Frozen
from tui.model.settings import GemdeckSettings, ServiceModel
from tui.model.settings_rules import check_service_name
from tui.text import sanitize_line


class ModelService(Frozen):
    """A service of models.

    Attributes:
        name: Its name, which stands before those of its models.
        url: Its address, to which ``/chat/completions`` is added.
        variable: The variable that may hold its key.
        url_variable: The variable that may hold another address.
        headers: What is sent with each request; ``${key}`` stands for the key.
        key: The key of the user's entry, or None.
        models: What the user says of its models.
        load: Loads what opens its models, in a package that is installed here; None for one that
            speaks chat completions.
    """

    name: str
    url: str
    variable: str = ""
    url_variable: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    key: SecretStr | None = None
    models: Mapping[str, ServiceModel] = field(default_factory=lambda: MappingProxyType({}))
    load: Callable[[], Callable[[str], Any]] | None = field(default=None, repr=False)


PACKAGES: Final = "gemdeck.providers"
"""The entry points of packages that open models of services of their own."""

KEY: Final = "${key}"
"""Stands for the key in a header."""

_ANTHROPIC: Final = MappingProxyType({"x-api-key": KEY, "anthropic-version": "2023-06-01"})

WELL_KNOWN: Final[Mapping[str, ModelService]] = {
    one.name: one
    for one in (
        ModelService("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ModelService("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ModelService(
            *("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"), headers=_ANTHROPIC
        ),
        ModelService("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        ModelService("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        ModelService("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
        ModelService("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        ModelService("ollama", "http://127.0.0.1:11434/v1"),
        ModelService("lmstudio", "http://127.0.0.1:1234/v1"),
        ModelService("llamacpp", "http://127.0.0.1:8080/v1"),
    )
}
"""Those that need no entry: who has the key, or runs one here, names a model of it."""

SERVICE_KEYS: Final = tuple(filter(None, (one.variable for one in WELL_KNOWN.values())))
"""Variables with a key; each goes to the address of its own service alone."""


def known_services(
    settings: GemdeckSettings, environ: Mapping[str, str]
) -> dict[str, ModelService]:
    """Return the services by name, those of the user's settings first.

    Args:
        settings: Have the user's entries; one by a well-known name takes its place.
        environ: May have another address for a well-known one.
    """
    own = {
        name: ModelService(
            *(name, one.url.rstrip("/"), _variable(name, one.url)),
            headers=MappingProxyType(one.headers),
            key=one.key,
            models=MappingProxyType(one.models),
        )
        for name, one in settings.services.items()
    }
    moved = (
        replace(one, url=environ.get(one.url_variable, "").strip().rstrip("/") or one.url)
        for one in WELL_KNOWN.values()
    )
    found = {one.name: one for one in (*_packages(tuple(sys.path)), *moved)}
    return own | found | own


@lru_cache(maxsize=1)
def _packages(_: tuple[str, ...]) -> Sequence[ModelService]:
    """Return the services that installed packages bring; looking for them takes long."""
    made = []
    for one in entry_points(group=PACKAGES):
        with suppress(ValueError):
            made.append(ModelService(check_service_name(one.name), "", load=one.load))
    return made


def _variable(name: str, url: str) -> str:
    """Return the variable of an entry: that of the well-known service that it is."""
    known = WELL_KNOWN.get(name)
    return known.variable if known is not None and known.url == url.rstrip("/") else ""


def service_of(name: str, known: Mapping[str, ModelService]) -> ModelService | None:
    """Return the service that the name of a model begins with; None if it is Gemini's."""
    return known.get(name.partition("/")[0]) if "/" in name else None


def shown_service(service: ModelService) -> str:
    """Return the name of a service with its address, for messages."""
    return f"{service.name} at {sanitize_line(service.url, 200)}"
