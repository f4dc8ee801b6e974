"""Settings: layers, expansion, validation and server definitions."""
