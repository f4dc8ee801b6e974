"""Form fields and the JSON editor."""
