"""What servers as people have them say in the protocol: own errors, pages, handshakes."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import mcp_types as types
import pytest

from tests.servers.web import ECHO, Exchange, Handler, Message, RawServer
from tests.support.definitions import define_server
from tests.support.rows import row
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.network.support import WEB, answering, connected, refused
from tests.unit.engine.mcp.support import Watcher, call, eventually, ready, refuses, running, script
from tui.engine.files.saved import joined_contents
from tui.engine.mcp.catalog.offered_tool import MediaPart, ToolCallError
from tui.engine.mcp.catalog.results import convert_prompt, convert_resource
from tui.engine.mcp.errors import ServerCallError, ServerGoneError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.session.sdk_patches import repair_contents
from tui.engine.mcp.transports.handshake import repair_handshake
from tui.engine.mcp.transports.jsonrpc_lines import (
    OWN_CODES,
    SERVERS_CLOSED,
    FlowControl,
    code_of,
    decode,
)
from tui.engine.mcp.transports.stdio import process as process_module
from tui.engine.mcp.transports.stdio import stdio_transport
from tui.engine.mcp.transports.stdio.process import ServerProcess
from tui.model.servers import ServerStatus as S

NAMED: Message = {"serverInfo": {"name": "odd", "version": "0"}, "protocolVersion": "2025-06-18"}


def shaking(**capabilities: object) -> dict[str, Handler]:
    """Say what the server can."""

    async def initialize(exchange: Exchange) -> None:
        await exchange.result({**NAMED, "capabilities": {"tools": {}, **capabilities}})

    return {"initialize": initialize}


def refusing(code: int, words: str) -> Handler:
    async def refuse(exchange: Exchange) -> None:
        await exchange.refuse(200, code, words)

    return refuse


@pytest.mark.parametrize("words", ["Not on your plan", "Connection closed"])
@pytest.mark.parametrize(
    ("code", "shown"), [(-32000, -32000), (-32042, -32042), (SERVERS_CLOSED, -32603)]
)
async def test_an_error_of_the_servers_own_is_its_words(code: int, shown: int, words: str) -> None:
    methods = ("prompts/list", "resources/list", "resources/templates/list", "resources/read")
    own = dict.fromkeys((*methods, "prompts/get", "tools/call", "x/y"), refusing(code, words))
    said = rf"{words} \(error {shown}\)"
    async with answering(own | shaking(prompts={}, resources={})) as (_, manager, watcher):
        assert [tool.name for tool in manager.catalogs[WEB].tools] == ["echo"]
        said_of_list = f"prompts/list failed: {words} (error {shown})"
        await eventually(lambda: said_of_list in watcher.log(WEB))
        await refuses(f"refused the call: {said}", manager, "echo")
        features = manager.features(WEB)
        for asking in (features.read_resource("a://b"), features.get_prompt("p", {})):
            with pytest.raises(ServerCallError, match=f"refused: {said}") as caught:
                await asking
            assert not isinstance(caught.value, ServerGoneError)
        answered = await features.request("x/y", {})
        assert answered == {"error": {"code": shown, "message": words}}
        await refuses(said, manager, "echo")
        assert watcher.statuses(WEB) == [S.STARTING, S.READY]
        frames = range(manager.wire.last + 1)
        assert str(SERVERS_CLOSED) not in manager.wire.export(frames).replace(f'"code": {code}', "")


async def test_it_is_its_words_also_before_the_server_is_ready() -> None:
    for method, reason in [
        ("initialize", "refused to connect: no plan (error -32000)"),
        ("tools/list", "could not list its tools: no plan (error -32000)"),
    ]:
        async with RawServer(on={method: refusing(-32000, "no plan")}) as server:
            _, failure = await refused(server.url, sse_fallback=False)
            assert failure.reason == reason


async def test_a_server_of_other_revisions_names_them_and_is_not_tried_again() -> None:
    async def refuse(exchange: Exchange) -> None:
        error = {"code": -32022, "message": "no", "data": {"supported": ["2031-01-01"]}}
        await exchange.give({"id": exchange.request.message["id"], "error": error}, 400)

    methods = ("server/discover", "initialize")
    async with RawServer(on=dict.fromkeys(methods, refuse)) as server:
        status, failure = await refused(server.url, sse_fallback=False)
        assert status is S.FAILED
        assert "2031-01-01" in failure.reason


async def test_a_process_that_ends_is_told_from_one_that_says_so() -> None:
    async with ready(script("raw")) as (manager, _):
        await refuses(r"no such row \(error -32000\)", manager, "own_error", {"text": "{}"})
        await refuses("exited with code 7 during the call", manager, "die")


async def test_how_a_process_ended_is_told_though_its_pipes_close_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exited = ServerProcess.process_exited

    def exited_late(process: ServerProcess) -> None:
        asyncio.get_running_loop().call_later(0.2, exited, process)

    for module in (process_module, stdio_transport):
        monkeypatch.setattr(module, "EOF_GRACE", PATIENCE)
    monkeypatch.setattr(ServerProcess, "process_exited", exited_late)
    async with running(script("raw", "exit")) as (_, watcher):
        failure = await watcher.fails("raw", S.STARTING, S.RETRYING)
        assert failure.reason.startswith("exited with code")


async def test_what_a_process_wrote_before_it_ended_is_read_though_it_takes_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(method: Callable[..., None]) -> Callable[..., None]:
        def later(process: ServerProcess, fd: int, what: object) -> None:
            delay = 0.2 if fd == 1 else 0
            asyncio.get_running_loop().call_later(delay, method, process, fd, what)

        return later

    for name in ("pipe_data_received", "pipe_connection_lost"):
        monkeypatch.setattr(ServerProcess, name, late(getattr(ServerProcess, name)))
    prints = define_server("prints", command="sh", args=("-c", "exec <&-; echo usage: x; exit 2"))
    async with running(prints) as (_, watcher):
        failure = await watcher.fails("prints", S.STARTING, S.RETRYING)
        assert failure.reason.endswith("its first line was not a message: usage: x")


async def test_a_server_that_closes_its_output_and_goes_on_is_told_as_that() -> None:
    mute = define_server("mute", command="sh", args=("-c", "exec >&-; exec sleep 60"))
    async with running(mute) as (_, watcher):
        failure = await watcher.fails("mute", S.STARTING, S.RETRYING)
        assert failure.reason == "closed its standard output during startup"


def test_no_server_speaks_with_a_code_of_ours() -> None:
    for code, inner, shown in [
        *(
            (one, types.INTERNAL_ERROR, types.INTERNAL_ERROR)
            for one in (*OWN_CODES, SERVERS_CLOSED)
        ),
        (types.CONNECTION_CLOSED, SERVERS_CLOSED, types.CONNECTION_CLOSED),
        (-32050, -32050, -32050),
    ]:
        error = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m"}}
        message = decode(json.dumps(error).encode()).message
        assert isinstance(message, types.JSONRPCError)
        assert (message.error.code, code_of(message.error)) == (inner, shown)


def calling_off(request: object, **more: object) -> Message:
    """Say that a request is cancelled."""
    params = {"requestId": request, **more}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


async def test_a_call_that_its_server_cancels_ends_with_the_reason() -> None:
    async def cancel(exchange: Exchange) -> None:
        await exchange.begin(200, content_type="text/event-stream")
        await exchange.event(calling_off(exchange.request.message["id"], reason="no quota"))
        await exchange.hang()

    async with answering(cancel) as (_, manager, watcher):
        await refuses("server cancelled the request: no quota; whether .* unknown", manager, "echo")
        assert watcher.statuses(WEB)[-1] is S.READY


async def test_a_server_that_cancels_its_own_request_ends_none_of_ours() -> None:
    flow, ping = FlowControl(ServerLog(WEB, Watcher())), {"jsonrpc": "2.0", "method": "ping"}
    for number in (3, 4):
        flow.note_sent(types.JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call"))
    await flow.take(json.dumps({**ping, "id": 3}).encode())
    flow.note_sent(types.JSONRPCResponse(jsonrpc="2.0", id=3, result={}))
    for number, ends in [(3, False), (4, True), (4, False), (5, False)]:
        with row(number, ends):
            taken = await flow.take(json.dumps(calling_off(number)).encode())
            assert isinstance(taken, types.JSONRPCError) is ends


TEXT = [{"type": "text", "text": "the needle"}]
SAID: list[Message] = [
    {"error": "the needle"},
    {"error": {"message": "the needle"}},
    {"error": {"code": "E_NEEDLE", "message": "the needle"}},
    {"error": {"code": -32001, "message": {"why": "the needle"}}},
    {"error": {"code": -32001, "data": "the needle"}},
    *({"result": "the needle"}, {"result": TEXT}, {"result": {"content": TEXT}, "jsonrpc": None}),
]


@pytest.mark.parametrize("said", SAID)
async def test_the_words_of_a_reply_that_breaks_the_protocol_are_shown(said: Message) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.give({"id": exchange.request.message["id"], **said})

    async with answering(answer) as (_, manager, _):
        try:
            shown = (await call(manager, "echo")).display
        except ToolCallError as error:
            shown = str(error)
    assert "the needle" in shown


def test_what_does_not_matter_in_a_message_is_mended() -> None:
    rows: list[tuple[Message, str, object]] = [
        ({"id": 1}, "result", {}),
        ({"id": 1, "result": None}, "result", {}),
        ({"id": 1, "result": []}, "result", {}),
        ({"id": 1, "result": {}, "jsonrpc": None}, "jsonrpc", "2.0"),
        (
            {"id": 1, "error": {"code": -32001}},
            "error",
            types.ErrorData(code=-32001, message="no message"),
        ),
        ({"id": 1, "method": "ping", "params": []}, "params", None),
        ({"method": "notifications/x", "params": "y"}, "params", None),
    ]
    for odd, member, mended in rows:
        with row(odd):
            message = decode(json.dumps({"jsonrpc": "2.0", **odd}).encode()).message
            assert getattr(message, member) == mended
    for noise in (
        {},
        {"id": True, "result": {}},
        {"id": None, "result": 5},
        {"id": 1, "result": 5},
    ):
        message = decode(json.dumps({"jsonrpc": "2.0", **noise}).encode()).message
        assert not isinstance(message, types.JSONRPCResponse)


def test_a_line_of_a_log_in_json_answers_nothing() -> None:
    for line in (b'{"id":1,"level":30,"msg":"started"}', b'{"id":1,"jsonrpc":"2.0","result":5}'):
        assert not isinstance(decode(line).message, types.JSONRPCResponse)


@pytest.mark.parametrize(
    "params",
    [
        {"level": "info", "message": "the needle"},
        {"level": "warn", "data": "the needle"},
        {"level": "WARNING", "data": {"a": "the needle"}, "logger": "x"},
        {"level": 30, "data": "the needle", "logger": None},
        {"msg": "the needle"},
    ],
)
async def test_what_is_logged_is_shown_whatever_its_form(params: Message) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.begin(200, content_type="text/event-stream")
        await exchange.event({"method": "notifications/message", "params": params})
        for _ in range(3):
            await exchange.event({"id": 99_999, "result": {}})
        await exchange.event({"id": exchange.request.message["id"], "result": {"content": []}})

    async with answering(answer) as (_, manager, watcher):
        await call(manager, "echo")
        await eventually(lambda: "the needle" in "".join(watcher.log(WEB)))
        await eventually(lambda: "a response to no request: id 99999" in watcher.log(WEB))


LISTS = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}


def paging(pages: list[tuple[list[str], str | int | None]]) -> dict[str, Handler]:
    """List page by page, and the last one again and again."""
    turns = dict.fromkeys(LISTS, 0)

    async def give(exchange: Exchange) -> None:
        method = exchange.request.message["method"]
        names, cursor = pages[min(turns[method], len(pages) - 1)]
        turns[method] += 1
        items: list[Message] = [{**ECHO, "name": name} for name in names]
        if method == "resources/list":
            items = [{"uri": f"a://{name}", "name": name} for name in names]
        more = {} if cursor is None else {"nextCursor": cursor}
        await exchange.result({LISTS[method]: items, **more})

    return dict.fromkeys(LISTS, give)


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        ([(["a", "b"], "1")], "ab"),
        ([(["a", "b"], "")], "ab"),
        ([(["a"], "1"), (["b"], "1")], "ab"),
        ([(["a"], "1"), (["b"], "2"), (["b"], "2")], "ab"),
        ([(["a"], ""), (["b"], None)], "ab"),
        ([(["a"], 2), (["b"], False)], "ab"),
        ([(["a"], "1"), ([], "2"), (["b"], "1"), (["c"], None)], "ab"),
    ],
)
async def test_a_page_that_comes_again_counts_once(
    pages: list[tuple[list[str], str | int | None]], names: str
) -> None:
    async with answering(paging(pages) | shaking(prompts={}, resources={})) as (_, manager, _):
        catalog = manager.catalogs[WEB]
        assert [one.name for one in catalog.prompts] == [*names]
        assert [one.name for one in catalog.resources] == [*names]
        assert [tool.name for tool in catalog.tools] == [*dict.fromkeys(names)]


async def test_what_a_prompt_and_a_resource_say_is_read_whatever_its_form() -> None:
    needle = {"type": "text", "text": "the needle"}
    for message in (
        {"role": "system", "content": needle},
        {"role": "user", "content": "the needle"},
        {"role": "assistant", "content": [needle, needle]},
        *({"content": needle}, "the needle", needle | {"content": {"a": "the needle"}}),
    ):
        with row(message):
            raw = repair_contents({"messages": [message]}, {})
            assert "the needle" in convert_prompt(types.GetPromptResult.model_validate(raw)).shown
    for content in (
        {"uri": "a://1", "text": "the needle"},
        *({"text": "the needle", "blob": None}, {"text": {"a": "the needle"}}),
        *([{"text": "the needle", "mimeType": None}], [{"json": "the needle"}], ["the needle"]),
    ):
        with row(content):
            raw = repair_contents({"contents": content}, {"uri": "a://1"})
            result = types.ReadResourceResult.model_validate(raw)
            read = convert_resource(WEB, "a://1", result)
            assert "the needle" in read.content.text
    raw = repair_contents({"messages": "the needle", "contents": "the needle"}, {"uri": "a://1"})
    assert (raw["messages"][0]["content"], raw["contents"][0]["text"]) == (needle, "the needle")
    assert repair_contents({"messages": None, "contents": None}, {}) == {
        "messages": [],
        "contents": [],
    }


async def test_what_is_no_resource_is_shown_as_it_came() -> None:
    async def read(exchange: Exchange) -> None:
        await exchange.result({"error": "the needle"})

    on = shaking(resources={}) | {"resources/read": read}
    async with answering(on) as (_, manager, _):
        with pytest.raises(ServerCallError, match=r"could not be read: .*the needle"):
            await manager.features(WEB).read_resource("a://1")


def test_a_blob_in_any_base64_reaches_the_model_and_a_file() -> None:
    wrapped = base64.encodebytes(b"\xfb\xff" * 90).decode()
    for blob in (wrapped, wrapped.translate(str.maketrans("+/", "-_")), wrapped.rstrip("=\n")):
        with row(blob):
            raw = {"contents": [{"uri": "a://1", "blob": blob}]}
            read = convert_resource(WEB, "a://1", types.ReadResourceResult.model_validate(raw))
            assert read.problem == ""
            assert any(isinstance(part, MediaPart) for part in read.parts)
        for written in (blob, f"data:image/png;base64,{blob}"):
            with row(written):
                assert joined_contents([{"blob": written}]) == b"\xfb\xff" * 90


def test_contents_of_another_form_are_no_file() -> None:
    assert joined_contents(None) == b"", "as some write an empty list"
    odd: tuple[Any, ...] = ([{"json": {}}], {"a": "b"}, ["a"], [{"blob": 5}], [{"text": 5}], [None])
    for contents in odd:
        with row(contents), pytest.raises(ValueError, match="no contents"):
            joined_contents(contents)


ODD: list[dict[str, Any]] = [
    {"serverInfo": {"name": "x"}},
    {"serverInfo": {"name": "x", "version": 1.5}},
    {"serverInfo": {"name": "x", "version": None, "icons": "none", "websiteUrl": 5}},
    *({"serverInfo": None}, {"serverInfo": []}, {"serverInfo": "x"}, {"serverInfo": {}}),
    *({"capabilities": None}, {"capabilities": []}, {"capabilities": True}),
    {"capabilities": {"tools": []}},
    {"capabilities": {"tools": True, "logging": [], "prompts": [], "experimental": []}},
    {"capabilities": {"tools": {"listChanged": "often"}, "resources": {"subscribe": []}}},
    {"capabilities": {"experimental": {"a": 5, "b": {}}, "tools": {}}},
    {"instructions": 5, "_meta": [], "more": [[]]},
    {"instructions": ["a"], "_meta": 7},
]


async def test_what_does_not_matter_in_a_handshake_keeps_no_server_out() -> None:
    usual = {**NAMED, "capabilities": {"tools": {}}}
    assert repair_handshake(usual) == usual
    for odd in ODD:
        mended = repair_handshake({**usual, **odd})
        types.InitializeResult.model_validate(mended, by_name=False)
        assert mended["protocolVersion"] == NAMED["protocolVersion"]

        async def initialize(exchange: Exchange, odd: Message = odd) -> None:
            await exchange.result({**usual, **odd})

        if mended["capabilities"] == {}:
            continue  # it says that it offers nothing
        with row(odd):
            async with RawServer(on={"initialize": initialize}) as server, connected(server.url):
                assert "tools/list" in server.methods()


async def test_what_matters_in_a_handshake_is_named() -> None:
    for revision, words in (("1999-01-01", "1999-01-01"), (5, "not MCP"), (None, "not MCP")):

        async def initialize(exchange: Exchange, revision: object = revision) -> None:
            await exchange.result({**NAMED, "capabilities": {}, "protocolVersion": revision})

        async with RawServer(on={"initialize": initialize}) as server:
            _, failure = await refused(server.url, sse_fallback=False)
            assert words in failure.reason, revision


def test_a_result_that_only_names_a_revision_stays_as_it_is() -> None:
    result = {"protocolVersion": 5, "content": [], "_meta": {"a": 1}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    message = decode(line).message
    assert isinstance(message, types.JSONRPCResponse)
    assert message.result == result
