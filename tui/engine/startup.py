"""What a process does for its safety before it works."""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Final

from tui.engine.files import remove_stale
from tui.engine.logs import forbid_core_dumps, log_to_file
from tui.engine.paths import state_dir
from tui.engine.redaction import Redactor
from tui.engine.settings.secrets import is_secret_name

MIN_ENVIRONMENT_SECRET: Final = 8
"""Shortest value of a variable that is masked; switches and numbers are shorter."""


_NO_SECRETS: Final = frozenset(
    {
        *("PWD", "SSH_AUTH_SOCK", "SESSION_MANAGER", "DESKTOP_SESSION"),
        *("DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_CLASS", "XDG_SESSION_DESKTOP"),
        *("XDG_SESSION_PATH", "XDG_SESSION_TYPE"),
    }
)
"""Variables of every desktop whose names sound secret: the opened folder is in one of them."""


def prepare_process(*, verbose: bool = False) -> Redactor:
    """Send logs to their file, forbid core dumps, and clear what killed processes left.

    Args:
        verbose: Whether the log has more than warnings.

    Returns:
        What keeps secrets out of the log; it has to be told of them.
    """
    forbid_core_dumps()
    redactor = Redactor()
    redactor.register(*_environment_secrets(os.environ))
    log_to_file(redactor, verbose=verbose)
    with contextlib.suppress(OSError):
        remove_stale(state_dir(), time.time())
    return redactor


def _environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """Give the values of variables whose names say that they are secret, and whose size does."""
    return [
        value
        for name, value in environ.items()
        if is_secret_name(name) and name not in _NO_SECRETS and len(value) >= MIN_ENVIRONMENT_SECRET
    ]
