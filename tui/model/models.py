"""Which models there are, how one is to answer, and what fills its context."""

from typing import TYPE_CHECKING, Final

from tui.model.chat import ConversationEvent
from tui.model.frozen import Frozen, StateEvent
from tui.model.servers import ServerId
from tui.text import counted

if TYPE_CHECKING:  # it imports pydantic, which the first frame does without
    from collections.abc import Callable, Mapping

    from tui.model.settings import PriceSettings, Profile


class ModelOffer(Frozen):
    """A model of the service.

    Its limits are in tokens, 0 if unknown. Whether it takes tools and pictures, and whether it
    thinks, is None where the service does not say.
    """

    name: str
    title: str = ""
    context_limit: int = 0
    output_limit: int = 0
    tools: bool | None = None
    pictures: bool | None = None
    thinking: bool | None = None

    def facts(self, written: "Callable[[int], str]") -> list[str]:
        """Return what the service says of it, in words; `written` gives a number of tokens."""
        sizes = {"context": self.context_limit, "output": self.output_limit}
        takes = {"tools": self.tools, "pictures": self.pictures, "thinking": self.thinking}
        facts = [f"{what} {written(size)}" for what, size in sizes.items() if size]
        facts += ["no tools"] if self.tools is False else []
        return facts + [word for word, is_taken in takes.items() if is_taken]


class ModelOptions(Frozen):
    """How the model answers in a conversation; what is None is left to the service.

    Attributes:
        thinking: A level (``low``, ``high``) or for Gemini 2.5 a budget in tokens, as text.
        temperature: From 0 to 2.
        max_output: Most tokens of one answer.
        profile: The profile that says which servers and tools it may use; empty for all.
    """

    thinking: str | None = None
    temperature: float | None = None
    max_output: int | None = None
    profile: str = ""


OWN_OPTIONS: Final = ModelOptions()
"""All is left to the service."""


CHARACTERS_PER_TOKEN: Final = 4
"""Roughly, where the service has not counted yet."""

SMALL: Final = 0.1
"""Percent of the model's window below which they are not said."""

LARGE: Final = 5
"""Percent of the model's window from which a part is said to take them."""


class ContextPart(Frozen):
    """What a part of a request takes of the context.

    Attributes:
        name: What it is.
        tokens: Its size, estimated from its bytes unless it `is_counted`.
        server: Its server, or None.
        window: The size of the model's context, in tokens; 0 if unknown.
        is_counted: Whether the service counted the tokens.
        tools: The number of the tools in it.
    """

    name: str
    tokens: int
    server: ServerId | None = None
    window: int = 0
    is_counted: bool = False
    tools: int = 0

    @property
    def rounded(self) -> int:
        """Its tokens, as precisely as they are known."""
        return self.tokens if self.is_counted else round(self.tokens, 2 - len(str(self.tokens)))

    @property
    def words(self) -> str:
        """Say what it takes: ``about 1,200 tokens, estimated · 0.3 % of the context``."""
        said = counted(self.rounded, "token")
        said = f"{said}, counted by the service" if self.is_counted else f"about {said}, estimated"
        percent = 100 * self.tokens / self.window if self.window else 0
        if percent < SMALL:
            return said
        share = f"{percent:.1f}" if percent < LARGE else f"uses {percent:.0f}"
        return f"{said} · {share} % of the context"


class ServiceOffer(Frozen):
    """A service of models.

    Attributes:
        name: Its name.
        note: Where its key comes from, or what it lacks.
        is_ready: Whether it can be asked now.
        is_local: Whether it runs on this computer.
    """

    name: str
    note: str
    is_ready: bool
    is_local: bool = False


class ModelsListed(StateEvent):
    """The models of a service, and what other services there are.

    `failure` says why there are no models; `service` is empty for the one that answers.
    """

    part = "models"
    models: tuple[ModelOffer, ...] = ()
    failure: str = ""
    service: str = ""
    services: tuple[ServiceOffer, ...] = ()


class ModelOptionsChanged(ConversationEvent, StateEvent):
    """The model of a conversation answers like this from the next request on."""

    options: ModelOptions


class ContextMeasured(StateEvent):
    """What fills the context, largest first."""

    context_parts: tuple[ContextPart, ...]


class PricesSet(StateEvent):
    """The settings say what models cost."""

    prices: "PriceSettings"


Marks = frozenset[tuple[ServerId, str]]
"""What a profile is to be made of: tools with their servers, or whole servers without a tool."""


class MarksSet(StateEvent):
    """The user marked servers and tools for a profile."""

    marks: Marks


class ProfilesSet(StateEvent):
    """The profiles there are, by name: of the settings and still in use; "" stands for none."""

    profiles: "Mapping[str, Profile]"
