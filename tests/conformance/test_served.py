"""The official conformance suite against `gemdeck mcp serve`, as far as a proxy can pass it.

What cannot pass is in `baseline.yml`, each with its reason.
"""

from pathlib import Path

import anyio
import pytest

from tests.conformance.bridge import bridged
from tests.conformance.client import willing_reply
from tests.conformance.suite import failed_checks, lacking, run_suite
from tests.security.decks import playing
from tests.support import warm
from tests.support.measures import Measure
from tests.unit.engine.mcp.support import eventually
from tui.engine.engine import Engine
from tui.engine.serving.lending import answering_others
from tui.model.events import RequestRaised
from tui.model.servers import ServerStatus

pytestmark = pytest.mark.timeout(240)

SERVER = str(Path(__file__).with_name("offering.py"))


async def answer_all(engine: Engine) -> None:
    """Say yes to whatever the deck asks."""
    async for event in engine.events():
        if isinstance(event, RequestRaised):
            engine.desk.answer(event.request.id, willing_reply(event.request))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_server_behind_gemdeck_passes_the_official_suite(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: Measure
) -> None:
    settings = {
        "mcpServers": {"offering": {"command": warm.python(), "args": [SERVER]}},
        "gemdeck": {"alwaysAllow": [{"server": "offering"}]},
    }
    monkeypatch.chdir(Path(__file__).parents[2])
    command = [warm.python(), "-m", "tui", "mcp", "serve"]
    async with playing(monkeypatch, [], settings=settings, folder=tmp_path) as deck:
        await eventually(lambda: deck.status("offering") is ServerStatus.READY)
        async with answering_others(deck.engine, tmp_path), anyio.create_task_group() as group:
            group.start_soon(answer_all, deck.engine)
            async with bridged(command, tmp_path) as url:
                which = ("server", "--url", url, "--requirements", revision)
                verdict = await run_suite(tmp_path, *which)
            group.cancel_scope.cancel()
    scores = verdict.scores
    measure(
        f"conformance of mcp serve, {revision}: {sum(failed == 0 for _, failed in scores.values())}"
        f" of {len(scores)} scenarios pass ({sum(passed for passed, _ in scores.values())} checks)"
    )
    unsound = [
        line for name in scores.keys() - lacking("server") for line in failed_checks(tmp_path, name)
    ]
    assert unsound == []
    assert verdict.code == 0, verdict.output[-3000:]
