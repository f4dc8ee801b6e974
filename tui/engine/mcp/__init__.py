"""MCP servers: supervised connections, transports, sessions, catalogs and schemas."""
