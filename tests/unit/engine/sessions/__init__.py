"""Saved conversations."""
