"""``gemdeck.prices``: what models cost, so that gemdeck can say what was spent."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from tui.model.chat import Usage
from tui.model.sections.settings_types import Number, Section
from tui.model.settings_rules import check_model_name

MAX_PRICE: Final = 1_000_000
"""Highest price of a million tokens."""

MAX_MODELS: Final = 200
"""Most models with a price."""

MILLION: Final = 1_000_000
ANY: Final = "*"


def _checked_pattern(name: str) -> str:
    start = name.removesuffix(ANY)
    return name if start != name and not start else check_model_name(start) and name


class ModelPrice(Section):
    """The prices of one model, for a million tokens each."""

    input: Number = Field(
        ge=0, le=MAX_PRICE, allow_inf_nan=False, description="Price of a million tokens sent."
    )
    cached: Number | None = Field(
        None,
        ge=0,
        le=MAX_PRICE,
        allow_inf_nan=False,
        description="Price of a million of those that were cached. If not set, that of `input`.",
    )
    output: Number = Field(
        ge=0,
        le=MAX_PRICE,
        allow_inf_nan=False,
        description="Price of a million tokens answered, thoughts included.",
    )


class PriceSettings(Section):
    """``gemdeck.prices``."""

    currency: str = Field(
        "USD", pattern=r"^[A-Za-z$€£¥]{1,8}$", description="Word shown behind a cost."
    )
    models: dict[Annotated[str, AfterValidator(_checked_pattern)], ModelPrice] = Field(
        default_factory=dict,
        max_length=MAX_MODELS,
        description="Prices by model name, or by its beginning with `*` after it. The whole name "
        "counts, else the longest beginning; a model without a price has no cost.",
    )

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return what a request has cost, or None if the model has no price."""
        fitting = [name for name in self.models if name[-1] == ANY and model.startswith(name[:-1])]
        name = model if model in self.models else max(fitting, key=len, default="")
        if (price := self.models.get(name)) is None:
            return None
        cached = price.input if price.cached is None else price.cached
        spent = (
            max(0, usage.prompt - usage.cached) * price.input
            + usage.cached * cached
            + (usage.output + usage.thoughts) * price.output
        )
        return spent / MILLION

    def words(self, cost: float | None) -> str:
        """Write a cost; nothing if it is not known or nothing was spent."""
        if not cost:
            return ""
        digits = 2 if cost >= 1 else 4
        least = 10**-digits
        return f"{'<' if cost < least else ''}{max(cost, least):,.{digits}f} {self.currency}"
