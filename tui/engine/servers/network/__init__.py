"""Servers on the network: streamable HTTP, and the HTTP+SSE of the earlier revisions."""
