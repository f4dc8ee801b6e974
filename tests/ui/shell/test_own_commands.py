"""The commands of the screen: what they show, what they ask for, what is said of slips."""

from dataclasses import replace
from typing import Final

import pytest

from tests.ui.harness import Running, running, toasts
from tests.ui.shell import decks
from tui.model import events as e
from tui.model.catalog import Catalog, Off, PromptView, ResourceView, SkillView
from tui.model.chat import (
    EntryId,
    ToolCall,
    ToolCallStatus,
    TurnId,
    TurnOutcome,
    Usage,
    UserMessage,
)
from tui.model.events import FoldersOpened
from tui.model.input.own_commands import OWN_COMMANDS, Takes
from tui.model.models import ContextMeasured, ContextPart, PricesSet
from tui.model.servers import DISCOVERY, ServerId, ServerStatus
from tui.model.settings import PriceSettings
from tui.store.store import Store
from tui.ui import keymap
from tui.ui.app import GemdeckApp
from tui.ui.commands.runner import COMMANDS
from tui.ui.dialogs.help import HelpScreen
from tui.ui.dialogs.list_dialog import DetailsScreen
from tui.ui.opening import DIALOGS
from tui.ui.panes.browser import ToolsPane
from tui.ui.widgets.chat.completion import complete, complete_command
from tui.ui.widgets.chat.composer import Composer

CALLS: Final[dict[str, tuple[str, tuple[object, ...]]]] = {
    "/mcp restart everything": ("servers.restart", ("everything",)),
    "/mcp restart GIT": ("servers.restart", ("git",)),
    "/mcp stop git": ("servers.stop", ("git",)),
    "/mcp start weather": ("servers.start", ("weather",)),
    "/mcp enable legacy": ("servers.set_enabled", ("legacy", True)),
    "/mcp disable git": ("servers.set_enabled", ("git", False)),
    "/mcp auth": ("sign_ins.begin", ("drive",)),
    "/mcp auth search": ("sign_ins.begin", ("search",)),
    "/mcp logout drive": ("sign_ins.end", ("drive",)),
    "/mcp refresh": ("servers.restart_all", ()),
    "/mcp reload": ("servers.restart_all", ()),
    "/clear": ("conversations.current.clear", ()),
    "/new": ("conversations.current.clear", ()),
    "/skill docs:pdf  fill it": ("messages.send", ("/skill docs:pdf  fill it",)),
    "/directory add ~/more and more": ("features.add_folder", ("~/more and more",)),
}
SLIPS: Final = {
    "/mcp restart": "Usage: /mcp restart SERVER",
    "/mcp restart gti": "There is no server gti. Did you mean git?",
    "/mcp restrat git": "/mcp has no restrat. Did you mean /mcp restart git?",
    "/mcp start git": "git is ready.",
    "/mcp start legacy": "legacy is disabled. Use /mcp enable legacy",
    "/mcp restart team-notes": "team-notes is untrusted. /mcp list team-notes shows why.",
    "/mcp zzzz": "There is no server zzzz. /mcp lists your servers.",
    "/clear all": "/clear accepts no arguments.",
    "/model manage": "There is no command /model manage. /model lists the models.",
    "/mcp disable git --session": "There is no command /mcp disable --session. "
    "/mcp stop stops a server until you start it.",
    "/copy": "No answer to copy yet.",
    "/theme gemdeck-drak": "There is no theme gemdeck-drak. Did you mean gemdeck-dark?",
    "/directory add": "Usage: /directory add FOLDER",
    "/skill": "None of your servers offers skills.",
    "/tools [/x]": "There is no server [/x]. /mcp lists your servers.",
}


def shown(deck: Running) -> str:
    """Give all of what the dialog says."""
    return str(deck.app.screen.query_one(".dialog Static").render())


async def report(deck: Running, text: str) -> str:
    """Type a command that shows something, and give all of that."""
    await deck.typed(text)
    await deck.until(lambda: deck.on_top(DetailsScreen))
    await deck.settle()
    text = shown(deck)
    await deck.press("escape")
    return text


def test_every_command_has_its_action() -> None:
    words = set[tuple[str, ...]]()
    for command in OWN_COMMANDS.values():
        words |= {(command.name, part.name) for part in command.parts} or {(command.name,)}
    assert words == COMMANDS.keys()


def test_every_name_that_a_key_opens_has_its_dialog() -> None:
    asked = {key.action for key in keymap.KEYS if key.action.startswith("app.")}
    named = {f"app.open('{name}')" for name in DIALOGS}
    own = {f"app.{name.removeprefix('action_')}" for name in dir(GemdeckApp)}
    assert asked <= named | own
    assert len(asked & named) > 3


async def test_mcp_shows_how_each_server_is_set_up_and_stands() -> None:
    store = decks.full_store()
    git = replace(
        store.state.servers[0],
        cwd="~/shop",
        timeout=30.0,
        trusted=True,
        source="~/.gemini/settings.json, line 12",
        environment=("HOME", "PATH", "GIT_DIR"),
        variables=("GIT_DIR",),
        extension="tools [/x]",
        description="Our branches",
        catalog=replace(
            store.state.servers[0].catalog,
            prompts=(PromptView("review"),),
            resources=tuple(ResourceView(f"a:{n}", f"r{n}") for n in range(12)),
        ),
    )
    store.dispatch(e.ServersConfigured((git, *store.state.servers[1:])))
    async with running(store) as deck:
        report_on_git = await report(deck, "/mcp list GIT")
        for row in (
            "● git  ready",
            "command      uvx mcp-server-git --repository ~/shop",
            "directory    ~/shop",
            "timeout      30 s",
            "approval     run without asking",
            "settings     ~/.gemini/settings.json, line 12",
            "extension    tools [/x]",
            "variables    GIT_DIR, 2 inherited",
            "discovery    completed",
            "tools        6",
            "prompts      review",
            "resources    r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, … 2 more",
            "tools        branch_list, commit, diff, log, show, status",
        ):
            assert row in report_on_git.splitlines(), row
        assert "everything" not in report_on_git
        everything = await report(deck, "/mcp")
        assert "✕ weather  failed" in everything
        assert "The server ended with exit code 1" in everything
        assert "No module named 'pandas'" in everything, "its last words"
        assert "○ legacy  disabled" in everything
        assert everything.count("discovery    not started") == 2
        described = await report(deck, "/mcp desc git")
        assert "Record changes to the repository." in described
        assert "description  Our branches" in described
        assert '"required": ["repo_path"]' not in described
        assert '"required": ["repo_path"]' in await report(deck, "/mcp schema git")


def test_how_far_a_server_is_has_three_words() -> None:
    words = {status.name: DISCOVERY[status] for status in ServerStatus}
    assert words.pop("STARTING") == "in progress"
    early = {"INVALID", "DISABLED", "UNTRUSTED", "STOPPED"}
    assert {name for name, word in words.items() if word == "not started"} == early
    assert {word for name, word in words.items() if name not in early} == {"completed"}


async def test_a_command_asks_the_engine_and_sends_nothing() -> None:
    async with running(decks.full_store()) as deck:
        for text, call in CALLS.items():
            deck.commands.calls.clear()
            await deck.typed(text)
            await deck.until(lambda: deck.commands.calls)
            assert deck.commands.acts == [call], text
            assert deck.one(Composer).text == "", text


async def test_the_servers_of_an_extension_stop_and_start_together() -> None:
    store = decks.full_store()
    views = [replace(view, extension="kit") for view in store.state.servers[:3]]
    store.dispatch(e.ServersConfigured((*views, *store.state.servers[3:])))
    async with running(store) as deck:
        await deck.typed("/mcp stop kit")
        await deck.until(lambda: len(deck.commands.calls) == 3)
        stopped = [arguments for name, arguments in deck.commands.calls if name == "servers.stop"]
        assert stopped == [("git",), ("everything",), ("search",)]
        assert deck.said == "Stopping git, everything, search."


async def test_a_slip_is_said_and_what_was_typed_comes_back() -> None:
    async with running(decks.full_store()) as deck:
        for text, words in SLIPS.items():
            await deck.typed(text)
            await deck.until(lambda: words in toasts(deck.app))  # noqa: B023 - awaited at once
            assert deck.one(Composer).text == text
            assert deck.one(Composer).holds_returned, text
        assert deck.commands.acts == []


async def test_without_a_name_all_skills_are_offered() -> None:
    store = decks.full_store()
    skills = (SkillView("pdf", "Fills forms."), SkillView("odd", "Is odd."))
    view = replace(decks.server(decks.GIT, ServerStatus.READY), catalog=Catalog(skills=skills))
    store.dispatch(e.ServersConfigured((view,)))
    async with running(store) as deck:
        await deck.typed("/skill")
        await deck.until(lambda: "Fills forms." in deck.text)
        await deck.press("down", "tab")
        assert deck.one(Composer).text == "/skill git:odd "


async def test_commands_that_show_or_change_the_screen() -> None:
    async with running(decks.full_store()) as deck:
        await deck.typed("/tools everything")
        await deck.until(lambda: deck.one(ToolsPane).has_focus_within)
        await deck.until(lambda: "longRunningOperation" in deck.text)
        assert "branch_list" not in deck.text
        await deck.press("f6")
        await deck.typed("/theme gemdeck-light")
        await deck.until(lambda: deck.app.theme == "gemdeck-light")
        await deck.typed("/help")
        await deck.until(lambda: deck.on_top(HelpScreen))
        await deck.press("escape")
        await deck.typed("/quit")
        await deck.until(lambda: deck.app.return_code == 0)


async def test_the_last_answer_is_copied() -> None:
    store = Store()
    for number, text in enumerate(("one", "**two** [/x]")):
        turn = TurnId(f"t{number}")
        store.dispatch(e.TurnStarted(turn, UserMessage(EntryId(f"u{number}"), "?"), 0.0))
        store.dispatch(e.TextStreamed(EntryId(f"m{number}"), text))
        store.dispatch(e.TurnFinished(turn, TurnOutcome.COMPLETED))
    async with running(store) as deck:
        await deck.typed("/copy")
        await deck.until(lambda: deck.app.clipboard == "**two** [/x]")


async def test_figures_of_the_run_and_of_this_conversation() -> None:
    store = decks.full_store()
    decks.start_turn(store)
    for number, status in enumerate((ToolCallStatus.OK, ToolCallStatus.ERROR)):
        call = ToolCall(EntryId(f"c{number}"), decks.GIT, "log", "{}")
        store.dispatch(e.ToolCallRequested(call))
        store.dispatch(e.ToolCallChanged(call.id, status, 1.5, "x"))
    store.dispatch(e.TextStreamed(EntryId("m"), "done"))
    usage = Usage(prompt=1_600, output=20, thoughts=3, cached=5, context=25_000)
    store.dispatch(e.UsageReported(replace(usage, context_limit=1_000_000)))
    async with running(store) as deck:
        stats = await report(deck, "/stats")
        for row in (
            "input        14,000 (5 cached)",
            "output       20",
            "thinking     3",
            "context      25,000 of 1,000,000 (2%)",
            "messages     1",
            "answers      1",
            "tool calls   2, 1 failed, 3.0 s in total",
            "             git: 2",
        ):
            assert row in stats.splitlines(), row


async def test_what_was_spent_is_shown_where_models_have_a_price() -> None:
    store = decks.new_store()
    price = {"gemini-x": {"input": 2.5, "output": 10}}
    store.dispatch(PricesSet(PriceSettings.model_validate({"models": price})))
    decks.start_turn(store)
    store.dispatch(e.UsageReported(Usage(prompt=1_600, output=20), "gemini-x"))
    store.dispatch(e.TurnFinished(TurnId("t1"), TurnOutcome.COMPLETED, "", 4.0))
    async with running(store, (120, 30)) as deck:
        assert "0 tokens · 0.0042 USD" in deck.lines[0]
        assert "4.0 s · 1.6k tokens · 0.0042 USD" in deck.text
        assert "cost         0.0042 USD" in (await report(deck, "/stats")).splitlines()
        assert "cost         0.0042 USD so far" in (await report(deck, "/context")).splitlines()


@pytest.mark.parametrize("used", [0, 6_343])
async def test_what_fills_the_context_is_a_table_sorted_by_size(used: int) -> None:
    store = decks.new_store()
    parts = (
        ContextPart("messages", 449),
        ContextPart("tools and instructions", 1_035, ServerId("git"), is_counted=True, tools=12),
        ContextPart("tools and instructions", 2_104, ServerId("a[/b]c"), is_counted=True, tools=1),
    )
    store.dispatch(e.UsageReported(Usage(context=used, context_limit=1_048_576 * bool(used))))
    async with running(store) as deck:
        await deck.typed("/context")
        await deck.until(lambda: deck.on_top(DetailsScreen))
        store.dispatch(ContextMeasured(parts))
        await deck.until(lambda: "git" in shown(deck))
        total = "total                      6,343  ▌             0.6% of 1,048,576"
        assert [line.rstrip() for line in shown(deck).splitlines()[:5]] == [
            total if used else "total                     ~3,600  ████████████",
            "tools · a[/b]c             2,104  ████████████    1 tool",
            "tools · git                1,035  ██████        12 tools",
            "messages                    ~450  ██▌",
            "~ estimated; the service counted the others",
        ]


async def test_below_what_fills_the_context_are_the_largest_tools_that_the_model_has() -> None:
    sizes = {"small": 40, "off": 9_000, "b[/b]": 4_840, "c": 80, "d": 120, "e": 160, "f": 200}
    tools = [
        decks.tool(name, size=size, off=Off.SESSION if name == "off" else None)
        for name, size in sizes.items()
    ]
    view = replace(decks.server(decks.GIT, ServerStatus.READY), catalog=Catalog(tools=tuple(tools)))
    store = Store()
    decks.configure(store, view)
    async with running(store) as deck:
        await deck.typed("/context")
        await deck.until(lambda: "Largest tools" in shown(deck))
        rows = shown(deck).partition("Largest tools\n")[2].splitlines()[:6]
        assert [row.split() for row in rows] == [
            ["git", "·", "b[/b]", "~1,200"],
            ["git", "·", "f", "~50"],
            ["git", "·", "e", "~40"],
            ["git", "·", "d", "~30"],
            ["git", "·", "c", "~20"],
            [],
        ]


async def test_the_folders_and_the_context_files_are_listed() -> None:
    store = Store()
    good = e.ContextFile("~/.gemini/GEMINI.md", "Be [b]brief[/b].\n\nEnd.")
    bad = e.ContextFile("GEMINI.md", "", "its folder is not trusted")
    store.dispatch(FoldersOpened(("~/shop", "~/[/x] more")))
    async with running(store) as deck:
        assert (await report(deck, "/directory")).splitlines()[:2] == ["~/shop", "~/[/x] more"]
        await deck.typed("/context")
        await deck.until(lambda: deck.on_top(DetailsScreen))
        assert ("context_files.refresh", ()) in deck.commands.calls
        await deck.until(lambda: "none (read from ~/.gemini and" in shown(deck))
        store.dispatch(e.ContextRead((good, bad)))
        await deck.until(lambda: "not trusted" in shown(deck))
        lines = shown(deck).splitlines()
        assert "~/.gemini/GEMINI.md  3 lines" in lines
        assert "GEMINI.md  ✕ not used: its folder is not trusted" in lines


NAMES = {Takes.THEME: ("gemdeck-dark", "nord"), Takes.SOME_PROFILE: ("", "review")}


def test_parts_servers_and_themes_are_completed() -> None:
    servers = decks.full_store().state.servers

    def offered(before: str) -> list[str]:
        found = complete_command(before, servers, NAMES)
        return [before[: found.start] + one.text for one in found.completions] if found else []

    assert offered("/mcp re") == ["/mcp refresh ", "/mcp restart "]
    assert offered("/mcp restart ea") == [
        f"/mcp restart {one}" for one in ("search", "weather", "team-notes")
    ]
    assert offered("/mcp restart  gi") == ["/mcp restart  git"]
    assert offered("/mcp enable ") == ["/mcp enable legacy"]
    assert "/mcp disable legacy" not in offered("/mcp disable ")
    assert offered("/mcp disable git") == []
    assert offered("/theme n") == ["/theme nord"]
    assert offered("/profile ") == ["/profile review"]
    assert offered("/theme") == offered("/help x") == offered("/mcp nothing x") == []
    assert offered("/none x") == offered("see /mcp re") == offered("/mcp\nre") == []


def test_skills_are_completed_with_their_server_once_it_is_ready() -> None:
    pdf, odd = SkillView("pdf", "Fills\nforms."), SkillView("odd", "x", problem="it is too large")
    ready = replace(decks.server(decks.GIT, ServerStatus.READY), catalog=Catalog(skills=(pdf, odd)))
    gone = replace(decks.server(decks.SEARCH, ServerStatus.FAILED), catalog=Catalog(skills=(pdf,)))
    found = complete_command("/skill ", (ready, gone), {})
    assert found is not None
    assert [(one.text, one.detail) for one in found.completions] == [
        ("git:pdf ", "Fills forms."),
        ("git:odd ", "it is too large"),
    ]
    assert complete_command("/skill git:pdf now", (ready,), {}) is None


def test_prompts_are_offered_by_server_and_a_renamed_one_says_so() -> None:
    zoo = Catalog(prompts=(PromptView("Ape"), PromptView("zebra")))
    again = Catalog(prompts=(PromptView("other_zebra", own_name="zebra"),))
    views = [
        replace(decks.server(decks.GIT, ServerStatus.READY), catalog=zoo),
        replace(decks.server(decks.SEARCH, ServerStatus.READY), catalog=again),
    ]
    found = complete("/", views)
    assert found is not None
    labels = [(one.label, one.detail) for one in found.completions]
    assert ("/other_zebra", "search · renamed from zebra") in labels
    own = {f"/{command.usage}" for command in OWN_COMMANDS.values()}
    assert [label for label, _ in labels if label not in own] == ["/Ape", "/zebra", "/other_zebra"]
