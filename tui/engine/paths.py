"""Where gemdeck keeps its own state. `GEMDECK_HOME` moves all of it."""

import os
from pathlib import Path

import platformdirs

APP_NAME = "gemdeck"


def state_dir() -> Path:
    """Give the folder of gemdeck's own state, made private (0700) if it does not exist."""
    home = os.environ.get("GEMDECK_HOME")
    path = Path(home) if home else platformdirs.user_state_path(APP_NAME, appauthor=False)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def log_dir() -> Path:
    """Give the folder of log files and crash reports, inside the state folder."""
    path = state_dir() / "logs"
    path.mkdir(mode=0o700, exist_ok=True)
    return path
