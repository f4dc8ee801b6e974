"""The kinds of services that the tests of conversations run with."""

import pytest

from tests.unit.engine.chats import support


@pytest.fixture(params=[support.GEMINI, support.COMPLETIONS], ids=["gemini", "completions"])
def each_service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with Gemini, and with a service of chat completions."""
    monkeypatch.setattr(support, "chosen", request.param)
