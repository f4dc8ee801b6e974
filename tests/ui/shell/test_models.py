"""The model on the screen: the service's list, options, and what fills the context."""

from tests.ui.harness import running
from tests.ui.shell import decks
from tests.ui.shell.test_own_commands import report
from tui.model.models import (
    ContextMeasured,
    ContextPart,
    ModelOffer,
    ModelOptions,
    ModelOptionsChanged,
    ModelsListed,
)
from tui.model.servers import ServerId
from tui.ui.dialogs.choices import ModelsScreen
from tui.ui.dialogs.details import DetailsScreen

OFFERS = (
    ModelOffer("gemini-3.8-flash", "Flash", 1_048_576, 65_536),
    ModelOffer("gemini-2.5-pro", "[b]Pro[/b]", 1_048_576, 65_536),
)


async def test_a_model_is_chosen_from_the_services_list() -> None:
    async with running(decks.full_store()) as deck:
        await deck.typed("/model")
        await deck.until(lambda: deck.on_top(ModelsScreen))
        assert "Asking the service" in deck.text
        await deck.press(*"pro", "escape")
        await deck.until(lambda: not deck.on_top(ModelsScreen))
        await deck.press("f9", "end", "enter")
        await deck.until(lambda: deck.on_top(ModelsScreen))
        deck.dispatch(ModelsListed(failure="The service is [b]down[/b]."))
        await deck.until(lambda: "The service is [b]down[/b]." in deck.text)
        await deck.press("escape", "escape")
        for _ in range(2):
            await deck.until(lambda: not deck.on_top(ModelsScreen))
            await deck.typed("/model")
            deck.dispatch(ModelsListed(OFFERS))
            await deck.until(lambda: "[b]Pro[/b]" in deck.text)
            assert "Asking" not in deck.text
            row = next(line for line in deck.lines if "gemini-2.5-pro" in line)
            assert "context 1M · output 65.5k" in row
            await deck.press("escape")
        await deck.typed("/model")
        await deck.press(*"pro", "enter")
        assert deck.asked("model.use_model") == [("gemini-2.5-pro",)]


async def test_options_are_set_and_shown() -> None:
    async with running(decks.full_store()) as deck:
        await deck.typed("/options thinking HIGH")
        deck.dispatch(ModelOptionsChanged(ModelOptions("high")))
        await deck.typed("/options temperature 0.5")
        assert [options for [options] in deck.asked("model.set_options")] == [
            ModelOptions("high"),
            ModelOptions("high", 0.5),
        ]
        await deck.typed("/options output many")
        assert deck.said == "many is not a number."
        await deck.typed("/options output inf")
        assert deck.said == "inf is not a number."
        assert "thinking     high" in await report(deck, "/options")


async def test_the_context_is_shown_by_its_parts_on_one_key() -> None:
    async with running(decks.full_store()) as deck:
        await deck.press("f10")
        await deck.until(lambda: deck.on_top(DetailsScreen))
        assert deck.asked("model.measure") == [()]
        parts = ContextPart("tools", 12_000, ServerId("git")), ContextPart("messages", 400)
        deck.dispatch(ContextMeasured(parts))
        await deck.until(lambda: "tools of git" in deck.text)
        assert any("12,000" in line and "tools of git" in line for line in deck.lines)
