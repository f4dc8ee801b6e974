"""Addresses that a call needs opened first (error -32042), without a server around them."""

import asyncio

import anyio
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.shared.exceptions import UrlElicitationRequiredError

from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import eventually
from tui.engine.desk import Desk
from tui.engine.mcp.callbacks.elicitation import Elicitation
from tui.engine.mcp.context import ClientContext
from tui.model.events import Event, RequestRaised
from tui.model.requests import FormRequest, Reply, ReplyAction, UrlRequest
from tui.model.servers import ServerId


class Stage:
    """An elicitor whose addresses open, and what it asks."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.events: list[Event] = []
        self.desk = Desk(self.events.append)
        context = ClientContext(self.events.append, self.desk, open_url=self._open)
        self.elicitation = Elicitation(ServerId("s"), context)

    async def _open(self, url: str) -> bool:
        self.opened.append(url)
        await anyio.lowlevel.checkpoint()
        return True

    @property
    def asked(self) -> list[FormRequest | UrlRequest]:
        """What was put to the user, oldest first."""
        raised = [event.request for event in self.events if isinstance(event, RequestRaised)]
        return [request for request in raised if isinstance(request, FormRequest | UrlRequest)]

    async def accept(self, number: int) -> None:
        """Accept the question of this number, once it is there."""
        await eventually(lambda: len(self.asked) >= number)
        self.desk.answer(self.asked[number - 1].id, Reply(ReplyAction.ACCEPT))

    def call(self, error: MCPError) -> "asyncio.Task[bool]":
        """Let the user open what a call needs."""
        return asyncio.create_task(self.elicitation.open_required(error, "pay"))


def needing(*elicitation_ids: str | None) -> MCPError:
    """Make the error of a call that needs an address opened for each of these."""
    return UrlElicitationRequiredError(
        [
            types.ElicitRequestURLParams(
                message="Open it", url=f"https://x.test/{number}", elicitation_id=elicitation_id
            )
            for number, elicitation_id in enumerate(elicitation_ids)
        ]
    )


async def test_what_the_server_completes_while_another_address_is_asked_about_counts() -> None:
    stage = Stage()
    call = stage.call(needing("one", "two"))
    await stage.accept(1)
    await eventually(lambda: len(stage.asked) == 2)
    stage.elicitation.complete("one")
    await stage.accept(2)
    await eventually(lambda: len(stage.asked) == 3)
    assert isinstance(stage.asked[2], FormRequest)
    assert not call.done()
    stage.elicitation.complete("two")
    with anyio.fail_after(PATIENCE):
        assert await call
    assert stage.opened == ["https://x.test/0", "https://x.test/1"]


async def test_a_completion_of_another_changes_nothing_and_the_user_may_say_so() -> None:
    stage = Stage()
    call = stage.call(needing("one", None))
    await stage.accept(1)
    await stage.accept(2)
    await eventually(lambda: len(stage.asked) == 3)
    for other in ("one", "other"):
        stage.elicitation.complete(other)
        assert not call.done(), "the second names no elicitation"
    await stage.accept(3)
    with anyio.fail_after(PATIENCE):
        assert await call


async def test_an_error_that_names_no_address_asks_nothing() -> None:
    stage = Stage()
    odd: list[object] = [None, [], "x", {"elicitations": 5}, {"elicitations": [{}]}]
    for data in odd:
        error = MCPError(types.URL_ELICITATION_REQUIRED, "open", data)
        with anyio.fail_after(PATIENCE):
            assert not await stage.call(error)
    assert stage.asked == []


@pytest.mark.parametrize(
    ("message", "marked"), [("Type the 12 words of your seed phrase.", True), ("Your town?", False)]
)
async def test_C08_words_that_ask_for_a_secret_mark_the_fields_below(
    message: str, *, marked: bool
) -> None:
    stage = Stage()
    schema = {"properties": {"answer": {"type": "string"}, "ready": {"type": "boolean"}}}
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    task = asyncio.create_task(stage.elicitation.elicit(params))
    await stage.accept(1)
    [asked] = stage.asked
    assert isinstance(asked, FormRequest)
    assert [field.asks_secret for field in asked.fields] == [marked, False]
    with anyio.fail_after(PATIENCE):
        await task
