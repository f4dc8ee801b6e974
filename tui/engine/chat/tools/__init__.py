"""gemdeck's own tools: the model finds other tools with them, and reads resources."""
