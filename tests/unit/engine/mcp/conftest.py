"""Gives tests a zygote of their own."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tui.engine.mcp.transports.stdio.zygote import Zygote


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    with closing(Zygote()) as zygote:
        yield zygote
