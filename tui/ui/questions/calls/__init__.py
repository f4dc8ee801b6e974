"""The parts of the question about tool calls."""
