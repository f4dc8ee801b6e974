"""Tools that the user runs by hand, on the real app over the real engine and real servers."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.running import library
from tests.real.catalogue import prepare
from tests.security.decks import Turncoat, tool
from tests.support.node import node_server
from tests.support.pictures import picture
from tests.support.waiting import whole_lines
from tests.ui.engine_deck import EngineDeck, engine_deck
from tui.model.chat import ToolCallStatus, UserMessage
from tui.model.runs import ToolRun
from tui.model.servers import ServerId, ServerStatus
from tui.store.selectors import entries
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.dialogs.tool_run import RunScreen, ToolFormScreen
from tui.ui.messages import RunTool
from tui.ui.panes.browser import ToolsPane
from tui.ui.questions.calls.steps import EditArgumentsScreen
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.form import FormQuestion
from tui.ui.questions.question import Question
from tui.ui.widgets.forms.argument_form import BESIDE, FORM, JSON, TEXT, ArgumentEditor
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.json_tree import JsonTree
from tui.ui.widgets.text.labelled_text import LabelledText

pytestmark = [pytest.mark.slow]

SHOP: Final = ServerId("shop")

WORD: Final = {"type": "string"}


def record(*required: str, **properties: object) -> dict[str, Any]:
    """Make the schema of an object."""
    return {"type": "object", "properties": properties, "required": [*required]}


ADDRESS: Final = record("city", city=WORD, zip=WORD)

ORDER: Final = record(
    "what",
    what={"type": "string", "description": "What to order"},
    many={"type": "integer", "default": 1, "minimum": 1, "maximum": 9},
    price={"type": "number"},
    gift={"type": "boolean", "default": False},
    size={"type": "string", "enum": ["small", "large"]},
    extras={"type": "array", "items": {"type": "string", "enum": ["ribbon", "card"]}},
    tags={"type": "array", "items": WORD},
    to=ADDRESS,
    pay={
        "oneOf": [
            {"title": "card", **record("card", card=WORD)},
            {"title": "invoice", **record("customer", customer=WORD, days={"type": "integer"})},
        ]
    },
)

ITEM: Final = record(
    "sku", sku=WORD, count={"type": "integer", "default": 1}, gift={"type": "boolean"}
)
PARCEL: Final = record(
    "speed",
    "items",
    to=record(address=record("street", street={**WORD, "title": "Street"})),
    speed={"enum": ["fast", "safe"], "type": "string", "description": "How it goes"},
    items={"type": "array", "items": ITEM, "minItems": 1},
)

LINKS: Final = (
    {"type": "text", "text": "a shape, see https://example.org/shape"},
    {"type": "resource_link", "uri": "note://shape", "name": "the note"},
)
PROGRESS: Final = {"progress": 3, "total": 12, "message": "third of twelve"}
COLOUR: Final = {
    "message": "Which colour?",
    "requestedSchema": record("colour", colour=WORD),
}

TOOLS: Final = ("order", "parcel", "wipe", "wait", "ask", "shape", "draw")
SAYS: Final[dict[str, Any]] = {
    "tools": {"echo": ["text"], **{name: [] for name in TOOLS}},
    "definitions": {
        "order": {"inputSchema": ORDER, "description": "Order something.\nMore of it."},
        "parcel": {"inputSchema": PARCEL},
        "wipe": {"annotations": {"destructiveHint": True}, "description": "Wipe all."},
        "shape": {"outputSchema": record("sides", sides={"type": "integer"})},
    },
    "results": {
        "draw": {"content": [{"type": "image", "data": picture().data, "mimeType": "image/png"}]},
        "shape": {"content": LINKS, "structuredContent": {"sides": "three"}},
    },
    "resources": ["note://shape"],
    "silent": ["wait"],
    "before": {
        "ask": [
            {"method": "notifications/progress", "params": PROGRESS},
            {"id": "asked", "method": "elicitation/create", "params": COLOUR},
        ]
    },
}


@dataclass
class ByHand(EngineDeck):
    """The app with one server, and what that was told."""

    over: int = 0
    """How many runs have ended."""

    @property
    def form(self) -> ToolFormScreen:
        assert isinstance(self.app.screen, ToolFormScreen), self.app.screen
        return self.app.screen

    @property
    def runs(self) -> list[ToolRun]:
        return [*self.store.state.runs.values()]

    def sent(self, method: str) -> list[Mapping[str, Any]]:
        """Give the parameters of the messages of a kind that the server got."""
        lines = whole_lines(Path.home() / "record")
        return [one["params"] for one in map(json.loads, lines) if one.get("method") == method]

    async def open(self, tool: str, arguments: str | None = None, server: str = "shop") -> None:
        self.app.deck.post_message(RunTool(ServerId(server), tool, arguments))
        await self.come(ToolFormScreen)
        await self.pilot.pause()

    async def run(self) -> RunScreen:
        """Run what the form has, and wait for the screen of the run."""
        await self.press("ctrl+s")
        return await self.come(RunScreen)

    async def ended(self, status: ToolCallStatus = ToolCallStatus.OK) -> RunScreen:
        """Wait until the next run has ended so, and is shown."""
        self.over += 1
        await self.until(lambda: len(self.runs) == self.over)
        await self.until(lambda: self.runs[-1].call.status is status)
        screen = await self.come(RunScreen)
        await self.until(lambda: screen._filled is self.runs[-1] and screen.body.children)
        await self.pilot.pause()
        return screen

    async def home(self) -> None:
        """Close all dialogs."""
        while len(self.app.screen_stack) > 1:
            await self.press("escape")

    def row(self, key: str) -> Any:  # noqa: ANN401 - of any kind
        return next(one for one in self.form.editor.form.rows if one.field.key == key).control


@asynccontextmanager
async def by_hand(
    says: Mapping[str, Any] = SAYS, more: Mapping[str, Any] | None = None, **settings: object
) -> AsyncIterator[ByHand]:
    """Run with a server that does as it is told."""
    shop = library(**says, record=str(Path.home() / "record"))
    servers = {"shop": shop, **(more or {})}
    async with engine_deck(ByHand, {"mcpServers": servers, **settings}) as hand:
        for name in servers:
            await hand.reaches(name, ServerStatus.READY)
        await hand.pilot.resize_terminal(BESIDE, 40)
        yield hand


async def test_calls_by_hand_are_kept_listed_and_compared() -> None:
    async with by_hand() as hand:
        await hand.press("f3", "h")
        await hand.until(lambda: "You have not run a tool yourself yet" in hand.text)
        for word in ("one", "two", "three"):
            await hand.open("echo", json.dumps({"text": word}))
            await hand.run()
            await hand.ended()
            await hand.home()
        await hand.press("ctrl+o")
        screen = await hand.come(RunScreen)
        assert screen._run is hand.runs[-1]
        await hand.press("d")
        dialog = await hand.come(ListDialog)
        assert [run for run, *_ in offered(dialog)] == hand.runs[1::-1], "the newest first"
        await hand.press("down", "enter")
        await hand.until(lambda: screen.query(LabelledText) and '"text": "one"' in hand.text)
        assert '"text": "two"' not in hand.text
        await hand.press("escape")
        await hand.until(lambda: not screen.query(LabelledText))
        assert hand.app.screen is screen
        await hand.press("escape", "h")
        dialog = await hand.come(ListDialog)
        found = offered(dialog)
        assert [run for run, *_ in found] == hand.runs[::-1]
        assert "✓ echo  shop" in found[0][1]
        assert "three" in found[0][1]
        await hand.press(*"two", "enter")
        screen = await hand.come(RunScreen)
        assert screen._run is hand.runs[1]


def offered(dialog: ListDialog[ToolRun]) -> list[tuple[ToolRun, str]]:
    """Give the calls that a list offers, and their rows."""
    return [(one.item, one.row.label) for one in dialog.listed.shown]


async def test_a_tool_runs_from_its_pane_and_what_was_typed_is_there_again() -> None:
    async with by_hand() as hand:
        # A tool runs from its pane again edited compared saved and sent.
        await hand.press("f3")
        listed = hand.app.screen.query_one(ToolsPane).entries
        await hand.until(lambda: [one for one in listed.shown if one.item[1].name == "echo"])
        listed.select(next(one.item for one in listed.shown if one.item[1].name == "echo"))
        await hand.press("r")
        await hand.come(ToolFormScreen)
        await hand.until(lambda: "Run echo (shop)" in hand.text)
        await hand.press(*"hello")
        assert json.loads(hand.form.editor.json.text) == {"text": "hello"}, "in step"
        await hand.run()
        await hand.ended()
        assert hand.sent("tools/call")[-1]["arguments"] == {"text": "hello"}
        assert 'echo {"text": "hello"}' in hand.text
        assert "✓ ran" in hand.text
        assert not hand.store.state.pending, "nothing was asked"
        await hand.press("r")
        await hand.ended()
        await hand.press("d")
        assert "Same arguments, same result" in hand.text
        await hand.press("e")
        await hand.come(ToolFormScreen)
        assert hand.row("/text").value == "hello"
        await hand.press("end", *" you")
        await hand.run()
        screen = await hand.ended()
        await hand.press("d")
        await hand.come(ListDialog)
        await hand.press("enter")
        await hand.until(lambda: screen.query(LabelledText))
        await hand.pilot.pause()
        assert re.search(r'- +"text": "hello" ', hand.text)
        assert re.search(r'\+ +"text": "hello you"', hand.text)
        for _ in screen.views:
            await hand.press("t")
        await hand.until(lambda: screen.query(LabelledText) and '"text": "hello you"' in hand.text)
        await hand.press("n", *"1 x", "enter")
        assert "Saved" not in hand.text
        assert not hand.store.state.saved_calls
        screen.name_line.value = ""
        await hand.press(*"hi", "enter")
        await hand.until(lambda: hand.store.state.saved_calls)
        assert "Saved: gemdeck mcp call shop @hi" in hand.text
        await hand.press("y")
        assert hand.app.clipboard == "gemdeck mcp call shop echo 'text=hello you'"
        await hand.press("t", "s")
        written = await hand.written("result-echo-1.txt")
        assert "hello you" in written.read_text("utf-8")
        await hand.press("m")
        await hand.until(
            lambda: any(isinstance(one, UserMessage) for one in entries(hand.store.state))
        )
        message = next(one for one in entries(hand.store.state) if isinstance(one, UserMessage))
        assert "I ran echo of shop myself" in message.text
        assert "hello you" in message.text
        assert message.servers == (SHOP,)
        await hand.press("f3")
        assert "saved calls" in hand.text
        assert "hi" in hand.text
        # What was typed is there again and json that is not complete.
        await hand.home()
        await hand.open("order")
        await hand.press(*"tea")
        hand.row("/many").value = "x"
        hand.row("/price").value = "3.5"
        await hand.press("escape")
        await hand.open("order")
        assert (hand.row("/what").value, hand.row("/price").value) == ("tea", "3.5")
        await hand.pilot.resize_terminal(80, 24)
        await hand.until(lambda: not hand.form.editor.has_class("-beside"))
        assert '"what": "tea"' not in hand.text
        await hand.press("ctrl+t", *'"')
        assert hand.form.editor.current == JSON
        assert '"what": "tea"' in hand.text
        await hand.press("ctrl+s")
        assert "Not valid JSON yet" in hand.text
        text = hand.form.editor.json.text
        await hand.press("escape")
        await hand.open("order")
        assert (hand.form.editor.current, hand.form.editor.json.text) == (JSON, text)
        await hand.press("backspace", "delete", "ctrl+t")
        assert hand.form.editor.current == (FORM if text[1:2] != '"' else JSON)


async def test_a_form_has_every_kind_of_field_and_keeps_step_with_json() -> None:
    async with by_hand() as hand:
        await hand.open("order")
        editor = hand.form.editor
        assert json.loads(editor.json.text) == {"gift": False, "many": 1}, "the defaults"
        await hand.press("ctrl+s")
        assert hand.on_top(ToolFormScreen)
        assert "This is required." in hand.text
        assert not hand.sent("tools/call")
        await hand.press(*"tea", "enter", "backspace", "7")
        hand.row("/price").value = "2.5"
        hand.row("/gift").action_choose(True)
        hand.row("/size").value = 1
        hand.row("/extras").boxes[1].value = True
        hand.row("/tags").value = "[1, "
        hand.row("/to/city").value = "Ulm"
        hand.row("/pay?").value = 1
        await hand.until(lambda: "Not valid JSON" in hand.text)
        hand.row("/tags").value = '["hot", "green"]'
        await hand.until(lambda: any(one.field.key == "/pay/days" for one in editor.form.rows))
        hand.row("/pay/customer").value = "me"
        hand.row("/pay/days").value = "30"
        whole = {
            "what": "tea",
            "many": 7,
            "price": 2.5,
            "gift": True,
            "size": "large",
            "extras": ["card"],
            "tags": ["hot", "green"],
            "to": {"city": "Ulm"},
            "pay": {"customer": "me", "days": 30},
        }
        await hand.until(lambda: json.loads(editor.json.text) == whole)
        hand.row("/pay?").value = 0
        await hand.until(lambda: any(one.field.key == "/pay/card" for one in editor.form.rows))
        assert "pay" not in json.loads(editor.json.text), "what is of the other alone goes"
        hand.row("/pay?").value = 1
        await hand.until(lambda: any(one.field.key == "/pay/days" for one in editor.form.rows))
        await hand.press("ctrl+t")
        editor.json.load_text(json.dumps(whole))
        await hand.until(lambda: hand.row("/pay/customer").value == "me")
        await hand.press("ctrl+t")
        hand.row("/pay?").value = 0
        await hand.until(lambda: any(one.field.key == "/pay/card" for one in editor.form.rows))
        assert "pay" not in json.loads(editor.json.text), "also of what came as JSON"
        hand.row("/pay/card").value = "1234"
        await hand.press("ctrl+t")
        assert hand.app.focused is editor.json
        editor.json.load_text(json.dumps({**json.loads(editor.json.text), "what": "milk", "x": 1}))
        await hand.until(lambda: hand.row("/what").value == "milk")
        await hand.press("ctrl+t")
        assert "1 more is not in this form" in hand.text
        hand.row("/many").value = "70"
        await hand.press("ctrl+s")
        assert "At most 9." in hand.text
        hand.row("/many").value = "9"
        await hand.pilot.pause()
        await hand.run()
        await hand.ended()
        sent = hand.sent("tools/call")[-1]["arguments"]
        assert sent == {**whole, "what": "milk", "x": 1, "many": 9, "pay": {"card": "1234"}}


async def test_a_form_nests_labels_and_lists_objects_by_rows_that_keys_change() -> None:
    async with by_hand() as hand:
        await hand.open("parcel")
        names = ("to", "  address", "    street", "speed *", "items *")
        places = [hand.text.find(f"│ {name}  ") for name in names]
        assert places == sorted(places), hand.text
        assert -1 not in places
        for word in ("choose… (required)", "no rows", "+ add", "Tab next field"):
            assert (word in hand.text) == (word != "+ add"), word
        await hand.press(*"Main", "down")
        hand.row("/speed").value = 1
        await hand.press("down", "down")
        assert hand.app.focused is not hand.row("/to/address/street")
        hand.row("/speed").expanded = True
        await hand.until(lambda: "│safe" in hand.text)
        assert "choose…" not in hand.text, "once something is chosen, nothing is no choice"
        hand.row("/speed").expanded = False
        hand.row("/items").focus()
        await hand.press("plus")
        await hand.until(lambda: "▾ 1" in hand.text and "items 1" in hand.text)
        await hand.press(*"A1", "up")  # the first field of the new row has the focus
        assert "Del remove" in hand.text
        await hand.press("plus")
        await hand.until(lambda: "▸ 1  sku A1 · count 1" in hand.text and "items 2" in hand.text)
        await hand.press(*"B2", "up", "enter")
        await hand.until(lambda: "▸ 2  sku B2 · count 1" in hand.text)
        whole = {
            "to": {"address": {"street": "Main"}},
            "speed": "safe",
            "items": [{"sku": "A1", "count": 1}, {"sku": "B2", "count": 1}],
        }
        assert hand.form.editor.json.text == json.dumps(whole, indent=2), "in the schema's order"
        await hand.press("enter")
        await hand.until(lambda: "items 2" in hand.text)
        await hand.press("delete")
        await hand.until(lambda: "▸ 2" not in hand.text)
        await hand.press("delete")
        await hand.until(lambda: "no rows" in hand.text)
        await hand.press("ctrl+s")
        await hand.until(lambda: "This is required." in hand.text)
        await hand.home()
        await hand.open("parcel", json.dumps(whole))
        await hand.until(lambda: "▸ 2  sku B2" in hand.text)
        assert "choose…" not in hand.text
        await hand.run()
        await hand.ended()
        assert hand.sent("tools/call")[-1]["arguments"] == whole


async def test_a_call_of_the_model_is_edited_in_the_same_form_and_sent_as_it_is_shown() -> None:
    async with by_hand() as hand:
        given = {"what": "tea", "x": {"deep": [1.5]}, "pay": {"card": "1234"}, "tags": ["hot"]}
        call = asyncio.create_task(hand.engine.call_tool(SHOP, "order", given))
        question = await hand.come(ConfirmationQuestion)
        await hand.until(lambda: question.armed)
        await hand.press("e")
        await hand.come(EditArgumentsScreen)
        editor = hand.app.screen.query_one(ArgumentEditor)
        await hand.until(lambda: hand.app.focused is editor.form.rows[0].control)
        keys = [row.field.key for row in editor.form.rows if row.field.default is not None]
        assert keys == ["/what", "/tags", "/pay?", "/pay/card"], "with nothing of the schema's own"
        assert "1 more is not in this form" in hand.text
        await hand.press("end", *"pot", "ctrl+s")
        await hand.until(lambda: hand.on_top(ConfirmationQuestion) and question.armed)
        assert "what  teapot" in hand.text
        await hand.press("end", "o")
        await call
        assert json.dumps(hand.sent("tools/call")[-1]["arguments"], sort_keys=True) == json.dumps(
            {**given, "what": "teapot"}, sort_keys=True
        )


async def test_a_long_text_is_edited_as_it_is_with_the_form_and_json_beside_it() -> None:
    async with by_hand() as hand:
        await hand.open("order", json.dumps({"what": "tea\nand milk", "many": 2}))
        editor = hand.form.editor
        assert (editor.current, editor.text.text) == (TEXT, "tea\nand milk")
        assert hand.app.focused is editor.text
        await hand.press(*"hot ", "ctrl+t")
        assert editor.current == FORM
        assert hand.row("/what").value == r'"hot tea\nand milk"'
        hand.row("/many").value = "3"
        await hand.until(lambda: json.loads(editor.json.text)["many"] == 3)
        await hand.press("ctrl+t", "ctrl+t")
        assert (editor.current, editor.text.text) == (TEXT, "hot tea\nand milk")
        await hand.run()
        await hand.ended()
        assert hand.sent("tools/call")[-1]["arguments"] == {"what": "hot tea\nand milk", "many": 3}


async def test_a_call_is_cancelled_on_the_wire_and_a_form_of_the_server_comes_above() -> None:
    async with by_hand() as hand:
        await hand.open("wait")
        screen = await hand.run()
        await hand.until(lambda: hand.sent("tools/call"))
        await hand.until(lambda: "◐ running" in hand.text)
        await hand.press("b")
        assert len(hand.app.screen_stack) == 1, "it goes on meanwhile"
        await hand.press("ctrl+p", *"result")
        await hand.until(lambda: "Result: wait" in hand.text)
        await hand.press("enter")
        await hand.come(RunScreen)
        await hand.press("escape")
        screen = await hand.ended(ToolCallStatus.CANCELLED)
        await hand.until(lambda: hand.sent("notifications/cancelled"))
        assert "■ cancelled" in hand.text
        await hand.press("escape")
        assert not screen.is_active
        await hand.open("ask")
        screen = await hand.run()
        await hand.until(lambda: "third of twelve" in hand.text or hand.on_top(FormQuestion))
        question = await hand.come(FormQuestion)
        await hand.until(lambda: question.armed)
        await hand.press(*"blue", "ctrl+s")
        await hand.until(lambda: hand.app.screen is screen)
        await hand.ended()
        assert "✓ ran" in hand.text


async def test_a_result_is_seen_as_text_tree_and_as_sent_with_faults_and_links() -> None:
    async with by_hand() as hand:
        await hand.open("shape")
        await hand.run()
        screen = await hand.ended()
        assert "! result does not match the output schema: result.sides" in hand.text
        assert screen.query(JsonTree)
        await hand.press("t")
        assert screen.query(FoldedText)
        await hand.until(lambda: "https://example.org/shape" in hand.text)
        await hand.press("t")
        await hand.until(lambda: '"structuredContent"' in hand.text)
        await hand.press("s")
        written = await hand.written("result-shape-1.json")
        assert json.loads(written.read_text("utf-8"))["structuredContent"] == {"sides": "three"}
        await hand.press("o")
        await hand.until(lambda: "note://shape" in hand.text)
        await hand.press(*"note", "enter")
        await hand.until(lambda: "content of note://shape" in hand.text)
        assert hand.sent("resources/read")[-1]["uri"] == "note://shape"
        await hand.press("escape", "escape")
        await hand.open("draw")
        await hand.run()
        await hand.ended()
        await hand.until(lambda: "▀" * 40 in hand.text)
        await hand.press("s")
        await hand.written("picture-1.png")


async def test_saved_calls_are_filled_in_from_the_form_and_the_palette_and_forgotten() -> None:
    async with by_hand() as hand:
        await hand.open("echo")
        await hand.press("ctrl+o")
        assert "No saved calls for this tool" in hand.text
        for name in ("one", "two"):
            hand.engine.runs.save_call(SHOP, name, "echo", json.dumps({"text": name}))
        await hand.until(lambda: len(hand.store.state.saved_calls) == 2)
        await hand.press("ctrl+o")
        await hand.come(ListDialog)
        await hand.press(*"two", "enter")
        await hand.come(ToolFormScreen)
        await hand.until(lambda: hand.row("/text").value == "two")
        await hand.press("escape", "ctrl+p", *"forget: @one")
        await hand.until(lambda: "Forget: @one" in hand.text)
        await hand.press("enter")
        await hand.until(lambda: [one.name for one in hand.store.state.saved_calls] == ["two"])
        await hand.press("ctrl+p", *"run: @two")
        await hand.until(lambda: "Run: @two" in hand.text)
        await hand.press("enter")
        await hand.come(ToolFormScreen)
        await hand.until(lambda: hand.row("/text").value == "two")


async def test_rules_that_deny_hold_and_claims_are_said() -> None:
    async with by_hand(gemdeck={"alwaysDeny": [{"tool": "wipe"}]}) as hand:
        await hand.open("wipe")
        assert "! The server declares this tool destructive." in hand.text
        await hand.run()
        await hand.ended(ToolCallStatus.ERROR)
        assert "✕ failed" in hand.text
        assert "alwaysDeny" in hand.text
        assert not hand.sent("tools/call")


HOSTILE: Final = "\x1b[31m[bold]x[/]\u202e\n✓ ran\u200b"


async def test_hostile_texts_stay_texts_at_any_size() -> None:
    fields = {
        HOSTILE: {"type": "string", "title": HOSTILE, "default": HOSTILE},
        "pick": {"enum": [HOSTILE, "b"], "description": HOSTILE},
        "deep": {"oneOf": [{"type": "object", "title": HOSTILE}, ADDRESS]},
    }
    said = [{"type": "text", "text": HOSTILE}]
    says = {
        "tools": {"evil": []},
        "definitions": {
            "evil": {"description": HOSTILE, "inputSchema": record(**fields)},
        },
        "results": {
            "evil": {"content": said, "structuredContent": {HOSTILE: HOSTILE}, HOSTILE: HOSTILE},
        },
    }
    async with by_hand(says) as hand:
        await hand.open("evil")
        for size in ((120, 36), (80, 24), (40, 12)):
            await hand.pilot.resize_terminal(*size)
            await hand.pilot.pause()
            assert not {"\x1b", "\u202e", "\u200b"} & {*hand.text}
            assert "run" in str(hand.form.frame.border_subtitle), size
        await hand.run()
        screen = await hand.ended()
        for _ in screen.views:
            assert not {"\x1b", "\u202e", "\u200b"} & {*hand.text}
            await hand.press("t")
        assert hand.sent("tools/call")[-1]["arguments"] == {HOSTILE: HOSTILE}


async def test_every_tool_of_real_servers_has_a_form_and_what_they_give_is_shown() -> None:
    command, arguments = node_server("everything", "stdio")
    files, folder = node_server("filesystem", str(Path.home()))
    more = {
        "all": {"command": command, "args": arguments},
        "files": {"command": files, "args": folder},
        "git": {
            "command": str(Path(sys.executable).with_name("mcp-server-git")),
            "args": ["--repository", str(Path.home() / "repository")],
        },
    }
    prepare(Path.home())
    async with by_hand(more=more) as hand:
        opened = 0
        for view in hand.store.state.servers:
            for one in view.catalog.tools if view.id in more else ():
                form = hand.engine.runs.form(view.id, one.name, None, {})
                assert bool(form.fields) == bool(one.parameters), (one.name, form.problem)
                opened += 1
        assert opened > 30
        await hand.open("get-tiny-image", server="all")
        await hand.run()
        await hand.ended()
        await hand.until(lambda: "▀" in hand.text)
        await hand.press("s")
        await hand.written("picture-1.png")
        await hand.press("escape")
        await hand.open("list_directory", server="files")
        hand.row("/path").value = str(hand.folder)
        await hand.run()
        await hand.ended()
        assert "[FILE] picture-1.png" in hand.text
        await hand.press("escape")
        await hand.open("git_status", server="git")
        hand.row("/repo_path").value = str(Path.home() / "repository")
        await hand.run()
        await hand.ended()
        assert "untracked.txt" in hand.text


async def test_a_changed_tool_says_so_and_runs_as_the_user_composed_it(tmp_path: Path) -> None:
    server = Turncoat("turn", tmp_path)
    server.offer(tool("look"), tool("other"))
    async with by_hand(more={"turn": server.entry}) as hand:
        server.offer(tool("look", "It does something else now."), tool("other"))
        hand.engine.servers.restart(ServerId("turn"))
        await hand.until(
            lambda: any(
                one.changed for view in hand.store.state.servers for one in view.catalog.tools
            )
        )
        await hand.come(Question)
        await hand.press("f3")  # it steps aside
        await hand.open("look", server="turn")
        assert "! The tool changed since you accepted it" in hand.text
        await hand.press(*"x")
        await hand.press("ctrl+s")
        await hand.until(lambda: hand.runs)
        await hand.until(lambda: hand.runs[-1].call.status is ToolCallStatus.OK)
        assert len(server.calls) == 1
