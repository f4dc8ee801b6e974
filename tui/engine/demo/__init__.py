"""The offline demo: a model that needs no key, and two bundled MCP servers."""
