"""Folder trust: the settings of an opened folder, and servers that would run code."""
