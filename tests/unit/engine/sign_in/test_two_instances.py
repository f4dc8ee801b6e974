"""Two gemdecks with one sign-in: one refresh of a token that counts once, and none lost."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.mcp.network.support import define
from tests.unit.engine.mcp.support import eventually
from tests.unit.engine.sign_in.support import (
    Person,
    guarded,
    make_sign_ins,
    oauth,
    signed_in,
    token_session,
)
from tui.engine.mcp.context import ClientContext
from tui.engine.sign_in.sign_in_record import AuthError
from tui.model.requests import Reply, ReplyAction

pytestmark = pytest.mark.writes_secrets("sign-ins.json")

OTHER: Final = """
import asyncio, json, sys
from pathlib import Path
from tests.unit.engine.sign_in.support import Person, make_sign_ins, oauth
from tests.unit.engine.mcp.network.support import define

async def main(url, folder):
    sign_ins = make_sign_ins(Person(), Path(folder))
    credentials = sign_ins.credentials(define(url, sign_in=oauth()))
    print("ready", flush=True)
    sys.stdin.readline()
    signature = await credentials.signature()
    await sign_ins.aclose()
    print(json.dumps(signature.token), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_refresh_a_rotating_token_once(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as one:
        one.sign_ins.store.save(one.due)
        one.authority.slow = 0.3
        others = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", OTHER, one.server.url, str(tmp_path)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        for other in others:
            assert other.stdout is not None
            assert await other.stdout.readline() == b"ready\n"
        ended = await asyncio.gather(*(other.communicate(b"go\n") for other in others))
        tokens = {json.loads(out) for out, _ in ended}
        assert len(one.authority.refreshes()) == 1
        assert len(tokens) == 1
        assert tokens <= set(one.authority.tokens)
        assert one.kept is not None
        assert one.kept.refresh_token in one.authority.refreshers


async def test_a_token_that_another_gemdeck_got_is_masked_too(tmp_path: Path) -> None:
    context = ClientContext()
    async with signed_in(tmp_path, context) as one:
        theirs = f"{FIXTURE_SECRET}theirs"
        await one.session.take(one.due)
        one.sign_ins.store.save(one.record.model_copy(update={"access_token": theirs}))
        assert (await one.session.signature()).token == theirs
        assert theirs not in context.redactor.redact_known(theirs)


async def test_a_cancelled_sign_in_does_not_hide_what_another_gemdeck_got(tmp_path: Path) -> None:
    async with guarded() as server:
        late = make_sign_ins(Person(reply=lambda _: Reply(ReplyAction.CANCEL)), tmp_path)
        definition = define(server.url, sign_in=oauth())
        assert await token_session(late, definition).record() is None
        first = make_sign_ins(Person(), tmp_path)
        await first.sign_in(definition)
        with pytest.raises(AuthError, match="cancelled"):
            await late.sign_in(definition)
        kept = late.store.find(definition)
        assert kept is not None
        assert kept.access_token in server.authority.tokens
        assert len(server.authority.clients) == 1
        await late.aclose()
        await first.aclose()


async def test_a_token_that_another_gemdeck_got_and_that_is_due_is_refreshed(
    tmp_path: Path,
) -> None:
    async with signed_in(tmp_path) as one:
        old, theirs = (
            {name: f"{FIXTURE_SECRET}{name}"} for name in ("refresh_token", "access_token")
        )
        await one.session.take(one.due.model_copy(update=old))
        one.sign_ins.store.save(one.due.model_copy(update=theirs))
        assert (await one.session.signature()).token in one.authority.tokens
        [refresh] = one.authority.refreshes()
        assert refresh["refresh_token"] == one.record.refresh_token


async def test_a_caller_that_gives_up_does_not_lose_the_next_token(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as one:
        await one.session.take(one.due)
        one.authority.slow = 0.2
        asking = asyncio.create_task(one.session.signature())
        await eventually(one.authority.refreshes)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await one.sign_ins.aclose()
        assert one.kept is not None
        assert one.kept.refresh_token in one.authority.refreshers


async def test_signing_out_wins_over_a_refresh_under_way(tmp_path: Path) -> None:
    async with signed_in(tmp_path) as one:
        await one.session.take(one.due)
        one.authority.slow = 0.1
        refreshing = asyncio.create_task(one.session.signature())
        await eventually(one.authority.refreshes)
        await one.sign_ins.sign_out(one.definition)
        await asyncio.gather(refreshing, return_exceptions=True)
        assert (await one.session.signature()).token == ""
        assert one.kept is None
        assert not one.authority.refreshers
