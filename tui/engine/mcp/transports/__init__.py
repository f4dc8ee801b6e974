"""Transports for JSON-RPC messages between gemdeck and one server."""
