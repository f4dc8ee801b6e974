"""Every command of the store, carried out by a real engine."""

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests import servers
from tests.fakes.commands import COMMAND_NAMES
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Fail, Say
from tests.security.decks import Deck, Script, Turncoat, calling, deck, tool
from tests.support import warm
from tests.support.google_account import google_account
from tests.unit.engine.mcp.support import eventually
from tui.model.chat import MAIN, BackendKind, ModelText, TurnPhase, UserMessage
from tui.model.consent import Choice, Decision, GrantScope
from tui.model.events import ArgumentCompleted
from tui.model.models import ModelOptions
from tui.model.requests import ConfirmationRequest, FormRequest, Reply, ReplyAction
from tui.model.servers import ServerId, ServerStatus
from tui.model.trust import (
    FolderTrust,
    ToolChangeAnswer,
    ToolChangeRequest,
    TrustAnswer,
    TrustRequest,
)
from tui.store.commands import Commands
from tui.store.selectors import entries
from tui.store.state import ConversationState

CASES: Final = {
    "conversation": "send answer explain_tool revoke_grant cancel_turn clear_conversation "
    "send_without_waiting",
    "waiting": "send unqueue give_up_retry",
    "tools": "review_tools answer restart_server",
    "folder": "review_folder forget_folder answer",
    "conversations": "new_conversation select_conversation close_conversation send "
    "clear_conversation resume_beside",
    "features": "read_resource subscribe_resource complete_argument set_log_level send_prompt "
    "complete_path complete_folder read_context send_resource open_link answer add_folder",
    "servers": "restart_server restart_all_servers start_server stop_server set_server_enabled "
    "start_demo_servers",
    "sessions": "send list_sessions preview_session resume_session rename_session delete_session "
    "export_session keep_draft edit_message clear_conversation",
    "sign-in": "sign_in sign_out",
    "answers": "send list_models use_model retry_message set_model_options measure_context "
    "compress",
    "models": "use_api_key use_address use_vertex use_demo forget_key",
}
"""The tests here, each with the commands that it runs."""

ASKING: Final = ServerId("asking")
SHOP: Final = ServerId("shop")
S = ServerStatus


@dataclass
class Running:
    """An engine, the commands that it carries out, and those that were used."""

    deck: Deck
    commands: Commands
    used: set[str] = field(default_factory=set)

    def status(self, server: ServerId) -> ServerStatus | None:
        views = self.deck.store.state.servers
        return next((view.status for view in views if view.id == server), None)

    async def reach(self, server: ServerId, status: ServerStatus) -> None:
        await eventually(lambda: self.status(server) is status)

    async def answers_with(self, backend: BackendKind) -> None:
        await eventually(lambda: self.deck.store.state.model.backend is backend)


@asynccontextmanager
async def running(
    case: str,
    monkeypatch: pytest.MonkeyPatch,
    script: Script | None = None,
    turncoats: Sequence[Turncoat] = (),
) -> AsyncIterator[Running]:
    """Run an engine for one case, and see that it used the commands that it names."""
    asking = {"command": warm.python(), "args": [str(Path(servers.__file__).parent / "asking.py")]}
    own = {server.name: server.entry for server in turncoats} or {"asking": asking}
    async with (
        FakeGemini(script or [[Say("hi")]]) as fake,
        deck(fake, monkeypatch, settings={"mcpServers": own}, ready=False) as made,
    ):
        commands = Commands(made.store.dispatch)
        commands.attach(made.engine)
        result = Running(made, commands)

        def use(name: str, *args: object, **kwargs: object) -> None:
            result.used.add(name)
            getattr(Commands, name)(commands, *args, **kwargs)

        for name in COMMAND_NAMES:
            monkeypatch.setattr(commands, name, partial(use, name))
        await eventually(lambda: made.store.state.configured)
        for server in own:
            await result.reach(ServerId(server), S.READY)
        yield result
        assert result.used == set(CASES[case].split())


@pytest.fixture
def shop(tmp_path: Path) -> Turncoat:
    server = Turncoat("shop", tmp_path)
    server.offer(tool("look"), tool("turn"))
    return server


def test_every_command_has_a_case() -> None:
    assert set(" ".join(CASES.values()).split()) == set(COMMAND_NAMES)


async def test_conversation(shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    script: Script = [[Say("hi")], *calling("look", 2)]
    async with running("conversation", monkeypatch, script, [shop]) as it:
        deck, commands, store = it.deck, it.commands, it.deck.store
        commands.send("hello")
        await deck.idle()
        assert [e.text for e in entries(store.state) if isinstance(e, ModelText)] == ["hi"]
        commands.send_without_waiting()
        commands.send("look")
        request = await deck.pending(ConfirmationRequest)
        commands.answer(request.id, Decision(Choice.ALWAYS_TOOL, scope=GrantScope.EVERYWHERE))
        await deck.idle()
        assert shop.calls == [("look", {"text": "0"})]
        [grant] = store.state.grants
        commands.explain_tool(SHOP, "look")
        await eventually(lambda: store.state.standing)
        assert store.state.standing is not None
        assert store.state.standing.tool == "look"
        commands.revoke_grant(grant.id)
        await eventually(lambda: store.state.grants == ())
        commands.send("look again")
        await deck.pending(ConfirmationRequest)
        commands.cancel_turn()
        await eventually(
            lambda: store.state.conversation.turn is None and store.state.pending == ()
        )
        assert len(shop.calls) == 1
        commands.clear_conversation()
        await eventually(lambda: not list(entries(store.state)))


async def test_waiting(shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    script: Script = [[Fail(503, "busy", retry_delay="60s")]]
    async with running("waiting", monkeypatch, script, [shop]) as it:

        def chat() -> ConversationState:
            return it.deck.store.state.conversation

        it.commands.send("hello")
        await eventually(lambda: (turn := chat().turn) and turn.phase is TurnPhase.RETRYING)
        it.commands.send("and this")
        await eventually(lambda: chat().queued == ("and this",))
        it.commands.unqueue("and this", give_back=True)
        await eventually(lambda: chat().unsent.texts == ("and this",))
        it.commands.give_up_retry()
        await eventually(lambda: chat().unsent.texts == ("and this", "hello"))


async def test_changed_tools(shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running("tools", monkeypatch, turncoats=[shop]) as it:
        shop.offer(tool("look", "Looks elsewhere."), tool("turn"))
        it.commands.restart_server(SHOP)
        request = await it.deck.pending(ToolChangeRequest)
        it.commands.answer(request.id, ToolChangeAnswer.KEEP_AWAY)
        await eventually(lambda: it.deck.store.state.pending == ())
        assert it.deck.offered() == ["turn"]
        it.commands.review_tools(SHOP)
        request = await it.deck.pending(ToolChangeRequest)
        it.commands.answer(request.id, ToolChangeAnswer.ACCEPT)
        await eventually(lambda: it.deck.offered() == ["look", "turn"])


async def test_folder(home: Path, shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = home / "work" / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"mcpServers": {"brought": shop.entry}}))
    brought = ServerId("brought")
    async with running("folder", monkeypatch, turncoats=[shop]) as it:
        request = await it.deck.pending(TrustRequest)
        it.commands.answer(request.id, TrustAnswer.NEVER)
        await eventually(lambda: it.deck.store.state.folder_trust is FolderTrust.NEVER)
        it.commands.review_folder()
        request = await it.deck.pending(TrustRequest)
        it.commands.answer(request.id, TrustAnswer.TRUST)
        await it.reach(brought, S.READY)
        it.commands.forget_folder()
        await it.reach(brought, S.UNTRUSTED)
        assert it.deck.store.state.folder_trust is FolderTrust.UNTRUSTED


async def test_conversations(shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running("conversations", monkeypatch, turncoats=[shop]) as it:
        commands, store = it.commands, it.deck.store
        commands.new_conversation()
        await eventually(lambda: len(store.state.conversations) == 2)
        second = store.state.current
        assert list(store.state.conversations) == [MAIN, second]
        commands.select_conversation(MAIN)
        await eventually(lambda: store.state.current == MAIN)
        commands.close_conversation()
        await eventually(lambda: list(store.state.conversations) == [second])
        assert store.state.current == second
        commands.send("hello")
        await it.deck.idle()
        session = it.deck.engine.sessions.recorder.session
        assert session is not None
        commands.clear_conversation()
        commands.resume_beside(session)
        await eventually(lambda: messages(it) == ["hello"])
        assert [second] == list(store.state.conversations)[:-1]


async def test_features(monkeypatch: pytest.MonkeyPatch) -> None:
    script: Script = [[Say("one")], [Say("two")]]
    async with running("features", monkeypatch, script) as it:
        commands, store = it.commands, it.deck.store
        commands.read_resource(ASKING, "counter://now")
        await eventually(lambda: store.state.resource)
        assert store.state.resource is not None
        assert store.state.resource.content.text == "count 0"
        commands.subscribe_resource(ASKING, "counter://now", subscribed=True)
        await eventually(lambda: (ASKING, "counter://now") in store.state.subscriptions)
        commands.complete_argument("t", ASKING, "greet", "name", "A", {})
        await eventually(lambda: store.state.completion)
        commands.complete_path("p", "nothing like it")
        await eventually(lambda: store.state.completion == ArgumentCompleted("p", ()))
        commands.complete_folder("f", "nothing/like it")
        await eventually(lambda: store.state.completion == ArgumentCompleted("f", ()))
        own = Path.home() / ".gemini" / "GEMINI.md"
        own.write_text("Be brief.")
        commands.read_context()
        await eventually(lambda: [one.text for one in store.state.context] == ["Be brief."])
        commands.set_log_level(ASKING, "error")
        await eventually(lambda: store.state.log_levels.get(ASKING) == "error")
        commands.send_prompt(ASKING, "greet", {"name": "Ada"})
        await eventually(lambda: len(messages(it)) == 1 and store.state.conversation.turn is None)
        commands.send_resource(ASKING, "memo://monday", "hello")
        await eventually(lambda: len(messages(it)) == 2 and store.state.conversation.turn is None)
        assert messages(it)[0].startswith('/greet --name="Ada"')
        assert messages(it)[1].startswith("hello\n\n[memo://monday of asking")
        await answer_a_form(it)
        commands.open_link("https://example.com/")
        await eventually(lambda: store.state.notices)
        assert store.state.notices[-1].text == "No program to open links was found."
        commands.add_folder("/")
        await eventually(lambda: store.state.folders[1:] == ("/",))


def messages(it: Running) -> list[str]:
    """Give what the user sent."""
    return [e.text for e in entries(it.deck.store.state) if isinstance(e, UserMessage)]


async def answer_a_form(it: Running) -> None:
    async with anyio.create_task_group() as group:
        results: list[str] = []

        async def run() -> None:
            result = await it.deck.engine.call_tool(ASKING, "form", {}, by_user=True)
            results.append(result.display)

        group.start_soon(run)
        request = await it.deck.pending(FormRequest)
        reply = Reply(ReplyAction.ACCEPT, {"name": "Ada", "age": "36"})
        it.commands.answer(request.id, reply)
    assert json.loads(results[0])["content"]["age"] == 36
    assert it.deck.store.state.pending == ()


async def test_servers(shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running("servers", monkeypatch, turncoats=[shop]) as it:
        commands = it.commands
        for restart in (partial(commands.restart_server, SHOP), commands.restart_all_servers):
            restart()
            await eventually(lambda: it.status(SHOP) is not S.READY)
            await it.reach(SHOP, S.READY)
        commands.stop_server(SHOP)
        await it.reach(SHOP, S.STOPPED)
        commands.start_server(SHOP)
        await it.reach(SHOP, S.READY)
        commands.set_server_enabled(SHOP, enabled=False)
        await it.reach(SHOP, S.DISABLED)
        commands.set_server_enabled(SHOP, enabled=True)
        await it.reach(SHOP, S.READY)
        commands.start_demo_servers()
        await it.reach(ServerId("notes"), S.READY)


async def test_sessions(home: Path, shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    script: Script = [[Say("one")], [Say("two")], [Say("three")]]
    async with running("sessions", monkeypatch, script, [shop]) as it:
        commands, store = it.commands, it.deck.store
        commands.send("first")
        await it.deck.idle()
        [before] = [e for e in entries(store.state) if isinstance(e, UserMessage)]
        commands.edit_message(before.id, "better")
        await eventually(lambda: messages(it) == ["better"])
        await it.deck.idle()
        commands.keep_draft("half a")
        commands.export_session("", "kept.json")
        exported = home / "work" / "kept.json"
        await eventually(lambda: exported.is_file() and exported.read_text().endswith("}\n"))
        commands.clear_conversation()
        commands.list_sessions()
        await eventually(lambda: len(store.state.sessions) == 2)
        branch, now = sorted(store.state.sessions, key=lambda view: not view.title)
        assert (branch.title, branch.parent) == ("before editing: first", now.id)
        commands.preview_session(branch.id)
        await eventually(lambda: store.state.preview)
        assert store.state.preview is not None
        assert [e.text for e in store.state.preview.entries if isinstance(e, ModelText)] == ["one"]
        commands.resume_session(now.id)
        await eventually(lambda: messages(it) == ["better"])
        assert store.state.conversation.unsent.texts[-1] == "half a"
        commands.resume_session(branch.id)
        await eventually(lambda: messages(it) == ["first"])
        commands.rename_session(now.id, "mine")
        await eventually(lambda: "mine" in {view.title for view in store.state.sessions})
        commands.delete_session(now.id)
        await eventually(lambda: [view.id for view in store.state.sessions] == [branch.id])


async def test_answers(shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    script: Script = [[Say("one")], [Say("again")], [Say("a summary")]]
    async with running("answers", monkeypatch, script, [shop]) as it:
        commands, store = it.commands, it.deck.store
        commands.list_models()
        await eventually(lambda: store.state.models)
        commands.use_model("gemini-2.5-flash")
        await eventually(lambda: store.state.model.name == "gemini-2.5-flash")
        commands.set_model_options(ModelOptions(temperature=0.5))
        await eventually(lambda: store.state.options.temperature == 0.5)
        commands.send("hello")
        await it.deck.idle()
        [said] = [one for one in entries(store.state) if isinstance(one, UserMessage)]
        commands.retry_message(said.id, "hello", "gemini-2.5-pro")
        await eventually(lambda: "again" in str(entries(store.state)[-2:]))
        await it.deck.idle()
        commands.measure_context()
        await eventually(
            lambda: {"tools", "messages"} <= {p.name for p in store.state.context_parts}
        )
        commands.compress()
        await eventually(lambda: "compressed" in str(entries(store.state)[-1]))


@pytest.mark.writes_secrets("credentials.json")
async def test_models(shop: Turncoat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        google_account(tmp_path, monkeypatch),
        running("models", monkeypatch, turncoats=[shop]) as it,
    ):
        await it.answers_with(BackendKind.GEMINI)
        it.commands.use_demo()
        await it.answers_with(BackendKind.DEMO)
        it.commands.use_api_key(KEY)
        await eventually(lambda: it.deck.store.state.model.is_kept)
        it.commands.forget_key()
        await eventually(lambda: not it.deck.store.state.model.is_kept)
        address = os.environ["GOOGLE_GEMINI_BASE_URL"]
        it.commands.use_address(address, KEY)
        await eventually(lambda: it.deck.store.state.model.is_kept)
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", address)
        it.commands.use_vertex("project", "")
        await it.answers_with(BackendKind.VERTEX)


async def test_sign_in(shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running("sign-in", monkeypatch, turncoats=[shop]) as it:

        def told() -> list[str]:
            words = "shop runs on this computer and takes no sign-in."
            return [one.text for one in it.deck.store.state.notices if one.text == words]

        it.commands.sign_in(SHOP)
        await eventually(lambda: len(told()) == 1)
        it.commands.sign_out(SHOP)
        await eventually(lambda: len(told()) == 2)
