"""gemdeck: a full-screen terminal deck for Gemini and MCP."""

__version__ = "0.3.0"
