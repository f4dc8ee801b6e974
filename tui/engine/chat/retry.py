"""The wait before a request that the service refused for now goes out again."""

import asyncio
from dataclasses import dataclass, field
from typing import Self


@dataclass
class RetryWait:
    """Waits until the service may be asked again, unless the user decides before.

    Attributes:
        attempts: How often one request goes out again.
        patience: Longest wait, in seconds; a request that would have to wait longer fails.
    """

    attempts: int = 1
    patience: float = 10.0
    _decision: "asyncio.Future[bool] | None" = field(default=None, init=False)

    @classmethod
    def watched(cls) -> Self:
        """Return the wait of a user who sees it, and can end it."""
        return cls(attempts=3, patience=120.0)

    async def wait(self, seconds: float) -> bool:
        """Wait, and return whether to ask again."""
        self._decision = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                return await self._decision
        except TimeoutError:
            return True
        finally:
            self._decision = None

    def end(self, *, again: bool) -> None:
        """End the wait, if there is one: ask again now, or never."""
        if self._decision is not None and not self._decision.done():
            self._decision.set_result(again)
