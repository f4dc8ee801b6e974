"""The words of a refusal, in whatever form a server writes them."""

import json

import pytest

from tests.support.leaks import FIXTURE_SECRET
from tui.model.wire.refusals import MAX_BODY, MAX_CUT, MAX_SAID, words_of

SECRET = f"{FIXTURE_SECRET}of the request"


def written(content: object) -> bytes:
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (written({"error": "invalid_grant", "error_description": "old"}), "invalid_grant: old"),
        (written({"error": "gone", "error_description": "gone since May"}), "gone since May"),
        (written({"error": "invalid_client"}), "invalid_client"),
        (written({"type": "about:blank", "title": "Slow", "detail": "Wait."}), "Wait."),
        (written({"title": "Too Many Requests", "status": 429}), "Too Many Requests"),
        (written({"jsonrpc": "2.0", "error": {"code": -32000, "message": "no plan"}}), "no plan"),
        (written({"detail": "no"}), "no"),
        (written({"detail": [{"loc": ["body", "a"], "msg": "is missing"}]}), "a: is missing"),
        (written({"detail": [{"loc": {}, "msg": []}, {"message": "b is missing"}]}), "b is"),
        *((written({name: "no"}), "no") for name in ("Message", "errorMessage", "error_msg")),
        (written({"errorCode": "E0000011", "errorSummary": "Invalid token"}), "Invalid token"),
        (written({"fault": {"faultstring": "Expired", "detail": {"errorcode": 5}}}), "Expired"),
        (written({"statusCode": 403, "Description": "No plan"}), "No plan"),
        (written({"errors": [{}, 5, {"message": "second"}]}), "second"),
        (written(["first", "second"]), "first"),
        (written("quoted"), "quoted"),
        (written({"error": {"error": {"reason": "deep"}}}), "deep"),
        (written({"ok": False, "error": None, "message": 5}), ""),
        (b"[" * 4_000, ""),
        (b'{"error": "half of a te', ""),
        (b" \n<!doctype html><TITLE lang=en> 403\nNo </TITLE><body>much", "403 No"),
        (
            b"<html><style>p{}</style><script>a<b</script><!-- no --><p>Sorry,</p>\nnobody",
            "Sorry, n",
        ),
        (b"<script>never ends", ""),
        (b"  Invalid\r\n\tHost  header\n", "Invalid Host header"),
        ("fête".encode(), "fête"),
        (b"\xff\xfe\x00binary", ""),
        (b"", ""),
        (b"a\x1b[31mred\x1b]0;x\x07\x00\xc2\x9b\xe2\x80\xae", "ared"),
    ],
)
def test_a_body_is_read_in_any_form(body: bytes, words: str) -> None:
    said = words_of(body)
    assert said.startswith(words)
    assert bool(said) is bool(words)
    assert said.isprintable()


def test_much_is_cut() -> None:
    assert len(words_of(b"x " * MAX_BODY)) == MAX_SAID
    assert words_of("ä".encode() * MAX_BODY).startswith("ää"), "a cut letter is no binary"
    assert words_of(b"<title>Large</title>" + b"x" * MAX_BODY) == "Large"
    assert words_of(written({"error": "x" * MAX_BODY})) == ""


def mask(text: str) -> str:
    return text.replace(SECRET, "***")


@pytest.mark.parametrize("place", [0, MAX_SAID - 20, MAX_SAID - 5])
@pytest.mark.parametrize("hidden", ["", "\u200b", "\x1b[1m"])
def test_a_secret_is_masked_before_the_words_are_cut(place: int, hidden: str) -> None:
    echoed = "x" * place + SECRET[:9] + hidden + SECRET[9:]
    for body in (echoed.encode(), written({"message": echoed}), f"<p>{echoed}</p>".encode()):
        assert "s3cr3t" not in words_of(body, mask)
        assert SECRET[-8:] not in words_of(body, mask)


def test_no_part_of_a_secret_is_shown_where_a_body_is_cut() -> None:
    for place in range(MAX_BODY - len(SECRET), MAX_BODY + 1, 7):
        for blank, before in ((b" ", b""), (b"<br/>", b"<html>")):
            body = (before + blank * place)[:place] + SECRET.encode() + b" " * MAX_CUT
            assert "s3cr" not in words_of(body, mask), (place, blank)
