"""A folder's servers in their sandboxes: by the answer to its question, now and in later runs."""

import shutil
import sys

import pytest

from tests.security.opened import CANARY, Place, opened, place
from tui.engine.definitions import bubblewrap
from tui.model.servers import ServerStatus as S
from tui.model.trust import NO_SANDBOX, TrustAnswer

__all__ = ["place"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a sandbox")

YES = TrustAnswer.TRUST


@pytest.fixture(autouse=True)
def servers(place: Place) -> None:
    """Let a folder bring a server that writes in it, and one that writes elsewhere."""
    shutil.copy(CANARY, place.folder / "canary.py")
    here, there = str(place.folder / "songs"), str(place.songs_file)
    entries = {
        name: {"command": sys.executable, "args": ["canary.py", file]}
        for name, file in (("here", here), ("there", there))
    }
    place.project({"mcpServers": entries})


@pytest.mark.usefixtures("sandboxes")
async def test_it_has_one_until_the_user_says_otherwise(place: Place) -> None:
    async with opened(place) as deck:
        question = await deck.answer(YES)
        assert {one.sandbox for one in question.servers} == {"no network"}
        assert question.no_sandbox == ""
        await deck.reach("here", S.READY)
        await deck.reach("there", S.RETRYING)
    assert not place.songs_file.exists()
    async with opened(place) as deck:
        await deck.reach("here", S.READY)
        await deck.reach("there", S.RETRYING)
        deck.engine.review_folder()
        await deck.answer(TrustAnswer.TRUST_BARE)
        await deck.reach("there", S.READY)
    assert place.songs_file.exists()
    async with opened(place) as deck:
        await deck.reach("there", S.READY)
        deck.engine.review_folder()
        await deck.answer(YES)
        await deck.reach("there", S.RETRYING)


async def test_where_there_can_be_none_the_question_says_so_and_its_yes_covers_that(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(place) as deck:
        question = await deck.answer(YES)
        assert question.no_sandbox == "bubblewrap (bwrap) is not installed"
        assert {one.sandbox for one in question.servers} == {NO_SANDBOX}
        await deck.reach("there", S.READY)
    async with opened(place) as deck:
        await deck.reach("there", S.READY)
    monkeypatch.setattr(bubblewrap, "BWRAP", "bwrap")
    bubblewrap.sandbox_problem.cache_clear()
    async with opened(place) as deck:
        await deck.reach("here", S.READY)
        await deck.reach("there", S.RETRYING)


@pytest.mark.usefixtures("sandboxes")
async def test_a_yes_to_servers_in_a_sandbox_covers_none_without(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(place) as deck:
        await deck.answer(YES)
        await deck.reach("here", S.READY)
    monkeypatch.setattr(bubblewrap, "BWRAP", "none of this name")
    bubblewrap.sandbox_problem.cache_clear()
    async with opened(place) as deck:
        for name in ("here", "there"):
            await deck.reach(name, S.FAILED)
            failure = deck.server(name).failure
            assert failure is not None
            assert "cannot run in a sandbox" in failure.reason
    assert not place.songs_file.exists()
