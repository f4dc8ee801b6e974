"""What is around the servers: settings, trust, the key store, the model and the network."""

import asyncio
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tui import __version__
from tui.cli.command import shown
from tui.cli.doctor.findings import DoctorSection, FindingLevel
from tui.cli.output import say
from tui.cli.settings import places_text
from tui.engine import late
from tui.engine.background import in_daemon_thread
from tui.engine.chats.backends.backend import ModelError
from tui.engine.files.paths import LOG_NAME, log_dir, state_dir, usable_state_dir
from tui.engine.keys.credentials import ModelAccess, ServiceStore, find_access, with_file
from tui.engine.keys.key_store import KEYRING_LIMIT, CredentialError, KeyStore
from tui.engine.logs.redaction import Redactor
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.origins import DEFAULT, Layers
from tui.model.settings import GemdeckSettings
from tui.model.trust import FolderTrust
from tui.text import sanitize_line

SERVICE: Final = "https://generativelanguage.googleapis.com"
"""Where the Gemini API is unless the environment says otherwise."""

REACH_TIMEOUT: Final = 5.0
"""Seconds that the service gets to answer at all."""

_ADVICE: Final[Mapping[FolderTrust, str]] = {
    FolderTrust.UNTRUSTED: "To see what it brings: gemdeck trust show",
    FolderTrust.CHANGED: "To see what has changed: gemdeck trust show",
    FolderTrust.NEVER: "To be asked again: gemdeck trust forget",
}


def program_section() -> DoctorSection:
    """Say what runs, and where it keeps its state."""
    section = DoctorSection("gemdeck")
    versions = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    section.value = {**versions, "state": str(state_dir()), "log": str(log_dir() / LOG_NAME)}
    words = f"{__version__} with Python {versions['python']} on {versions['platform']}"
    section.add(FindingLevel.OK, words)
    section.add(
        FindingLevel.NOTE, f"state in {shown(state_dir())}, log in {shown(log_dir() / LOG_NAME)}"
    )
    return section


def settings_section(loaded: LoadedSettings) -> DoctorSection:
    """Say which files count, what is wrong in them, and which values win."""
    section = DoctorSection("Settings")
    layers = Layers(Path.cwd(), Path.home(), os.environ)
    for file in layers.files:
        verdict = {"read": FindingLevel.OK, "absent": FindingLevel.NOTE}.get(
            file.state, FindingLevel.WARNING
        )
        section.add(verdict, f"{file.file}: {file.origin.value}, {file.state}")
    for problem in loaded.problems:
        section.add(FindingLevel.FAILED if problem.fatal else FindingLevel.WARNING, str(problem))
    found = [one for one in layers.settings(loaded) if one.places != (DEFAULT,)]
    for one in found:
        where = places_text(one.places, adds_up=one.adds_up)
        section.add(
            FindingLevel.NOTE, sanitize_line(f"{one.key} = {one.value!r}", 120) + f"  {where}"
        )
    for server in loaded.servers:
        places = layers.server_places(server.id)
        if len(places) > 1:
            section.add(FindingLevel.NOTE, f"mcpServers.{server.id}  {places_text(places)}")
    section.value = {
        "files": [{"file": one.file, "state": one.state} for one in layers.files],
        "problems": [asdict(one) for one in loaded.problems],
        "values": [
            {"key": one.key, "value": one.value, "places": list(one.places)} for one in found
        ],
    }
    return section


def folder_section(loaded: LoadedSettings) -> DoctorSection:
    """Say whether the opened folder is trusted."""
    section, trust = DoctorSection("This folder"), loaded.project.trust
    is_open = trust in {FolderTrust.TRUSTED, FolderTrust.NOTHING_TO_TRUST}
    verdict = FindingLevel.OK if is_open else FindingLevel.WARNING
    section.add(verdict, f"{shown(Path.cwd())}: {trust.value}", _ADVICE.get(trust, ""))
    section.value = {"trust": trust.value}
    return section


async def model_section(
    loaded: LoadedSettings, redactor: Redactor, *, offline: bool
) -> DoctorSection:
    """Say where a key is kept, whether there is one, and whether the service takes it."""
    section, keys = DoctorSection("Model"), KeyStore()
    access: ModelAccess | None = None
    try:
        async with asyncio.timeout(KEYRING_LIMIT):
            place = await in_daemon_thread(lambda: keys.place)
            section.add(FindingLevel.OK, f"keys are kept in {place}")
            environ = with_file(loaded.variables, os.environ)
            services = ServiceStore(usable_state_dir(), say)
            access = await in_daemon_thread(lambda: find_access(environ, keys, services.get()))
    except CredentialError as error:
        section.add(FindingLevel.FAILED, sanitize_line(redactor.redact(str(error))), error.advice)
    except TimeoutError:
        section.add(FindingLevel.FAILED, "the keyring does not answer", "Unlock it, and try again.")
    if access is None:
        if not section.has_failed:
            advice = "Set GEMINI_API_KEY, or enter a key on the screen (F9)."
            section.add(FindingLevel.WARNING, "there is no key, so only the demo answers", advice)
    else:
        if access.api_key is not None:
            redactor.register(access.api_key.get_secret_value())
        section.add(FindingLevel.OK, f"{access.kind.value}, with credentials from {access.source}")
    section.add(FindingLevel.NOTE, f"the model is {loaded.gemdeck.model}")
    if not offline:
        await _reach(section, access)
        if access is not None:
            await _check(section, access, loaded.gemdeck, redactor)
    return section


async def _reach(section: DoctorSection, access: ModelAccess | None) -> None:
    """See whether the service answers at all; any answer counts."""
    import httpx2  # noqa: PLC0415 - slow

    address = os.environ.get("GOOGLE_GEMINI_BASE_URL", "").strip() or SERVICE
    address = access.base_url or address if access is not None else address
    began = time.monotonic()
    try:
        async with (
            httpx2.AsyncClient(timeout=REACH_TIMEOUT) as client,
            client.stream("GET", address) as answer,  # its body is not read
        ):
            status = answer.status_code
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        words = f"{address} cannot be reached: {type(error).__name__} {error}"
        advice = "Check the network, and the variables HTTPS_PROXY and SSL_CERT_FILE."
        section.add(FindingLevel.FAILED, sanitize_line(words, 300), advice)
        return
    took = round((time.monotonic() - began) * 1000)
    section.add(FindingLevel.OK, f"{address} answers ({status}) within {took} ms")


async def _check(
    section: DoctorSection, access: ModelAccess, settings: GemdeckSettings, redactor: Redactor
) -> None:
    """Ask the service whether it takes the key."""
    try:
        backend = await in_daemon_thread(lambda: late.open_backend(access, settings))
        try:
            await backend.check()
        finally:
            await backend.aclose()
    except (ModelError, OSError, ValueError) as error:
        words, advice = sanitize_line(redactor.redact(str(error))), getattr(error, "advice", "")
        section.add(FindingLevel.FAILED, words, advice)
    else:
        section.add(FindingLevel.OK, "the service takes the credentials")
