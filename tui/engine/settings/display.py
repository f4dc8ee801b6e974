"""What the screen shows of a server definition: nothing secret, nothing raw."""

import shlex

from tui.engine.settings.definitions import ServerDefinition
from tui.engine.settings.secrets import masked_address, masked_words
from tui.model.servers import ServerStatus, ServerView, Transport
from tui.text import sanitize_line


def shown_target(definition: ServerDefinition) -> str:
    """Give the command line or address of a server as one line, with secrets masked."""
    if definition.transport is not Transport.STDIO:
        return sanitize_line(masked_address(definition.url, definition.secrets))
    if not definition.command:
        return ""
    words = masked_words((definition.command, *definition.args), definition.secrets)
    return sanitize_line(" ".join(map(_quoted, words)))


def initial_view(definition: ServerDefinition) -> ServerView:
    """Give the view of a server before anything happened: withheld, or stopped."""
    return ServerView(
        id=definition.id,
        origin=definition.origin,
        transport=definition.transport,
        target=shown_target(definition),
        description=definition.description,
        status=definition.withheld or ServerStatus.STOPPED,
        failure=definition.failure,
    )


def _quoted(word: str) -> str:
    """Quote a word where its ends would not be seen otherwise."""
    plain = word.isprintable() and not set(word) & set(" '\"")
    return word if word and plain else shlex.quote(word)
