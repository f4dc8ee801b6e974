"""Commands beside an open deck: they use its servers, and get no more than they have alone."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from unittest.mock import AsyncMock

import pytest

from tests.cli.running import Result, finish, library, opened, run, write_settings
from tests.conftest import World
from tests.security.decks import READY, Deck, Turncoat, records, shop
from tests.security.test_L_clients import link
from tests.support.waiting import eventually
from tui.cli.output import ExitCode
from tui.engine.serving.deck_socket import answering
from tui.engine.serving.lending import answering_others, lending_key
from tui.engine.serving.shared_servers import RequestRefusedError
from tui.engine.trust.folder_identity import identify
from tui.model.requests import FormRequest, Reply, ReplyAction
from tui.model.servers import ServerId, ServerStatus

__all__ = ["shop"]

LOG: Final = {"level": "warning", "data": "half done"}
PROGRESS: Final = {"progress": 1, "total": 4, "message": "m"}
TELLS: Final = [
    {"method": "notifications/message", "params": LOG},
    {"method": "notifications/progress", "params": PROGRESS},
]
FORM: Final = {"type": "object", "properties": {"name": {"type": "string"}}}
ASKS: Final = {
    "id": "q",
    "method": "elicitation/create",
    "params": {"message": "Who?", "requestedSchema": FORM},
}
FAILS: Final = {"isError": True, "content": [{"type": "text", "text": "no"}]}


class Place:
    """A folder, and a server `a` of which it is known what it was sent."""

    def __init__(self, world: World) -> None:
        self.folder, self._record = world.home / "work", world.home / "record"
        self.folder.mkdir()

    def entry(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        """Make its entry, and let it offer what it is told to, too."""
        offer = {"tools": {"t": ["x"], "no": [], "stays": []}, "prompts": {"p": ["who"]}}
        told = {"resources": ["docs://a"], "silent": ["stays"], "results": {"no": FAILS}}
        more["capabilities"] = {"logging": {}}
        return library(**offer, **told, record=str(self._record), **more)

    def sent(self, method: str) -> int:
        """Count what it was sent of a method by now."""
        lines = self._record.read_text("utf-8").splitlines() if self._record.exists() else []
        return sum(json.loads(line).get("method") == method for line in lines)

    async def run(self, *words: str, code: int | None = None) -> Result:
        """Run a command in the folder."""
        return await run("mcp", *words, cwd=self.folder, code=code)

    async def listed(self, *words: str) -> dict[str, tuple[str, bool]]:
        """List the servers: how each stands, and whether it is the deck's."""
        found = (await self.run("list", "--json", *words)).json["servers"]
        return {one["name"]: (one["status"], one["shared"]) for one in found}


@pytest.fixture
def place(world: World) -> Place:
    return Place(world)


@asynccontextmanager
async def open_deck(
    shop: Turncoat,
    place: Place,
    entry: dict[str, Any] | None = None,
    gemdeck: dict[str, Any] | None = None,
    **more: Any,  # noqa: ANN401 - as for `deck`
) -> AsyncIterator[Deck]:
    """Run a deck in the folder with the server, until it is ready."""
    settings = {"mcpServers": {"a": entry or place.entry()}, "gemdeck": gemdeck or {}}
    async with shop.deck(settings=settings, ready=False, **more) as running:
        await eventually(lambda: running.status("a") is READY)
        async with answering_others(running.engine, place.folder):
            yield running


async def test_commands_say_the_same_with_a_deck_and_start_nothing(
    shop: Turncoat, place: Place
) -> None:
    commands: list[tuple[str, ...]] = [
        ("call", "a", "t", "x=1"),
        ("call", "a", "t", "x=1", "--json"),
        ("call", "a", "no", "--json"),
        ("call", "a", "odd"),
        ("tools", "a", "--json"),
        ("read", "a", "docs://a"),
        ("read", "a", "docs://a", "--json"),
        ("prompt", "a", "p", "who=me", "--json"),
    ]
    async with open_deck(shop, place):
        shared = [await place.run(*command) for command in commands]
        assert await place.listed() == {"a": ("ready", True)}
        assert "in the open gemdeck" in (await place.run("list")).stdout
        assert place.sent("initialize") == 1
        own = [await place.run(*command, "--own") for command in commands]
        assert place.sent("initialize") == 1 + len(commands)
    assert [(one.code, one.raw, one.stderr) for one in shared] == [
        (one.code, one.raw, one.stderr) for one in own
    ]
    assert [one.code for one in own[2:4]] == [ExitCode.ERROR, ExitCode.NOT_FOUND]
    assert await place.listed() == {"a": ("ready", False)}  # without a deck


async def test_what_a_server_tells_meanwhile_is_told(
    shop: Turncoat, place: Place, world: World
) -> None:
    gate = world.home / "gate"
    entry = place.entry(before={"t": [*TELLS, {"gate": str(gate)}]})
    async with open_deck(shop, place, entry) as running:
        calling = asyncio.create_task(place.run("call", "a", "t", code=ExitCode.OK))
        await eventually(lambda: "half done" in str(running.store.state.logs))
        gate.touch()
        told = (await calling).stderr
    assert "  | a: warning: half done\n" in told
    assert "  | progress: " in told


async def test_a_lazy_server_wakes_in_the_deck(shop: Turncoat, place: Place) -> None:
    settings = {"mcpServers": {"a": place.entry() | {"start": "lazy"}}}
    write_settings(settings)
    await place.run("tools", "a", code=ExitCode.OK)  # what it offers is kept
    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is ServerStatus.ASLEEP)
        async with answering_others(running.engine, place.folder):
            await place.run("call", "a", "t", code=ExitCode.OK)
            assert running.status("a") is READY
    assert place.sent("initialize") == 2


Change = Callable[[Place, Deck], Awaitable[None]]


async def change_entry(place: Place, _: Deck) -> None:
    write_settings({"mcpServers": {"a": place.entry() | {"env": {"MORE": "1"}}}})


async def change_limit(place: Place, _: Deck) -> None:
    write_settings({"mcpServers": {"a": place.entry() | {"timeout": 5_000}}})


async def stop(_: Place, running: Deck) -> None:
    running.engine.servers.stop(running.engine.servers.callable_servers[0])
    await eventually(lambda: running.status("a") is not READY)


async def choose_profile(_: Place, running: Deck) -> None:
    running.engine.models.begin_profile("none")
    await eventually(lambda: running.status("a") is not READY)


@pytest.mark.parametrize("change", [change_entry, change_limit, stop, choose_profile])
async def test_L11_a_command_starts_what_is_not_the_same_in_the_deck(
    shop: Turncoat, place: Place, change: Change
) -> None:
    gemdeck: dict[str, Any] = {"profiles": {"none": {"servers": []}}}
    async with open_deck(shop, place, gemdeck=gemdeck) as running:
        await change(place, running)
        assert await place.listed() == {"a": ("ready", False)}


@pytest.mark.parametrize(
    "method", ["server/discover", "logging/setLevel", "resources/subscribe", "tasks/list"]
)
async def test_L11_a_command_gets_nothing_of_the_decks_connection(
    method: str, shop: Turncoat, place: Place, world: World
) -> None:
    async with open_deck(shop, place) as running:
        definition = running.engine.servers.registry.definition(ServerId("a"))
        assert definition is not None
        key = lending_key(definition)
        async with link(world, place.folder, server="a", key=key) as deck:
            assert (await deck.request("tools/list", {}))["tools"]
            with pytest.raises(RequestRefusedError, match="does not forward"):
                await deck.request(method, {"uri": "docs://a"})


async def test_L11_a_command_decides_by_its_own_trust(shop: Turncoat, place: Place) -> None:
    (place.folder / ".gemini").mkdir()
    own = {"mcpServers": {"theirs": place.entry()}}
    (place.folder / ".gemini" / "settings.json").write_text(json.dumps(own), "utf-8")
    settings: dict[str, Any] = {"mcpServers": {}}
    trusted = (place.folder,)
    async with shop.deck(settings=settings, ready=False, trusted_folders=trusted) as running:
        await eventually(lambda: running.status("theirs") is READY)
        async with answering_others(running.engine, place.folder):
            assert await place.listed() == {"theirs": ("untrusted", False)}
            await place.run("call", "theirs", "t", code=ExitCode.ERROR)
            trusting = ("--trust-folder", str(place.folder))
            assert await place.listed(*trusting) == {"theirs": ("ready", True)}
    assert place.sent("tools/call") == 0


async def test_L12_the_decks_rules_hold_and_consent_is_for_one_call(
    shop: Turncoat, place: Place, world: World
) -> None:
    entry = place.entry() | {"reviewResults": True}
    async with open_deck(shop, place, entry, {"alwaysDeny": [{"tool": "no"}]}) as running:
        write_settings({"mcpServers": {"a": entry}})
        denied = await place.run("call", "a", "no", code=ExitCode.ERROR)
        assert "Denied: a rule in the settings" in denied.stderr
        assert place.sent("tools/call") == 0
        for _ in range(2):
            await place.run("call", "a", "t", code=ExitCode.OK)
        assert running.store.state.pending == ()
        found = [one for one in records(world) if one.get("caller", "").startswith("gemdeck mcp")]
        assert [one["decision"] for one in found if one["event"] == "decision"] == [
            *("deny", "allow", "allow")
        ]
        assert {one["source"] for one in found if one.get("decision") == "allow"} == {
            "you: composed this call"
        }


async def test_L13_a_question_opens_in_the_deck(shop: Turncoat, place: Place) -> None:
    async with open_deck(shop, place, place.entry(before={"t": [ASKS]})) as running:
        calling = asyncio.create_task(place.run("call", "a", "t"))
        request = await running.pending(FormRequest)
        running.engine.desk.answer(request.id, Reply(ReplyAction.ACCEPT, {"name": "me"}))
        result = await calling
    assert result.code == ExitCode.OK
    assert "asks for input: answer in the open gemdeck" in result.stderr


async def test_L13_a_signal_cancels_the_call_on_the_server(shop: Turncoat, place: Place) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    async with open_deck(shop, place):
        async with opened("mcp", "call", "a", "stays", cwd=place.folder, **pipes) as process:
            await eventually(lambda: place.sent("tools/call") == 1)
            process.send_signal(signal.SIGINT)
            assert await finish(process) == ExitCode.CANCELLED
        await eventually(lambda: place.sent("notifications/cancelled") == 1)
    assert place.sent("initialize") == 1


async def test_a_call_whose_server_the_deck_stops_says_so(shop: Turncoat, place: Place) -> None:
    async with open_deck(shop, place) as running, asyncio.TaskGroup() as group:
        calling = group.create_task(place.run("call", "a", "stays"))
        await eventually(lambda: place.sent("tools/call"))
        running.engine.servers.stop(ServerId("a"))
    result = calling.result()
    assert result.code == ExitCode.ERROR
    assert "The server is no longer connected." in result.stderr


async def test_L13_a_deck_that_ends_ends_the_call(shop: Turncoat, place: Place) -> None:
    async with open_deck(shop, place):
        calling = asyncio.create_task(place.run("call", "a", "stays", "--json"))
        await eventually(lambda: place.sent("tools/call") == 1)
    result = await calling
    assert result.code == ExitCode.ERROR
    assert "The open gemdeck ended before it answered" in result.json["error"]["message"]
    assert place.sent("tools/call") == 1


async def test_L13_a_deck_that_ends_before_the_call_leaves_it_to_the_command(
    place: Place, world: World
) -> None:
    """What welcomes a command and knows no request stands for a deck that is just ending."""
    write_settings({"mcpServers": {"a": place.entry()}})
    world.state.mkdir(parents=True, exist_ok=True)
    welcome = AsyncMock(return_value=None)
    async with answering(world.state, identify(place.folder), welcome):
        await place.run("call", "a", "t", code=ExitCode.OK)
        assert await place.listed() == {"a": ("ready", False)}
    assert place.sent("server/discover")  # what the deck does not answer says nothing of its era
    assert place.sent("tools/call") == 1
