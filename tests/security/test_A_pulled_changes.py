"""What is pulled into a trusted folder runs only after a new yes, however a command leads to it."""

import sys

import pytest

from tests.security.opened import Place, opened, place
from tests.unit.engine.mcp.support import eventually
from tui.model.servers import ServerId, ServerStatus
from tui.model.trust import TrustAnswer, TrustSubject

__all__ = ["place"]


@pytest.mark.parametrize(("way", "named"), [("-m tool", "tool.py"), ("server.py", "server.py")])
async def test_A09_A22_what_is_pulled_into_a_trusted_folder_does_not_run_and_is_named(
    place: Place, way: str, named: str
) -> None:
    link, server = place.folder / "server.py", ServerId("it")
    place.script("tool/__main__.py", "one")
    link.symlink_to("tool/__main__.py")
    entry = {"command": sys.executable, "args": way.split()}
    place.project({"mcpServers": {"it": entry}})
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("it", ServerStatus.READY)
        assert place.words() == ["one"]
        place.script("tool.py", "other")  # which takes precedence
        link.unlink()
        link.symlink_to("tool.py")
        deck.engine.servers.restart(server)
        await deck.reach("it", ServerStatus.FAILED)
        failure = deck.server("it").failure
        assert failure is not None
        assert named in failure.reason
        assert "has changed since it was shown" in failure.reason
    async with opened(place) as deck:
        question = await deck.question()
        assert question.subject is TrustSubject.FOLDER
        changed = [line.text for line in question.difference if line.sign == "+"]
        assert any(named in line for line in changed), changed
        assert deck.statuses() == {"it": ServerStatus.UNTRUSTED}
    assert place.words() == ["one"]


async def test_A22_a_server_of_the_user_does_not_start_with_code_that_was_pulled_meanwhile(
    place: Place,
) -> None:
    place.script("pkg/__main__.py", "one")
    place.user({"mcpServers": {"mine": {"command": sys.executable, "args": ["-m", "pkg"]}}})
    async with opened(place) as deck:
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("mine", ServerStatus.READY)
        place.script("pkg/__main__.py", "other")
        deck.engine.servers.restart(ServerId("mine"))
        await deck.reach("mine", ServerStatus.FAILED)
        failure = deck.server("mine").failure
        assert failure is not None
        assert "gemdeck.developedServers" in failure.advice
        assert place.words() == ["one"]
        deck.engine.review_folder()
        await eventually(lambda: any(one.difference for one in deck.questions()))
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("mine", ServerStatus.READY)
        assert place.words() == ["one", "other"]
