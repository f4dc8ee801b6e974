"""What requests cost: by the user's prices, else by the list prices of their services."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from tui.engine.background import import_alone, in_daemon_thread
from tui.engine.chats.backends.backend import ModelBackend, ModelError
from tui.model.chat import BackendKind, Usage
from tui.model.events import Event, UsageReported
from tui.model.input.addresses import is_loopback
from tui.model.settings import PriceSettings
from tui.text import sanitize_line

ListPrice = Callable[[Usage], float | None]
"""Returns what a request costs in US dollars; None if that is not known."""

PRICE_ADVICE: Final = "Set its price in gemdeck.prices, or choose another model."

_ONE_TOKEN: Final = Usage(prompt=1)


def find_list_price(backend: ModelBackend) -> asyncio.Future[ListPrice]:
    """Find the list price of a model by the address of its service; it may take 0.4 s."""
    address, name = backend.traits.address, backend.model.removeprefix(f"{backend.kind}/")
    if not address or is_loopback(urlsplit(address).hostname or ""):
        price = 0.0 if backend.kind is BackendKind.DEMO else None
        found: asyncio.Future[ListPrice] = asyncio.get_running_loop().create_future()
        found.set_result(lambda _: price)
        return found
    return in_daemon_thread(lambda: _find(address, name.rpartition("models/")[2]))


def _find(address: str, name: str) -> ListPrice:
    import_alone("genai_prices.data")  # 1.6 MB, which nothing brings up to date by itself
    import genai_prices  # noqa: PLC0415

    def price(usage: Usage) -> float | None:
        with suppress(LookupError, ValueError):
            counted = genai_prices.Usage(
                input_tokens=usage.prompt,
                cache_read_tokens=min(usage.cached, usage.prompt),
                output_tokens=usage.output + usage.thoughts,
            )
            told = genai_prices.calc_price(counted, name, provider_api_url=address)
            return float(told.total_price)
        return None

    price(_ONE_TOKEN)  # the search for a model takes longer than what follows
    return price


class CostLimitError(ModelError):
    """The run has become too expensive for another request."""


@dataclass
class Costs:
    """What the requests of a run have cost, and how much they may.

    Attributes:
        prices: Those of the user.
        most: Where the run ends, in the currency of the prices; None for no limit.
        spent: The cost of all requests whose cost is known.
        is_attended: Whether there is a user who is told where the limit cannot apply.
        told: The models of which the user was.
    """

    prices: PriceSettings = field(default_factory=PriceSettings)
    most: float | None = None
    spent: float = 0.0
    is_attended: bool = False
    told: set[str] = field(default_factory=set)

    def take(self, event: Event) -> None:
        """Count what a request has cost."""
        if isinstance(event, UsageReported):
            cost = self.prices.cost(event.model, event.usage, event.listed) or 0.0
            self.spent += max(0.0, cost)  # whatever a service counts, nothing is given back

    def check(self) -> None:
        """Let a request pass while the limit is not reached.

        Raises:
            CostLimitError: If it is.
        """
        if self.most is not None and self.spent >= self.most:
            words = f"The cost limit of {self.prices.words(self.most)} per run is reached"
            advice = "Raise gemdeck.maxCost in your settings, or --max-cost, and restart gemdeck."
            raise CostLimitError(f"{words}.", advice=advice, retryable=True)

    async def warning(self, backend: ModelBackend, *, has_counts: bool) -> str:
        """Return why the limit cannot apply to a model, once; else an empty string.

        Args:
            backend: The model.
            has_counts: Whether its service counts tokens, as far as known.

        Raises:
            ModelError: If there is no user to tell: a limit that does not hold is worse than none.
        """
        if self.most is None or backend.model in self.told:
            return ""
        listed = (await find_list_price(backend))(_ONE_TOKEN)
        is_priced = self.prices.cost(backend.model, _ONE_TOKEN, listed) is not None
        if is_priced and has_counts:
            return ""
        lacks = "reports no token counts" if is_priced else "has no known price"
        words = f"{sanitize_line(backend.model, 100)} {lacks}, so gemdeck.maxCost cannot limit it."
        if not self.is_attended:
            raise ModelError(words, advice=PRICE_ADVICE, retryable=True)
        self.told.add(backend.model)
        return words
