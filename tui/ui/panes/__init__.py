"""The panes of the main screen, each a projection of the state."""
