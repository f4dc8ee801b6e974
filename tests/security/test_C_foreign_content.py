"""What servers and models say leads nowhere by itself, and makes nobody who they say they are."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.security.listener import listening
from tests.ui.chat.samples import rows_of
from tests.ui.harness import ChatApp, until
from tests.unit.engine.mcp.asking import Stage
from tests.unit.engine.mcp.support import eventually, running, script
from tui.engine.commands.feature_commands import FeatureCommands
from tui.model import events as e
from tui.model.chat import EntryId
from tui.model.events import ResourceRead
from tui.model.servers import ServerId, ServerStatus
from tui.ui.questions.address import LinkScreen
from tui.ui.widgets.text.labelled_text import LabelledText

DECOY = ServerId("decoy")
_watched: list[list[str]] = []


def _note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _watched:
        _watched[-1].append(str(arguments[0]))


sys.addaudithook(_note_opened)


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """Collect the names of all files that this process opens meanwhile."""
    names: list[str] = []
    _watched.append(names)
    try:
        yield names
    finally:
        _watched.remove(names)


def _was_read(read: list[ResourceRead], address: str) -> bool:
    return any(event.uri == address for event in read)


async def test_C05_images_and_links_of_the_model_are_not_followed() -> None:
    async with listening() as listener:
        app = ChatApp()
        async with app.run_test(size=(80, 24)) as pilot:
            app.start_turn()
            text = f"![x]({listener.url}?d=secret) [y]({listener.url}?e=secret) {listener.url}"
            app.store.dispatch(e.TextStreamed(EntryId("m"), text))
            app.store.dispatch(e.EntryCompleted(EntryId("m")))
            await until(pilot, lambda: len(app.chat.transcript.views) == 2)
            view = app.chat.transcript.views[-1]
            row = next(
                number
                for number, line in enumerate(view.lines(view.size.width))
                if "y" in line.plain
            )
            column = view.lines(view.size.width)[row].plain.index("y")
            await pilot.click(view, offset=(column + view.gutter.left, row + view.gutter.top))
            await until(pilot, lambda: isinstance(app.screen, LinkScreen))
            shown = app.screen.query_one(LabelledText)
            await until(pilot, lambda: shown.row_count > 0)
            target = "\n".join(rows_of(shown))
            assert "127.0.0.1" in target
            assert "?e=secret" in target, "the whole address is shown before it is opened"
            await pilot.press("escape")
        assert app.opened == []
        assert listener.requests == []


async def test_C06_a_resource_is_read_by_its_server_alone_whatever_its_address_says() -> None:
    stage = Stage()
    read: list[ResourceRead] = []

    def take(event: e.Event) -> None:
        if isinstance(event, ResourceRead):
            read.append(event)

    async with (
        listening() as listener,
        running(script("decoy", env={"DECOY_URL": listener.url})) as (manager, watcher),
        FeatureCommands(manager, stage.context, take) as features,
    ):
        await watcher.until("decoy", ServerStatus.READY)
        addresses = [resource.uri for resource in watcher.catalog("decoy").resources]
        assert "file:///etc/shadow" in addresses
        with opened_files() as names:
            for address in addresses:
                features.read_resource(DECOY, address)
                await eventually(partial(_was_read, read, address))
        assert {event.content.text for event in read} == {"what the server says"}
        assert not [name for name in names if "shadow" in name]
        assert listener.requests == []


async def test_C12_a_server_that_calls_itself_another_stays_what_the_settings_call_it() -> None:
    async with running(script("decoy", server="files")) as (manager, watcher):
        ready = await watcher.until("files", ServerStatus.READY)
        assert ready.info is not None
        assert ready.info.name == "Google Drive (official)"
        [tool] = manager.offered_tools()
        assert tool.server == "files"
        assert "Google" not in f"{tool.declaration}{tool.view}"


async def test_C13_icons_are_never_fetched() -> None:
    async with (
        listening() as listener,
        running(script("decoy", env={"DECOY_URL": listener.url})) as (manager, watcher),
    ):
        await watcher.until("decoy", ServerStatus.READY)
        assert manager.offered_tools()
        assert listener.url not in str(watcher.catalog("decoy").tools)
        assert listener.requests == []
