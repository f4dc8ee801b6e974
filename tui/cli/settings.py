"""``gemdeck settings``: the files, what counts and from where, and what is wrong."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tui.cli.command import CommandOutput, prints, prints_json
from tui.cli.output import ExitCode, say, table
from tui.engine.definitions.definition import shown_target
from tui.engine.files.paths import usable_state_dir
from tui.engine.reload import read_settings
from tui.engine.settings.edits import begin_settings
from tui.engine.settings.entries import server_entries, server_id
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.origins import Layers, merged, settings_schema
from tui.engine.settings.prohibitions import extension_rule
from tui.engine.settings.sources.source import Report, layer_files, read_extensions, read_layer
from tui.engine.trust.folder_identity import identify
from tui.engine.trust.opened_folder import OpenedFolder
from tui.model.servers import Origin
from tui.text import sanitize_line


@click.group()
def settings() -> None:
    """Inspect the settings files: where they are, what is in effect, and what is wrong."""


@settings.command(epilog="Example: gemdeck settings path")
@prints_json
async def path() -> CommandOutput:
    """List the settings files for this folder, lowest precedence first."""
    files = Layers(Path.cwd(), Path.home(), os.environ, usable_state_dir()).files
    value = [
        {"file": str(one.path), "layer": one.origin.value, "state": one.state} for one in files
    ]
    rows = [(one.origin.value, one.state, one.file) for one in files]
    return CommandOutput({"files": value}, table(rows))


@settings.command(epilog="Example: gemdeck settings show --json")
@prints_json
async def show() -> CommandOutput:
    """Show the settings in effect, and the file and line each comes from."""
    loaded, layers = load(), Layers(Path.cwd(), Path.home(), os.environ, usable_state_dir())
    found = list(layers.settings(loaded))
    servers: list[dict[str, Any]] = [
        {
            "name": one.id,
            "target": shown_target(one),
            "origin": one.entry.origin.value,
            "places": list(layers.server_places(one.id)) or [one.entry.source],
            "reason": one.failure.reason if one.failure is not None else "",
        }
        for one in loaded.servers
    ]
    rows = [
        (one.key, _brief(one.value), places_text(one.places, adds_up=one.adds_up)) for one in found
    ]
    for one in servers:
        where = "; ".join(filter(None, (places_text(one["places"]), one["reason"])))
        rows.append((f"mcpServers.{one['name']}", _clipped(one["target"]), where))
    settings_found = [asdict(one) for one in found]
    value = {"merged": merged(found), "settings": settings_found, "servers": servers}
    return CommandOutput(value, table(rows))


@settings.command(epilog="Example: gemdeck settings check")
@prints_json
async def check() -> CommandOutput:
    """Check the files; the exit code is 52 if one cannot be used at all."""
    return _checked()


@settings.command(epilog="Example: gemdeck settings schema > ~/.gemini/settings.schema.json")
@prints
async def schema() -> CommandOutput:
    """Print the JSON Schema of a settings file, for editors."""
    return CommandOutput({}, json.dumps(settings_schema(), indent=2))


@settings.command(epilog="Example: gemdeck settings edit")
@prints
async def edit() -> CommandOutput:
    """Open your settings in your editor ($VISUAL, $EDITOR), creating the file if needed."""
    click.edit(filename=str(begin_settings(Path.home())))
    return _checked()


def _checked() -> CommandOutput:
    from tui.ui.questions.own_keys import check_keys  # noqa: PLC0415 - imports Textual

    problems = read_settings(opened_folder(), None, check_keys=check_keys).settings.problems
    value = {"problems": [asdict(one) for one in problems]}
    is_fatal, is_wrong = any(one.fatal for one in problems), any(not one.quiet for one in problems)
    code = ExitCode.BAD_SETTINGS if is_fatal else ExitCode.ERROR if is_wrong else ExitCode.OK
    return CommandOutput(value, "\n".join(map(str, problems)) or "No problems found.", code)


def places_text(places: list[str] | tuple[str, ...], *, adds_up: bool = False) -> str:
    """Say where a setting comes from, and what it overrides."""
    first, *others = places
    word = "and" if adds_up else "overrides"
    return f"{first} ({word} {', '.join(others)})" if others else first


def _brief(value: object) -> str:
    return _clipped(json.dumps(value, ensure_ascii=False)) if value not in ("", None) else "-"


def _clipped(text: str) -> str:
    return sanitize_line(text, 60)


def load() -> LoadedSettings:
    """Read the settings of this folder as a run without a screen does. Blocks."""
    return read_settings(opened_folder(), None).settings


def opened_folder() -> OpenedFolder:
    """Open this folder as a run without a screen does."""
    return OpenedFolder(Path.cwd(), Path.home(), usable_state_dir(), (), say, attended=False)


def server_names(_context: object, _parameter: object, incomplete: str) -> list[str]:
    """Complete the name of a server: of the user's, and of those the folder was trusted with.

    Those are in the user's own record. No file of the folder is read: it may be anybody's.
    """
    opened, report = opened_folder(), Report(Path.home())
    home, state = opened.home, opened.state
    layers = layer_files(opened.folder, environ=os.environ, home=home, state=state)
    read = (read_layer(one, report) for one in layers if one.origin is not Origin.PROJECT)
    sources = [one for one in read if one is not None]
    refusal = extension_rule(sources, os.environ)
    named = server_entries([*read_extensions(opened.folder, report, refusal), *sources])
    standing = opened.standing(identify(opened.folder))
    before = standing.content if not standing.swapped else None
    brought = [one.name for one in before.servers] if before is not None else []
    names = [*(server_id(one.name) for one in named), *brought]
    return [one for one in dict.fromkeys(names) if one.startswith(incomplete) and one[:1] != "-"]


server_argument = click.argument("server", shell_complete=server_names)
