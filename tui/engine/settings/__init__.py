"""Settings: layers, entries of servers, edits and importers."""
