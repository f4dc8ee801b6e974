"""Servers on the network: streamable HTTP, and HTTP+SSE of earlier revisions."""
