"""``gemdeck settings``: the files, what counts and from where, and what is wrong."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tui.cli.command import CommandOutput, finish, json_option
from tui.cli.output import ExitCode, say, table
from tui.engine.definitions.definition import shown_target
from tui.engine.files.paths import usable_state_dir
from tui.engine.reload import read_settings
from tui.engine.settings.edits import begin_settings
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.origins import Layers, Setting, merged, settings_schema
from tui.engine.trust.folder_gate import OpenedFolder
from tui.text import sanitize_line


@click.group()
def settings() -> None:
    """Look at the settings files: where they are, what counts, and what is wrong."""


@settings.command(epilog="Example: gemdeck settings path")
@json_option
def path(*, as_json: bool) -> None:
    """List the settings files of this folder, lowest layer first."""
    finish(_path(), as_json=as_json)


@settings.command(epilog="Example: gemdeck settings show --json")
@json_option
def show(*, as_json: bool) -> None:
    """Show what counts, and the file and line it comes from."""
    finish(_show(), as_json=as_json)


@settings.command(epilog="Example: gemdeck settings check")
@json_option
def check(*, as_json: bool) -> None:
    """Say what is wrong in the files; the exit code is 52 if one cannot be used at all."""
    finish(_check(), as_json=as_json)


@settings.command(epilog="Example: gemdeck settings schema > ~/.gemini/settings.schema.json")
def schema() -> None:
    """Print the JSON Schema of a settings file, for editors."""
    finish(_schema(), as_json=False)


@settings.command(epilog="Example: gemdeck settings edit")
def edit() -> None:
    """Open your settings in your editor ($VISUAL, $EDITOR); they are begun if there are none."""
    file, _ = begin_settings(Path.home())
    click.edit(filename=str(file))
    finish(_check(), as_json=False)


async def _path() -> CommandOutput:
    files = _layers().files
    value = [
        {"file": str(one.path), "layer": one.origin.value, "state": one.state} for one in files
    ]
    rows = [(one.origin.value, one.state, one.file) for one in files]
    return CommandOutput({"files": value}, table(rows))


async def _show() -> CommandOutput:
    loaded, layers = load(), _layers()
    found = list(layers.settings(loaded))
    servers = [
        {
            "name": one.id,
            "target": shown_target(one),
            "origin": one.origin.value,
            "places": list(layers.server_places(one.id)) or [one.source],
            "reason": one.failure.reason if one.failure is not None else "",
        }
        for one in loaded.servers
    ]
    value = {
        "merged": merged(found),
        "settings": [asdict(one) for one in found],
        "servers": servers,
    }
    rows = [*(_row(one) for one in found), *map(_server_row, servers)]
    return CommandOutput(value, table(rows))


def _row(setting: Setting) -> tuple[str, str, str]:
    return setting.key, _brief(setting.value), places_text(setting.places, adds_up=setting.adds_up)


def _server_row(server: dict[str, Any]) -> tuple[str, str, str]:
    words = places_text(server["places"])
    more = f"; {server['reason']}" if server["reason"] else ""
    return f"mcpServers.{server['name']}", _clipped(server["target"]), f"{words}{more}"


def places_text(places: list[str] | tuple[str, ...], *, adds_up: bool = False) -> str:
    """Say where a setting stands, and what it wins over."""
    first, *others = places
    word = "and" if adds_up else "over"
    return f"{first} ({word} {', '.join(others)})" if others else first


def _brief(value: object) -> str:
    return _clipped(json.dumps(value, ensure_ascii=False)) if value not in ("", None) else "-"


def _clipped(text: str) -> str:
    return sanitize_line(text, 60)


async def _check() -> CommandOutput:
    problems = load().problems
    value = {"problems": [asdict(one) for one in problems]}
    is_fatal = any(one.fatal for one in problems)
    code = ExitCode.BAD_SETTINGS if is_fatal else ExitCode.ERROR if problems else ExitCode.OK
    return CommandOutput(value, "\n".join(map(str, problems)) or "Nothing is wrong.", code)


async def _schema() -> CommandOutput:
    return CommandOutput({}, json.dumps(settings_schema(), indent=2))


def load() -> LoadedSettings:
    """Read the settings of this folder as a run without a screen does. Blocks."""
    opened = OpenedFolder(Path.cwd(), Path.home(), usable_state_dir(), (), say, attended=False)
    return read_settings(opened, None).settings


def server_names(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete the name of a server of the settings."""
    return [one.id for one in load().servers if one.id.startswith(incomplete)]


def _layers() -> Layers:
    return Layers(Path.cwd(), Path.home(), os.environ)
