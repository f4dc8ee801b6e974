"""Servers: supervised connections, transports, catalogs, model-facing names and schemas."""
