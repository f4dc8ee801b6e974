import pytest
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from tui.engine.servers.framing import decode, encode, unsendable


def test_a_message_is_read_with_mark_and_carriage_return() -> None:
    line = b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{}}\r'
    assert decode(line) == JSONRPCResponse(jsonrpc="2.0", id=1, result={})


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":1,"result":{"t":"\xff"}}')
    assert message == JSONRPCResponse(jsonrpc="2.0", id=1, result={"t": "\ufffd"})


@pytest.mark.parametrize("line", [b"", b"  \r"])
def test_a_blank_line_is_nothing(line: bytes) -> None:
    assert decode(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b"npm notice",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","method":5}',
        b'{"jsonrpc":"2.0","id":true,"result":5}',
        b'{"a":{"id":7,"result":',
    ],
)
def test_any_other_line_is_noise(line: bytes) -> None:
    noise = decode(line)
    assert isinstance(noise, str)
    assert len(noise) <= 300


@pytest.mark.parametrize(
    ("line", "reply_id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"t":"\\ud800"}}', 7),
        (b'{"jsonrpc":"2.0","id":"a7","result":5}', "a7"),
        (b'{"jsonrpc":"2.0","id":7,"error":"text"}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":{"n":' + b"1" * 10_000 + b"}}", 7),
        (b'{"jsonrpc":"2.0","id":7,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 7),
        (b'{"jsonrpc":"2.0","result":{"n":' + b"[" * 100_000 + b'},"id":7}', 7),
        (b'{"id":7,"jsonrpc":"2.0","result":{', 7),
    ],
)
def test_a_reply_that_cannot_be_read_fails_the_call_it_answers(
    line: bytes, reply_id: object
) -> None:
    message = decode(line)
    assert isinstance(message, JSONRPCError)
    assert message.id == reply_id
    assert message.error.code == -32700


def test_a_message_is_one_line() -> None:
    message = JSONRPCNotification(jsonrpc="2.0", method="m", params={"t": "a\nb"})
    assert encode(message) == b'{"jsonrpc":"2.0","method":"m","params":{"t":"a\\nb"}}\n'


def test_a_request_that_cannot_be_written_is_answered_for_the_server() -> None:
    request = JSONRPCRequest(jsonrpc="2.0", id=3, method="m", params={"t": "\ud800"})
    with pytest.raises(ValueError, match="surrogates"):
        encode(request)
    answer = unsendable(request)
    assert answer is not None
    assert answer.id == 3
    assert unsendable(JSONRPCNotification(jsonrpc="2.0", method="m")) is None
