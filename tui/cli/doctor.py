"""``gemdeck doctor``: everything that can be in the way, looked at once, with what to do."""

import asyncio
import json
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from tui import __version__
from tui.cli.command import CommandOutput, check_known, prints_json, shown
from tui.cli.key import check_access, kept_access
from tui.cli.output import GAP, ExitCode
from tui.cli.servers.server_session import ServerSession, StartOptions, starts_servers
from tui.cli.servers.server_words import why_not_ready
from tui.cli.settings import places_text, server_names
from tui.engine import late
from tui.engine.background import in_daemon_thread
from tui.engine.chats.backends.backend import ModelError
from tui.engine.definitions.bubblewrap import sandbox_problem
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.files.paths import LOG_NAME, log_dir, state_dir
from tui.engine.keys.credentials import ModelAccess
from tui.engine.keys.key_store import KEYRING_LIMIT, CredentialError, KeyStore
from tui.engine.logs.redaction import Redactor
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.origins import DEFAULT, Layers
from tui.model.bounded_json import mapped
from tui.model.events import OWN_SOURCE
from tui.model.servers import ServerStatus, ServerView
from tui.model.trust import FolderTrust
from tui.model.wire.frames import FrameKind, WireFrame
from tui.text import counted, sanitize_line

SERVICE: Final = "https://generativelanguage.googleapis.com"
"""Where the Gemini API is unless the environment says otherwise."""

MAX_STEPS: Final = 200
"""First steps of a server's start that are shown."""

_STEPS: Final = (FrameKind.LIFECYCLE, FrameKind.REQUEST, FrameKind.ANSWER, FrameKind.HTTP)

MAX_LINES: Final = 20
"""Last lines that a server wrote that are shown."""

REACH_SECONDS: Final = 5.0
"""Seconds without an answer after which the model's service is out of reach."""

_ADVICE: Final[Mapping[FolderTrust, str]] = {
    FolderTrust.UNTRUSTED: "To review its content: gemdeck trust show",
    FolderTrust.CHANGED: "To review the changes: gemdeck trust show",
    FolderTrust.NEVER: "To be asked again: gemdeck trust forget",
}


class Level(StrEnum):
    """How something stands. The value is the word before it."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILED = "failed"


_VERDICTS: Final[Mapping[ServerStatus, Level]] = {
    ServerStatus.READY: Level.OK,
    ServerStatus.DISABLED: Level.NOTE,
    ServerStatus.STOPPED: Level.NOTE,
    ServerStatus.UNTRUSTED: Level.WARNING,
    ServerStatus.NEEDS_SIGN_IN: Level.WARNING,
}


@dataclass(slots=True)
class DoctorSection:
    """What was found on one thing, as text and as JSON.

    Attributes:
        title: Its title.
        findings: What was looked at, each as JSON.
        value: More of it as JSON.
    """

    title: str
    findings: list[dict[str, Any]] = field(default_factory=list)
    value: dict[str, Any] = field(default_factory=dict)

    def add(self, verdict: Level, text: str, advice: str = "", details: Sequence[str] = ()) -> None:
        """Add what was looked at, how it stands, and what to do about it."""
        found = {"verdict": verdict.value, "text": text, "advice": advice}
        self.findings.append({**found, "details": list(details)})

    @property
    def has_failed(self) -> bool:
        return any(one["verdict"] == Level.FAILED for one in self.findings)


@click.command(epilog="Example: gemdeck doctor files\n\nExample: gemdeck doctor --json --offline")
@click.argument("server", required=False, shell_complete=server_names)
@click.option("--offline", is_flag=True, help="Do not contact the model's service.")
@click.option("-v", "--verbose", is_flag=True, help="Show the startup steps of all servers.")
@prints_json
@starts_servers
async def doctor(
    server: str | None, start: StartOptions, *, offline: bool, verbose: bool
) -> CommandOutput:
    """Check settings, trust, key, network and servers, and suggest what to do.

    Starts all servers, or SERVER alone, showing its startup steps. Secrets are masked and your
    home is shown as ~, ready for a bug report. The exit code is 1 if anything failed.
    """
    from tui.ui.questions.own_keys import check_keys  # noqa: PLC0415 - imports Textual

    session = ServerSession(start, None if server is None else [server], check_keys=check_keys)
    async with session.engine as engine:
        loaded = await engine.load()
        known = {one.id: one for one in loaded.servers}
        check_known("server", filter(None, [server]), known)
        await engine.start()
        await in_daemon_thread(late.import_connection)  # which is not the servers' time
        box = await in_daemon_thread(sandbox_problem)
        sections = [_program(box), _settings(loaded), _folder(session.folder_trust)]
        sections.append(await _model(loaded, session.redactor, offline=offline))
        await engine.wait_ready(start.timeout)
        wake = partial(engine.servers.wait_awake, patience=start.timeout)
        await asyncio.gather(*(wake(view.id) for view in session.views))
        sections += [_server(view, known[view.id], session) for view in session.views]
    home = re.compile(rf"(?<![\w.-]){re.escape(str(Path.home()))}(?![\w-]|\.\w)")

    def clean(text: str) -> str:
        """Leave out secrets, and the name of the home."""
        return home.sub("~", session.redactor.redact(text))

    failed = [section.title for section in sections if section.has_failed]
    listed = [{"title": one.title, "findings": one.findings, **one.value} for one in sections]
    value = mapped({"sections": listed, "failed": failed}, str, clean, clean)
    end = f"Failed: {', '.join(value['failed'])}." if failed else "Nothing failed."
    shown = value["sections"] if verbose or server else _brief(value["sections"])
    text = "\n\n".join([*map(_text, shown), end])
    return CommandOutput(value, text, ExitCode.ERROR if failed else ExitCode.OK)


def _brief(sections: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Put a line for each server in place of the servers' sections, the worst first."""
    servers = [one for one in sections if "steps" in one]
    findings, width = [], max((len(one["name"]) for one in servers), default=0)
    for one in servers:
        first = one["findings"][0]
        tools = f" · {counted(one['tools'], 'tool')}" if one["tools"] and not one["reason"] else ""
        refused = f", {len(one['refused'])} not offered" if one["refused"] else ""
        least = Level.WARNING if refused else Level.OK
        verdict = max(least, first["verdict"], key=[*Level].index)
        text = f"{one['name']:<{width}}{GAP}{first['text']}{tools}{refused}"
        findings.append({**first, "verdict": verdict, "text": text})
    findings.sort(key=lambda one: [*Level].index(one["verdict"]), reverse=True)
    others = [one for one in sections if "steps" not in one]
    return [*others, *([{"title": "Servers", "findings": findings}] if findings else [])]


def _text(section: Mapping[str, Any]) -> str:
    """Write a section as text."""
    width = max(map(len, Level))
    lines = [section["title"]]
    for one in section["findings"]:
        lines.append(f"{GAP}{one['verdict']:<{width}}{GAP}{one['text']}")
        below = [*([f"→ {one['advice']}"] if one["advice"] else []), *one["details"]]
        lines += [f"{GAP}{'':<{width}}{GAP}{line}" for line in below]
    return "\n".join(lines)


def _program(no_sandbox: tuple[str, str]) -> DoctorSection:
    """Say what runs, where it keeps its state, and whether servers can have a sandbox."""
    section = DoctorSection("gemdeck")
    versions = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    section.value = {**versions, "state": str(state_dir()), "log": str(log_dir() / LOG_NAME)}
    words = f"{__version__} with Python {versions['python']} on {versions['platform']}"
    section.add(Level.OK, words)
    section.add(Level.NOTE, f"state in {shown(state_dir())}, log in {shown(log_dir() / LOG_NAME)}")
    reason, advice = no_sandbox
    words = f"no sandbox for servers: {reason}" if reason else "servers can run in a sandbox"
    section.add(Level.NOTE, words, advice)
    return section


def _settings(loaded: LoadedSettings) -> DoctorSection:
    """Say which files count, what is wrong in them, and which values win."""
    section = DoctorSection("Settings")
    layers = Layers(Path.cwd(), Path.home(), os.environ, state_dir())
    for file in layers.files:
        verdict = {"read": Level.OK, "absent": Level.NOTE}.get(file.state, Level.WARNING)
        section.add(verdict, f"{file.file}: {file.origin.value}, {file.state}")
    for problem in loaded.problems:
        level = Level.NOTE if problem.quiet else Level.WARNING
        section.add(Level.FAILED if problem.fatal else level, str(problem))
    found = [one for one in layers.settings(loaded) if one.places != (DEFAULT,)]
    for one in found:
        where = places_text(one.places, adds_up=one.adds_up)
        shown_value = json.dumps(one.value, ensure_ascii=False)
        section.add(Level.NOTE, sanitize_line(f"{one.key} = {shown_value}", 120) + f"  {where}")
    for server in loaded.servers:
        places = layers.server_places(server.id)
        if len(places) > 1:
            section.add(Level.NOTE, f"mcpServers.{server.id}  {places_text(places)}")
    section.value = {
        "files": [{"file": one.file, "state": one.state} for one in layers.files],
        "problems": [asdict(one) for one in loaded.problems],
        "values": [
            {"key": one.key, "value": one.value, "places": list(one.places)} for one in found
        ],
    }
    return section


def _folder(trust: FolderTrust) -> DoctorSection:
    """Say whether the opened folder is trusted."""
    section = DoctorSection("This folder")
    is_open = trust in {FolderTrust.TRUSTED, FolderTrust.NOTHING_TO_TRUST}
    verdict = Level.OK if is_open else Level.WARNING
    section.add(verdict, f"{shown(Path.cwd())}: {trust.value}", _ADVICE.get(trust, ""))
    section.value = {"trust": trust.value}
    return section


async def _model(loaded: LoadedSettings, redactor: Redactor, *, offline: bool) -> DoctorSection:
    """Say where a key is kept, whether there is one, and whether the service takes it."""
    section, keys = DoctorSection("Model"), KeyStore()
    access: ModelAccess | None = None
    try:
        async with asyncio.timeout(KEYRING_LIMIT):
            place = await in_daemon_thread(lambda: keys.place)
            section.add(Level.OK, f"keys are stored in {place}")
            access = await in_daemon_thread(lambda: kept_access(loaded, keys))
    except CredentialError as error:
        section.add(Level.FAILED, sanitize_line(redactor.redact(str(error))), error.advice)
    except TimeoutError:
        section.add(Level.FAILED, "the keyring does not respond", "Unlock it and try again.")
    if access is None:
        if not section.has_failed:
            advice = "Set GEMINI_API_KEY, or choose a service on the screen (F9)."
            section.add(Level.WARNING, "no key, so only the demo model is available", advice)
    else:
        if access.api_key is not None:
            redactor.register(access.api_key.get_secret_value())
        section.add(Level.OK, f"{access.name}, with credentials from {access.source}")
    name = access.model if access is not None and access.model else loaded.gemdeck.model
    section.add(Level.NOTE, f"model: {name}")
    if not offline:
        await _reach(section, access)
        if access is not None:
            try:
                traits = await check_access(access, loaded.gemdeck)
            except (ModelError, OSError, ValueError) as error:
                words = sanitize_line(redactor.redact(str(error)))
                section.add(Level.FAILED, words, getattr(error, "advice", ""))
            else:
                section.add(Level.OK, "the service accepts the credentials")
                if traits.offer is not None and (facts := traits.offer.facts("{:,}".format)):
                    section.add(Level.NOTE, f"the service reports: {', '.join(facts)}")
                if not traits.tools:
                    section.add(Level.WARNING, f"{name} does not support tools, so it gets none")
    return section


async def _reach(section: DoctorSection, access: ModelAccess | None) -> None:
    """See whether the service answers at all; any answer counts."""
    import httpx2  # noqa: PLC0415 - slow

    from tui.engine.chats.backends.service_http import open_http  # noqa: PLC0415 - ditto

    address = os.environ.get("GOOGLE_GEMINI_BASE_URL", "").strip() or SERVICE
    address = access.base_url or address if access is not None else address
    if access is not None and access.service is not None and not access.base_url:
        return  # a package asks it
    began = time.monotonic()
    try:
        client, *_ = open_http(REACH_SECONDS, address)
        client.event_hooks["response"].clear()  # which refuse some answers
        async with client, client.stream("GET", address) as answer:  # its body is not read
            status = answer.status_code
    except ModelError as error:
        section.add(Level.FAILED, str(error), error.advice)
        return
    except (httpx2.HTTPError, OSError, ValueError) as error:
        words = f"{address} cannot be reached: {type(error).__name__} {error}"
        advice = "Check the network and the environment variables HTTPS_PROXY and SSL_CERT_FILE."
        section.add(Level.FAILED, sanitize_line(words, 300), advice)
        return
    took = round((time.monotonic() - began) * 1000)
    section.add(Level.OK, f"{address} is reachable (HTTP {status}, {took} ms)")


def _server(
    view: ServerView, definition: ServerDefinition, session: ServerSession
) -> DoctorSection:
    """Say how one server stands, and what to do about it."""
    section = DoctorSection(f"Server {view.id}")
    reason, advice = why_not_ready(view)
    verdict = _VERDICTS.get(view.status, Level.FAILED)
    verdict = Level.WARNING if view.lacks and verdict is Level.OK else verdict
    words = f"{view.status.value}: {reason}" if reason else view.status.value
    section.add(verdict, words, advice)
    section.add(Level.NOTE, f"{view.transport.value} from {definition.entry.source}: {view.target}")
    if definition.launch.program:
        section.add(Level.OK, f"program: {definition.launch.program}")
    frames = [one for one in session.engine.wire.frames() if one.server == view.id]
    taken = [one for one in frames if one.kind in _STEPS][:MAX_STEPS]
    if steps := [(round(one.time - taken[0].time, 3), _step_words(one)) for one in taken]:
        lines = [f"{seconds:8.3f} s  {what}" for seconds, what in steps]
        section.add(verdict, "startup", details=lines)
    if view.status is ServerStatus.READY:
        section.add(Level.OK, counted(len(view.catalog.tools), "tool"))
    refused = [(tool.name, tool.problem) for tool in view.catalog.tools if tool.problem]
    for name, why in refused:
        section.add(Level.WARNING, f"{name} is not offered to the model: {why}")
    own = [line.text for line in session.log(view.id) if line.source == OWN_SOURCE]
    said = [line.text for line in session.log(view.id) if line.source != OWN_SOURCE]
    if own:
        section.add(Level.NOTE, "notes by gemdeck", details=own[-MAX_LINES:])
    if said:
        section.add(Level.NOTE, "server output", details=said[-MAX_LINES:])
    section.value = {
        "name": view.id,
        "status": view.status.value,
        "reason": reason,
        "steps": [{"seconds": seconds, "what": what} for seconds, what in steps],
        "tools": len(view.catalog.tools),
        "refused": [{"tool": name, "why": why} for name, why in refused],
        "output": said[-MAX_LINES:],
    }
    return section


def _step_words(frame: WireFrame) -> str:
    """Say what was said, or what became of the connection."""
    kind = "error" if frame.kind is FrameKind.ANSWER and frame.is_error else frame.kind
    who = () if frame.kind is FrameKind.LIFECYCLE else (frame.direction, kind)
    what = " ".join(filter(None, (*who, frame.method, frame.target, str(frame.status or ""))))
    return ": ".join(filter(None, (what, frame.detail)))
