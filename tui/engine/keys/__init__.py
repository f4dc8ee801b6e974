"""The key of the model's service, and which service may be asked."""
