"""Prepare the process: logging, core dumps, stale files."""

import contextlib
import os
import time

from tui.engine.files.atomic import remove_stale
from tui.engine.files.paths import state_dir
from tui.engine.logs.log_file import forbid_core_dumps, log_to_file
from tui.engine.logs.redaction import Redactor
from tui.engine.logs.secret_names import environment_secrets


def prepare_process(*, verbose: bool = False) -> Redactor:
    """Send logs to their file, disable core dumps, and remove stale temporary files.

    Args:
        verbose: Whether to log more than warnings.

    Returns:
        The log's redactor, to which further secrets must be registered.
    """
    forbid_core_dumps()
    redactor = Redactor()
    redactor.register(*environment_secrets(os.environ))
    log_to_file(redactor, verbose=verbose)
    with contextlib.suppress(OSError):
        remove_stale(state_dir(), time.time())
    return redactor
