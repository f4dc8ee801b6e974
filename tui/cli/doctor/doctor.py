"""``gemdeck doctor``: everything that can be in the way, looked at once."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from tui.cli.command import CommandOutput, finish, no_such
from tui.cli.doctor.findings import DoctorSection, mapped
from tui.cli.doctor.handshakes import StepRecorder, server_section
from tui.cli.doctor.surroundings import (
    folder_section,
    model_section,
    program_section,
    settings_section,
)
from tui.cli.output import ExitCode
from tui.cli.servers.server_session import ServerSession, StartOptions, starting_options
from tui.cli.settings import server_names
from tui.engine import late
from tui.engine.background import in_daemon_thread


@click.command(epilog="Example: gemdeck doctor files\n\nExample: gemdeck doctor --json --offline")
@click.argument("server", required=False, shell_complete=server_names)
@click.option("--offline", is_flag=True, help="Do not ask the model's service anything.")
@starting_options
def doctor(
    server: str | None, *, trusted: tuple[Path, ...], timeout: float, offline: bool, as_json: bool
) -> None:
    """Look at settings, trust, key, network and servers, and say what to do.

    Starts the servers, or the one that is named, and tells each step. Secrets are masked and
    your home is ~, so that it fits into a bug report. The exit code is 1 if anything failed.
    """
    finish(_examine(server, StartOptions(timeout, trusted), offline=offline), as_json=as_json)


async def _examine(server: str | None, start: StartOptions, *, offline: bool) -> CommandOutput:
    session = ServerSession(start, None if server is None else [server])
    with StepRecorder() as steps:
        async with session.engine as engine:
            loaded = await engine.load()
            known = {one.id: one for one in loaded.servers}
            if server is not None and server not in known:
                raise no_such("server", server, known)
            await engine.start()
            await in_daemon_thread(late.import_connection)  # which is not the servers' time
            sections = [program_section(), settings_section(loaded), folder_section(loaded)]
            sections.append(await model_section(loaded, session.redactor, offline=offline))
            await engine.wait_ready(start.timeout)
            sections += [
                server_section(view, known[view.id], session, steps) for view in session.views
            ]
    return _report(sections, session)


def _report(sections: list[DoctorSection], session: ServerSession) -> CommandOutput:
    """Write the sections, without secrets and without the name of the home."""
    clean = partial(_cleaned, session, str(Path.home()))
    failed = [section.title for section in sections if section.has_failed]
    end = f"Failed: {', '.join(failed)}." if failed else "Nothing failed."
    text = "\n".join(map(clean, "\n\n".join([*(one.text() for one in sections), end]).split("\n")))
    value: dict[str, Any] = mapped(
        {"sections": [one.json() for one in sections], "failed": failed}, clean
    )
    return CommandOutput(value, text, ExitCode.ERROR if failed else ExitCode.OK)


def _cleaned(session: ServerSession, home: str, text: str) -> str:
    return session.redactor.redact(text).replace(home, "~")
