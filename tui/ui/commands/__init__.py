"""The commands that are typed in the chat and carried out by the screen."""
