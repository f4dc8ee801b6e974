"""A service that compresses although it is asked not to, or errs at length, costs little."""

import gzip
import json
import zlib
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final

import anyio
import psutil
import pytest
from anyio.lowlevel import checkpoint

from tests.servers.web import Handler, HttpServer, answer
from tests.support.stalls import LoopWatch
from tests.support.waiting import PATIENCE
from tests.unit.engine.chats import support
from tests.unit.engine.chats.support import both, open_backend
from tests.unit.engine.chats.test_gemini_backend import collect
from tui.engine.chats.backends.backend import ModelBackend, ModelError

MIB: Final = 1024 * 1024
UNPACKED: Final = 64 * MIB
"""More than an answer may have; packed it is a hundred kilobytes."""

ALLOWED: Final = 24 * MIB
"""What asking and the error may add to the memory; far less than the unpacked answer."""

TEXT: Final = "x" * 999
EVENT: Final = (
    b'data: {"candidates": [{"content": {"parts": [{"text": "%s"}]}}]}\r\n\r\n' % TEXT.encode()
)
FILLER: Final = b" " * MIB

Ask = Callable[[ModelBackend], Awaitable[object]]

ASKING: Final[dict[str, Ask]] = {
    "a turn": collect,
    "the models": lambda backend: backend.models(),
    "a check": lambda backend: backend.check(),
}


@cache
def packed(piece: bytes) -> bytes:
    """Compress a piece again and again, until it has the size of a bomb."""
    packer = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)
    pieces = [packer.compress(piece) for _ in range(UNPACKED // len(piece))]
    return b"".join([*pieces, packer.flush()])


async def refused(ask: Ask, handle: Handler, watch: LoopWatch) -> ModelError:
    """Ask a service that answers so, and give the error; it costs neither time nor memory."""
    async with HttpServer(handle=handle) as server:
        backend = await support.chosen.open(server.origin)
        try:
            await checkpoint()
            watch.clear()  # of what prepared the answer
            before = psutil.Process().memory_info().rss
            with anyio.fail_after(PATIENCE), pytest.raises(ModelError) as caught:
                await ask(backend)
            added = psutil.Process().memory_info().rss - before
        finally:
            await backend.aclose()
    watch.assert_smooth()
    assert added < ALLOWED, f"{added / MIB:.0f} MiB"
    assert server.requests[0].headers["accept-encoding"] == "identity"
    return caught.value


@both
@pytest.mark.parametrize(
    ("asking", "status"), [*((asking, 200) for asking in ASKING), ("a turn", 429)]
)
async def test_packed_answers_stay_packed(asking: str, status: int, loop_watch: LoopWatch) -> None:
    is_stream = asking == "a turn" and status == 200
    kind = "text/event-stream" if is_stream else "application/json"
    body = packed(EVENT if is_stream else FILLER)
    handle = answer(status, body, content_type=kind, content_encoding="gzip")
    error = await refused(ASKING[asking], handle, loop_watch)
    assert f"compressed answer (HTTP {status})" in str(error)
    assert "gateway" in error.advice
    assert not error.retryable


@both
@pytest.mark.parametrize("names", ["GZIP", "identity, gzip", "unheard-of"])
async def test_whatever_the_encoding_is_called(names: str, loop_watch: LoopWatch) -> None:
    kind, body = "text/event-stream", gzip.compress(EVENT)
    handle = answer(200, body, content_type=kind, content_encoding=names)
    error = await refused(collect, handle, loop_watch)
    assert "compressed answer" in str(error)


async def test_an_answer_that_says_it_is_not_packed_is_read() -> None:
    handle = answer(200, EVENT, content_type="text/event-stream", content_encoding="Identity")
    async with HttpServer(handle=handle) as server:
        (chunk,) = await collect(await open_backend(server.origin))
    assert chunk.parts == ({"text": TEXT},)


@both
@pytest.mark.parametrize("asking", ASKING)
async def test_a_long_error_is_not_read_to_its_end(asking: str, loop_watch: LoopWatch) -> None:
    words = "x" * (8 * MIB)
    body = json.dumps({"error": {"code": 400, "message": words, "status": "X"}}).encode()
    handle = answer(400, body, content_type="application/json")
    error = await refused(ASKING[asking], handle, loop_watch)
    assert "longer than 1 MiB" in str(error)
