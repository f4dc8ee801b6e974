"""Saved conversations: written as they go, read back, listed and exported."""
