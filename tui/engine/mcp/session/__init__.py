"""One connection to a server: handshake, listings, calls, subscriptions."""
