"""Records what a real server answers to a few calls, as it comes over stdio.

    python3 -m tests.unit.engine.mcp.recorded.record NAME COMMAND…

It makes the calls that ``NAME.json`` holds, and records their results anew. In the command
``{folder}`` is a folder with a note, a picture, a repository and a page; in the recording it is
``/home/user/shop``. What was used:

    everything   node …/server-everything/dist/index.js stdio
    filesystem   node …/server-filesystem/dist/index.js {folder}
    memory       node …/server-memory/dist/index.js  (MEMORY_FILE_PATH names a new file)
    git          mcp-server-git --repository {folder}
    sqlite       mcp-server-sqlite --db-path {folder}/shop.db  (needs mcp below 2)
    playwright   npx @playwright/mcp --headless --isolated --no-sandbox --executable-path …/chromium
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.servers.sample import PIXEL

SHOWN: Final = "/home/user/shop"
SHOWN_PORT: Final = "8080"
_PAGE: Final = "<title>Shop</title><h1>Bread</h1><a href='/'>Home</a><button>Buy</button>"
_QUIET: Final = {
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "shop"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "shop"),
    **dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-01-02T03:04:05Z"),
    **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
}


def prepare(folder: Path) -> None:
    """Put into a folder what the calls look at."""
    (folder / "notes.txt").write_text("milk\nbread — 2 €\n", encoding="utf-8")
    (folder / "page.html").write_text(_PAGE, encoding="utf-8")
    (folder / "picture.png").write_bytes(base64.b64decode(PIXEL))
    for words in (["init", "-q", "-b", "main"], ["add", "notes.txt"], ["commit", "-qm", "Start"]):
        environment = os.environ | _QUIET
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True)


class _Server:
    """A process that speaks JSON-RPC, one message a line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._back = process.stdin, process.stdout

    def send(self, method: str, **more: object) -> None:
        self._to.write(json.dumps({"jsonrpc": "2.0", "method": method, **more}) + "\n")
        self._to.flush()

    def ask(self, number: int, method: str, params: object) -> dict[str, Any]:
        """Send a request and return the result as it came."""
        self.send(method, id=number, params=params)
        answer: dict[str, Any] = {}
        while answer.get("id") != number or "method" in answer:
            answer = json.loads(self._back.readline())
        result: dict[str, Any] = answer["result"]
        return result


def record(name: str, command: Sequence[str], folder: Path) -> str:
    """Run a server and return its results as JSON, without the traces of this machine."""
    prepare(folder)
    serve = partial(SimpleHTTPRequestHandler, directory=str(folder))
    web = ThreadingHTTPServer(("127.0.0.1", 0), serve)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    port = str(web.server_address[1])

    calls = Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8")
    calls = calls.replace(SHOWN, str(folder)).replace(f":{SHOWN_PORT}/", f":{port}/")
    with subprocess.Popen(
        [word.replace("{folder}", str(folder)) for word in command],
        cwd=folder,
        env=os.environ | {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        server = _Server(process)
        hello: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}}
        hello["clientInfo"] = {"name": "recorder", "version": "1"}
        server.ask(0, "initialize", hello)
        server.send("notifications/initialized")
        results = []
        for number, one in enumerate(json.loads(calls), 1):
            given = {"name": one["tool"], "arguments": one["arguments"]}
            results.append(one | {"result": server.ask(number, "tools/call", given)})
        process.terminate()
    web.shutdown()
    text = json.dumps(results, ensure_ascii=False, indent=1)
    return text.replace(str(folder), SHOWN).replace(f":{port}/", f":{SHOWN_PORT}/")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        recorded = record(sys.argv[1], sys.argv[2:], Path(place).resolve())
    Path(__file__).with_name(f"{sys.argv[1]}.json").write_text(recorded + "\n", encoding="utf-8")
