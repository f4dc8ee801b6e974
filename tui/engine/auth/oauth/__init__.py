"""Signing in to servers with OAuth 2.1, and the tokens that come of it."""
