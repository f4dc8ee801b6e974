"""Server definitions from the entries of ``mcpServers``."""
