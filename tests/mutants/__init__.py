"""Random mutants of the code, and which of them the tests notice."""
