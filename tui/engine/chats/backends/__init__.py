"""Model backends: the interface, Gemini and Vertex."""
