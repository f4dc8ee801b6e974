"""A fake Gemini in a process of its own that streams long answers at a pace.

It prints its address, and serves until its input ends.
"""

import asyncio
import sys

from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Action, Say, Sleep

PIECES_PER_SECOND = 100
SECONDS = 6.0
WORDS = "Some **words** of an answer, with `code` in it.\n- and a point\n\n"
CHUNK = 6


def answer() -> list[Action]:
    """Give the pieces of an answer and the pauses between them."""
    count = int(PIECES_PER_SECOND * SECONDS)
    text = WORDS * (count * CHUNK // len(WORDS) + 1)
    actions: list[Action] = []
    for number in range(count):
        actions += [Say(text[number * CHUNK : (number + 1) * CHUNK])]
        actions += [Sleep(1 / PIECES_PER_SECOND)]
    return actions


async def serve() -> None:
    async with FakeGemini([answer()] * 100) as fake:
        print(fake.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
