"""The bundled slow server: an MCP server over stdio, ``python -m tui.engine.demo.slow_server``.

Its tools take their time, report progress with messages, write log notifications, and stop at
once when they are cancelled.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

import anyio
from mcp import MCPDeprecationWarning
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from tui import __version__
from tui.engine.demo.handshake import LOGGING, HandshakeCapabilities

MAX_STEPS: Final = 100
"""Most steps that `count_slowly` counts."""

MAX_SECONDS_PER_STEP: Final = 10.0
"""Longest step of `count_slowly`, in seconds."""

LOG_EVERY: Final = 5
"""Steps of `count_slowly` from one log notification to the next."""

RESEARCH_STEP: Final = 0.4
"""Seconds that each phase of `research` takes."""

PHASES: Final = (
    "Planning the questions",
    "Reading the first source",
    "Reading the second source",
    "Comparing what they say",
    "Writing the report",
)
"""What `research` says it is doing, phase by phase."""

INSTRUCTIONS: Final = (
    "Tools that take a while and report their progress. They are made for trying things out: "
    "research invents its report."
)

SlowContext = Context[Any, Any]


def build_server(research_step: float = RESEARCH_STEP) -> MCPServer[Any]:
    """Make the server; `research_step` is how many seconds a phase of `research` takes."""
    server: MCPServer[Any] = MCPServer(
        "gemdeck-slow",
        title="Slow work",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
        middleware=[HandshakeCapabilities(LOGGING)],
    )
    harmless = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    @server.tool(title="Count slowly", annotations=harmless)
    async def count_slowly(
        ctx: SlowContext,
        steps: Annotated[int, Field(description="How far to count", ge=1, le=MAX_STEPS)] = 5,
        seconds_per_step: Annotated[
            float, Field(description="How long one step takes", ge=0, le=MAX_SECONDS_PER_STEP)
        ] = 0.5,
    ) -> str:
        """Count up to a number, one step at a time, and report the progress."""
        with _noting_cancellation("count_slowly"):
            for step in range(1, steps + 1):
                await anyio.sleep(seconds_per_step)
                await ctx.report_progress(step, steps, f"Counted to {step} of {steps}")
                if step % LOG_EVERY == 0 or step == steps:
                    await ctx.info(f"count_slowly is at {step} of {steps}")
        return f"Counted to {steps}, {seconds_per_step:g} seconds a step."

    @server.tool(title="Research a topic", annotations=harmless)
    async def research(
        topic: Annotated[str, Field(description="What to look into", min_length=1)],
        ctx: SlowContext,
    ) -> str:
        """Pretend to look into a topic, in several slow phases, and give an invented report."""
        with _noting_cancellation("research"):
            await ctx.info(f"research begins: {topic[:100]}")
            for done, phase in enumerate(PHASES):
                await ctx.report_progress(done, len(PHASES), phase)
                await anyio.sleep(research_step)
            await ctx.report_progress(len(PHASES), len(PHASES), "Done")
        return (
            f"Report on {topic}\n"
            "This report is invented: the demo reads no sources and reaches no network.\n"
            f"It went through {len(PHASES)} phases and reported each of them."
        )

    return server


@contextmanager
def _noting_cancellation(tool: str) -> Iterator[None]:
    """Write one line to standard error when the call is cancelled; stop all the same."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        print(f"{tool} was cancelled", file=sys.stderr, flush=True)  # noqa: T201 - its log
        raise


def main() -> None:
    """Serve until standard input closes."""
    # The newest protocol deprecates logging, which clients of every era still understand.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    build_server().run("stdio")


if __name__ == "__main__":
    main()
