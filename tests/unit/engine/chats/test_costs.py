"""List prices of models, and when they are looked for."""

import subprocess
import sys
from dataclasses import replace

import pytest

from tests.providers.echo import EchoBackend
from tests.unit.engine.chats.support import open_completions
from tui.engine.chats.backends.backend import ModelBackend, ModelRequest
from tui.engine.chats.backends.gemini import traits
from tui.engine.chats.costs import Costs, find_list_price
from tui.engine.chats.step import ModelStep
from tui.model.chat import EntryId, Usage
from tui.model.events import Event, UsageReported
from tui.model.settings import ModelPrice, PriceSettings

THOUSAND = Usage(prompt=1_000, output=500, thoughts=500, cached=400)


class Counted(EchoBackend):
    """A model somewhere that counts its tokens."""

    def __init__(self, kind: str, model: str, address: str) -> None:
        super().__init__(model)
        self.kind = kind
        self.traits = replace(traits(model), address=address)

    async def stream(self, request: ModelRequest):  # type: ignore[no-untyped-def] # noqa: ANN201
        async for chunk in super().stream(request):
            yield replace(chunk, usage=THOUSAND)


async def listed(backend: ModelBackend) -> float | None:
    """Run a step, and return what it costs by the list."""
    told: list[Event] = []
    step = ModelStep(told.append, lambda: EntryId("e"), lambda: None)
    await step.run(backend, ModelRequest([{"role": "user", "parts": [{"text": "x"}]}], ()))
    [cost] = [event.listed for event in told if isinstance(event, UsageReported)]
    return cost


@pytest.mark.parametrize(
    ("kind", "model", "address", "has_price"),
    [
        ("Gemini", "gemini-2.5-flash", "https://generativelanguage.googleapis.com", True),
        ("Gemini", "models/gemini-2.5-flash", "https://generativelanguage.googleapis.com", True),
        ("Gemini", "tunedModels/mine", "https://generativelanguage.googleapis.com", False),
        ("Gemini", "gemini-2.5-flash", "https://gateway.example", False),
        ("openai", "openai/gpt-4o-mini", "https://api.openai.com/v1", True),
        ("work", "work/gpt-4o-mini", "https://api.openai.com/v1", True),
        ("openrouter", "openrouter/openai/gpt-4o-mini", "https://openrouter.ai/api/v1", True),
        ("ollama", "ollama/gpt-4o-mini", "http://127.0.0.1:11434/v1", False),
        ("Echo", "gpt-4o-mini", "", False),
    ],
)
async def test_a_list_price_is_that_of_the_model_at_its_services_address(
    kind: str, model: str, address: str, *, has_price: bool
) -> None:
    cost = await listed(Counted(kind, model, address))
    assert (cost is not None) is has_price
    assert cost is None or 0 < cost < 0.1


async def test_cached_tokens_cost_less_and_thoughts_as_much_as_answers() -> None:
    price = await find_list_price(Counted("openai", "gpt-4o-mini", "https://api.openai.com/v1"))
    asked = [(said, cached) for said in (9, 1) for cached in (0, 90, 900)]
    costs = [price(Usage(100, said, 9 - said, cached)) for said, cached in asked]
    assert None not in costs
    assert costs[:3] == costs[3:]
    assert costs[0] > costs[1] > costs[2] > 0  # type: ignore[operator] # see above


async def test_a_local_service_needs_no_list() -> None:
    backend = await open_completions("http://127.0.0.1:9/v1")
    finding = find_list_price(backend)
    await backend.aclose()
    assert finding.done()


def test_the_list_is_imported_for_nothing_else() -> None:
    script = """
import sys, tui.ui.app, tui.engine.engine, tui.engine.chats.backends.gemini, tui.cli.headless
late = "genai_prices", "tui.engine.chats.backends.completions"
print([one for one in late if one in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


async def test_nothing_brings_the_list_up_to_date() -> None:
    await find_list_price(Counted("openai", "gpt-4o-mini", "https://api.openai.com/v1"))
    import genai_prices.data_snapshot as snapshot  # noqa: PLC0415
    import genai_prices.update_prices as updates  # noqa: PLC0415

    assert updates._shared_updater.ref_count == 0
    assert not snapshot.get_snapshot().from_auto_update


def test_no_count_gives_back_what_was_spent() -> None:
    costs = Costs(PriceSettings(models={"m": ModelPrice(input=1, output=1)}))
    for usage in (Usage(prompt=1_000_000), Usage(output=-9_000_000)):
        costs.take(UsageReported(usage, "m"))
    assert costs.spent == 1
