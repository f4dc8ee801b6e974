"""The command line. Importing it costs nothing: no Textual, no MCP SDK, no google-genai."""

from tui.cli.main import main

__all__ = ["main"]
