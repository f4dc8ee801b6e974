"""Sources of settings: files, layers, extensions and variables."""
