"""Imports run one way, and what is heavy is loaded late."""

import json
import shutil
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import grimp
import pytest

from tests.architecture.sources import ROOT

HEAVY: Final = frozenset(
    {
        *("textual", "rich", "mcp", "mcp_types", "google.genai", "pydantic", "jsonschema"),
        *("keyring", "json5", "httpx2", "httpx", "anyio", "regex"),
        *("tui.model.events", "tui.model.requests", "tui.store.reducer"),  # 75 data classes
    }
)
"""Packages that cost start-up time."""

LATER: Final = frozenset(
    {
        *("tui.model.consent", "tui.model.sessions"),
        *("tui.model.input.own_commands", "tui.model.input.typed"),
        *("tui.ui.widgets.chat.completion", "tui.ui.widgets.chat.transcript"),
        *("tui.ui.panes.servers_tree", "tui.ui.panes.browser", "tui.ui.pending", "tui.ui.opening"),
    }
)
"""Modules of what the first frame does not show."""

MAX_FIRST_MODULES: Final = 55
"""Modules of gemdeck before the first frame: each costs half a millisecond."""

_HTTP: Final = "tui.engine.mcp.transports.http"

CIRCLES: Final = {f"{_HTTP}.channels": {f"{_HTTP}.http_transport"}}
"""Imports that may close a circle: a transport makes the channel that answers to it."""

PLANTED: Final = (
    ("tui/model/catalog.py", "tui.engine.files.paths"),
    *(("tui/engine/files/paths.py", "tui.store.state"), ("tui/store/state.py", "tui.ui.bridge")),
    *(("tui/engine/files/paths.py", "textual"), ("tui/cli/__init__.py", "rich")),
    *(("tui/ui/bridge.py", "mcp"), ("tui/ui/main.py", "tui.ui.commands.palette")),
    *(("tui/ui/widgets/header.py", "tui.ui.panes.row"), ("tui/store/state.py", "google.genai")),
)
"""Imports that break each contract, in more than one place."""


SERVING: Final = frozenset(
    {"mcp.server", "starlette", "uvicorn", "sse_starlette", "click", "cryptography", "jsonschema"}
)
"""What a client of MCP has no use for: 16 MB."""


def run(code: str, *words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def loaded_by(module: str, then: str = "") -> set[str]:
    """List the modules that importing one loads, and running a statement after it."""
    script = f"import json, sys, {module}\n{then}\nprint(json.dumps(sorted(sys.modules)))"
    done = run(script)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def heavy_of(module: str) -> set[str]:
    """List the heavy packages that importing a module loads."""
    return loaded_by(module) & HEAVY


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package in a folder."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return run(command, "--no-cache", folder=folder)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tui", tmp_path / "tui", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    assert heavy_of("tui.cli") == set()


def test_the_first_frame_needs_nothing_of_the_engine_and_no_events() -> None:
    assert heavy_of("tui.compose") == {"textual", "rich"}


def test_the_first_frame_needs_few_modules_and_none_of_what_it_does_not_show() -> None:
    ours = {name for name in loaded_by("tui.compose") if name.startswith("tui")}
    assert not ours & LATER
    assert len(ours) <= MAX_FIRST_MODULES


def test_servers_start_before_anything_heavy_but_pydantic_is_loaded() -> None:
    ours = {name for name in HEAVY if name.startswith("tui.")}
    assert heavy_of("tui.engine.engine") - ours == {"pydantic"}


def test_a_run_without_a_screen_loads_no_textual() -> None:
    assert not heavy_of("tui.cli.headless") & {"textual", "rich", "keyring", "jsonschema"}


def test_connections_are_made_without_the_half_of_the_sdk_that_serves() -> None:
    late = "tui.engine.late"
    connecting = f"{late}.import_connection(); {late}.import_auth_requests()"
    loaded = loaded_by(late, connecting)
    assert {"mcp.client.client", "tui.engine.mcp.session.connection"} <= loaded
    assert not loaded & SERVING


def test_whoever_has_us_as_a_library_may_serve_as_well() -> None:
    code = (
        "import asyncio, tui.engine.late; tui.engine.late.import_connection()\n"
        "import mcp; from mcp.server.mcpserver import MCPServer\n"
        "async def main():\n"
        "    async with mcp.Client(MCPServer('in this process')) as client:\n"
        "        print((await client.list_tools()).tools, bool(mcp.stdio_server()))\n"
        "asyncio.run(main())"
    )
    done = run(code)
    assert (done.stdout, done.stderr) == ("[] True\n", "")


def test_the_first_dialog_loads_nothing_of_the_engine() -> None:
    assert not heavy_of("tui.ui.opening") & {"pydantic", "httpx2", "anyio", "mcp"}


def test_importing_the_model_and_the_store_loads_nothing() -> None:
    modules = "tui.text, tui.model.events, tui.model.consent, tui.store.store, tui.store.selectors"
    assert heavy_of(modules) <= {"tui.model.events", "tui.model.requests"}


def test_the_contracts_hold(copy: Path) -> None:
    done = lint_imports(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_no_modules_import_one_another_in_a_circle_late_or_for_types_either() -> None:
    graph = grimp.build_graph("tui", cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    for name, allowed in CIRCLES.items():
        imported[name] -= allowed
    TopologicalSorter(imported).prepare()  # raises a CycleError


def test_each_planted_import_breaks_a_contract(copy: Path) -> None:
    for file, imported in PLANTED:
        with (copy / file).open("a") as module:
            module.write(f"\nimport {imported}\n")
    done = lint_imports(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    for file, imported in PLANTED:
        name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        broken = f"{name} -> {imported.removesuffix('.genai')} (l."
        assert broken in done.stdout, f"{name} may import {imported}"


def test_every_layer_is_under_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    found = {
        f"tui.{path.stem}"
        for path in (ROOT / "tui").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert set(layers) == found - {"tui.__init__", "tui.__main__"}
