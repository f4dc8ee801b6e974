"""Prepare the process: logging, core dumps, stale files."""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Final

from tui.engine.files.atomic import remove_stale
from tui.engine.files.paths import state_dir
from tui.engine.logs.log_file import forbid_core_dumps, log_to_file
from tui.engine.logs.redaction import Redactor
from tui.engine.logs.secret_names import is_secret_name, secrets_in_address

MIN_ENVIRONMENT_SECRET: Final = 8
"""Shortest environment value that is masked; flags and numbers are shorter."""


_NOT_SECRET: Final = frozenset(
    {
        *("PWD", "SSH_AUTH_SOCK", "SESSION_MANAGER", "DESKTOP_SESSION"),
        *("DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_CLASS", "XDG_SESSION_DESKTOP"),
        *("XDG_SESSION_PATH", "XDG_SESSION_TYPE"),
    }
)
"""Common desktop variables with secret-sounding names; PWD is the opened folder."""


def prepare_process(*, verbose: bool = False) -> Redactor:
    """Send logs to their file, disable core dumps, and remove stale temporary files.

    Args:
        verbose: Whether to log more than warnings.

    Returns:
        The log's redactor, to which further secrets must be registered.
    """
    forbid_core_dumps()
    redactor = Redactor()
    redactor.register(*_environment_secrets(os.environ))
    log_to_file(redactor, verbose=verbose)
    with contextlib.suppress(OSError):
        remove_stale(state_dir(), time.time())
    return redactor


def _environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """Return long enough values of variables with secret-sounding names, and in addresses."""
    found = [
        value for name, value in environ.items() if is_secret_name(name) and name not in _NOT_SECRET
    ]
    found += [secret for value in environ.values() for secret in secrets_in_address(value)]
    return [value for value in found if len(value) >= MIN_ENVIRONMENT_SECRET]
