"""Choose the model service and its credentials."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr, TypeAdapter, ValidationError

from tui.engine.definitions.expansion import secret_names, with_secrets
from tui.engine.files.state_file import private_file
from tui.engine.keys.key_store import CredentialError, KeyStore, checked_key
from tui.engine.keys.secret_store import read_secrets
from tui.engine.keys.services import (
    KEY,
    SERVICE_KEYS,
    ModelService,
    known_services,
    service_of,
    shown_service,
)
from tui.engine.logs.redaction import is_secret_variable
from tui.model.chat import BackendKind
from tui.model.frozen import Frozen
from tui.model.input.addresses import check_key_address, is_loopback
from tui.model.settings import GemdeckSettings
from tui.text import sanitize_line

FILE_NAME: Final = "service.json"

DEFAULT_LOCATION: Final = "global"
"""The default Vertex location, as in the Google SDK."""

KEY_VARIABLES: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""Variables with an API key; the first one set wins, as in the Google SDK."""

VERTEX_SWITCHES: Final = ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")
"""Variables that choose Vertex; the first one set wins, as in the Google SDK."""

_PLACE: Final = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION")
_FILE_VARIABLES: Final = (*KEY_VARIABLES, *VERTEX_SWITCHES, *_PLACE, *SERVICE_KEYS)
"""Variables that also count where a file of the user's sets them; an address is not among them."""

_CLOUD_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,99}")
"""A project or location. Both become part of the address, so they must not contain a slash."""

_ENVIRONMENT: Final = "Vertex environment"


class Service(StrEnum):
    """A service that can be chosen. The value stands in the file."""

    GOOGLE = "google"
    ADDRESS = "address"
    VERTEX = "vertex"
    NAMED = "named"


class KeptService(Frozen):
    """The choice, with what was entered for it.

    Attributes:
        service: What answers: the Gemini API at Google, or at another address, or Vertex, or a
            service of chat completions.
        address: The other address, or an empty string.
        project: The Google Cloud project for Vertex.
        location: Its location.
        model: The model of the service of chat completions, which its name begins with.
    """

    service: Service = Service.GOOGLE
    address: str = ""
    project: str = ""
    location: str = ""
    model: str = ""


OWN_SERVICE: Final = KeptService()
"""The Gemini API at Google, if nothing else was chosen."""

_CHOICE: Final = TypeAdapter(KeptService)


class ServiceStore:
    """Keeps the choice in a private file: an address decides where a key is sent.

    Every method blocks: call it in a thread.

    Args:
        folder: The state folder; None keeps it in memory.
        on_problem: Told from any thread what cannot be read or written.
    """

    def __init__(self, folder: Path | None, on_problem: Callable[[str], None]) -> None:
        self._file = private_file(folder, FILE_NAME, on_problem)

    def get(self) -> KeptService:
        """Return the choice; one that is unsound counts as none."""
        try:
            return _CHOICE.validate_python(self._file.load() or {})
        except ValidationError:
            return OWN_SERVICE

    def set(self, choice: KeptService) -> None:
        self._file.update(lambda content: {**content, **asdict(choice)})


class ModelAccess(Frozen):
    """How to reach a model service.

    Attributes:
        kind: Which service.
        api_key: The key, unless Application Default Credentials are used.
        project: The Google Cloud project, for Vertex without a key.
        location: Its location.
        base_url: The service's address, or an empty string for the default.
        source: Where the credentials come from: a variable's name, or the key store's location.
        is_kept: Whether gemdeck keeps the key, the address or the project, and can forget it.
        service: The service of chat completions, or None.
        headers: What is sent to that with each request; secrets are filled in.
        secrets: What is masked wherever it comes up.
        model: The model that is opened unless another one is named; empty for the settings' choice.
    """

    kind: BackendKind
    api_key: SecretStr | None = None
    project: str = ""
    location: str = ""
    base_url: str = field(default="", repr=False)
    source: str = ""
    is_kept: bool = False
    service: ModelService | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    model: str = ""

    @property
    def name(self) -> str:
        """The service's name, as shown."""
        return self.service.name if self.service is not None else self.kind.value


def permitted(access: ModelAccess | None, auth: tuple[object, str]) -> ModelAccess | None:
    """Return how to reach a service if the settings allow it.

    Args:
        access: How.
        auth: The only way to sign in, as gemini-cli names it, and where that stands; "" for any.

    Raises:
        CredentialError: If it is another one.
    """
    if access is None or (access.kind is BackendKind.OTHER and access.service is None):
        return access
    ways = ("gemini-api-key", "gateway") if access.base_url else ("gemini-api-key",)
    ways = ("vertex-ai",) if access.kind is BackendKind.VERTEX else ways
    ways = (f"the service {access.name}",) if access.service is not None else ways
    enforced, place = auth
    if enforced and enforced not in ways:
        words = f"{place} allows only {enforced}, but this run uses {ways[0]}."
        advice = "Start gemdeck and press F9 to choose another."
        raise CredentialError(sanitize_line(words), advice=advice)
    return access


def with_file(own: Mapping[str, str], environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the user's ``.env``, which ranks below it."""
    return {**{name: own[name] for name in _FILE_VARIABLES if name in own}, **environ}


def find_model(
    settings: GemdeckSettings,
    environ: Mapping[str, str],
    keys: KeyStore,
    kept: KeptService = OWN_SERVICE,
) -> ModelAccess | None:
    """Find the service of the model that the settings name, and the credentials for it.

    Blocks on the key store: call it in a thread.

    Returns:
        See `find_access`.

    Raises:
        CredentialError: If it cannot be used; says what to do.
    """
    is_chosen = "model" in settings.model_fields_set or overruling(environ)
    is_kept = kept.service is Service.NAMED and not is_chosen
    name = kept.model if is_kept else settings.model
    if (service := service_of(name, known_services(settings, environ))) is not None:
        access = service_access(service, environ, keys)
        return replace(access, model=name, is_kept=access.is_kept or is_kept)
    return find_access(environ, keys, kept)


def service_access(
    service: ModelService, environ: Mapping[str, str], keys: KeyStore
) -> ModelAccess:
    """Return the access to a service of chat completions: with its key, or here without one.

    The key is that of its entry, of its own variable, or the one that is kept for this service at
    this address. Blocks on the key store.

    Raises:
        CredentialError: If there is none, or the address is not safe.
    """
    if service.load is not None:
        return ModelAccess(BackendKind.OTHER, source="the service's package", service=service)
    url = checked_base_url(service.url, f"The address of {service.name}")
    written = service.key.get_secret_value() if service.key is not None else ""
    texts = [written, *service.headers.values()]
    try:
        secrets = read_secrets(secret_names(texts))
    except CredentialError as error:
        raise CredentialError(f"{service.name} {error}.", advice=error.advice) from error
    source, stored = "the service's entry in your settings", None
    if not (key := with_secrets(written, secrets).strip()) and service.variable:
        source, key = service.variable, environ.get(service.variable, "").strip()
    if not key and (stored := keys.get(url, service.name)) is not None:
        source, key = keys.place, stored.get_secret_value()
    headers = {name: with_secrets(text, secrets) for name, text in service.headers.items()}
    secret_headers = {text for name, text in headers.items() if is_secret_variable(name, text)}
    is_open = is_loopback(urlsplit(url).hostname or "") or secret_headers - {KEY}
    if not key and not is_open:
        way = f" or set {service.variable}" if service.variable else ""
        advice = f"Enter one: gemdeck key set --service {service.name}{way}."
        raise CredentialError(f"There is no key for {shown_service(service)}.", advice=advice)
    return ModelAccess(
        BackendKind.OTHER,
        SecretStr(checked_key(key)) if key else None,
        base_url=url,
        source=source if key else "no key",
        is_kept=stored is not None,
        service=service,
        headers={name: text.replace(KEY, key) for name, text in headers.items()},
        secrets=frozenset({*secrets.values(), *secret_headers, key} - {"", KEY}),
    )


def find_access(
    environ: Mapping[str, str], keys: KeyStore, kept: KeptService = OWN_SERVICE
) -> ModelAccess | None:
    """Find the credentials to use. Blocks on the key store: call it in a thread.

    The order: Vertex if a switch selects it; a key in the environment; Vertex if the user chose
    it last; the stored key of the address in the environment, or else of the one chosen last;
    Vertex if both project and location are set. A key of the environment goes to the address of
    the environment or to Google, and never to one that is kept.

    Returns:
        The credentials, or None if the user has to choose.

    Raises:
        CredentialError: If the configured credentials cannot be used; says what to do.
    """
    if _selects_vertex(environ):
        return _selected_vertex(environ)
    if variable := _first_key(environ):
        return key_access(environ, _key_in(environ, variable), _told_source(environ, variable))
    if kept.service is Service.VERTEX:
        return replace(vertex_access(environ, kept.project, kept.location), is_kept=True)
    address = _base_url(environ, BackendKind.GEMINI)
    if not address and kept.service is Service.ADDRESS:
        address = checked_base_url(kept.address, "The stored address")
    store_error: CredentialError | None = None
    try:
        stored = keys.get(address)
    except CredentialError as error:
        advice = f"{error.advice} Or set GEMINI_API_KEY."
        stored, store_error = None, CredentialError(str(error), advice=advice)
    if stored:
        return address_access(address, stored, keys.place, is_kept=True)
    project, location = _project(environ), _location(environ)
    if project and location:
        return vertex_access(environ, project, location, _ENVIRONMENT)
    if store_error:
        raise store_error
    return None


def key_access(environ: Mapping[str, str], key: SecretStr, source: str) -> ModelAccess:
    """Return the access with a key from somewhere.

    Raises:
        CredentialError: If the base URL cannot be used.
    """
    return address_access(_base_url(environ, BackendKind.GEMINI), key, source)


def address_access(
    address: str, key: SecretStr, source: str, *, is_kept: bool = False
) -> ModelAccess:
    """Return the access to the Gemini API at an address that was checked; empty for Google's."""
    return ModelAccess(BackendKind.GEMINI, key, base_url=address, source=source, is_kept=is_kept)


def overruling(environ: Mapping[str, str]) -> str:
    """Return the variable that chooses another service than the one that is kept, or ""."""
    return _first_switch(environ) if _selects_vertex(environ) else _first_key(environ)


def checked_base_url(url: str, what: str) -> str:
    """Return the address of a model service if the key may be sent to it.

    Raises:
        CredentialError: If it is neither https nor http on loopback.
    """
    try:
        return check_key_address(url)
    except ValueError as error:
        advice = "Use an https address, or http on 127.0.0.1 or localhost."
        words = f"{what} is not a safe address to send a key to."
        raise CredentialError(words, advice=advice) from error


def typed_base_url(url: str) -> str:
    """Return the address of a model service that the user typed, in its kept form.

    Raises:
        CredentialError: If the key must not be sent to it; see `checked_base_url`.
    """
    url = url.strip().rstrip("/")
    if not url:
        raise CredentialError("The address is empty.", advice="Enter the address of a service.")
    return checked_base_url(url, "What you entered")


def _selected_vertex(environ: Mapping[str, str]) -> ModelAccess:
    """Use project and location, or else a key (Vertex express mode)."""
    if project := _project(environ):
        return vertex_access(environ, project, _location(environ), _ENVIRONMENT)
    if variable := _first_key(environ):
        key, base_url = _key_in(environ, variable), _base_url(environ, BackendKind.VERTEX)
        return ModelAccess(BackendKind.VERTEX, key, base_url=base_url, source=variable)
    switch = _first_switch(environ)
    advice = f"Set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or unset {switch}."
    words = f"{switch} selects Vertex, but GOOGLE_CLOUD_PROJECT is not set."
    raise CredentialError(words, advice=advice)


def _selects_vertex(environ: Mapping[str, str]) -> bool:
    return environ.get(_first_switch(environ), "").strip().lower() in {"true", "1"}


def _first_switch(environ: Mapping[str, str]) -> str:
    return next((name for name in VERTEX_SWITCHES if name in environ), "")


def _first_key(environ: Mapping[str, str]) -> str:
    return next((name for name in KEY_VARIABLES if environ.get(name, "").strip()), "")


def vertex_access(
    environ: Mapping[str, str], project: str, location: str, source: str = "Vertex"
) -> ModelAccess:
    """Return the access to Vertex for a project, at the default location unless one is named.

    Raises:
        CredentialError: If project, location or base URL cannot be used.
    """
    project, location = project.strip(), location.strip() or DEFAULT_LOCATION
    for value, what in ((project, "project"), (location, "location")):
        if not _CLOUD_NAME.fullmatch(value):
            variables = "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"
            advice = f"Set {variables}, for example to my-project and global."
            raise CredentialError(f"The Google Cloud {what} is not a valid name.", advice=advice)
    base_url = _base_url(environ, BackendKind.VERTEX)
    return ModelAccess(
        BackendKind.VERTEX, project=project, location=location, base_url=base_url, source=source
    )


def _told_source(environ: Mapping[str, str], variable: str) -> str:
    """Name the variable with the key that is used, and one with a key that is not."""
    used = environ[variable].strip()
    others = [one for one in KEY_VARIABLES if environ.get(one, "").strip() not in {"", used}]
    return f"{variable} ({others[0]} is also set but not used)" if others else variable


def _key_in(environ: Mapping[str, str], variable: str) -> SecretStr:
    try:
        return SecretStr(checked_key(environ[variable]))
    except ValueError as error:
        words = f"{variable} is not an API key. {error}"
        raise CredentialError(words, advice="Copy the key again, or unset the variable.") from error


def _project(environ: Mapping[str, str]) -> str:
    return environ.get("GOOGLE_CLOUD_PROJECT", "").strip()


def _location(environ: Mapping[str, str]) -> str:
    return environ.get("GOOGLE_CLOUD_LOCATION", "").strip()


def _base_url(environ: Mapping[str, str], kind: BackendKind) -> str:
    """Return the address from the environment; settings files cannot redirect the key."""
    variable = "GOOGLE_VERTEX_BASE_URL" if kind is BackendKind.VERTEX else "GOOGLE_GEMINI_BASE_URL"
    url = environ.get(variable, "").strip()
    return checked_base_url(url, variable) if url else ""


def keep_access(
    access: ModelAccess, service: Service | None, keys: KeyStore, services: ServiceStore
) -> None:
    """Keep a key, and the choice of a service with its address, project or model, if there is one.

    The address that was kept before is forgotten with its key.

    Raises:
        CredentialError: If the key cannot be stored; the choice is as before.
    """
    kept = services.get()
    if access.api_key is not None and (access.service is None or access.is_kept):
        keys.set(
            access.api_key.get_secret_value(),
            access.base_url,
            access.service.name if access.service else "",
        )
    choice = replace(kept, service=service, model=access.model) if service else kept
    if service is Service.ADDRESS:
        if kept.address not in {"", access.base_url}:
            keys.forget(kept.address)
        choice = replace(choice, address=access.base_url)
    elif service is Service.VERTEX:
        choice = replace(choice, project=access.project, location=access.location)
    if choice != kept:
        services.set(choice)


def forget_access(access: ModelAccess, keys: KeyStore, services: ServiceStore) -> str:
    """Forget a key with its address, or a project; return in a sentence what was forgotten.

    Raises:
        CredentialError: If the key cannot be removed; nothing has changed.
    """
    kept, address = services.get(), access.base_url
    if access.kind is BackendKind.VERTEX:
        services.set(replace(kept, service=Service.GOOGLE, project="", location=""))
        return f"The project {sanitize_line(access.project)} was forgotten."
    if access.service is not None:
        keys.forget(address, access.service.name)
        if kept.model.startswith(f"{access.service.name}/"):
            services.set(replace(kept, service=Service.GOOGLE, model=""))
        return f"The key for {shown_service(access.service)} was forgotten."
    if keys.get(address) is None and (not address or address != kept.address):
        return f"No key is stored for {sanitize_line(address, 200) or 'the Gemini API'}."
    keys.forget(address)
    if not address or kept.address != address:
        return "The key was removed."
    choice = Service.GOOGLE if kept.service is Service.ADDRESS else kept.service
    services.set(replace(kept, service=choice, address=""))
    return f"{sanitize_line(address, 200)} and its key were forgotten."
