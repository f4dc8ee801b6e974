"""Addresses that a call needs opened first (error -32042), without a server around them."""

import asyncio
from functools import partial

import anyio
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.shared.exceptions import UrlElicitationRequiredError

from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.asking import Stage
from tui.engine.mcp.callbacks.elicitation import Elicitation
from tui.model.requests import FormRequest, UrlRequest
from tui.model.servers import ServerId


def needing(*elicitation_ids: str | None) -> MCPError:
    """Make the error of a call that needs an address opened for each of these."""
    of = partial(types.ElicitRequestURLParams, message="Open it")
    urls = [f"https://x.test/{number}" for number in range(len(elicitation_ids))]
    return UrlElicitationRequiredError(
        [of(url=url, elicitation_id=one) for url, one in zip(urls, elicitation_ids, strict=True)]
    )


async def test_it_is_the_user_who_says_when_the_addresses_are_done() -> None:
    stage = Stage()
    elicitation = Elicitation(ServerId("s"), stage.context)
    call = asyncio.create_task(elicitation.open_required(needing("one", None), "pay"))
    await stage.answer(UrlRequest)
    await stage.answer(UrlRequest)
    await stage.asked(FormRequest)
    for done in ("one", "other"):
        elicitation.complete(done)
        assert not call.done()
    assert stage.notices() == ["s reports that you are done at x.test."]
    await stage.answer(FormRequest)
    with anyio.fail_after(PATIENCE):
        assert await call
    assert stage.opened == ["https://x.test/0", "https://x.test/1"]


async def test_an_error_that_names_no_address_asks_nothing() -> None:
    stage = Stage()
    odd: list[object] = [None, [], "x", {"elicitations": 5}, {"elicitations": [{}]}]
    for data in odd:
        error = MCPError(types.URL_ELICITATION_REQUIRED, "open", data)
        with anyio.fail_after(PATIENCE):
            assert not await Elicitation(ServerId("s"), stage.context).open_required(error, "pay")
    assert stage.raised() == 0


@pytest.mark.parametrize(("message", "marked"), [("Your seed phrase?", True), ("Town?", False)])
async def test_C08_words_that_ask_for_a_secret_mark_fields(message: str, *, marked: bool) -> None:
    stage = Stage()
    schema = {"properties": {"answer": {"type": "string"}, "ready": {"type": "boolean"}}}
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    task = asyncio.create_task(Elicitation(ServerId("s"), stage.context).elicit(params))
    asked = await stage.answer(FormRequest)
    assert [field.asks_secret for field in asked.fields] == [marked, False]
    with anyio.fail_after(PATIENCE):
        await task
