"""Profiles, options and keys that users set on the screen, in real settings files."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.gemini_script import Say
from tests.security.decks import Turncoat, tool
from tests.ui.engine_deck import EngineDeck, engine_deck
from tui.engine.settings.sources.document import parse_document
from tui.model.models import ModelOptions
from tui.model.servers import ServerId, ServerStatus
from tui.ui.commands.palette import palette_actions
from tui.ui.dialogs.help import KeysScreen
from tui.ui.dialogs.prompt_arguments import OptionsScreen, ProfileScreen
from tui.ui.dialogs.server_form import ServerScreen
from tui.ui.dialogs.viewer import DoctorScreen
from tui.ui.panes.browser import ToolsPane
from tui.ui.widgets.forms.form_fields import FieldRow

pytestmark = pytest.mark.usefixtures("world")

SETTINGS = """{
  "mcpServers": { "shop": SHOP, "bank": BANK }, // theirs
  "gemdeck": { "bell": false, // quiet
    "profiles": { "old": { "servers": ["shop"] } } // mine
  }
}"""


class OwnDeck(EngineDeck):
    """The app with two servers, whose settings it writes."""

    def setting(self, name: str) -> object:
        """Give a part of the settings; all that was written by hand is there."""
        text = (Path.home() / ".gemini" / "settings.json").read_text("utf-8")
        assert all(one in text for one in ("// theirs", "// quiet", "// mine"))
        return parse_document(text).content["gemdeck"].get(name)

    async def opens(self, kind: type[object]) -> None:
        await self.until(lambda: isinstance(self.app.screen, kind))
        await self.pilot.pause()

    async def closes(self) -> None:
        await self.until(lambda: self.app.screen is self.app.deck)
        await self.pilot.pause()

    async def at(self, name: str) -> None:
        """Go to a tool of the shop in its pane."""
        pane = self.app.deck.query_one(ToolsPane)
        [view] = [one for one in self.store.state.servers if one.id == "shop"]
        found = next(one for one in view.catalog.tools if one.name == name)
        pane.entries.select((ServerId("shop"), found))
        await self.pilot.pause()


@asynccontextmanager
async def own_deck() -> AsyncIterator[OwnDeck]:
    shop, bank = (Turncoat(name, Path.home()) for name in ("shop", "bank"))
    shop.offer(tool("look"), tool("buy"), tool("any_*"))
    bank.offer(tool("send"))
    text = SETTINGS.replace("SHOP", json.dumps(shop.entry)).replace("BANK", json.dumps(bank.entry))
    async with engine_deck(OwnDeck, text, [Say("1")], follow_settings=True) as made:
        await made.are(ServerStatus.READY, ServerStatus.READY)
        yield made


async def test_what_is_marked_becomes_a_profile() -> None:
    async with own_deck() as deck:
        await deck.press("f2", "ctrl+s")
        await deck.shows("Mark servers or tools first, with *.")
        await deck.press("asterisk")
        await deck.shows("* shop")
        await deck.press("f3")
        await deck.at("any_*")
        await deck.press("asterisk")
        await deck.shows("The name contains * or $")
        await deck.at("buy")
        await deck.press("asterisk")
        assert deck.store.state.marks == {("shop", "buy")}, "a tool narrows the mark of its server"
        await deck.press("f2", "down", "asterisk", "ctrl+s")
        await deck.opens(ProfileScreen)
        await deck.shows("bank, shop", "bank.*, shop.buy")
        await deck.press(*"/", "ctrl+s")
        await deck.shows("begin with a letter")
        await deck.press("backspace", *"few", "ctrl+s")
        await deck.closes()
        few = {
            "servers": ["bank", "shop"],
            "tools": [{"server": "bank", "tool": "*"}, {"server": "shop", "tool": "buy"}],
        }
        assert deck.setting("profiles") == {"old": {"servers": ["shop"]}, "few": few}
        assert not deck.store.state.marks
        await deck.until(lambda: "few" in deck.store.state.profiles)
        await deck.press("f6", *"/profile few", "enter")
        await deck.until(lambda: deck.store.state.options.profile == "few")
        assert deck.store.state.leaves_out(ServerId("shop"), "look")


async def test_a_profile_is_replaced_and_removed_at_the_second_press() -> None:
    async with own_deck() as deck:
        await deck.press("f2", "down", "asterisk", "ctrl+s")
        await deck.opens(ProfileScreen)
        await deck.press(*"old", "tab", *"My bank", "ctrl+s")
        await deck.shows("Press ^S again to replace old")
        assert deck.setting("profiles") == {"old": {"servers": ["shop"]}}
        await deck.press("ctrl+s")
        await deck.closes()
        assert deck.setting("profiles") == {"old": {"description": "My bank", "servers": ["bank"]}}
        await deck.until(lambda: deck.store.state.profiles["old"].servers == ("bank",))
        entries = {one.row.label: one.item for one in palette_actions(deck.app.deck)}
        entries["Edit profile old"]()
        await deck.opens(ProfileScreen)
        await deck.shows("My bank")
        await deck.press("ctrl+r")
        await deck.shows("Press ^R again to remove old")
        await deck.press("ctrl+r")
        await deck.closes()
        assert deck.setting("profiles") == {}
        await deck.until(lambda: "old" not in deck.store.state.profiles)


async def test_options_are_a_form() -> None:
    async with own_deck() as deck:
        await deck.press(*"/options", "enter")
        await deck.opens(OptionsScreen)
        await deck.press(*"much", "tab", *"3", "ctrl+s")
        await deck.shows("At most 2.")
        await deck.press("backspace", *"0.5", "tab", *"900", "ctrl+s")
        await deck.shows("supports these thinking levels")
        assert deck.store.state.options == ModelOptions()
        await deck.press("shift+tab", "shift+tab", *["backspace"] * 4, "ctrl+s")
        await deck.closes()
        assert deck.store.state.options == ModelOptions(None, 0.5, 900)
        await deck.press(*"/options", "enter")
        await deck.opens(OptionsScreen)
        await deck.shows("0.5", "900")
        await deck.press("tab", *["backspace"] * 3, "tab", *["backspace"] * 3, "ctrl+s")
        await deck.closes()
        assert deck.store.state.options == ModelOptions()


async def test_a_key_is_bound_by_pressing_it() -> None:
    async with own_deck() as deck:
        await deck.press("f1", "e")
        await deck.opens(KeysScreen)
        await deck.press("slash", *"deck.tools", "enter", "enter", "f2")
        await deck.shows("f2 belongs to deck.servers", "Press another key, or Esc to cancel.")
        await deck.press("escape", "delete")
        await deck.shows("This action has its default keys.")
        assert deck.setting("keys") is None
        await deck.press("enter", "f12")
        await deck.shows("F12 (default F3)")
        assert deck.setting("keys") == {"deck.tools": ["f12"]}
        await deck.until(lambda: deck.app.deck.own_keys == {"deck.tools": "f12"})
        await deck.press("slash", "ctrl+u", *"deck.servers", "enter", "enter", "f3")
        await deck.shows("F3 (default F2)")
        await deck.press("slash", "ctrl+u", *"deck.tools", "enter", "delete")
        await deck.shows("f3 belongs to deck.")
        assert deck.setting("keys") == {"deck.tools": ["f12"], "deck.servers": ["f3"]}
        await deck.press("escape", "escape", "escape", "f12")
        await deck.closes()
        await deck.until(lambda: deck.app.deck.query_one(ToolsPane).has_focus_within)


async def test_the_palette_leads_to_fields_of_a_server_and_to_the_doctor() -> None:
    async with own_deck() as deck:
        (deck.folder / "tui").mkdir()
        (deck.folder / "tui" / "__init__.py").write_text("raise SystemExit('hijacked')")
        actions = {action.row.label: action.item for action in palette_actions(deck.app.deck)}
        for name, key, words in (
            ("shop: make lazy", "start", "makes the server lazy"),
            ("shop: store a secret", "env", "Type the secret in Environment or Headers"),
        ):
            actions[name]()
            await deck.opens(ServerScreen)
            await deck.shows(words)
            focused = deck.app.focused
            assert focused is not None
            assert isinstance(row := focused.parent and focused.parent.parent, FieldRow)
            assert row.field.key == key
            await deck.press("escape")
            await deck.closes()
        await deck.press("ctrl+p", *"setup: check", "enter")
        await deck.opens(DoctorScreen)
        await deck.shows("Checking settings")
        await deck.shows("c copy all")
        screen = deck.app.screen
        assert isinstance(screen, DoctorScreen)
        found = screen.text
        assert found.startswith("gemdeck\n  ok ")
        assert "gemdeck.bell = false" in found
        assert "Servers\n" in found


async def test_what_cannot_be_saved_is_said_and_stays() -> None:
    async with own_deck() as deck:
        await deck.press("f2", "asterisk", "ctrl+s")
        await deck.opens(ProfileScreen)
        file = Path.home() / ".gemini" / "settings.json"
        file.write_text(text := '{"a": 1, "a": 2}')
        await deck.press(*"few", "ctrl+s")
        await deck.shows("Not saved: it contains a duplicate key; fix that first.", "few")
        assert file.read_text() == text
        assert deck.store.state.marks == {("shop", "")}
