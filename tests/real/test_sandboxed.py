"""Reference servers in a sandbox, each given as little as it needs: the table of the manual."""

import http.server
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.definitions import define_server
from tests.support.node import PROJECT, node_executable, node_server
from tests.unit.engine.mcp.support import call, ready
from tui.engine.definitions.definition import Sandbox
from tui.engine.mcp.manager import ServerManager

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a sandbox"),
    pytest.mark.usefixtures("sandboxes"),
]

BROWSER: Final = shutil.which("chromium") or shutil.which("google-chrome") or ""
PACKAGES: Final = (PROJECT,)
"""Where the servers for Node.js are installed; beside `npx`, an entry names such a folder."""


@dataclass(frozen=True)
class Place:
    """An opened folder that is a repository, another folder, and a site on loopback."""

    opened: Path
    other: Path
    site: str


@dataclass(frozen=True)
class Case:
    """A server, what its sandbox is given, and a call that needs it.

    Attributes:
        command: Its command line.
        sandbox: What it is given.
        tool: The tool that is called.
        arguments: The arguments of the call.
        gives: A pattern of the result.
        without: A pattern of the result of the same call in a sandbox that is given no more than
            the server's own program, if that is less.
        env: Variables of its entry.
    """

    command: Callable[[Place], tuple[str, list[str]]]
    tool: str
    arguments: Callable[[Place], Mapping[str, Any]]
    gives: str
    sandbox: Callable[[Place], Sandbox] = lambda _: Sandbox()
    without: str = ""
    env: Callable[[Place], Mapping[str, str]] = field(default=lambda _: {})


def python_server(name: str, *args: str) -> tuple[str, list[str]]:
    return str(Path(sys.executable).with_name(f"mcp-server-{name}")), [*args]


def browser_server() -> tuple[str, list[str]]:
    script = PROJECT / "node_modules/@playwright/mcp/cli.js"
    options = ["--headless", "--isolated", "--no-sandbox", "--executable-path", BROWSER]
    return str(node_executable()), [str(script), *options]


NOON: Final = {"source_timezone": "Europe/Kyiv", "time": "12:00", "target_timezone": "Asia/Tokyo"}
ADA: Final = {"entities": [{"name": "Ada", "entityType": "person", "observations": []}]}

CASES: Final = {
    "everything": Case(
        lambda _: node_server("everything", "stdio"),
        "get-sum",
        lambda _: {"a": 2, "b": 40},
        "2 and 40 is 42",
    ),
    "filesystem, two opened folders": Case(
        lambda at: node_server("filesystem", str(at.opened), str(at.other)),
        "write_file",
        lambda at: {"path": str(at.other / "new.txt"), "content": "x"},
        "Successfully wrote",
    ),
    "git, status": Case(
        lambda at: python_server("git", "--repository", str(at.opened)),
        "git_status",
        lambda at: {"repo_path": str(at.opened)},
        "untracked.txt",
    ),
    "git, add": Case(
        lambda at: python_server("git", "--repository", str(at.opened)),
        "git_add",
        lambda at: {"repo_path": str(at.opened), "files": ["untracked.txt"]},
        "staged",
        lambda at: Sandbox(write=(at.opened / ".git",)),
        "Read-only file system",
    ),
    "memory": Case(
        lambda _: node_server("memory"),
        "create_entities",
        lambda _: ADA,
        "Ada",
        env=lambda at: {"MEMORY_FILE_PATH": str(at.opened / "memory.jsonl")},
    ),
    "time": Case(
        lambda _: python_server("time"), "convert_time", lambda _: NOON, r"T1[89]:00:00\+09:00"
    ),
    "fetch": Case(
        lambda _: python_server("fetch", "--ignore-robots-txt", "--allow-private-ips"),
        "fetch",
        lambda at: {"url": at.site, "raw": True},
        "fresh milk",
        lambda _: Sandbox(network=True),
        "Failed to fetch",
    ),
    "browser": Case(
        lambda _: browser_server(),
        "browser_navigate",
        lambda at: {"url": at.site},
        "Page Title: Shop",
        lambda _: Sandbox(network=True),
        "ERR_",
    ),
}


class Site(http.server.BaseHTTPRequestHandler):
    """One page."""

    def do_GET(self) -> None:
        """Answer every request."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>Shop</title><p>fresh milk</p>")

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Open a repository, beside another folder and a site."""
    opened, other = tmp_path / "opened", tmp_path / "other"
    other.mkdir()
    subprocess.run(["git", "init", "--quiet", str(opened)], check=True)
    (opened / "untracked.txt").write_text("x")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield Place(opened, other, f"http://127.0.0.1:{server.server_port}/")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_reference_server_needs_so_much_in_its_sandbox(case: Case, place: Place) -> None:
    command, args = case.command(place)
    if BROWSER in args and not BROWSER:
        pytest.skip("there is no browser here")

    async def outcome(box: Sandbox) -> str:
        given = Sandbox((*box.read, *PACKAGES), box.write, box.network)
        definition = define_server(
            "one", command=command, args=tuple(args), env=case.env(place), sandbox=given
        )
        async with ready(definition, workspace=place.opened, others=(place.other,)) as (manager, _):
            return await answer(manager)

    async def answer(manager: ServerManager) -> str:
        [tool] = [one for one in manager.offered_tools() if one.name == case.tool]
        result = await call(manager, tool.id, dict(case.arguments(place)))
        return ("refused: " if result.is_error else "") + result.display

    if case.without:
        assert re.search(case.without, await outcome(Sandbox()))
    found = await outcome(case.sandbox(place))
    assert not found.startswith("refused")
    assert re.search(case.gives, found), found
