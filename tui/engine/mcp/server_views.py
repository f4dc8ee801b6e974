"""The state of a server as the UI shows it."""

import os
from pathlib import Path

from tui.engine.mcp.supervisor import Supervisor
from tui.engine.mcp.transports.stdio.environment import environment_names
from tui.engine.settings.servers.definitions import ServerDefinition, shown_target
from tui.engine.settings.sources.locations import shown_path
from tui.model.catalog import Catalog
from tui.model.servers import ServerView
from tui.text import sanitize_line


def server_view(supervisor: Supervisor, catalog: Catalog) -> ServerView:
    """Return the current state of a server for the UI, with its catalog."""
    definition = supervisor.definition
    passed, withheld = environment_names(definition, os.environ)
    return ServerView(
        id=definition.id,
        origin=definition.origin,
        transport=definition.transport,
        target=shown_target(definition),
        description=definition.description,
        status=supervisor.status,
        failure=supervisor.failure,
        retry_at=supervisor.retry_at,
        info=supervisor.info,
        catalog=catalog,
        since=supervisor.since,
        restarted=supervisor.restarted,
        environment=passed,
        variables=tuple(sanitize_line(name) for name in sorted(definition.env)),
        withheld=withheld,
        starts_outside=definition.starts_outside,
        cwd="" if definition.cwd is None else shown_path(definition.cwd, Path.home()),
        timeout=definition.timeout,
        trusted=definition.trust,
        source=_place(definition),
        extension=definition.extension,
    )


def _place(definition: ServerDefinition) -> str:
    """Return the file and line of a server's entry."""
    line = f", line {definition.line}" if definition.line else ""
    return f"{definition.source}{line}" if definition.source else ""
