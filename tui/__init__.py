"""gemdeck: a full-screen terminal deck for Gemini and MCP."""

__version__ = "0.2.0"
