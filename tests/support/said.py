"""A wire on which much was said, for the screen without an engine."""

from itertools import count
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

import mcp_types as types

from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.engine.mcp.wire import tap
from tui.engine.mcp.wire.tap import caused_by
from tui.engine.mcp.wire.wire import Wire
from tui.model.chat import MAIN, EntryId
from tui.model.servers import ServerId
from tui.model.wire.frames import FrameFault

EPOCH: Final = 1_767_225_600.0
GIT: Final = {"name": "git", "version": "1"}


class Talk:
    """Says things on the wire of one server."""

    def __init__(self, wire: Wire, server: str) -> None:
        self.tap = wire.tap(ServerId(server))
        self._id = 0

    def ask(self, method: str, call: str = "", **params: object) -> int:
        """Send a request, for a call in the chat if it is named, and return its id."""
        self._id += 1
        whole = params | {"_meta": {"progressToken": self._id}}
        request = types.JSONRPCRequest(jsonrpc="2.0", id=self._id, method=method, params=whole)
        if call:
            with caused_by(MAIN, EntryId(call)):
                self.tap.expect(request)
        self.tap.sent(request, request.model_dump_json().encode())
        return self._id

    def answer(self, id: int, **result: object) -> None:  # noqa: A002 - the field of the protocol
        got = types.JSONRPCResponse(jsonrpc="2.0", id=id, result=result)
        self.tap.received(got.model_dump_json().encode(), got)

    def refuse(self, id: int, words: str, code: int = -32602) -> None:  # noqa: A002 - ditto
        error = types.ErrorData(code=code, message=words)
        got = types.JSONRPCError(jsonrpc="2.0", id=id, error=error)
        self.tap.received(got.model_dump_json().encode(), got)

    def tell(self, method: str, **params: object) -> None:
        got = types.JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
        self.tap.received(got.model_dump_json().encode(), got)


def fill(wire: Wire) -> None:
    """Say something of each kind, one after another in an eighth of a second."""
    steps = count()
    with patch.object(tap, "time", SimpleNamespace(time=lambda: EPOCH + next(steps) / 8)):
        _fill(wire)


def _fill(wire: Wire) -> None:
    git, web = Talk(wire, "git"), Talk(wire, "everything")
    git.tap.word("starting", "")
    git.answer(git.ask("initialize"), protocolVersion="2025-11-25", serverInfo=GIT, capabilities={})
    git.tap.stderr([b"listening on stdio"])
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("branch_list", "log")]
    git.answer(git.ask("tools/list"), tools=tools)
    call = git.ask("tools/call", "call-1", name="branch_list", arguments={"repo_path": "."})
    for step in range(1, 4):
        git.tell("notifications/progress", progressToken=call, progress=step, total=3)
    git.tell("notifications/message", level="info", data="three branches")
    git.answer(call, content=[{"type": "text", "text": "main, next, old"}])
    text = TextPart("main, next, old")
    wire.gave(MAIN, EntryId("call-1"), [text])
    git.tap.received(b'{"jsonrpc": "2.0", "id"', fault=FrameFault.NOT_JSON)
    web.tap.http("POST", "https://example.com/mcp", {}, 401)
    reading = web.ask("resources/read", uri="test://static/resource/1")
    web.refuse(reading, "There is no such resource.")
    git.answer(99, content=[])
    git.tell("notifications/tools/list_changed")
