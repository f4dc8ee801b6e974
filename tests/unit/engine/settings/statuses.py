"""Servers that are withheld, and one that is not."""

from tests.unit.engine.settings.conftest import Machine
from tui.model.servers import ServerStatus

GOOD = {"command": "x"}


# mcp


def withheld(machine: Machine) -> dict[str, ServerStatus | None]:
    return {name: server.withheld for name, server in machine.servers().items()}


OFF = ServerStatus.DISABLED
