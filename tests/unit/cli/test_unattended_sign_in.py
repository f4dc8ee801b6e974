"""`gemdeck mcp auth` where nobody sits at a terminal."""

import io
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.engine.mcp.support import eventually
from tui.cli.servers.sign_in import _Person
from tui.engine.desk import Desk
from tui.engine.engine import Engine
from tui.model.consent import RequestId
from tui.model.requests import ReplyAction, SignInRequest
from tui.model.servers import ServerId


@pytest.mark.parametrize(
    ("url", "says_yes", "allows"),
    [("https://as.example", False, True), ("", False, False), ("", True, True)],
)
async def test_credentials_that_no_browser_asks_about_need_a_yes(
    monkeypatch: pytest.MonkeyPatch, url: str, says_yes: bool, allows: bool
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    desk = Desk(lambda _: None)
    engine = cast("Engine", SimpleNamespace(desk=desk, events=lambda: cast("Any", None)))
    request = SignInRequest(
        id=desk.new_id(),
        server=ServerId("web"),
        address="https://web.example",
        host="as.example",
        shown_host="as.example",
        resource="",
        scopes=(),
        url=url,
        notes=(),
        kept="memory",
    )
    person = _Person(engine, says_yes=says_yes)
    desk_answers: list[tuple[RequestId, ReplyAction]] = []
    monkeypatch.setattr(desk, "answer", lambda one, reply: desk_answers.append((one, reply.action)))
    person._hear(request)
    await eventually(lambda: desk_answers)
    assert desk_answers == [(request.id, ReplyAction.ACCEPT if allows else ReplyAction.CANCEL)]
