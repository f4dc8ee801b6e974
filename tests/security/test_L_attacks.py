"""Attacks on an open deck by programs of the user, and on those that look for one."""

import asyncio
import json
import shutil
import sys
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.running import library
from tests.conftest import World
from tests.security.decks import READY, Turncoat, records, shop, write_settings
from tests.security.test_L_clients import (
    CALL,
    CAN_FILL_IN,
    asked,
    call,
    link,
    open_deck,
    token,
    work,
)
from tests.security.test_L_load import open_socket, raw_link
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.mcp.support import FOLDER
from tui.engine.serving import deck_socket
from tui.engine.serving.callers import MAX_NAME
from tui.engine.serving.deck_socket import Hello, find_deck
from tui.engine.serving.lending import answering_others, lending_key
from tui.engine.serving.shared_servers import RequestRefusedError
from tui.engine.trust.folder_identity import identify
from tui.model.catalog import Catalog
from tui.model.chat import Severity
from tui.model.consent import Choice
from tui.model.events import CatalogChanged, LogLine, ServerLogged
from tui.model.requests import (
    ConfirmationRequest,
    FormRequest,
    Reply,
    ReplyAction,
    TrustRequest,
)
from tui.model.servers import ServerId

__all__ = ["shop", "work"]

MIB: Final = 1024**2


def line(**message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


async def test_L09_rubbish_and_what_never_ends_end_a_connection(
    shop: Turncoat, world: World, work: Path
) -> None:
    deep = b'{"id": 2, "method": "x", "params": {"a": %b1%b}}\n' % (b"[" * 9_999, b"]" * 9_999)
    async with open_deck(shop, work) as running, link(world, work) as deck:
        odd: list[object] = ["x", None, True, [1], {}, 1.5]
        for rubbish in (
            b'\xff\n[1]\n{"name": 5}\nnull\n' + b"{}\n" * 1_000,
            b"".join(line(id=one, method="tools/list") for one in odd),
            b"".join(line(cancel=one) for one in odd),
            b'{"id": -1%b, "method": "tools/list"}\n' % (b"0" * 5_000),
            deep,
        ):
            async with raw_link(world) as (reader, writer):
                writer.write(rubbish + line(id=1, method="odd"))
                assert await reader.readline() == line(id=1)
                assert b"no method odd" in await reader.readline()
        for endless in (b"x" * 16 * MIB, line(id=1, method="tools/call", params=["x" * 3 * MIB])):
            async with raw_link(world) as (reader, writer):
                writer.write(endless)
                with suppress(ConnectionError):  # for some of it was not read
                    assert await reader.read() == b""
        with pytest.raises(RequestRefusedError, match="longer than 2 MiB"):
            await call(deck, arguments={"text": "x" * 16 * MIB})
        await asked(running, deck, Choice.ONCE)


async def test_L25_an_id_is_good_for_one_request_of_its_own_connection(
    shop: Turncoat, world: World, work: Path
) -> None:
    """Nobody cancels what another asked for, and an answer is for the one call it was given to."""
    request = line(id=7, method="tools/call", params=CALL)
    async with (
        open_deck(shop, work) as running,
        raw_link(world, name="first") as (reader, writer),
        raw_link(world, name="second") as (_, cancelling),
    ):
        writer.write(request)
        await running.pending(ConfirmationRequest)
        cancelling.write(line(cancel=7) + line(name="first", token=token(world)) + request)
        writer.write(request + line(name="second") + request)
        await eventually(lambda: len(running.store.state.pending) == 2)
        assert (await running.decide(Choice.ONCE)).caller == "first (unverified) in ~/work"
        assert await reader.readline() == line(id=7)
        assert b'"content"' in await reader.readline()
        writer.write(request)
        await eventually(lambda: len(running.store.state.pending) == 2)
        await running.decide(Choice.DENY)
        await running.decide(Choice.DENY)
        assert await reader.readline() == line(id=7)
        assert b"Denied" in await reader.readline()
    assert len(shop.calls) == 1
    decided = [one for one in records(world) if one["event"] == "decision"]
    assert [one["caller"].split()[0] for one in decided] == ["first", "second", "first"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("", "another client"),
        (5, "another client"),
        ("\u200b", None),
        ("you", "you"),
        ("gemdeck", "gemdeck"),
        ("claude-code in ~/work\n", "claude-code in ~/work"),
        ("\x1b]0;x\x07\x1b[31mred\r\u202eder\u2066", None),
        ("x" * 5_000, "x" * (MAX_NAME - 1) + "…"),
    ],
    ids=["none", "number", "invisible", "you", "gemdeck", "verified", "control", "long"],
)
async def test_L26_a_name_is_a_claim_and_cannot_hide_that(
    name: object, shown: str | None, shop: Turncoat, world: World, work: Path
) -> None:
    async with open_deck(shop, work) as running, raw_link(world, name=name) as (_, writer):
        writer.write(line(id=1, method="tools/call", params=CALL))
        caller = (await running.decide(Choice.DENY)).caller
        assert caller.endswith(" (unverified) in ~/work")
        assert caller.isprintable()
        assert shown is None or caller == f"{shown} (unverified) in ~/work"


@pytest.mark.parametrize("said", [b"", b"SSH-2.0\n", b'{"welcome": true}\n'])
async def test_L23_a_socket_of_another_program_is_passed_over(
    said: bytes, shop: Turncoat, world: World, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be silent, say something else, or, of another user, what a deck would say."""
    got: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard = b""
        monkeypatch.setattr(deck_socket, "HELLO_SECONDS", PATIENCE)  # for the next one
        with suppress(OSError):  # nobody wants to hear what we say
            writer.write(said)
            heard = await reader.read()
        writer.close()
        got.append(heard)

    monkeypatch.setattr(deck_socket, "HELLO_SECONDS", 0.2)
    if b"welcome" in said:
        monkeypatch.setattr(deck_socket._Wire, "is_own", lambda _: False)
        async with open_socket(world, work, answer):
            assert await find_deck(world.state, identify(work), Hello("x", "secret")) is None
            await eventually(lambda: got == [b""])
        return
    async with open_deck(shop, work) as running, open_socket(world, work, answer) as path:
        monkeypatch.setattr(deck_socket, "HELLO_SECONDS", PATIENCE if said else 0.2)
        async with link(world, work) as deck:
            await asked(running, deck, Choice.ONCE)
        await eventually(lambda: len(got) == 1)
        other = path.rename(path.parent.parent / "agent.sock")
        path.symlink_to(other)
        async with link(world, work) as deck:
            await asked(running, deck, Choice.ONCE)
        assert len(got) == 1


async def test_L23_the_folder_of_the_sockets_is_the_users_alone(
    shop: Turncoat, world: World, work: Path
) -> None:
    decks, elsewhere = world.state / "decks", world.home / "elsewhere"
    elsewhere.mkdir()
    async with shop.deck() as running:
        decks.symlink_to(elsewhere)
        async with answering_others(running.engine, work):
            assert [*elsewhere.iterdir()] == []
            assert await find_deck(world.state, identify(work), Hello("x")) is None
        decks.unlink()
        decks.mkdir()
        decks.chmod(0o777)
        async with answering_others(running.engine, work), link(world, work) as deck:
            assert decks.stat().st_mode & 0o777 == 0o700
            await asked(running, deck, Choice.ONCE)


async def test_L24_a_deck_is_that_of_one_folder_and_no_other_in_its_place(
    shop: Turncoat, world: World, work: Path
) -> None:
    async with open_deck(shop, work) as running, link(world, work) as deck:
        moved = Path(shutil.move(work, world.home / "moved"))
        shutil.copytree(moved, work)
        for place in (work, moved):
            assert await find_deck(world.state, identify(place), Hello("x")) is None
        (world.home / "link").symlink_to(work)
        shutil.rmtree(work)
        shutil.move(moved, work)
        async with link(world, world.home / "link") as again:
            await asked(running, again, Choice.ONCE)
        await asked(running, deck, Choice.ONCE)


async def test_L24_a_client_gets_nothing_of_a_folder_without_trust(
    shop: Turncoat, world: World, work: Path
) -> None:
    (work / ".gemini").mkdir()
    rules = {"alwaysAllow": [{"tool": "look"}]}
    entry = {"mcpServers": {"theirs": shop.entry}, "gemdeck": rules}
    (work / ".gemini" / "settings.json").write_text(json.dumps(entry), "utf-8")
    async with open_deck(shop, work, folder=work) as running, link(world, work) as deck:
        await running.pending(TrustRequest)
        listed = (await deck.request("tools/list", {}))["tools"]
        assert [one["name"] for one in listed] == ["look", "buy"]
        await asked(running, deck, Choice.DENY)
    assert shop.calls == []


@pytest.mark.parametrize("profiles", [{"p": {"servers": []}}, {}], ids=["narrowed", "removed"])
async def test_L27_a_profile_that_changes_holds_for_who_is_connected(
    profiles: dict[str, Any], shop: Turncoat, world: World, work: Path
) -> None:
    settings: dict[str, Any] = {"mcpServers": {"shop": shop.entry}}
    settings["gemdeck"] = {"profiles": {"p": {"servers": ["shop"]}}}
    async with (
        open_deck(shop, work, settings=settings, follow_settings=True) as running,
        link(world, work, profile="p") as deck,
        aclosing(deck.changes()) as changes,
    ):
        await asked(running, deck, Choice.ONCE)
        settings["gemdeck"]["profiles"] = profiles
        write_settings(settings)
        async for one in changes:
            assert one["method"].endswith("/list_changed")
            if not (await deck.request("tools/list", {}))["tools"]:
                break
        with pytest.raises(RequestRefusedError, match="no tool look"):
            await call(deck)
        assert len(running.raised(ConfirmationRequest)) == len(shop.calls) == 1


async def test_L28_a_client_whose_call_is_denied_gets_nothing_that_its_server_logs(
    shop: Turncoat, world: World, work: Path
) -> None:
    server = ServerId("shop")
    lines = (LogLine(0.0, "log", Severity.INFO, "of the chat", "info"),)
    async with open_deck(shop, work) as running, link(world, work) as deck:
        for choice, first in (Choice.DENY, "tools/list_changed"), (Choice.ONCE, "message"):
            await asked(running, deck, choice)
            running.engine.runs.publish(ServerLogged(server, lines))
            running.engine.runs.publish(CatalogChanged(server, Catalog()))
            got = list[str]()
            async for one in deck.changes():
                got.append(one["method"])
                if got[-1].endswith("resources/list_changed"):
                    break
            assert got[0] == f"notifications/{first}"


@pytest.mark.parametrize(
    ("message", "name"), [("Who?", "password"), ("Your password, please", "name")]
)
async def test_L29_a_form_that_asks_for_a_secret_is_for_the_user(
    message: str, name: str, shop: Turncoat, world: World, work: Path
) -> None:
    form = {"type": "object", "properties": {name: {"type": "string"}}}
    params = {"message": message, "requestedSchema": form}
    asks = {"id": "q", "method": "elicitation/create", "params": params}
    served = library(tools={"t": []}, before={"t": [asks]})
    rules = {"alwaysAllow": [{"tool": "t"}, {"tool": "answer_form"}]}
    settings = {"mcpServers": {"a": served}, "gemdeck": rules}
    async with open_deck(shop, work, settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is READY)
        async with link(world, work) as deck:
            called = deck.request("tools/call", {"name": "t", "_meta": CAN_FILL_IN})
            calling = asyncio.create_task(called)
            question = await running.pending(FormRequest)
            running.engine.desk.answer(question.id, Reply(ReplyAction.DECLINE))
            assert "content" in await calling


async def test_L30_a_command_gets_no_task_of_anybody_else(
    shop: Turncoat, world: World, work: Path
) -> None:
    script = [str(FOLDER / "tasking.py"), "old", str(world.home / "tasks")]
    settings = {"mcpServers": {"a": {"command": sys.executable, "args": script}}}
    async with open_deck(shop, work, settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is READY)
        known = running.engine.servers.registry.definition(ServerId("a"))
        assert known is not None
        lent = {"server": "a", "key": lending_key(known)}
        async with link(world, work, **lent) as mine, link(world, work, **lent) as other:
            call = {"name": "hold", "task": {}, "_meta": {"progressToken": 1}}
            made = await mine.request("tools/call", call)
            task = {"taskId": made["task"]["taskId"]}
            assert (await mine.request("tasks/get", task))["status"] == "working"
            for params, method in (({}, "list"), (task, "get"), (task, "result"), (task, "cancel")):
                with pytest.raises(RequestRefusedError, match=f"not forward tasks/{method}"):
                    await other.request(f"tasks/{method}", params)
            assert (await mine.request("tasks/cancel", task))["status"] == "cancelled"
