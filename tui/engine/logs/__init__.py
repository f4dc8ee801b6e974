"""Log files, and masking of secrets."""
