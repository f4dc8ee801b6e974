"""A second provider of models, as somebody else would add it."""
