"""JSON schemas of tools: converted for Gemini, and used to check and coerce arguments."""
