"""Which models there are, how one is to answer, and what fills its context."""

from typing import TYPE_CHECKING, Final

from tui.model.chat import MAIN, ConversationId
from tui.model.frozen import dataclass
from tui.model.servers import ServerId

if TYPE_CHECKING:  # it imports pydantic, which the first frame does without
    from tui.model.settings import PriceSettings


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """A model of the service; limits in tokens, 0 if unknown."""

    name: str
    title: str = ""
    context_limit: int = 0
    output_limit: int = 0


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How the model answers in a conversation; what is None is left to the service.

    Attributes:
        thinking: A level (``low``, ``high``) or for Gemini 2.5 a budget in tokens, as text.
        temperature: From 0 to 2.
        max_output: Most tokens of one answer.
    """

    thinking: str | None = None
    temperature: float | None = None
    max_output: int | None = None


OWN_OPTIONS: Final = ModelOptions()
"""All is left to the service."""


@dataclass(frozen=True, slots=True)
class ContextPart:
    """What a part of the last request may take of the context, in estimated tokens."""

    name: str
    tokens: int
    server: ServerId | None = None


@dataclass(frozen=True, slots=True)
class ModelEvent:
    """An event about models."""


@dataclass(frozen=True, slots=True)
class ModelsListed(ModelEvent):
    """The models of the service; `failure` says why there are none."""

    models: tuple[ModelOffer, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ModelOptionsChanged(ModelEvent):
    """The model of a conversation answers like this from the next request on."""

    options: ModelOptions
    conversation: ConversationId = MAIN


@dataclass(frozen=True, slots=True)
class ContextMeasured(ModelEvent):
    """What fills the context, largest first."""

    parts: tuple[ContextPart, ...]


@dataclass(frozen=True, slots=True)
class PricesSet(ModelEvent):
    """The settings say what models cost."""

    prices: "PriceSettings"


ModelEvents = ModelsListed | ModelOptionsChanged | ContextMeasured | PricesSet
