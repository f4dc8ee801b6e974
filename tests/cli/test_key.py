"""A key from standard input, checked with the service."""

import pytest

from tests.cli.running import run
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Say
from tui.cli.output import ExitCode


@pytest.mark.writes_secrets("credentials.json")
async def test_a_key_from_standard_input_is_checked_kept_and_used() -> None:
    async with FakeGemini([(Say("hello"),)]) as fake:
        wrong = await run("key", "set", "--address", fake.url, stdin=b"wrong\n")
        assert wrong.code == ExitCode.ERROR
        assert "The API key was not accepted" in wrong.stderr
        right = await run("key", "set", "--address", fake.url, stdin=f"{KEY}\n".encode())
        assert right.code == 0, right.stderr
        assert "accepted the key" in right.stdout
        answer = await run("-p", "hi")
        assert answer.stdout == "hello\n", answer.stderr
    assert {one.headers["x-goog-api-key"] for one in fake.requests} == {KEY}
    assert KEY not in "".join((wrong.stderr, right.stdout, right.stderr))
