"""Text of servers is only ever text: it neither crashes the app nor acts in it."""

from dataclasses import replace
from itertools import chain

from tests.ui.harness import Running, running
from tests.ui.shell import decks
from tui.model import events as e
from tui.model.catalog import (
    Catalog,
    Parameter,
    PromptArgument,
    PromptView,
    ResourceTemplateView,
    ResourceView,
)
from tui.model.chat import BackendKind, ModelView, Severity
from tui.model.servers import Failure, ServerId, ServerInfo, ServerStatus, ServerUsage, ServerView
from tui.store.state import AppState
from tui.store.store import Store
from tui.text import sanitize, sanitize_line
from tui.ui.dialogs.server_page import ServerPage
from tui.ui.messages import ShowServer
from tui.ui.panes.activity import ActivityPane
from tui.ui.panes.browser import ToolsPane
from tui.ui.questions.address import LinkScreen
from tui.ui.widgets.lists.filter_list import FilterList

HOSTILE = [
    "[/x]",
    "[@click=app.quit]press[/] [bold red]loud[/bold red] [link=https://evil.example]here[/link]",
    "\x1b]52;c;aGk=\x07\x1b[2J\x9b31mred \u202etxt.exe\ufeff\u200b $text-muted {b} %s \\[",
    "a" + "\n" * 5_000 + "漢字" * 500,
    "",
]


def add_hostile_server(store: Store, text: str) -> tuple[ServerView, ServerView]:
    """Give two servers that carry a text wherever a server can carry one."""
    line, body = sanitize_line(text) or "(empty)", sanitize(text)
    parameters = (Parameter(line, line, True, body),)
    words = {"title": line, "schema": body, "claims": (line,), "problem": line}
    catalog = Catalog(
        tools=(decks.tool(line, body, parameters=parameters, **words),),
        prompts=(PromptView(line, line, body, (PromptArgument(line, True, body),)),),
        resources=(ResourceView(line, line, line, body, line, 3),),
        templates=(ResourceTemplateView(line, line, line, body, line),),
    )
    ready = replace(
        decks.server(ServerId(line), ServerStatus.READY, target=line),
        description=line,
        info=ServerInfo(line, line, line, body, line, line, (line,), (line,)),
        catalog=catalog,
    )
    failed = decks.server(
        ServerId(f"{line} failed"), ServerStatus.FAILED, failure=Failure(line, line, (line, line))
    )
    decks.log(store, ready.id, body, severity=Severity.ERROR)
    store.dispatch(e.NoticeRaised(e.Notice(Severity.ERROR, body, body)))
    return ready, failed


def hostile_store(*texts: str) -> Store:
    line = sanitize_line(texts[0])
    store = Store(AppState(workspace=line))
    store.dispatch(e.ModelSelected(ModelView(line, BackendKind.DEMO)))
    decks.configure(store, *chain.from_iterable(add_hostile_server(store, t) for t in texts))
    return store


async def visit_everything(deck: Running) -> None:
    """Show the page of every server, every tool, prompt and resource, and every log."""
    change = {"gained": tuple(f"tool {sanitize_line(text)}" for text in HOSTILE)}
    deck.commands.answers["servers.usage"] = ServerUsage(3, 7, 2, 9_000_000, 5, 1, change=change)
    for key in ("f3", "f4", "f5"):
        await deck.press(key)
        entries = next(e for e in deck.app.deck.query(FilterList) if e.region.area)
        for index in range(len(entries.shown)):
            entries.rows.cursor = index
            await deck.pilot.pause()
    await deck.press("f3", "v", "enter", "escape", "f7")
    for view in deck.store.state.servers:
        deck.one(ActivityPane).narrow_to(view.id)
        await deck.pilot.pause()
        deck.app.deck.post_message(ShowServer(view.id))
        await deck.press("c", "enter", "end", "o")
        if isinstance(question := deck.app.screen, LinkScreen):
            await deck.until(lambda: question.armed)
            await deck.press("escape")
        await deck.until(lambda: deck.on_top(ServerPage))
        await deck.press("escape")
    await deck.press("f2", "right", "down", "enter", "f1", "escape", "ctrl+p", "d", "escape")


async def test_D05_hostile_text_everywhere_neither_crashes_nor_acts() -> None:
    async with running(hostile_store(*HOSTILE)) as deck:
        await visit_everything(deck)
        assert deck.app.is_running
        assert deck.app.return_code is None
        assert {name for name, _ in deck.commands.calls} <= {"sessions.list_sessions"}
        assert not {c for c in deck.text if ord(c) < 32 or 127 <= ord(c) < 160} - {"\n"}


async def test_D04_a_click_on_markup_runs_no_action() -> None:
    blank = "a" + "\n" * 5_000 + "b"
    async with running(hostile_store("[@click=app.quit]xxxxxxxx[/]", blank)) as deck:
        await deck.press("f3")
        assert "[@click=app.quit]xxxxxxxx[/]" in deck.text, "shown as it was written"
        clicked = 0
        for y, line in enumerate(deck.lines):
            if "xxxx" in line:
                await deck.pilot.click(offset=(line.rindex("xxxx") + 1, y))
                clicked += 1
        assert clicked > 3
        assert deck.app.is_running
        assert deck.app.return_code is None
        assert deck.commands.acts == []
        await deck.press("f6", "f3", "end")
        pane = deck.one(ToolsPane)
        await deck.until(lambda: pane.entries.current)
        assert pane.entries.current is not None
        assert pane.entries.current[1].description == sanitize(blank)
        assert pane.details.size.height < 30, "blank lines take a few rows"
