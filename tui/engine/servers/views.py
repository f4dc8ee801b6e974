"""What is shown of a server."""

from tui.engine.servers.supervisor import Supervisor
from tui.engine.settings.display import shown_target
from tui.model.catalog import Catalog
from tui.model.servers import ServerView


def server_view(supervisor: Supervisor, catalog: Catalog) -> ServerView:
    """Show a server as it is now, with what it offers."""
    definition = supervisor.definition
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
    )
