"""The service behind every run of `gemdeck -p`."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.gemini import FakeGemini


@pytest.fixture
async def gemini() -> AsyncIterator[FakeGemini]:
    async with FakeGemini() as fake:
        yield fake
