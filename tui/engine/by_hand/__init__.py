"""Calls that the user makes by hand."""
