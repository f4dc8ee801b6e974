"""Keep what the user entered to reach a model, and forget it. Blocks: call it in a thread."""

from dataclasses import replace

from tui.engine.keys.credentials import ModelAccess
from tui.engine.keys.key_store import KeyStore
from tui.engine.keys.saved_service import Service, ServiceStore
from tui.model.chat import BackendKind
from tui.text import sanitize_line


def keep_access(
    access: ModelAccess, service: Service, keys: KeyStore, services: ServiceStore
) -> None:
    """Keep a key, and the choice of a service with its address or project.

    The address that was kept before is forgotten with its key.

    Raises:
        CredentialError: If the key cannot be stored; the choice is as before.
    """
    kept = services.get()
    if access.api_key is not None:
        keys.set(access.api_key.get_secret_value(), access.base_url)
    match service:
        case Service.ADDRESS:
            if kept.address not in {"", access.base_url}:
                keys.forget(kept.address)
            choice = replace(kept, service=service, address=access.base_url)
        case Service.VERTEX:
            choice = replace(
                kept, service=service, project=access.project, location=access.location
            )
        case Service.GOOGLE:
            choice = replace(kept, service=service)
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
    if keys.get(address) is None and (not address or address != kept.address):
        return f"No key is kept for {sanitize_line(address, 200) or 'the Gemini API'}."
    keys.forget(address)
    if not address or kept.address != address:
        return "The key was removed."
    choice = Service.GOOGLE if kept.service is Service.ADDRESS else kept.service
    services.set(replace(kept, service=choice, address=""))
    return f"{sanitize_line(address, 200)} and its key were forgotten."
