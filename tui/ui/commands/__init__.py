"""The commands that are typed in the chat, and the palette; both do what the deck can do."""
