"""Settings: layers, expansion, validation, and the server definitions that come of them."""
