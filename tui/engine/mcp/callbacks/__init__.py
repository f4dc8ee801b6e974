"""Requests from servers: forms, addresses to open, and sampling."""
