"""JSON schemas of tools: converted for Gemini, made into forms, and used to check arguments."""
