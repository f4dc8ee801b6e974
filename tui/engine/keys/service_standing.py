"""Whether a service of models can be asked now; it is not asked for that."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from tui.engine.background import in_daemon_thread
from tui.engine.keys.credentials import service_access
from tui.engine.keys.key_store import CredentialError, KeyStore
from tui.engine.keys.services import ModelService
from tui.model.input.addresses import is_loopback
from tui.model.models import ServiceOffer
from tui.text import sanitize_line

LOCAL_PATIENCE: Final = 0.3
"""Seconds for a service on this computer to accept a connection, over which nothing is sent."""


async def standing(service: ModelService, environ: Mapping[str, str]) -> ServiceOffer:
    """Say how a service stands: one on this computer by whether it runs, another by its key."""
    if service.load is not None:
        return ServiceOffer(service.name, "its package is installed", is_ready=True)
    parts = urlsplit(service.url)
    if is_loopback(parts.hostname or ""):
        runs = await _accepts(parts.hostname or "", parts.port or 80)
        note = "answers here" if runs else "does not run here"
        return ServiceOffer(service.name, note, is_ready=runs, is_local=True)
    try:
        access = await in_daemon_thread(partial(service_access, service, environ, KeyStore()))
    except CredentialError as error:
        return ServiceOffer(service.name, sanitize_line(str(error)), is_ready=False)
    return ServiceOffer(service.name, f"key: {sanitize_line(access.source)}", is_ready=True)


async def _accepts(host: str, port: int) -> bool:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(LOCAL_PATIENCE):
            _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False
