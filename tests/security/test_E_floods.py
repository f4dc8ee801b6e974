"""Servers that ask too much at once, or in batches, or send what never ends."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from tests.servers import deluge, web
from tests.support.rows import row
from tests.support.stalls import LoopWatch
from tests.support.waiting import PATIENCE
from tests.ui.hands import asking
from tests.ui.requests.samples import sampling
from tests.unit.engine.chats.support import open_backend, open_completions
from tests.unit.engine.chats.test_gemini_backend import collect
from tests.unit.engine.mcp.network import support as network
from tests.unit.engine.mcp.support import call, running, script
from tui.cli import doctor
from tui.engine.chats.backends import service_http
from tui.engine.chats.backends.backend import ModelBackend, ModelError
from tui.engine.desk import MAX_WAITING
from tui.engine.mcp.transports.http.auth_requests import make_send
from tui.engine.mcp.transports.http.pacing import MAX_HEAD
from tui.engine.sign_in.sign_in_record import AuthError
from tui.model.events import RequestsQueued
from tui.model.servers import ServerId, Transport
from tui.model.servers import ServerStatus as S

MIB: Final = 2**20


async def test_E25_the_question_says_how_many_wait() -> None:
    async with asking(sampling()) as hands:
        hands.app.store.dispatch(RequestsQueued(MAX_WAITING))
        words = f"1 of {1 + MAX_WAITING}"
        await hands.until(lambda: words in hands.text)


async def test_E28_a_batch_is_taken_apart() -> None:
    async with running(script("raw", "batches")) as (manager, watcher):
        await watcher.until(ServerId("raw"), S.READY)
        assert "echo" in {tool.name for tool in manager.offered_tools()}


Ask = Callable[[str], Awaitable[object]]


async def ask_completions(url: str) -> None:
    await ask_model(url, open_completions)


async def ask_model(
    url: str, opened: Callable[[str], Awaitable[ModelBackend]] = open_backend
) -> None:
    backend = await opened(url)
    try:
        with pytest.raises(ModelError):
            await collect(backend)
    finally:
        await backend.aclose()


async def ask_server(url: str, transport: Transport = Transport.HTTP) -> None:
    status, _ = await network.refused(url, transport)
    assert status in {S.RETRYING, S.FAILED}


async def ask_authority(url: str) -> None:
    with pytest.raises(AuthError):
        await make_send(network.define(url))("GET", url, {}, None)


async def examine(url: str) -> None:
    section = doctor.DoctorSection("model")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        await doctor._reach(section, None)
    assert section.has_failed


HEADS: Final[list[Ask]] = [
    ask_server,
    lambda url: ask_server(url, Transport.SSE),
    ask_authority,
    ask_model,
    ask_completions,
    examine,
]


async def survive(ask: Ask, kinds: dict[str, tuple[bytes, bytes]], watch: LoopWatch) -> None:
    """Ask for answers that never end; each fails soon, and no step of it holds the loop."""
    async with web.process(sys.executable, deluge.__file__, "{port}") as (url, _):
        for kind in kinds:
            with row(kind):
                watch.clear()
                async with asyncio.timeout(PATIENCE):
                    await ask(f"{url}/{kind}")
                watch.assert_smooth()


@pytest.mark.parametrize("ask", HEADS)
async def test_E40_a_head_without_end_fails_its_request(ask: Ask, loop_watch: LoopWatch) -> None:
    await survive(ask, deluge.HEADS, loop_watch)


@pytest.mark.parametrize("ask", [ask_authority, ask_model, ask_completions, ask_server])
async def test_E40_a_body_without_end_fails_its_request(
    ask: Ask, loop_watch: LoopWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_http, "MAX_STEP_BYTES", MIB)
    kinds = dict(deluge.BODIES)
    if ask is ask_server:  # what is slowed down but may go on has tests of its own
        kinds = {kind: kinds[kind] for kind in ("nothing", "giant", "line", "lines", "data")}
    await survive(ask, kinds, loop_watch)


async def test_E40_interim_answers_are_read_past_up_to_the_limit() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"

    async def hint(exchange: web.Exchange) -> None:
        await exchange.write(interim * (MAX_HEAD // 2 // len(interim)))
        await exchange.text("after all")

    async with network.answering(hint) as (_, manager, _):
        assert (await call(manager, "echo")).display == "after all"
