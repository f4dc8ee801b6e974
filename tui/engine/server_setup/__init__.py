"""What the user sets up: servers that are tried, added, taken over, signed in to."""
