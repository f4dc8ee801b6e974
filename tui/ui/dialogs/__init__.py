"""The dialogs over the main screen that are no questions."""
