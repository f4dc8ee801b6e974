"""Trust in the opened folder: what it says, what the user answered, and what counts."""
