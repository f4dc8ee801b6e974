"""How much of a result reaches the model, over a whole engine and a real server."""

import sys
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Script, deck
from tests.unit.engine.mcp.support import eventually
from tui.model.consent import Choice
from tui.model.servers import ServerStatus

SERVER: Final = """
from mcp.server import MCPServer

server = MCPServer("long")


@server.tool()
def long() -> str:
    return "x" * 5_000


server.run("stdio")
"""


@pytest.mark.parametrize(("limit", "least", "most"), [(1_000, 900, 1_200), (None, 5_000, 5_200)])
async def test_the_model_gets_as_much_of_a_result_as_the_settings_say(
    limit: int | None, least: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "long.py"
    file.write_text(SERVER, encoding="utf-8")
    entry = {"command": sys.executable, "args": [str(file)]}
    settings = {"mcpServers": {"long": entry}, "gemdeck": {"maxResultSize": limit}}
    script: Script = [[Call([("long", {})])], [Say("done")]]
    async with (
        FakeGemini(script) as fake,
        deck(fake, monkeypatch, settings=settings) as running,
    ):
        await eventually(lambda: running.status("long") is ServerStatus.READY)
        running.engine.send("go")
        await running.decide(Choice.ONCE)
        await running.idle()
    [part] = fake.requests[-1].contents[-1]["parts"]
    assert least <= len(part["functionResponse"]["response"]["output"]) <= most
