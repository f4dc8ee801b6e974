"""Folder trust: what an opened folder brings, and what newcomers in the settings would run."""
