"""Prompts looked at before they are sent, and resources: the app, the engine and a real server."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from textual.widgets import Input

from tests.cli.running import library
from tests.fakes.gemini_script import Say
from tests.support.pictures import picture
from tests.support.waiting import PATIENCE, whole_lines
from tests.ui.engine_deck import EngineDeck, engine_deck
from tests.ui.harness import toasts
from tui.model.chat import Picture
from tui.model.events import ResourceRead
from tui.model.servers import ServerId, ServerStatus
from tui.text import sanitize
from tui.ui.dialogs import fetched as module
from tui.ui.dialogs.fetched import PromptScreen, ResourceScreen
from tui.ui.dialogs.prompt_arguments import ArgumentsScreen
from tui.ui.main import MainScreen
from tui.ui.messages import PaneName

LIB: Final = ServerId("lib")
DRAWN: Final = picture()
HOSTILE: Final = "\x1b[31mred\x1b]0;title\x07 [bold]bold[/bold] \u202eback \U000e0041 assistant"


def said(role: str, **content: object) -> dict[str, Any]:
    return {"role": role, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


OFFER: Final[dict[str, Any]] = {
    "prompts": {"mixed": ["name!", "mood"], "bare": [], "empty": [], "long": [], "touch": []},
    "resources": ["pic://dot.html", "log://now", "memo://two"],
    "templates": ["memo://{day}/{hour}"],
    "completions": {"day": ["monday", "sunday"], "hour": ["noon", "midnight"]},
    "results": {
        "mixed": {
            "messages": [
                said("user", **text(HOSTILE)),
                said(
                    "user",
                    type="resource",
                    resource={"uri": "memo://in", "mimeType": "text/plain", "text": "embedded"},
                ),
                said("user", type="image", data=DRAWN.data, mimeType="image/png"),
                said("assistant", **text("I see.")),
                said("user", **text("for you")),
            ]
        },
        "bare": {"messages": [said("user", **text("/quit @secret me@home (@lib:memo://two)"))]},
        "empty": {"messages": []},
        "long": {"messages": [said("user", **text("word " * 60_000))]},
    },
}


class Deck(EngineDeck):
    """The app with one server and a model."""

    async def told(self, words: str) -> None:
        await self.until(lambda: toasts(self.app)[-1:] == [words])

    async def open(self, pane: PaneName, name: str) -> None:
        """Open a prompt or a resource from its pane."""
        await self.app.deck.show_pane(pane)
        await self.pilot.press("slash", "ctrl+u", *name, "enter", "enter")

    def asked(self, method: str) -> list[dict[str, Any]]:
        """What the server was asked for."""
        lines = whole_lines(Path.home() / "record")
        return [m["params"] for m in map(json.loads, lines) if m.get("method") == method]

    async def answered(self, count: int) -> None:
        """Wait for so many requests of the model, and the end of the turn."""
        with anyio.fail_after(PATIENCE):
            await self.fake.wait_for_requests(count)
            await self.engine.wait_idle()


@asynccontextmanager
async def running(monkeypatch: pytest.MonkeyPatch, **more: object) -> AsyncIterator[Deck]:
    monkeypatch.setattr(module, "ARMING_SECONDS", 0.0)
    settings = {"mcpServers": {LIB: library(**OFFER, record=str(Path.home() / "record"), **more)}}
    steps = [(Say(f"{number}"),) for number in range(4)]
    async with engine_deck(Deck, settings, *steps) as deck:
        await deck.are(ServerStatus.READY)
        yield deck


def seen(deck: Deck) -> list[tuple[str, list[str]]]:
    """What is shown of a prompt, by roles: texts, and the data of pictures."""
    rendered = deck.store.state.rendered
    assert rendered is not None
    return [
        (one.role, [part.data if isinstance(part, Picture) else part for part in one.parts])
        for one in rendered.messages
    ]


def sent(deck: Deck) -> list[tuple[str, list[str]]]:
    """What the model got last, by roles: texts, and the data of pictures."""
    roles = {"user": "user", "model": "assistant"}
    return [
        (
            roles[turn["role"]],
            [
                sanitize(part["text"]) if "text" in part else part["inlineData"]["data"]
                for part in turn["parts"]
            ],
        )
        for turn in deck.fake.requests[-1].contents
    ]


async def test_a_prompt_is_sent_as_it_was_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(monkeypatch) as deck:
        await deck.open(PaneName.PROMPTS, "mixed")
        await deck.come(ArgumentsScreen)
        await deck.pilot.press("ctrl+s")
        await deck.shows("This is required.")
        await deck.pilot.press(*"Ada", "enter", "enter")
        await deck.shows("│ red⟨U+001B⟩]0;title⟨U+0007⟩ [bold]bold[/bold]", "⟨U+202E⟩", "⟨U+E0041⟩")
        await deck.shows("[Resource memo://in: text/plain]", "│ embedded", "▀", "│ I see.")
        await deck.shows("3 messages", "│ for you")
        lines = [line.strip(" │") for line in deck.lines]
        assert [line for line in lines if line in {"user", "assistant"}] == [
            *("user", "assistant", "user")
        ]
        assert deck.fake.requests == []
        await deck.pilot.press("escape")
        await deck.come(ArgumentsScreen)
        assert [line.value for line in deck.app.screen.query(Input)] == ["Ada", ""]
        await deck.pilot.press("tab", *"calm", "ctrl+s")
        await deck.shows("│ I see.")
        looked_at = seen(deck)
        monkeypatch.setattr(module, "ARMING_SECONDS", PATIENCE)
        await deck.pilot.press("enter")
        assert isinstance(deck.app.screen, PromptScreen), "too soon to have looked at it"
        monkeypatch.setattr(module, "ARMING_SECONDS", 0.0)
        await deck.pilot.press("enter")
        await deck.come(MainScreen)
        await deck.answered(1)
        assert sent(deck) == looked_at == seen(deck)
        assert [one["arguments"] for one in deck.asked("prompts/get")] == [
            {"name": "Ada"},
            {"name": "Ada", "mood": "calm"},
        ]
        assert deck.composer.has_focus
        told = [notice.text for notice in deck.store.state.notices]
        assert "gemdeck mcp prompt lib mixed name=Ada mood=calm" in told


async def test_a_prompt_without_arguments_is_shown_at_once_and_goes_into_the_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(monkeypatch) as deck:
        await deck.open(PaneName.PROMPTS, "bare")
        await deck.shows("│ /quit @secret me@home", "1 message")
        await deck.pilot.press("i")
        await deck.come(MainScreen)
        await deck.until(lambda: bool(deck.composer.text))
        assert deck.composer.text == r"\/quit \@secret me@home (\@lib:memo://two) "
        (deck.folder / "secret").write_text("hush")
        await deck.pilot.press("enter")
        await deck.answered(1)
        [(_, texts)] = sent(deck)
        assert texts == [r"\/quit @secret me@home (@lib:memo://two)"]
        await deck.open(PaneName.PROMPTS, "empty")
        await deck.shows("The prompt could not be rendered: The server returned an empty prompt.")
        await deck.pilot.press("enter", "i")
        assert isinstance(deck.app.screen, PromptScreen), "there is nothing to send"
        await deck.pilot.press("r")
        await deck.until(lambda: len(deck.asked("prompts/get")) == 3)
        await deck.pilot.press("escape")
        await deck.come(MainScreen)
        await deck.open(PaneName.PROMPTS, "long")
        await deck.shows("1 message, as sent to the model")
        looked_at = seen(deck)
        assert "left out" in looked_at[0][1][0], "the model gets no more than is shown"
        await deck.pilot.press("enter")
        await deck.answered(2)
        assert sent(deck)[-1:] == looked_at
        await deck.pilot.press(*"/mixed Ada", "enter")
        await deck.answered(3)


async def test_a_resource_is_drawn_saved_followed_and_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changing = Path.home() / "now.json"

    def change(words: str) -> None:
        changing.write_text(json.dumps([{"uri": "log://now", "text": words}]))

    change("\n".join(f"line {number}" for number in range(200)))
    note = {"uri": "memo://two", "mimeType": "text/markdown; charset=utf-8", "text": "# Two"}
    contents = {
        "memo://two": [note],
        "pic://dot.html": [{"uri": "pic://dot.html", "mimeType": "image/png", "blob": DRAWN.data}],
        "log://now": str(changing),
    }
    updated = {"method": "notifications/resources/updated", "params": {"uri": "log://now"}}
    more = {"contents": contents, "before": {"touch": [updated]}}
    async with running(monkeypatch, **more) as deck:
        await deck.open(PaneName.RESOURCES, "dot")
        await deck.shows("▀" * 40, "[image/png, ", "read at ", "o open")
        (deck.folder / "resource-dot-1.png").write_text("mine")
        await deck.pilot.press("f")
        await deck.told("The resource was saved to ~/shop/resource-dot-2.png.")
        data = base64.b64decode(DRAWN.data)
        assert (deck.folder / "resource-dot-2.png").read_bytes() == data
        assert (deck.folder / "resource-dot-1.png").read_text() == "mine"
        await deck.pilot.press("escape")
        await deck.open(PaneName.RESOURCES, "now")
        await deck.come(ResourceScreen)
        await deck.shows("line 0", "w watch")
        await deck.pilot.press("w")
        await deck.shows("w unwatch")
        await deck.pilot.press("pagedown")
        await deck.until(lambda: "line 0 " not in deck.text)
        change("\n".join(f"changed {number}" for number in range(200)))
        await deck.engine.servers.render_prompt(LIB, "touch", {})
        await deck.shows("changed 40")
        assert "changed 0 " not in deck.text, "it stays where it was scrolled to"
        before = deck.store.state.resource
        change("again")
        await deck.pilot.press("r")
        await deck.until(lambda: deck.store.state.resource != before)
        await deck.shows("again")
        await deck.pilot.press("f")
        await deck.told("The resource was saved to ~/shop/resource-now-1.")
        assert (deck.folder / "resource-now-1").read_text() == "again"
        await deck.pilot.press("escape")
        await deck.open(PaneName.RESOURCES, "two")
        await deck.shows("Two", "s save")
        await deck.pilot.press("f")
        await deck.told("The resource was saved to ~/shop/resource-two-1.md.")


async def test_each_variable_of_a_template_is_completed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(monkeypatch) as deck:
        await deck.open(PaneName.RESOURCES, "hour")
        await deck.come(ArgumentsScreen)
        await deck.pilot.press("s")
        await deck.shows("sunday")
        await deck.pilot.press("down", "enter", "enter", "m")
        await deck.shows("midnight")
        await deck.pilot.press("down", "enter", "ctrl+s")
        await deck.come(ResourceScreen)
        await deck.shows("content of memo://sunday/midnight")
        # What was chosen is asked for as well where the next key is late.
        asked = {one["argument"]["value"]: one for one in deck.asked("completion/complete")}
        first, second = asked["s"], asked["m"]
        ref = {"type": "ref/resource", "uri": "memo://{day}/{hour}"}
        assert first == {"ref": ref, "argument": {"name": "day", "value": "s"}}
        assert second["argument"] == {"name": "hour", "value": "m"}
        assert second["context"] == {"arguments": {"day": "sunday"}}
        assert isinstance(deck.store.state.resource, ResourceRead)
