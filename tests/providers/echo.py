"""A service of its own kind that repeats what it is told: the smallest provider there can be."""

from collections.abc import AsyncIterator, Sequence

from tui.engine import ModelBackend, ModelChunk, ModelError, ModelOffer, ModelRequest, ModelTraits


class EchoBackend:
    """A `ModelBackend` that answers with the last message, in capitals if it is ``loud``."""

    kind = "Echo"
    traits = ModelTraits(context_limit=1_000)

    def __init__(self, model: str) -> None:
        self.model = model

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        words = str(request.contents[-1]["parts"][0]["text"])
        if words == "fail":
            raise ModelError("The echo is away", advice="Shout.")
        yield ModelChunk(({"text": words.upper() if self.model == "loud" else words},), "STOP")

    async def models(self) -> Sequence[ModelOffer]:
        return [ModelOffer("echo/soft"), ModelOffer("echo/loud")]

    async def count(self, request: ModelRequest) -> int:
        return len(request.contents)

    async def check(self) -> None:
        """Take everybody."""

    async def aclose(self) -> None:
        """Have nothing to close."""


def open_echo(name: str) -> ModelBackend:
    """Open a model: the provider."""
    if name not in {"", "soft", "loud"}:
        raise ModelError(f"There is no echo {name}.")
    return EchoBackend(name or "soft")
