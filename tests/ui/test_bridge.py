"""Snapshots reach widgets from tasks that know nothing of the app."""

import asyncio
import contextvars

import anyio
from textual.app import App, ComposeResult
from textual.widgets import Label

from tests.support.samples import server_view
from tests.support.waiting import PATIENCE
from tui.model import events as e
from tui.model.servers import ServerStatus
from tui.store.selectors import server_counts
from tui.store.store import Store
from tui.ui.bridge import StoreBridge


class Shown(App[None]):
    def __init__(self, store: Store) -> None:
        super().__init__()
        self.bridge = StoreBridge(self, store)
        self.counts: list[tuple[tuple[ServerStatus, int], ...]] = []
        self.heard = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield Label("servers", markup=False)

    def on_mount(self) -> None:
        self.bridge.start()
        self.bridge.watch(self.query_one(Label), server_counts, self.show)

    def show(self, counts: tuple[tuple[ServerStatus, int], ...]) -> None:
        self.counts.append(counts)
        if counts:
            self.heard.set()

    def on_unmount(self) -> None:
        self.bridge.stop()


async def test_an_event_from_a_task_of_the_engine_is_shown() -> None:
    store = Store()
    app = Shown(store)

    async def publish() -> None:
        store.dispatch(e.ServersConfigured((server_view(status=ServerStatus.READY),)))

    async with app.run_test():
        task = asyncio.create_task(publish(), context=contextvars.Context())
        with anyio.fail_after(PATIENCE):
            await task
            await app.heard.wait()
    assert app.counts == [(), ((ServerStatus.READY, 1),)]


async def test_a_stopped_bridge_shows_nothing_more() -> None:
    store = Store()
    app = Shown(store)
    async with app.run_test() as pilot:
        app.bridge.stop()
        store.dispatch(e.ServersConfigured((server_view(),)))
        await pilot.pause(0.1)
    assert app.counts == [()]
