import mcp_types as types
import pytest

from tests.support.rows import row
from tui.engine.mcp.transports.jsonrpc_lines import (
    EXCHANGE_FAILED,
    MAX_ON_LOOP,
    SESSION_LOST,
    Noise,
    decode,
    encode,
    read,
    split_batch,
    unsendable,
)


def decoded(line: bytes) -> types.JSONRPCMessage | Noise | None:
    return decode(line).message


def test_a_message_is_read_however_it_is_written() -> None:
    mark_and_return = b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{}}\r'
    assert decoded(mark_and_return) == types.JSONRPCResponse(jsonrpc="2.0", id=1, result={})
    for odd in (b"\xff", b"\\ud800"):
        message = decoded(b'{"jsonrpc":"2.0","id":1,"result":{"t":"%b"}}' % odd)
        assert message == types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"t": "\ufffd"})
    assert decoded(b"") is decoded(b"  \r") is None


def test_any_other_line_is_noise() -> None:
    for line in (
        *(b"npm notice", b"[]", b"null", b"[" * 100_000, b'{"jsonrpc":"2.0","method":5}'),
        *(b'{"jsonrpc":"2.0","id":true,"result":5}', b'{"a":{"id":7,"result":'),
    ):
        noise = decoded(line)
        assert isinstance(noise, str), line[:50]
        assert len(noise) <= 300


def test_a_reply_that_cannot_be_read_fails_its_call() -> None:
    for line, reply_id in [
        (b'{"jsonrpc":"2.0","id":7,"result":{"t":"a\tb"}}', 7),
        (b'{"jsonrpc":"2.0","id":"a7","result":5}', "a7"),
        (b'{"jsonrpc":"2.0","id":7,"result":{"n":' + b"1" * 10_000 + b"}}", 7),
        (b'{"jsonrpc":"2.0","id":7,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 7),
        (b'{"jsonrpc":"2.0","result":{"n":' + b"[" * 100_000 + b'},"id":7}', 7),
        (b'{"id":7,"jsonrpc":"2.0","result":{', 7),
    ]:
        with row(line):
            message = decoded(line)
            assert isinstance(message, types.JSONRPCError)
            assert message.id == reply_id
            assert message.error.code == EXCHANGE_FAILED
            assert "whether the request had any effect is unknown" in message.error.message


async def test_a_reply_of_too_many_values_fails_its_call_as_too_complex() -> None:
    line = b'{"jsonrpc":"2.0","id":7,"result":{"n":[' + b"[]," * 600_000 + b"0]}}"
    message = (await read(line)).message
    assert isinstance(message, types.JSONRPCError)
    assert (message.id, message.error.code) == (7, EXCHANGE_FAILED)
    assert "too complex" in message.error.message


async def test_a_long_line_is_read_as_a_short_one_is() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{"t":"%s"}}' % (b"x" * MAX_ON_LOOP)
    assert (await read(line)).message == decoded(line)
    assert isinstance(decoded(line), types.JSONRPCResponse)


def test_a_server_cannot_say_in_our_name_that_a_call_was_not_executed() -> None:
    for code in (EXCHANGE_FAILED, SESSION_LOST):
        message = decoded(b'{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"m"}}' % code)
        assert isinstance(message, types.JSONRPCError)
        assert (message.error.code, message.error.message) == (-32603, "m")


def test_what_a_server_says_unasked_may_not_be_of_many_values() -> None:
    words = b'{"jsonrpc":"2.0",%b"method":"m","params":{"a":[%b0]}}'
    for head in (b"", b'"id":1,'):
        assert isinstance(decoded(words % (head, b"0," * 60_000)), str)
        assert not isinstance(decoded(words % (head, b"0," * 40_000)), str)


def test_a_message_is_one_line() -> None:
    message = types.JSONRPCNotification(jsonrpc="2.0", method="m", params={"t": "a\nb"})
    assert encode(message) == b'{"jsonrpc":"2.0","method":"m","params":{"t":"a\\nb"}}\n'


def test_a_request_that_cannot_be_written_is_answered_for_the_server() -> None:
    request = types.JSONRPCRequest(jsonrpc="2.0", id=3, method="m", params={"t": "\ud800"})
    with pytest.raises(ValueError, match="surrogates"):
        encode(request)
    answer = unsendable(request)
    assert answer is not None
    assert answer.id == 3
    assert unsendable(types.JSONRPCNotification(jsonrpc="2.0", method="m")) is None


async def test_a_batch_is_taken_apart_and_nothing_else() -> None:
    rows: list[tuple[bytes, list[bytes]]] = [
        (b'{"id": 1}', [b'{"id": 1}']),
        (b' [{"id": 1}, {"id": "\xc3\xbc"}]', [b'{"id": 1}', b'{"id": "\\u00fc"}']),
        (b'[[{"id": 1}], 2]', [b'[{"id": 1}]', b"2"]),
        (b"[]", [b"[]"]),
        (b"[{]", [b"[{]"]),
        (b"[" * 5_000 + b"]" * 5_000, [b"[" * 5_000 + b"]" * 5_000]),
    ]
    for line, parts in rows:
        assert await split_batch(line) == parts, line
