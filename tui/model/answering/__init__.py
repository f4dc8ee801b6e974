"""How a model answers, and which ones there are."""
