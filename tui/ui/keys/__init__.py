"""The keys of the deck: which there are, and what is typed before they can act."""
