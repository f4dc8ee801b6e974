"""Requests from servers: forms, addresses to open, sampling and roots."""
