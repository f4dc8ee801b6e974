"""The offline demo: a model that needs no key, and a bundled MCP server."""
