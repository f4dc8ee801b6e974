"""The state of a server as the UI shows it."""

import os

from tui.engine.mcp.supervisor import Supervisor
from tui.engine.mcp.transports.stdio.environment import environment_names
from tui.engine.settings.servers.definitions import shown_target
from tui.model.catalog import Catalog
from tui.model.servers import ServerView


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
        withheld=withheld,
        starts_outside=definition.starts_outside,
    )
