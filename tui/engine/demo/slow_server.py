"""The bundled slow server: an MCP server over stdio, ``python -m tui.engine.demo.slow_server``.

Its tools are slow, report progress with messages, send log notifications, and stop at once when
cancelled.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

import anyio
from mcp import MCPDeprecationWarning
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from tui import __version__

MAX_STEPS: Final = 100
MAX_SECONDS_PER_STEP: Final = 10.0
LOG_EVERY: Final = 5  # steps
RESEARCH_STEP: Final = 0.4  # seconds
PHASES: Final = (
    "Planning the questions",
    "Reading the first source",
    "Reading the second source",
    "Comparing what they say",
    "Writing the report",
)
INSTRUCTIONS: Final = (
    "Slow tools that report their progress. They are for trying things out: "
    "research invents its report."
)

SlowContext = Context[Any, Any]


def build_server() -> MCPServer[Any]:
    """Create the server."""
    server: MCPServer[Any] = MCPServer(
        "gemdeck-slow",
        title="Slow work",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
        middleware=[_offer_logging],
    )
    harmless = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    @server.tool(title="Count slowly", annotations=harmless)
    async def count_slowly(
        ctx: SlowContext,
        steps: Annotated[int, Field(description="How far to count", ge=1, le=MAX_STEPS)] = 5,
        seconds_per_step: Annotated[
            float, Field(description="Seconds per step", ge=0, le=MAX_SECONDS_PER_STEP)
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
        topic: Annotated[str, Field(description="Topic to research", min_length=1)],
        ctx: SlowContext,
    ) -> str:
        """Pretend to research a topic in several slow phases, and return an invented report."""
        with _noting_cancellation("research"):
            await ctx.info(f"research begins: {topic[:100]}")
            for done, phase in enumerate(PHASES):
                await ctx.report_progress(done, len(PHASES), phase)
                await anyio.sleep(RESEARCH_STEP)
            await ctx.report_progress(len(PHASES), len(PHASES), "Done")
        return (
            f"Report on {topic}\n"
            "This report is invented: the demo reads no sources and reaches no network.\n"
            f"It went through {len(PHASES)} phases and reported each of them."
        )

    return server


async def _offer_logging(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Announce logging to older clients and accept any level, which the SDK does not."""
    if ctx.method == "logging/setLevel":
        return {}  # every level is sent
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(result, dict):
        result["capabilities"]["logging"] = {}
    return result


@contextmanager
def _noting_cancellation(tool: str) -> Iterator[None]:
    """Write one line to standard error if the call is cancelled."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        print(f"{tool} was cancelled", file=sys.stderr, flush=True)  # noqa: T201 - its log
        raise


def main() -> None:
    """Serve until standard input closes."""
    # the newest protocol deprecates logging, but all clients still understand it
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    build_server().run("stdio")


if __name__ == "__main__":
    main()
