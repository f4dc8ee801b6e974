"""Signing in to servers: OAuth, Google, and their tokens."""
