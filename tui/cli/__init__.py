"""The command line. Importing it loads no Textual, MCP SDK or google-genai."""

import gc

gc.disable()  # what is imported lives as long as the process: looking for garbage only delays
from tui.cli.main import main  # noqa: E402

gc.freeze()
gc.enable()

__all__ = ["main"]
