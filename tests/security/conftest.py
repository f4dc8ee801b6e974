"""Where these tests draw a screen, Textual keeps them waiting for nothing."""

from tests.support.prompt_textual import prompt_textual, pytest_collection_finish

__all__ = ["prompt_textual", "pytest_collection_finish"]
