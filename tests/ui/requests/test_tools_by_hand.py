"""Tools that the user runs by hand, on the real app over the real engine and real servers."""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Select

from tests.conftest import World
from tests.ui.engine_deck import over_an_engine
from tests.ui.harness import screen_lines, until
from tui.engine.engine import Engine, EngineOptions
from tui.model.chat import ToolCallStatus, UserMessage
from tui.model.runs import ToolRun
from tui.model.servers import ServerId, ServerStatus
from tui.store.selectors import entries
from tui.store.store import Store
from tui.ui.dialogs.tool_run import RunScreen, SavedCallsScreen, ToolFormScreen
from tui.ui.panes import RunTool, ShowRun
from tui.ui.panes.browser import ToolsPane
from tui.ui.questions.form import FormQuestion
from tui.ui.widgets.forms.argument_form import FORM, JSON
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.json_tree import JsonTree
from tui.ui.widgets.text.labelled_text import LabelledText

pytestmark = [pytest.mark.slow]

SHOP: Final = ServerId("shop")

LIBRARY: Final = Path(__file__).parents[2] / "servers" / "library.py"

ADDRESS: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
    "required": ["city"],
}

ORDER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "what": {"type": "string", "description": "What to order"},
        "many": {"type": "integer", "default": 1, "minimum": 1, "maximum": 9},
        "price": {"type": "number"},
        "gift": {"type": "boolean", "default": False},
        "size": {"type": "string", "enum": ["small", "large"]},
        "extras": {"type": "array", "items": {"type": "string", "enum": ["ribbon", "card"]}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "to": ADDRESS,
        "pay": {
            "oneOf": [
                {
                    "title": "card",
                    "type": "object",
                    "properties": {"card": {"type": "string"}},
                    "required": ["card"],
                },
                {
                    "title": "invoice",
                    "type": "object",
                    "properties": {"customer": {"type": "string"}, "days": {"type": "integer"}},
                    "required": ["customer"],
                },
            ]
        },
    },
    "required": ["what"],
}

SAYS: Final[dict[str, Any]] = {
    "tools": {"echo": ["text"], "order": [], "wipe": [], "wait": [], "ask": [], "shape": []},
    "definitions": {
        "order": {"inputSchema": ORDER, "description": "Order something.\nMore of it."},
        "wipe": {"annotations": {"destructiveHint": True}, "description": "Wipe all."},
        "shape": {
            "outputSchema": {
                "type": "object",
                "properties": {"sides": {"type": "integer"}},
                "required": ["sides"],
            }
        },
    },
    "results": {
        "shape": {
            "content": [
                {"type": "text", "text": "a shape, see https://example.org/shape"},
                {"type": "resource_link", "uri": "note://shape", "name": "the note"},
            ],
            "structuredContent": {"sides": "three"},
        },
    },
    "resources": ["note://shape"],
    "silent": ["wait"],
    "before": {
        "wait": [
            {
                "method": "notifications/progress",
                "params": {"progress": 3, "total": 12, "message": "third of twelve"},
            }
        ],
        "ask": [
            {
                "id": "asked",
                "method": "elicitation/create",
                "params": {
                    "message": "Which colour?",
                    "requestedSchema": {
                        "type": "object",
                        "properties": {"colour": {"type": "string"}},
                        "required": ["colour"],
                    },
                },
            }
        ],
    },
}


@dataclass
class ByHand:
    """The real app over the real engine, with one server."""

    engine: Engine
    store: Store
    pilot: Pilot[int]
    record: Path

    async def until(self, condition: Any) -> None:  # noqa: ANN401 - whatever is true
        await until(self.pilot, condition)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def text(self) -> str:
        return "\n".join(screen_lines(self.pilot.app))

    @property
    def form(self) -> ToolFormScreen:
        screen = self.pilot.app.screen
        assert isinstance(screen, ToolFormScreen), screen
        return screen

    @property
    def runs(self) -> list[ToolRun]:
        return [*self.store.state.runs.values()]

    def is_on(self, kind: type[Any]) -> bool:
        return isinstance(self.pilot.app.screen, kind)

    def sent(self, method: str) -> list[Mapping[str, Any]]:
        """Give the parameters of the messages of a kind that the server got."""
        lines = self.record.read_text("utf-8").splitlines() if self.record.exists() else []
        return [one["params"] for one in map(json.loads, lines) if one.get("method") == method]

    async def open(self, tool: str, arguments: str | None = None, server: str = "shop") -> None:
        self.pilot.app.screen_stack[0].post_message(RunTool(ServerId(server), tool, arguments))
        await self.until(lambda: self.is_on(ToolFormScreen))
        await self.pilot.pause()

    async def run(self) -> RunScreen:
        """Run what the form has, and wait for the screen of the run."""
        await self.press("ctrl+s")
        await self.until(lambda: self.is_on(RunScreen))
        screen = self.pilot.app.screen
        assert isinstance(screen, RunScreen)
        return screen

    async def ended(self, number: int, status: ToolCallStatus = ToolCallStatus.OK) -> RunScreen:
        """Wait until that many runs have ended, the last one so, and it is shown."""
        await self.until(lambda: len(self.runs) == number and self.runs[-1].call.status is status)
        screen = self.pilot.app.screen
        assert isinstance(screen, RunScreen)
        await self.until(lambda: screen._filled is self.runs[-1] and screen.body.children)
        await self.pilot.pause()
        return screen

    def row(self, key: str) -> Any:  # noqa: ANN401 - of any kind
        return next(one for one in self.form.editor.form.rows if one.field.key == key).control


@asynccontextmanager
async def by_hand(
    world: World,
    says: Mapping[str, Any] = SAYS,
    settings: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> AsyncIterator[ByHand]:
    """Run with a server that does as it is told."""
    record, spec = world.home / "record", world.home / "says.json"
    spec.write_text(json.dumps({**says, "record": str(record)}))
    entry = {"command": sys.executable, "args": [str(LIBRARY), str(spec)]}
    path, workspace = world.home / ".gemini" / "settings.json", world.home / "shop"
    path.parent.mkdir(exist_ok=True)
    servers = {"shop": entry, **(more or {})}
    path.write_text(json.dumps({"mcpServers": servers, **(settings or {})}))
    workspace.mkdir(exist_ok=True)
    options = EngineOptions(workspace, follow_settings=False, attended=True, needs_model=False)
    async with over_an_engine(options) as (engine, store, _, pilot):
        ready = ServerStatus.READY
        await until(
            pilot,
            lambda: (
                len(store.state.servers) == len(servers)
                and all(one.status is ready for one in store.state.servers)
            ),
        )
        yield ByHand(engine, store, pilot, record)


async def test_a_tool_runs_from_its_pane_again_edited_compared_saved_and_sent(
    world: World,
) -> None:
    async with by_hand(world) as hand:
        await hand.press("f3")
        pane = hand.pilot.app.screen.query_one(ToolsPane)
        await hand.until(lambda: pane.entries.current is not None)
        await hand.press("r")
        await hand.until(lambda: hand.is_on(ToolFormScreen))
        assert "Run echo of shop" in hand.text
        await hand.press(*"hello")
        assert json.loads(hand.form.editor.json.text) == {"text": "hello"}, "in step"
        await hand.run()
        await hand.ended(1)
        assert hand.sent("tools/call")[-1]["arguments"] == {"text": "hello"}
        assert 'echo {"text": "hello"}' in hand.text
        assert "✓ ran" in hand.text
        assert not hand.store.state.pending, "nothing was asked"
        await hand.press("r")
        await hand.ended(2)
        await hand.press("d")
        assert "the same with the same arguments" in hand.text
        await hand.press("e")
        await hand.until(lambda: hand.is_on(ToolFormScreen))
        assert hand.row("/text").value == "hello"
        await hand.press("end", *" you")
        await hand.run()
        screen = await hand.ended(3)
        await hand.press("d")
        await hand.until(lambda: screen.query(LabelledText))
        await hand.pilot.pause()
        assert '-   "text": "hello"' in hand.text.replace("│", "")
        assert '+   "text": "hello you"' in hand.text.replace("│", "")
        await hand.press("n", *"1 x", "enter")
        assert "Saved" not in hand.text
        assert not hand.store.state.saved_calls
        screen.name_line.value = ""
        await hand.press(*"hi", "enter")
        await hand.until(lambda: hand.store.state.saved_calls)
        assert "Saved: gemdeck mcp call shop @hi" in hand.text
        await hand.press("y")
        assert hand.pilot.app.clipboard == "gemdeck mcp call shop echo 'text=hello you'"
        await hand.press("t", "s")
        await hand.until(lambda: [*(world.home / "shop").glob("*")])
        [written] = (world.home / "shop").glob("*")
        assert "hello you" in written.read_text("utf-8")
        await hand.press("m")
        await hand.until(lambda: any(isinstance(one, UserMessage) for one in entries(hand.store.state)))
        message = next(one for one in entries(hand.store.state) if isinstance(one, UserMessage))
        assert "I ran echo of shop myself" in message.text
        assert "hello you" in message.text
        assert message.servers == (SHOP,)
        await hand.press("f3")
        assert "saved calls" in hand.text
        assert "hi" in hand.text
