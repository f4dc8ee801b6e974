"""What the user decided is on the disk before the engine has closed."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.security.opened import Place, opened, place
from tui.engine.files.state_file import Change, Content, StateFile
from tui.model.servers import ServerStatus
from tui.model.trust import FolderTrust, TrustAnswer

__all__ = ["place"]


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every write of a state file take half a second."""
    update = StateFile.update

    def slow(file: StateFile, change: Change) -> Content:
        asyncio.run(asyncio.sleep(0.5))  # in the thread that writes
        return update(file, change)

    with monkeypatch.context() as patched:
        patched.setattr(StateFile, "update", slow)
        yield


@pytest.mark.usefixtures("slow_disk")
@pytest.mark.parametrize("waits", [False, True])
async def test_J01_an_answer_is_kept_however_soon_gemdeck_is_left(
    place: Place, waits: bool
) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}})
    async with opened(place) as deck:
        question = await deck.question()
        deck.engine.desk.answer(question.id, TrustAnswer.NEVER)
        if waits:
            await asyncio.sleep(0)
    async with opened(place) as deck:
        assert deck.trust() is FolderTrust.NEVER
        assert deck.questions() == []


@pytest.mark.usefixtures("slow_disk")
async def test_J01_a_forgotten_folder_is_forgotten_however_soon_gemdeck_is_left(
    place: Place,
) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}})
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("it", ServerStatus.READY)
        deck.engine.forget_folder()
    async with opened(place) as deck:
        await deck.question()
        assert deck.trust() is FolderTrust.UNTRUSTED
