"""The user interface. The only package that imports Textual."""
