"""Credentials: the Gemini key in the keyring, the environment, Vertex."""
