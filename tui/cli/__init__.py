"""The command line. Importing it loads no Textual, MCP SDK or google-genai."""

from tui.cli.main import main

__all__ = ["main"]
