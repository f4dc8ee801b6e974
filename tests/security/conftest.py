"""What tests here share: decks of servers that turn on their user, and a Textual that is prompt."""

from tests.cli.conftest import gemini
from tests.security.decks import bank, play, shop
from tests.support.prompt_textual import prompt_textual, pytest_collection_finish

__all__ = ["bank", "gemini", "play", "prompt_textual", "pytest_collection_finish", "shop"]
