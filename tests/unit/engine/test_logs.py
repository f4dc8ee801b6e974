"""The log, and how secrets are masked in every form in which they travel."""

import base64
import json
import logging
import re
import stat
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rows import row
from tui.engine.files.paths import LOG_NAME, log_dir
from tui.engine.logs import log_file, redaction

_log = logging.getLogger("some")


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """Put the root logger back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger(log_file.OWN).setLevel(logging.NOTSET)
    logging.captureWarnings(capture=False)


def records() -> list[dict[str, Any]]:
    """Read the log; every line must be a record."""
    data = (log_dir() / LOG_NAME).read_bytes()
    assert data.endswith(b"\n")
    assert not [byte for byte in data if (byte < 0x20 and byte != 0x0A) or byte > 0x7E]
    return [json.loads(line) for line in data.splitlines()]


def test_every_log_file_is_private_also_after_a_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "MAX_LOG_BYTES", 400)
    log_file.log_to_file()
    for number in range(10):
        _log.warning("line %s of many", number)
    files = [path for path in log_dir().iterdir() if path.suffix != ".lock"]
    assert len(files) > 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert records()[-1]["message"] == "line 9 of many"


def test_a_record_says_when_how_bad_who_and_what_and_brings_a_stack_without_secrets() -> None:
    redactor = redaction.Redactor()
    log_file.log_to_file(redactor)
    redactor.register("hunter2hunter2")
    _log.error("broke %s", "down")
    try:
        raise ValueError("bad key hunter2hunter2")
    except ValueError:
        _log.exception("it failed with %s", "hunter2hunter2")
    first, record = records()
    assert first.pop("time").endswith("+00:00")
    assert first == {"level": "ERROR", "logger": "some", "message": "broke down"}
    assert record["message"] == "it failed with ***"
    assert record["stack"].endswith("ValueError: bad key ***")
    assert "test_logs.py" in record["stack"]


class Hostile:
    """Fails when it is to be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


def test_what_cannot_be_written_is_dropped_silently(capsys: pytest.CaptureFixture[str]) -> None:
    log_file.log_to_file()
    _log.warning("%d apples", "no number")
    _log.warning(Hostile())
    _log.warning("next")
    assert [record["message"] for record in records()] == ["%d apples", "next"]
    (log_dir() / LOG_NAME).unlink()
    (log_dir() / LOG_NAME).mkdir()
    _log.warning("nowhere to go")
    assert capsys.readouterr() == ("", "")


def test_libraries_speak_only_when_asked_to() -> None:
    log_file.log_to_file()
    logging.getLogger("httpx").info("HTTP Request: GET https://h/?key=1")
    logging.getLogger("mcp.client").debug("payload")
    logging.getLogger("google_genai.models").warning("attention")
    assert [record["message"] for record in records()] == ["attention"]
    log_file.log_to_file(verbose=True)
    logging.getLogger("httpcore2").debug("connect_tcp.started")
    logging.getLogger("asyncio").debug("Using selector")
    logging.getLogger("tui.engine").debug("GET https://h/?key=1")
    assert [record["message"] for record in records()] == ["attention", "GET https://h/?key=***"]


SECRET = "pa ss/w\u00f6rd+\"1'\\&x"


def knowing(*values: str) -> redaction.Redactor:
    redactor = redaction.Redactor()
    redactor.register(*values)
    return redactor


def test_a_secret_is_masked_in_each_form() -> None:
    for form in [
        *(SECRET, f"Bearer {SECRET}", quote(SECRET), quote(SECRET, safe=""), quote_plus(SECRET)),
        quote(SECRET, safe="!'()*"),
        *(json.dumps(SECRET), json.dumps({"key": SECRET}, ensure_ascii=False), repr(SECRET)),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        *(base64.b64encode(b"u" * n + SECRET.encode() + b"!" * n).decode() for n in range(1, 7)),
    ]:
        encoded = base64.b64encode(SECRET.encode()).decode()
        shown = knowing(SECRET).redact_known(f"before {form} after")
        with row(form):
            assert re.fullmatch(r"before .*\*\*\*.* after", shown, re.DOTALL)
            assert not [one for one in (form, "w\u00f6rd", encoded[4:16]) if one in shown]


@given(
    secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=60),
    before=st.binary(max_size=7),
    after=st.binary(max_size=7),
)
def test_no_long_run_of_an_encoded_secret_is_left(secret: str, before: bytes, after: bytes) -> None:
    """All but the characters shared with the neighbours are masked, one at each end."""
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    shown = knowing(secret).redact_known(encoded)
    left = shown.replace("***", "")
    assert len(left) <= (len(before) * 8) // 6 + (len(after) * 8) // 6 + 6


def test_lines_of_a_secret_are_secrets_and_plain_words_stay() -> None:
    redactor = knowing("-----BEGIN KEY-----\nMIIE0abcdef\nxyz1xyz2\n-----END KEY-----")
    assert redactor.redact("read MIIE0abcdef and xyz1xyz2") == "read *** and ***"
    text = "The server git failed: exit code 1\n  at line 12 of server.py (key missing)"
    assert knowing("a", "xyz", "   ", "").redact(text) == text


def test_what_looks_like_a_secret_is_masked_unasked() -> None:
    for text in [
        "x-goog-api-key: AIzaSyExampleExampleExampleExample",
        "Authorization: Bearer abcdef123456",
        *("GET https://h/mcp?key=abcdef123456&x=abcdef123456", "https://user:abcdef123456@h/"),
        *("session_token=abcdef123456", "using ghp_abcdef1234567890abcdef"),
        "{'authorization': b'Bearer abcdef123456'}",
    ]:
        with row(text):
            shown = redaction.Redactor().redact(text)
            assert "***" in shown
            assert not [one for one in ("abcdef123456", "Example") if one in shown]


def test_a_secret_that_would_be_cut_in_two_is_masked_first() -> None:
    secret = "hunter2-hunter2-hunter2"
    text = "word " * (redaction.MAX_REDACTED // 20) + secret + " word" * redaction.MAX_REDACTED
    for shift in range(len(secret)):
        shown = knowing(secret).redact(text[shift:])
        assert "hunter2" not in shown
    assert len(shown) < redaction.MAX_REDACTED + 100


def test_the_oldest_secrets_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "MAX_SECRETS", 2)
    redactor = knowing("first-one", "second-one", "third-one")
    assert redactor.redact("first-one second-one third-one") == "first-one *** ***"


@pytest.mark.timeout(20)  # it takes a tenth of a second; hours, were the patterns not bounded
@pytest.mark.parametrize("piece", ["eyJ", "a=", "h://", "\n", "token "])
def test_hostile_text_costs_no_more_than_its_size(piece: str) -> None:
    redactor = knowing(*(f"secret-number-{number}" for number in range(50)))
    assert len(redactor.redact(piece * 500_000)) < 2 * redaction.MAX_REDACTED


def test_an_address_has_secrets_in_its_password_and_its_query() -> None:
    address = f"https://u:pa55word@h/p?key=k%2Bvalue&page=two&x={'l' * 20}"
    found = set(redaction.secrets_in_address(address))
    assert found == {"pa55word", "k%2Bvalue", "k+value", "l" * 20}
    for plain in ("https://h/p?stream=true", "http://[::1", ""):
        assert redaction.secrets_in_address(plain) == []


def test_a_secret_that_is_no_text_is_masked_as_well() -> None:
    secret = b"p\xe4sswort123".decode("utf-8", "surrogateescape")
    for form in (secret, "p%E4sswort123"):
        assert knowing(secret).redact(f"it is {form}") == "it is ***"
    assert knowing("half \ud800 pair").redact("half \ud800 pair") == "***"


def test_what_servers_do_not_inherit_is_masked_and_paths_are_not() -> None:
    theirs = {"STORE": "postgres://u:hunter2222@h/db", "API_KEY": "k-12345678"}
    assert {"hunter2222", "k-12345678"} <= set(redaction.environment_secrets(theirs))
    environ = {"SENTRYDSN": "dsn-12345678", "MYCREDS": "creds-12345678"}
    own = {**environ, "SSL_CERT_FILE": "/etc/ssl/certs/ca.pem"}
    assert redaction.environment_secrets(own) == ["dsn-12345678", "creds-12345678"]
